"""No forged, stale, foreign or misshapen token opens anything, and none of them breaks anything."""

import asyncio
from collections.abc import AsyncIterator, Iterator

import pytest

from foliot.domain.duration import SECOND
from foliot.domain.errors import NotAuthenticated
from foliot.oidc import Provider, Verifier
from foliot.testing.clock import VirtualClock
from tests.oidc.attacks import ATTACKS, EVIL_KEYS, Attacker
from tests.oidc.conftest import RULES
from tests.oidc.process import ProviderProcess
from tests.oidc.provider import Key
from tests.oidc.tokens import AUDIENCE, Mint


@pytest.fixture(scope="module")
def own() -> Key:
    return Key("RS256")


@pytest.fixture(scope="module")
def attacked(own: Key) -> Iterator[ProviderProcess]:
    process = ProviderProcess()
    process.answer_wrong(EVIL_KEYS, body={"keys": [own.public_jwk | {"kid": process.jwks()[0]["kid"]}]})
    process.rotate("ES256")
    yield process
    process.end()


class Canary:
    def __init__(self) -> None:
        self.hits = 0
        self.address = ""

    async def serve(self) -> asyncio.Server:
        server = await asyncio.start_server(self._hit, "127.0.0.1", 0)
        self.address = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        return server

    def _hit(self, _reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.hits += 1
        writer.close()


@pytest.fixture
async def canary() -> AsyncIterator[Canary]:
    canary = Canary()
    async with await canary.serve():
        yield canary


@pytest.fixture
def attacker(own: Key, attacked: ProviderProcess, canary: Canary, clock: VirtualClock) -> Attacker:
    rsa, ec = (Mint(attacked, now=clock.now() // SECOND, key=key) for key in attacked.jwks())
    return Attacker(own, rsa, ec, canary.address)


@pytest.fixture
async def guarded(attacked: ProviderProcess, clock: VirtualClock) -> AsyncIterator[Verifier]:
    provider = Provider(attacked.issuer, clock)
    yield Verifier(provider, clock, audience=AUDIENCE, rules=RULES)
    await provider.close()


@pytest.mark.parametrize("name", ATTACKS)
async def test_is_refused(name: str, attacker: Attacker, guarded: Verifier, canary: Canary) -> None:
    assert (await guarded.caller(attacker.rsa.token())).name == "alice"  # what else is right with it
    with pytest.raises(NotAuthenticated):
        await guarded.caller(ATTACKS[name](attacker))
    assert (await guarded.caller(attacker.ec.token())).name == "alice"
    assert (canary.hits, attacker.rsa.process.hits(EVIL_KEYS)) == (0, 0)


def test_there_are_enough_of_them() -> None:
    assert len(ATTACKS) > 300


async def test_the_canary_is_hit_by_who_asks(canary: Canary) -> None:
    reader, writer = await asyncio.open_connection(*canary.address.removeprefix("http://").split(":"))
    assert await reader.read() == b""
    writer.close()
    await writer.wait_closed()
    assert canary.hits == 1
