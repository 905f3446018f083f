"""The provider's keys: found, renewed, forgotten; and a provider that does wrong lets nobody in."""

import asyncio
import contextlib
import json
import os
import ssl
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest
import trustme
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from jwt import get_algorithm_by_name

from foliot.domain.duration import SECOND
from foliot.domain.errors import NotAuthenticated, Unavailable
from foliot.oidc import Provider, Verifier, fetch
from foliot.oidc.fetch import ProviderError
from foliot.oidc.provider import LIFETIME, MOST_KEYS, PAUSE, REFRESH
from foliot.testing.clock import VirtualClock
from tests.oidc.conftest import RULES, pass_time
from tests.oidc.process import ROOT, ProviderProcess
from tests.oidc.provider import Key
from tests.oidc.tokens import AUDIENCE, Mint, encode

DISCOVERY = "/.well-known/openid-configuration"


@pytest.fixture
async def own(process: ProviderProcess, clock: VirtualClock) -> AsyncIterator[Verifier]:
    """Believes the provider to which this test does something."""
    provider = Provider(process.issuer, clock)
    yield Verifier(provider, clock, audience=AUDIENCE, rules=RULES)
    await provider.close()


def mint_of(process: ProviderProcess, clock: VirtualClock, key: dict[str, Any] | None = None) -> Mint:
    return Mint(process, now=clock.now() // SECOND, key=key)


async def renewed(verifier: Verifier) -> None:
    """The question that is asked beside the work is answered."""
    asking = verifier._provider._asking
    if asking is not None:
        await asyncio.wait([asking])


# keys that come and go


@pytest.mark.parametrize("algorithm", ["RS256", "RS384", "RS512", "PS256", "ES256", "ES384", "EdDSA"])
async def test_a_new_keys_token_is_taken_without_a_restart(
    process: ProviderProcess, own: Verifier, clock: VirtualClock, algorithm: str
) -> None:
    assert (await own.caller(mint_of(process, clock).token())).name == "alice"
    key = process.rotate(algorithm)
    pass_time(clock, PAUSE)
    assert (await own.caller(mint_of(process, clock, key).token())).name == "alice"


async def test_the_old_keys_token_is_good_while_the_key_is_published(
    process: ProviderProcess, own: Verifier, clock: VirtualClock
) -> None:
    old = mint_of(process, clock).token()
    process.rotate("ES256")
    assert (await own.caller(old)).name == "alice"


async def test_a_withdrawn_keys_token_is_refused_when_what_was_read_is_too_old(
    process: ProviderProcess, own: Verifier, clock: VirtualClock
) -> None:
    old = mint_of(process, clock).token(exp=clock.now() // SECOND + 86400)
    assert (await own.caller(old)).name == "alice"
    process.rotate("ES256")
    process.withdraw(process.jwks()[0]["kid"])
    pass_time(clock, LIFETIME)
    with pytest.raises(NotAuthenticated, match="not signed by"):
        await own.caller(old)


async def test_keys_are_renewed_beside_the_work_before_they_are_too_old(
    process: ProviderProcess, own: Verifier, clock: VirtualClock
) -> None:
    old = mint_of(process, clock).token(exp=clock.now() // SECOND + 86400)
    await own.caller(old)
    process.rotate("ES256")
    process.withdraw(process.jwks()[0]["kid"])
    pass_time(clock, REFRESH - 1)
    assert (await own.caller(old)).name == "alice"
    assert process.hits("/jwks") == 3  # ours once, the test's twice
    pass_time(clock, 1)
    assert (await own.caller(old)).name == "alice"
    await renewed(own)
    with pytest.raises(NotAuthenticated, match="not signed by"):
        await own.caller(old)


async def test_unknown_keys_make_us_ask_once_in_a_while_however_many_they_are(
    process: ProviderProcess, own: Verifier, clock: VirtualClock
) -> None:
    mint = mint_of(process, clock)
    unknown = [mint.with_header(kid=f"unknown-{number}") for number in range(20)]
    before = process.hits("/jwks")
    await asyncio.gather(*map(own.caller, unknown), return_exceptions=True)
    for token in unknown:
        with pytest.raises(NotAuthenticated):
            await own.caller(token)
    assert process.hits("/jwks") == before + 1
    pass_time(clock, PAUSE)
    with pytest.raises(NotAuthenticated):
        await own.caller(unknown[0])
    assert process.hits("/jwks") == before + 2


async def test_a_caller_who_goes_away_does_not_keep_the_keys_from_others(
    process: ProviderProcess, own: Verifier, clock: VirtualClock
) -> None:
    token = mint_of(process, clock).token()
    first = asyncio.create_task(own.caller(token))
    await asyncio.sleep(0)
    first.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await first
    assert (await own.caller(token)).name == "alice"


async def test_a_token_that_names_no_key_is_refused_where_it_could_be_of_two(
    process: ProviderProcess, own: Verifier, clock: VirtualClock
) -> None:
    process.rotate("RS256")
    with pytest.raises(NotAuthenticated):
        await own.caller(mint_of(process, clock).with_header(kid=None))


async def test_a_clock_that_is_set_back_makes_us_ask_again(process: ProviderProcess) -> None:
    class Clock:
        time = VirtualClock(0).now() + 10**15

        def now(self) -> int:
            return self.time

    clock = Clock()
    provider = Provider(process.issuer, clock)
    await provider.metadata()
    clock.time -= 3600 * SECOND
    await provider.metadata()
    assert process.hits("/jwks") == 2
    await provider.close()


# a provider that does not do what it should


def discovery(process: ProviderProcess, **changes: Any) -> dict[str, Any]:
    good = {
        "issuer": process.issuer,
        "jwks_uri": f"{process.issuer}/jwks",
        "authorization_endpoint": f"{process.issuer}/authorize",
        "token_endpoint": f"{process.issuer}/token",
    }
    return good | changes


DESCRIPTIONS: dict[str, dict[str, Any]] = {
    "another issuer": {"issuer": "https://evil.example"},
    "a longer issuer": {"issuer": "http://127.0.0.1:1/x"},
    "no issuer": {"issuer": None},
    "keys without https": {"jwks_uri": "http://keys.example/jwks"},
    "keys in a file": {"jwks_uri": "file:/etc/passwd"},
    "keys at no address": {"jwks_uri": "nowhere"},
    "keys in no place": {"jwks_uri": ""},
    "keys of another service here": {"jwks_uri": "http://127.0.0.1:1/jwks"},
    "keys of a cloud's metadata": {"jwks_uri": "https://169.254.169.254/latest"},
    "keys of a private network": {"jwks_uri": "https://10.1.2.3/jwks"},
    "keys with a user": {"jwks_uri": "https://user:word@keys.example/jwks"},
    "a login without https": {"authorization_endpoint": "http://login.example/"},
    "a login that is a script": {"authorization_endpoint": "javascript:alert(1)"},
    "codes without https": {"token_endpoint": "http://tokens.example/"},
    "numbers": {"jwks_uri": 7},
}


@pytest.mark.parametrize("name", DESCRIPTIONS)
async def test_a_provider_that_describes_itself_wrongly_lets_nobody_in(
    process: ProviderProcess, own: Verifier, clock: VirtualClock, name: str
) -> None:
    token = mint_of(process, clock).token()
    process.answer_wrong(DISCOVERY, body=discovery(process, **DESCRIPTIONS[name]))
    with pytest.raises(Unavailable):
        await own.caller(token)


async def test_the_description_that_those_differ_from_is_taken(
    process: ProviderProcess, own: Verifier, clock: VirtualClock
) -> None:
    process.answer_wrong(DISCOVERY, body=discovery(process))
    assert (await own.caller(mint_of(process, clock).token())).name == "alice"


@pytest.mark.parametrize(
    "answer",
    [
        {"status": 500},
        {"status": 404, "body": "{}"},
        {"status": 204},
        {"body": ""},
        {"body": "<html>"},
        {"body": "[]"},
        {"body": '{"keys":'},
        {"body": '{"keys":[]}'},
        {"body": '{"keys":{}}'},
        {"body": '{"keys":["x"]}'},
        {"body": '{"keys":[{}]}'},
        {"body": '{"keys":' + "[" * 5000},
        {"body": '{"keys":[],"x":"' + "x" * 300_000 + '"}'},
        {"status": 302, "Location": "/evil"},
        {"status": 302, "Location": "http://127.0.0.1:1/jwks"},
        {"status": 302, "Location": "/jwks"},
    ],
    ids=lambda answer: str(answer)[:50],
)
@pytest.mark.parametrize("path", [DISCOVERY, "/jwks"])
async def test_a_provider_that_answers_wrongly_lets_nobody_in(
    process: ProviderProcess, own: Verifier, clock: VirtualClock, answer: dict[str, Any], path: str
) -> None:
    token = mint_of(process, clock).token()
    process.answer_wrong("/evil", body={"keys": process.jwks()})
    process.answer_wrong(path, **answer)
    with pytest.raises(Unavailable):
        await own.caller(token)


@pytest.mark.parametrize("path", [DISCOVERY, "/jwks"])
@pytest.mark.parametrize(("status", "blanks"), [(500, 0), (404, 0), (203, 0), (200, 300_000)])
async def test_a_right_answer_counts_only_as_a_whole_and_under_the_right_status(
    process: ProviderProcess, own: Verifier, clock: VirtualClock, path: str, status: int, blanks: int
) -> None:
    token = mint_of(process, clock).token()
    right = json.dumps(discovery(process) if path == DISCOVERY else {"keys": process.jwks()})
    process.answer_wrong(path, status=status, body=right + " " * blanks)
    with pytest.raises(Unavailable):
        await own.caller(token)
    process.answer_wrong(path, body=right)
    pass_time(clock, PAUSE)
    assert (await own.caller(token)).name == "alice"


def published(process: ProviderProcess, **changes: Any) -> dict[str, Any]:
    (key,) = process.jwks()
    return {name: value for name, value in (key | changes).items() if value is not None}


def rsa_numbers(bits: int) -> dict[str, Any]:
    key = rsa.generate_private_key(public_exponent=65537, key_size=bits)
    return get_algorithm_by_name("RS256").to_jwk(key.public_key(), as_dict=True)


KEYS: dict[str, dict[str, Any]] = {
    "for encryption": {"use": "enc"},
    "not to verify": {"key_ops": ["encrypt"]},
    "with odd uses": {"key_ops": "verify"},
    "for another algorithm": {"alg": "RS512"},
    "for none": {"alg": "none"},
    "for HMAC": {"alg": "HS256"},
    "a secret": {"kty": "oct", "k": "c2VjcmV0"},
    "of no kind": {"kty": None},
    "of a kind of its own": {"kty": ["RSA"]},
    "of another kind than it is": {"kty": "EC"},
    "with its private half": {"d": "AQAB"},
    "without its number": {"n": None},
    "with a number that is none": {"n": "!!!"},
    "with a number of another type": {"n": 7},
    "with an exponent of one": {"e": "AQ"},
    "of a kid of another type": {"kid": 7},
}


@pytest.mark.parametrize("name", KEYS)
async def test_a_key_that_is_not_for_this_is_not_used(
    process: ProviderProcess, own: Verifier, clock: VirtualClock, name: str
) -> None:
    mint = mint_of(process, clock)
    process.answer_wrong("/jwks", body={"keys": [published(process, **KEYS[name]), Key("ES256").public_jwk]})
    for token in (mint.token(), mint.with_header(kid=None)):
        with pytest.raises(NotAuthenticated):
            await own.caller(token)


@pytest.mark.parametrize("changes", [{"use": None, "alg": None}, {"key_ops": ["verify"]}], ids=str)
async def test_a_key_need_not_say_what_it_is_for(
    process: ProviderProcess, own: Verifier, clock: VirtualClock, changes: dict[str, Any]
) -> None:
    mint = mint_of(process, clock)
    unusable = [{}, {"kty": "oct"}, published(process, kid="other", **rsa_numbers(1024))]
    process.answer_wrong("/jwks", body={"keys": [*unusable, published(process, **changes)]})
    assert (await own.caller(mint.token())).name == "alice"


async def test_a_short_key_is_not_used(process: ProviderProcess, clock: VirtualClock, own: Verifier) -> None:
    private = rsa.generate_private_key(public_exponent=65537, key_size=1024)
    key = {**get_algorithm_by_name("RS256").to_jwk(private.public_key(), as_dict=True), "kid": "short"}
    process.answer_wrong("/jwks", body={"keys": [key, Key("ES256").public_jwk]})
    mint = Mint(process, now=clock.now() // SECOND, key={"alg": "RS256", "kid": "short"})
    unsigned = mint.unsigned()
    signature = get_algorithm_by_name("RS256").sign(unsigned.encode(), private)
    with pytest.raises(NotAuthenticated):
        await own.caller(f"{unsigned}.{encode(signature)}")


async def test_another_curve_than_those_that_are_used_is_no_key(
    process: ProviderProcess, clock: VirtualClock, own: Verifier
) -> None:
    keys = [
        {**get_algorithm_by_name("ES512").to_jwk(ec.generate_private_key(curve).public_key(), as_dict=True)}
        for curve in (ec.SECP521R1(), ec.SECP256K1())
    ]
    process.answer_wrong("/jwks", body={"keys": keys})
    with pytest.raises(Unavailable):
        await own.caller(mint_of(process, clock, {"alg": "ES256", "kid": "x"}).unsigned() + ".AAAA")


async def test_no_more_keys_are_read_than_a_provider_has(
    process: ProviderProcess, clock: VirtualClock, own: Verifier
) -> None:
    mint = mint_of(process, clock)
    process.answer_wrong("/jwks", body={"keys": [published(process, kid="x")] * MOST_KEYS + [published(process)]})
    with pytest.raises(NotAuthenticated):
        await own.caller(mint.token())


# a provider that is away


async def test_while_the_provider_is_away_its_keys_are_good_for_a_time_and_no_longer(clock: VirtualClock) -> None:
    process = ProviderProcess()
    provider = Provider(process.issuer, clock)
    verifier = Verifier(provider, clock, audience=AUDIENCE, rules=RULES)
    token = mint_of(process, clock).token(exp=clock.now() // SECOND + 86400)
    await verifier.caller(token)
    process.end()
    pass_time(clock, LIFETIME - 1)
    assert (await verifier.caller(token)).name == "alice"
    await renewed(verifier)
    pass_time(clock, 1)
    with pytest.raises(Unavailable):
        await verifier.caller(token)
    await provider.close()


async def test_a_provider_that_is_away_at_first_is_asked_again(
    process: ProviderProcess, own: Verifier, clock: VirtualClock
) -> None:
    token = mint_of(process, clock).token()
    process.answer_wrong(DISCOVERY, status=503)
    for _ in range(3):
        with pytest.raises(Unavailable) as refused:
            await own.caller(token)
        assert refused.value.retry_after == PAUSE // SECOND
    assert process.hits(DISCOVERY) == 1
    process.answer_wrong(DISCOVERY, body=discovery(process))
    pass_time(clock, PAUSE)
    assert (await own.caller(token)).name == "alice"


async def test_a_provider_that_takes_too_long_lets_nobody_in(
    clock: VirtualClock, mint: Mint, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fetch, "SECONDS", 0.05)
    held: list[asyncio.StreamWriter] = []
    async with await asyncio.start_server(lambda _, writer: held.append(writer), "127.0.0.1", 0) as server:
        provider = Provider(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}", clock)
        with pytest.raises(Unavailable):
            await provider.metadata()
        await provider.close()
        for writer in held:
            writer.close()
    assert held


async def test_who_asks_for_nothing_can_be_closed(clock: VirtualClock) -> None:
    await Provider("https://login.example", clock).close()


# where it may be


@pytest.mark.parametrize(
    "issuer",
    ["http://login.example", "http://10.0.0.1", "ftp://127.0.0.1", "login.example", "", "https://", "http://[::2]",
     "http://127.0.0.1.evil.example", "http://localhost.evil.example", "https://u:p@login.example", "https://x/#y"],
)  # fmt: skip
def test_an_issuer_without_https_must_be_on_this_machine(issuer: str, clock: VirtualClock) -> None:
    with pytest.raises(ProviderError):
        Provider(issuer, clock)


@pytest.mark.parametrize(
    "issuer", ["https://login.example", "https://login.example/realms/x", "http://localhost:8080", "http://[::1]:80"]
)
def test_an_issuer_that_may_be_used_is_taken(issuer: str, clock: VirtualClock) -> None:
    assert Provider(issuer, clock).issuer == issuer


def test_an_issuer_elsewhere_does_not_send_us_to_this_machine_without_https() -> None:
    for address in ("http://127.0.0.1/jwks", "http://localhost/jwks"):
        assert fetch.Fetch("http://localhost:8080").check(address) == address
        with pytest.raises(ProviderError):
            fetch.Fetch("https://login.example").check(address)


@pytest.fixture
def secure(tmp_path: Path) -> Iterator[tuple[str, Path]]:
    """A provider over https, and the certificate of who vouches for it."""
    authority = trustme.CA()
    authority.cert_pem.write_to_path(str(tmp_path / "authority.pem"))
    authority.issue_cert("127.0.0.1").private_key_and_cert_chain_pem.write_to_path(str(tmp_path / "server.pem"))
    process = ProviderProcess(str(tmp_path / "server.pem"))
    yield process.issuer, tmp_path / "authority.pem"
    process.end()


async def test_a_provider_for_whom_nobody_vouches_is_not_believed(
    secure: tuple[str, Path], clock: VirtualClock, caplog: pytest.LogCaptureFixture
) -> None:
    provider = Provider(secure[0], clock)
    with pytest.raises(Unavailable):
        await provider.metadata()
    await provider.close()
    assert "certificate verify failed" in caplog.text


def test_a_provider_for_whom_somebody_vouches_is_believed(secure: tuple[str, Path]) -> None:
    issuer, authority = secure
    code = (
        "import asyncio; from foliot.clock import WallClock; from foliot.oidc import Provider\n"
        "async def main():\n"
        f"    provider = Provider({issuer!r}, WallClock())\n"
        "    print((await provider.metadata()).jwks_uri)\n"
        "    await provider.close()\n"
        "asyncio.run(main())"
    )
    variable = ssl.get_default_verify_paths().openssl_cafile_env
    said = subprocess.run(
        [sys.executable, "-c", code],
        env=os.environ | {variable: str(authority)},
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    assert said.stdout.strip() == f"{issuer}/jwks", said.stderr
