"""The operator's rules: who of the provider's people is given which role, and where.

`groups:ops=operator,groups:dev=submitter@team-a`: claim, value, role, and the namespace unless it is the usual one. A
claim may lie inside another (`realm_access.roles`). A claim or a value with one of `: , = "` in it stands in double
quotes; a claim that is an address (`https://…`) needs none, nor does a `:` in a value.
"""

import re
from collections.abc import Mapping
from typing import Any

import msgspec

from foliot.domain.access import ROLES, Role
from foliot.domain.job import NAMESPACE
from foliot.settings import SettingsError
from foliot.wire.access import NamespaceName

EXAMPLE = "groups:ops=operator,groups:dev=submitter@team-a"

_RULE = re.compile(
    r'\s*(?:"(?P<quoted_claim>[^"]+)"|(?P<claim>(?:https?://)?[^:,="\s]+))'
    r':(?:"(?P<quoted_value>[^"]+)"|(?P<value>[^,="]+))'
    r"=(?P<role>[a-z]+)(?:@(?P<namespace>[^,\s]+))?\s*(?:,|\Z)"
)
_LISTED_IN_TEXT = frozenset({"scope", "scp"})  # with blanks between


class Rule(msgspec.Struct, frozen=True, kw_only=True):
    claim: str
    value: str
    role: Role
    namespace: str = NAMESPACE

    def matches(self, claims: Mapping[str, Any]) -> bool:
        if self.claim == "email" and claims.get("email_verified") is not True:
            return False  # anybody may say so
        found = _find(claims, self.claim)
        if isinstance(found, str):
            return self.value in found.split(" ") if self.claim in _LISTED_IN_TEXT else self.value == found
        return isinstance(found, list) and self.value in found


class RoleRules(msgspec.Struct, frozen=True):
    rules: tuple[Rule, ...]

    @classmethod
    def parse(cls, text: str) -> "RoleRules":
        """Raises `SettingsError`."""
        rules: list[Rule] = []
        place = 0
        while place < len(text.rstrip()):
            found = _RULE.match(text, place)
            if found is None:
                raise SettingsError(
                    f"oidc_roles can not be read from {text[place : place + 60]!r} on; "
                    f"it must be claim:value=role or claim:value=role@namespace, as in {EXAMPLE}"
                )
            rules.append(_rule(found))
            place = found.end()
        if not rules:
            raise SettingsError(f"oidc_roles is empty: nobody would be let in; give some, as in {EXAMPLE}")
        return cls(tuple(rules))

    def first_match(self, claims: Mapping[str, Any]) -> Rule | None:
        return next((rule for rule in self.rules if rule.matches(claims)), None)


def _rule(found: re.Match[str]) -> Rule:
    role, namespace = found["role"], found["namespace"] or NAMESPACE
    claim = found["quoted_claim"] or found["claim"]
    value = found["quoted_value"] or found["value"].strip()
    if role not in ROLES:
        raise SettingsError(f"oidc_roles has a role {role!r}; the roles are {', '.join(ROLES)}")
    try:
        msgspec.convert(namespace, NamespaceName)
    except msgspec.ValidationError:
        raise SettingsError(f"oidc_roles has a namespace {namespace!r}; it must be 1–63 of a–z 0–9 -") from None
    return Rule(claim=claim, value=value, role=role, namespace=namespace)


def _find(claims: Mapping[str, Any], name: str) -> Any:
    """The claim of that name, or the one inside others that its dots lead to."""
    if name in claims:
        return claims[name]
    found: Any = claims
    for word in name.split("."):
        found = found.get(word) if isinstance(found, dict) else None
    return found
