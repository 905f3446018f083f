"""Tokens that are let in, and as whom; the attack corpus is next door."""

from typing import Any

import pytest

from foliot.domain.access import Caller
from foliot.domain.duration import MINUTE, SECOND
from foliot.domain.errors import NotAuthenticated
from foliot.oidc import Verifier
from foliot.oidc.claims import SKEW
from foliot.testing.clock import VirtualClock
from tests.oidc.conftest import pass_time
from tests.oidc.tokens import AUDIENCE, Mint


async def test_a_good_token_is_its_bearers_role_and_name(verifier: Verifier, mint: Mint) -> None:
    assert await verifier.caller(mint.token()) == Caller(
        name="alice", namespace="default", role="operator", subject="248289761001"
    )


async def test_the_namespace_is_the_rules(verifier: Verifier, mint: Mint) -> None:
    caller = await verifier.caller(mint.token(groups=["dev"]))
    assert (caller.namespace, caller.role, caller.root) == ("team-a", "submitter", False)


async def test_the_first_rule_that_matches_counts(verifier: Verifier, mint: Mint) -> None:
    assert (await verifier.caller(mint.token(groups=["dev", "ops"]))).role == "operator"


@pytest.mark.parametrize("groups", [None, [], ["staff"], ["OPS"], ["оps"], "ops,dev", {"ops": True}, [["ops"]], 7])  # noqa: RUF001
async def test_nobody_is_let_in_without_a_match(verifier: Verifier, mint: Mint, groups: Any) -> None:
    with pytest.raises(NotAuthenticated, match="ask an operator"):
        await verifier.caller(mint.token(groups=groups))


@pytest.mark.parametrize(
    ("claims", "name"),
    [
        ({}, "alice"),
        ({"preferred_username": None, "email": "alice@example.org"}, "alice@example.org"),
        ({"preferred_username": None}, "248289761001"),
        ({"preferred_username": "  "}, "248289761001"),
        ({"preferred_username": "line\nbreak"}, "248289761001"),
        ({"preferred_username": "\u202eecila"}, "248289761001"),
        ({"preferred_username": "\ud800"}, "248289761001"),
        ({"preferred_username": ["alice"]}, "248289761001"),
        ({"preferred_username": "a" * 200}, "a" * 128),
        ({"preferred_username": "Admin"}, "Admin (248289761001)"),
        ({"preferred_username": "admin"}, "admin (248289761001)"),
        ({"preferred_username": " admin "}, "admin (248289761001)"),
    ],
)
async def test_a_name_is_one_that_can_be_shown_and_is_not_the_nodes_own(
    verifier: Verifier, mint: Mint, claims: dict[str, Any], name: str
) -> None:
    assert (await verifier.caller(mint.token(**claims))).name == name


async def test_one_audience_of_several_may_be_ours(verifier: Verifier, mint: Mint) -> None:
    assert (await verifier.caller(mint.token(aud=["https://other.example", AUDIENCE]))).name == "alice"


@pytest.mark.parametrize("kind", ["JWT", "jwt", "at+jwt", "application/at+jwt", None])
async def test_access_tokens_and_id_tokens_are_taken(verifier: Verifier, mint: Mint, kind: str | None) -> None:
    assert (await verifier.caller(mint.with_header(typ=kind))).name == "alice"


async def test_a_token_that_names_no_key_is_taken_where_there_is_only_one(verifier: Verifier, mint: Mint) -> None:
    assert (await verifier.caller(mint.with_header(kid=None))).name == "alice"


async def test_a_token_needs_no_time_before_which_it_is_not_good(verifier: Verifier, mint: Mint) -> None:
    assert (await verifier.caller(mint.token(nbf=None))).name == "alice"


async def test_times_may_have_fractions(verifier: Verifier, mint: Mint) -> None:
    assert (await verifier.caller(mint.token(exp=mint.now + 10.5, iat=mint.now - 0.5))).name == "alice"


async def test_a_token_is_good_until_its_end_and_a_minute_for_clocks_that_differ(
    verifier: Verifier, mint: Mint, clock: VirtualClock
) -> None:
    token = mint.token(exp=mint.now + 120)
    end = (mint.now + 120) * SECOND + SKEW
    pass_time(clock, end - 1 - clock.now())
    assert (await verifier.caller(token)).name == "alice"
    pass_time(clock, 1)
    with pytest.raises(NotAuthenticated, match="expired"):
        await verifier.caller(token)


async def test_a_token_is_good_a_minute_before_its_beginning(
    verifier: Verifier, mint: Mint, clock: VirtualClock
) -> None:
    token = mint.token(nbf=mint.now + 120)
    begin = (mint.now + 120) * SECOND - MINUTE
    pass_time(clock, begin - 1 - clock.now())
    with pytest.raises(NotAuthenticated, match="not good yet"):
        await verifier.caller(token)
    pass_time(clock, 1)
    assert (await verifier.caller(token)).name == "alice"
