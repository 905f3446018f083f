"""A browser's login against Authlib's reading of the specifications, in a process of its own."""

import base64
import hashlib
import json
from collections.abc import AsyncIterator, Callable
from typing import Any
from urllib.parse import parse_qs, parse_qsl, urlsplit

import pytest

from foliot.domain.access import Caller
from foliot.domain.errors import NotAuthenticated, Unavailable
from foliot.oidc import Login, Provider, Verifier
from foliot.testing.clock import VirtualClock
from tests.oidc.conftest import RULES
from tests.oidc.process import ProviderProcess
from tests.oidc.provider import CLIENT_ID, CLIENT_SECRET, FORM_CLIENT_ID, PUBLIC_CLIENT_ID

CALLBACK = "http://127.0.0.1:7070/auth/callback"
DISCOVERY = "/.well-known/openid-configuration"

MakeLogin = Callable[..., Login]


@pytest.fixture
async def make_login(process: ProviderProcess, clock: VirtualClock) -> AsyncIterator[MakeLogin]:
    provider = Provider(process.issuer, clock)
    verifier = Verifier(provider, clock, audience="https://jobs.example", rules=RULES)

    def make(client_id: str = CLIENT_ID, client_secret: str = CLIENT_SECRET, redirect_uri: str = CALLBACK) -> Login:
        return Login(provider, verifier, client_id=client_id, client_secret=client_secret, redirect_uri=redirect_uri)

    yield make
    await provider.close()


@pytest.fixture
def login(make_login: MakeLogin) -> Login:
    return make_login()


def query_of(location: str) -> dict[str, str]:
    return dict(parse_qsl(urlsplit(location).query))


async def returned(process: ProviderProcess, login: Login, user: str | None = "alice") -> tuple[dict[str, str], str]:
    """What a browser comes back with, and what was kept for it."""
    url, kept = await login.begin()
    location = process.browse(url, user)
    assert location.startswith(f"{CALLBACK}?")
    return query_of(location), kept


async def test_who_logs_in_at_the_provider_is_let_in(process: ProviderProcess, login: Login) -> None:
    alice = await login.finish(*await returned(process, login))
    assert alice == Caller(name="alice", role="operator", subject="248289761001")
    bob = await login.finish(*await returned(process, login, "bob"))
    assert bob == Caller(name="bob@example.org", namespace="team-a", role="submitter", subject="248289761002")


async def test_a_client_without_a_secret_logs_in_by_its_proof_alone(
    process: ProviderProcess, make_login: MakeLogin
) -> None:
    login = make_login(PUBLIC_CLIENT_ID, "")
    assert (await login.finish(*await returned(process, login))).name == "alice"


async def test_logins_go_on_after_a_new_key(process: ProviderProcess, login: Login) -> None:
    process.rotate("ES256")
    assert (await login.finish(*await returned(process, login))).name == "alice"


async def test_the_browser_is_sent_with_all_that_protects_it(process: ProviderProcess, login: Login) -> None:
    url, text = await login.begin()
    kept = json.loads(text)
    assert url.startswith(f"{process.issuer}/authorize?")
    challenge = base64.urlsafe_b64encode(hashlib.sha256(kept["verifier"].encode()).digest()).rstrip(b"=").decode()
    assert {name: value for name, (value,) in parse_qs(urlsplit(url).query).items()} == {
        "response_type": "code",
        "client_id": CLIENT_ID,
        "redirect_uri": CALLBACK,
        "scope": "openid profile email groups",
        "state": kept["state"],
        "nonce": kept["nonce"],
        "code_challenge": challenge,
        "code_challenge_method": "S256",
    }
    assert kept["verifier"] not in url
    assert CLIENT_SECRET not in url + text


async def test_every_login_has_secrets_of_its_own(login: Login) -> None:
    made = [value for _ in range(3) for value in json.loads((await login.begin())[1]).values()]
    assert len(set(made)) == 9
    assert min(map(len, made)) >= 43


async def test_who_matches_no_rule_is_not_let_in(process: ProviderProcess, login: Login) -> None:
    with pytest.raises(NotAuthenticated, match="ask an operator"):
        await login.finish(*await returned(process, login, "carol"))


async def test_who_says_no_at_the_provider_is_not_let_in(process: ProviderProcess, login: Login) -> None:
    query, kept = await returned(process, login, None)
    assert query["error"] == "access_denied"
    with pytest.raises(NotAuthenticated, match="did not let you in"):
        await login.finish(query, kept)


async def test_a_login_ends_once(process: ProviderProcess, login: Login) -> None:
    query, kept = await returned(process, login)
    await login.finish(query, kept)
    with pytest.raises(NotAuthenticated, match="any more"):
        await login.finish(query, kept)


@pytest.mark.parametrize("state", [None, "", "x", "\ud800"])
async def test_another_browsers_return_is_refused_before_the_provider_is_asked(
    process: ProviderProcess, login: Login, state: str | None
) -> None:
    query, kept = await returned(process, login)
    del query["state"]
    with pytest.raises(NotAuthenticated, match="another browser"):
        await login.finish(query if state is None else query | {"state": state}, kept)
    assert process.hits("/token") == 0


async def test_the_victims_browser_does_not_end_the_attackers_login(process: ProviderProcess, login: Login) -> None:
    attackers, _ = await returned(process, login, "bob")
    _, victims_kept = await returned(process, login, "alice")
    with pytest.raises(NotAuthenticated, match="another browser"):
        await login.finish(attackers, victims_kept)


