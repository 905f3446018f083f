"""Which rule is meant, and whom it matches."""

from typing import Any

import pytest

from foliot.oidc.role_rules import EXAMPLE, RoleRules, Rule
from foliot.settings import SettingsError


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("groups:ops=operator", Rule(claim="groups", value="ops", role="operator")),
        (" groups:ops=operator , ", Rule(claim="groups", value="ops", role="operator")),
        ("groups:dev=submitter@team-a", Rule(claim="groups", value="dev", role="submitter", namespace="team-a")),
        ("groups:Data Team=viewer", Rule(claim="groups", value="Data Team", role="viewer")),
        ("realm_access.roles:jobs=admin", Rule(claim="realm_access.roles", value="jobs", role="admin")),
        ("https://a.example/roles:x=viewer", Rule(claim="https://a.example/roles", value="x", role="viewer")),
        ('"cognito:groups":ops=worker', Rule(claim="cognito:groups", value="ops", role="worker")),
        ('groups:"CN=ops,OU=it"=operator', Rule(claim="groups", value="CN=ops,OU=it", role="operator")),
        ("sub:repo:o/r:main=viewer@ci", Rule(claim="sub", value="repo:o/r:main", role="viewer", namespace="ci")),
        ("email:a@b.example=viewer", Rule(claim="email", value="a@b.example", role="viewer")),
    ],
)  # fmt: skip
def test_a_rule_is_read(text: str, rule: Rule) -> None:
    assert RoleRules.parse(text) == RoleRules((rule,))


def test_several_rules_are_read_in_their_order() -> None:
    assert [rule.value for rule in RoleRules.parse(EXAMPLE + ",\n groups:x=viewer").rules] == ["ops", "dev", "x"]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "nobody would be let in"),
        (" , ", "can not be read"),
        ("groups", "can not be read"),
        ("groups:ops", "can not be read"),
        ("groups=operator", "can not be read"),
        (":ops=operator", "can not be read"),
        ("groups:=operator", "can not be read"),
        ("groups:ops=", "can not be read"),
        ("groups:ops=Operator", "can not be read"),
        ("groups:ops=operator@", "can not be read"),
        ("groups:ops=operator groups:dev=viewer", "can not be read"),
        ('groups:"ops=operator', "can not be read"),
        ("groups:ops=root", "has a role 'root'; the roles are viewer, submitter, operator, admin, worker"),
        ("groups:ops=operator@Team", "has a namespace 'Team'"),
        ("groups:ops=operator@a/b", "has a namespace 'a/b'"),
    ],
)
def test_what_is_no_rule_is_refused_with_what_would_be_one(text: str, told: str) -> None:
    with pytest.raises(SettingsError, match=told):
        RoleRules.parse(text)


def matches(rule: str, **claims: Any) -> bool:
    return RoleRules.parse(f"{rule}=viewer").first_match(claims) is not None


def test_a_claim_is_a_text_or_a_list_of_them() -> None:
    assert matches("groups:ops", groups="ops")
    assert matches("groups:ops", groups=["x", "ops"])
    assert not matches("groups:ops", groups="x ops")
    assert not matches("groups:ops", groups=["opsx", "xops", "OPS", ["ops"], None, 7])
    assert not matches("groups:ops", groups={"ops": True})
    assert not matches("groups:ops")


def test_scopes_are_a_list_with_blanks_between() -> None:
    assert matches("scope:jobs", scope="openid jobs")
    assert matches("scp:jobs", scp=["jobs"])
    assert not matches("scope:jobs", scope="openid jobs:write")


def test_a_claim_inside_another_is_found_unless_there_is_one_of_the_whole_name() -> None:
    assert matches("realm_access.roles:ops", realm_access={"roles": ["ops"]})
    assert not matches("realm_access.roles:ops", realm_access=["roles", "ops"])
    assert not matches("a.b:ops", **{"a": {"b": "ops"}, "a.b": "x"})
    assert matches("a.b:ops", **{"a.b": "ops"})


@pytest.mark.parametrize("verified", [None, False, "true", 1])
def test_an_address_that_nobody_has_verified_counts_for_nothing(verified: object) -> None:
    assert matches("email:a@b.example", email="a@b.example", email_verified=True)
    assert not matches("email:a@b.example", email="a@b.example", email_verified=verified)
    assert not matches("email:a@b.example", email="a@b.example")
