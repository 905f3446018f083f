"""What the settings make of it."""

from typing import Any

import pytest

from foliot.oidc import RelyingParty
from foliot.service.access import Tokens
from foliot.settings import SettingsError, load_settings
from foliot.testing.clock import VirtualClock
from tests.oidc.process import ProviderProcess
from tests.oidc.provider import CLIENT_ID, CLIENT_SECRET
from tests.oidc.test_login import query_of
from tests.oidc.tokens import AUDIENCE, Mint

GIVEN = {"oidc_issuer": "https://login.example", "oidc_audience": "jobs", "oidc_roles": "groups:ops=operator"}


def made(clock: VirtualClock, **given: Any) -> RelyingParty | None:
    return RelyingParty.of(load_settings(given, {}), clock)


def test_without_an_issuer_there_is_none(clock: VirtualClock) -> None:
    assert made(clock) is None


def test_without_a_client_only_tokens_are_taken(clock: VirtualClock) -> None:
    party = made(clock, **GIVEN)
    assert party is not None
    assert party.login is None


async def test_the_settings_let_in_tokens_and_browsers(
    process: ProviderProcess, clock: VirtualClock, mint: Mint
) -> None:
    party = made(
        clock,
        oidc_issuer=process.issuer,
        oidc_audience=AUDIENCE,
        oidc_client_id=CLIENT_ID,
        oidc_client_secret=CLIENT_SECRET,
        oidc_roles="groups:ops=operator",
        url="http://127.0.0.1:7070/",
    )
    assert party is not None
    assert party.login is not None
    tokens: Tokens = party.verifier
    assert (await tokens.caller(Mint(process, now=mint.now).token())).name == "alice"
    url, kept = await party.login.begin()
    assert query_of(url)["redirect_uri"] == "http://127.0.0.1:7070/auth/callback"
    assert (await party.login.finish(query_of(process.browse(url, "alice")), kept)).name == "alice"
    await party.close()


async def test_without_an_audience_tokens_must_be_for_the_client(process: ProviderProcess, clock: VirtualClock) -> None:
    party = made(clock, oidc_issuer=process.issuer, oidc_client_id=CLIENT_ID, oidc_roles="groups:ops=operator")
    assert party is not None
    token = Mint(process, now=clock.now() // 1_000_000).token(aud=CLIENT_ID)
    assert (await party.verifier.caller(token)).name == "alice"
    await party.close()


@pytest.mark.parametrize(
    ("given", "told"),
    [
        (GIVEN | {"oidc_issuer": ""}, "oidc_audience is set, but no oidc_issuer"),
        ({"oidc_client_secret": "x"}, "oidc_client_secret is set, but no oidc_issuer"),
        (GIVEN | {"oidc_audience": ""}, "neither oidc_audience nor oidc_client_id"),
        (GIVEN | {"oidc_roles": ""}, "no oidc_roles: nobody would be let in"),
        (GIVEN | {"oidc_roles": "ops"}, "oidc_roles can not be read"),
        (GIVEN | {"oidc_issuer": "http://login.example"}, "oidc_issuer: 'http://login.example' is not an https"),
        (GIVEN | {"oidc_issuer": "login.example"}, "oidc_issuer: 'login.example' is not an address"),
    ],
)
def test_settings_that_can_not_work_are_refused_with_what_would(
    clock: VirtualClock, given: dict[str, str], told: str
) -> None:
    with pytest.raises(SettingsError, match=told) as refused:
        made(clock, **given)
    assert "secret" not in str(refused.value).replace("oidc_client_secret", "")
