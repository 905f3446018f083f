"""What a node says of itself: ready, ready with a warning, not ready."""

import asyncio

import pytest

from foliot.clock import wall
from foliot.domain.access import ADMIN, Caller
from foliot.domain.duration import SECOND
from foliot.domain.errors import Forbidden
from foliot.service import health
from foliot.service.health import Health
from foliot.store.base import Fact
from foliot.wire import HealthCheck
from tests.service.conftest import World


async def checks(world: World) -> dict[str, HealthCheck]:
    found = await Health(world.store).readiness()
    assert (found.status == "ready") == all(check.status != "failed" for check in found.checks)
    return {check.name: check for check in found.checks}


async def test_a_node_whose_store_answers_is_ready(world: World) -> None:
    found = await checks(world)
    assert {name: check.status for name, check in found.items()} == {"store": "ok", "schema": "ok", "clock": "ok"}


async def test_a_node_whose_store_is_gone_is_not(world: World) -> None:
    await world.store.close()
    found = await checks(world)
    assert {name: check.status for name, check in found.items()} == {"store": "failed"}


async def test_a_store_that_takes_too_long_does_not_answer(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    async def never() -> set[int]:
        await asyncio.Event().wait()
        return set()

    monkeypatch.setattr(world.store, "applied", never)
    monkeypatch.setattr(health, "PATIENCE_SECONDS", 0.01)
    assert (await checks(world))["store"].status == "failed"


@pytest.mark.parametrize(("steps", "told"), [({9999}, "is newer than"), (set(), "is older than")])
async def test_a_schema_of_another_version_is_told(
    world: World, monkeypatch: pytest.MonkeyPatch, steps: set[int], told: str
) -> None:
    applied = await world.store.applied()

    async def other() -> set[int]:
        return applied | steps if steps else {1}

    monkeypatch.setattr(world.store, "applied", other)
    schema = (await checks(world))["schema"]
    assert schema.status == "failed"
    assert schema.detail.startswith(told)


@pytest.mark.parametrize(
    ("behind", "status", "told"),
    [
        (4 * SECOND, "ok", "agrees"),
        (-4 * SECOND, "ok", "agrees"),
        (60 * SECOND, "warning", "is 60.0 s behind"),
        (-60 * SECOND, "warning", "is 60.0 s ahead of"),
    ],
)
async def test_a_clock_that_is_off_is_a_warning(
    world: World, monkeypatch: pytest.MonkeyPatch, behind: int, status: str, told: str
) -> None:
    async def now() -> int:
        return wall() + behind

    monkeypatch.setattr(world.store, "now", now)
    clock = (await checks(world))["clock"]
    assert clock.status == status
    assert clock.detail.startswith(told)


async def test_who_asks_often_asks_the_store_once(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = 0
    applied = world.store.applied

    async def counted() -> set[int]:
        nonlocal asked
        asked += 1
        return await applied()

    monkeypatch.setattr(world.store, "applied", counted)
    own = Health(world.store)
    await asyncio.gather(*(own.readiness() for _ in range(20)))
    assert asked == 1
    monkeypatch.setattr(health, "KEPT", 0)
    await own.readiness()
    assert asked == 2


async def test_what_is_measured_of_the_store_is_told_with_its_trouble(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def facts() -> list[Fact]:
        return [Fact(name="disk_free_bytes", value=1, trouble="nearly full")]

    monkeypatch.setattr(world.store, "facts", facts)
    (fact,) = await world.services.health.facts(ADMIN)
    assert (fact.name, fact.value, fact.trouble) == ("disk_free_bytes", 1, "nearly full")


async def test_a_key_that_reaches_a_part_learns_nothing_of_the_store(world: World) -> None:
    with pytest.raises(Forbidden):
        await world.services.health.facts(Caller(name="mail", role="viewer", queues=("mail",)))
