"""Changes that meet other changes: decided anew from what is there then."""

from collections.abc import Awaitable, Callable

import pytest

from foliot.domain.access import ADMIN
from foliot.domain.errors import Conflict, NotFound, Stale
from foliot.service import control as control_module
from foliot.wire import FilterBody, ManyBody, ManyChanged, UpdateBody
from tests.service.conftest import World, job_key

EVERY = ManyBody(filter=FilterBody())
HIGH = UpdateBody(priority="high")


async def priority(world: World, job_id: str) -> int | str:
    return (await world.services.query.job(job_id, ADMIN)).priority


def start(world: World, worker: str) -> Callable[[], Awaitable[object]]:
    return lambda: world.take(worker)


async def test_a_cancel_that_meets_a_claim_stops_the_attempt(world: World) -> None:
    worker = await world.worker()
    job_id = await world.submit()
    world.store.before("save", start(world, worker))
    assert await world.cancel(job_id) == "cancelling"
    assert [stop.job_id for stop in (await world.exchange(worker)).stop] == [job_id]


async def test_an_update_that_meets_a_claim_is_refused(world: World) -> None:
    worker = await world.worker()
    job_id = await world.submit()
    world.store.before("save", start(world, worker))
    with pytest.raises(Conflict, match="running"):
        await world.services.control.update(job_id, HIGH, if_match=None, caller=ADMIN)


async def test_two_updates_at_once_both_count(world: World) -> None:
    job_id = await world.submit(delay="1h")
    control = world.services.control

    async def another() -> None:
        await control.update(job_id, UpdateBody(owner="bob"), if_match=None, caller=ADMIN)

    world.store.before("save", another)
    await control.update(job_id, HIGH, if_match=None, caller=ADMIN)
    info = await world.services.query.job(job_id, ADMIN)
    assert (info.priority, info.owner) == ("high", "bob")


async def test_an_update_of_a_version_that_has_passed_is_told_so_though_it_passed_just_now(world: World) -> None:
    job_id = await world.submit(delay="1h")
    control = world.services.control
    version = (await world.services.query.job(job_id, ADMIN)).version
    world.store.before("save", lambda: control.pause(job_id, if_match=None, caller=ADMIN))
    with pytest.raises(Stale):
        await control.update(job_id, HIGH, if_match=version, caller=ADMIN)
    assert await priority(world, job_id) == "medium"


async def test_a_job_that_never_stands_still_is_given_up(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(control_module, "ROUNDS", 3)
    job_id = await world.submit(delay="1h")
    control = world.services.control

    async def touch() -> None:
        await control.update(job_id, UpdateBody(), if_match=None, caller=ADMIN)

    world.store.before("save", *[touch] * 3)
    with pytest.raises(Conflict, match="try again"):
        await world.cancel(job_id)
    world.store.before("save", *[touch] * 3)
    with pytest.raises(Conflict, match="try again"):
        await control.update(job_id, HIGH, if_match=None, caller=ADMIN)
    world.store.before("save", *[touch] * 3)
    assert await control.many("pause", EVERY, ADMIN) == ManyChanged(matched=1, changed=0)


async def test_many_jobs_are_changed_though_one_of_them_changes_meanwhile(world: World) -> None:
    worker = await world.worker()
    ids = [await world.submit(), await world.submit()]
    world.store.before("save", lambda: world.take(worker, 1))
    assert await world.services.control.many("cancel", EVERY, ADMIN) == ManyChanged(matched=2, changed=2)
    assert [await world.status(job_id) for job_id in ids] == ["running", "cancelled"]
    assert [stop.job_id for stop in (await world.exchange(worker)).stop] == ids[:1]


async def test_of_many_a_job_that_the_action_no_longer_suits_is_left_alone(world: World) -> None:
    worker = await world.worker()
    ids = [await world.submit(), await world.submit()]
    world.store.before("save", lambda: world.take(worker, 1))
    assert await world.services.control.many("pause", EVERY, ADMIN) == ManyChanged(matched=2, changed=1)
    assert [await world.status(job_id) for job_id in ids] == ["running", "paused"]


async def test_many_jobs_are_changed_page_by_page(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(control_module, "CHUNK", 2)
    for _ in range(5):
        await world.submit()
    body = ManyBody(filter=FilterBody(status="waiting"))
    assert await world.services.control.many("cancel", body, ADMIN) == ManyChanged(matched=5, changed=5)


async def test_a_change_of_a_running_job_tells_its_worker_and_one_of_a_waiting_job_nobody(world: World) -> None:
    told: list[int] = []
    world.wake.on_stop.append(lambda worker, _tell: told.append(worker))
    worker = await world.worker()
    job_id, waiting = await world.submit(), await world.submit(delay="1h")
    await world.take(worker)
    await world.cancel(waiting)
    assert told == []
    await world.cancel(job_id)
    assert [f"w_{key:016x}" for key in told] == [worker]


async def test_a_job_whose_history_is_gone_is_not_found(world: World) -> None:
    job_id = await world.submit()
    await world.cancel(job_id)
    await world.store.forget(await world.store.now(), 100)
    assert await world.store.load([job_key(job_id)]) == {}
    with pytest.raises(NotFound, match="history"):
        await world.cancel(job_id)


async def test_a_due_time_is_told_when_it_is_near_or_far_and_not_while_a_job_is_held(world: World) -> None:
    heard: list[int] = []
    world.wake.on_due.append(lambda time, _key, _tell: heard.append(time - world.clock.now()))
    control = world.services.control
    job_id = await world.submit(delay=5)
    await control.pause(job_id, if_match=None, caller=ADMIN)
    await control.update(job_id, UpdateBody(delay=7), if_match=None, caller=ADMIN)
    assert heard == [5_000_000]
    await control.resume(job_id, if_match=None, caller=ADMIN)
    assert heard == [5_000_000, 7_000_000]
