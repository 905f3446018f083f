"""Providers, and what is needed to check their tokens."""

from collections.abc import AsyncIterator, Iterator

import pytest

from foliot.clock import wall
from foliot.domain.duration import SECOND
from foliot.oidc import Provider, RoleRules, Verifier
from foliot.testing.clock import VirtualClock
from tests.oidc.process import ProviderProcess
from tests.oidc.tokens import AUDIENCE, Mint

RULES = RoleRules.parse("groups:ops=operator,groups:dev=submitter@team-a")


@pytest.fixture(scope="session")
def shared_process() -> Iterator[ProviderProcess]:
    """For tests that leave it as it is."""
    process = ProviderProcess()
    yield process
    process.end()


@pytest.fixture(scope="session")
def changed_process() -> Iterator[ProviderProcess]:
    process = ProviderProcess()
    yield process
    process.end()


@pytest.fixture
def process(changed_process: ProviderProcess) -> ProviderProcess:
    """For tests that do something to it, short of ending it."""
    changed_process.reset()
    return changed_process


@pytest.fixture
def clock() -> VirtualClock:
    return VirtualClock(wall())


def pass_time(clock: VirtualClock, micros: int) -> None:
    clock.set(clock.now() + micros)


@pytest.fixture
def mint(shared_process: ProviderProcess, clock: VirtualClock) -> Mint:
    return Mint(shared_process, now=clock.now() // SECOND)


@pytest.fixture
async def provider(shared_process: ProviderProcess, clock: VirtualClock) -> AsyncIterator[Provider]:
    provider = Provider(shared_process.issuer, clock)
    yield provider
    await provider.close()


@pytest.fixture
def verifier(provider: Provider, clock: VirtualClock) -> Verifier:
    return Verifier(provider, clock, audience=AUDIENCE, rules=RULES)