async def test_a_stolen_code_is_worth_nothing_in_another_login(process: ProviderProcess, login: Login) -> None:
    stolen, _ = await returned(process, login, "alice")
    thiefs, kept = await returned(process, login, "bob")
    with pytest.raises(NotAuthenticated, match="any more"):  # the proof of PKCE is another
        await login.finish(thiefs | {"code": stolen["code"]}, kept)


async def test_an_id_token_of_another_login_is_refused(process: ProviderProcess, login: Login) -> None:
    query, kept = await returned(process, login)
    process.change_id_tokens(nonce="another")
    with pytest.raises(NotAuthenticated, match="another login"):
        await login.finish(query, kept)


@pytest.mark.parametrize(
    "claims",
    [
        {"aud": "other"},
        {"aud": "https://jobs.example"},
        {"aud": [CLIENT_ID, "other"]},
        {"aud": [CLIENT_ID, "other"], "azp": "other"},
        {"azp": "other"},
        {"azp": None},
        {"nonce": None},
        {"nonce": 7},
        {"nonce": ""},
        {"iss": "https://evil.example"},
        {"exp": 1},
        {"sub": ""},
    ],
    ids=str,
)
async def test_an_id_token_for_somebody_else_is_refused(
    process: ProviderProcess, login: Login, claims: dict[str, Any]
) -> None:
    query, kept = await returned(process, login)
    process.change_id_tokens(**claims)
    with pytest.raises(NotAuthenticated):
        await login.finish(query, kept)


async def test_an_id_token_for_several_is_taken_where_this_client_asked_for_it(
    process: ProviderProcess, login: Login
) -> None:
    query, kept = await returned(process, login)
    process.change_id_tokens(aud=[CLIENT_ID, "other"], azp=CLIENT_ID)
    assert (await login.finish(query, kept)).name == "alice"


@pytest.mark.parametrize("code", ["", "wrong", "x" * 5000, "a&grant_type=password", "a\r\nb"])
async def test_a_wrong_code_is_refused(process: ProviderProcess, login: Login, code: str) -> None:
    query, kept = await returned(process, login)
    with pytest.raises(NotAuthenticated):
        await login.finish(query | {"code": code}, kept)


@pytest.mark.parametrize("kept", ["", "{}", "[]", "null", '{"state":"","nonce":"","verifier":7}'])
async def test_a_login_that_was_not_begun_here_is_refused(process: ProviderProcess, login: Login, kept: str) -> None:
    query, _ = await returned(process, login)
    with pytest.raises(NotAuthenticated):
        await login.finish(query | {"state": ""}, kept)


async def test_a_wrong_client_secret_lets_nobody_in(process: ProviderProcess, make_login: MakeLogin) -> None:
    login = make_login(client_secret="wrong")
    with pytest.raises(NotAuthenticated):
        await login.finish(*await returned(process, login))


async def test_an_answer_of_another_provider_is_refused(process: ProviderProcess, login: Login) -> None:
    query, kept = await returned(process, login)
    with pytest.raises(NotAuthenticated, match="another identity provider"):
        await login.finish(query | {"iss": "https://evil.example"}, kept)
    assert process.hits("/token") == 0
    assert (await login.finish(query | {"iss": process.issuer}, kept)).name == "alice"


def describe(process: ProviderProcess, **changes: Any) -> None:
    description = {
        "issuer": process.issuer,
        "authorization_endpoint": f"{process.issuer}/authorize?tenant=a",
        "token_endpoint": f"{process.issuer}/token",
        "jwks_uri": f"{process.issuer}/jwks",
    }
    process.answer_wrong(DISCOVERY, body=description | changes)


async def test_a_provider_that_says_who_it_is_must_say_so(process: ProviderProcess, login: Login) -> None:
    describe(process, authorization_response_iss_parameter_supported=True)
    query, kept = await returned(process, login)
    with pytest.raises(NotAuthenticated, match="another identity provider"):
        await login.finish(query, kept)
    assert (await login.finish(query | {"iss": process.issuer}, kept)).name == "alice"


async def test_what_the_providers_address_has_in_its_query_is_kept(process: ProviderProcess, login: Login) -> None:
    describe(process)
    query = query_of((await login.begin())[0])
    assert (query["tenant"], query["scope"]) == ("a", "openid profile email")


async def test_a_secret_goes_into_the_form_where_the_provider_takes_it_only_there(
    process: ProviderProcess, make_login: MakeLogin
) -> None:
    describe(process, token_endpoint_auth_methods_supported=["client_secret_post"])
    login = make_login(FORM_CLIENT_ID)
    assert (await login.finish(*await returned(process, login))).name == "alice"


@pytest.mark.parametrize("missing", ["authorization_endpoint", "token_endpoint"])
async def test_a_provider_without_a_login_says_so(process: ProviderProcess, login: Login, missing: str) -> None:
    describe(process, **{missing: ""})
    with pytest.raises(Unavailable, match="no login for browsers"):
        await login.begin()


@pytest.mark.parametrize(
    "answer",
    [{"status": 500}, {"body": "{}"}, {"body": "x"}, {"body": '{"id_token":7}'}, {"status": 307, "Location": "/evil"}],
    ids=str,
)
async def test_a_provider_that_answers_wrongly_lets_nobody_in(
    process: ProviderProcess, login: Login, answer: dict[str, Any]
) -> None:
    query, kept = await returned(process, login)
    process.answer_wrong("/token", **answer)
    with pytest.raises(Unavailable):
        await login.finish(query, kept)
