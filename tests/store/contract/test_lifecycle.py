"""Opening and closing, node numbers, hints, counts, and taking away what is past."""

import asyncio
import contextlib
from collections.abc import AsyncIterator

import pytest

from foliot.domain import events
from foliot.domain.duration import DAY, HOUR, MINUTE
from foliot.domain.errors import Unavailable
from foliot.domain.ids import NODES, JobKey
from foliot.domain.job import Ended, State
from foliot.domain.status import STATUSES
from foliot.store.base import Accepted, NodeLease, Store
from tests.store.builders import Scene
from tests.store.conftest import MakeStore


@contextlib.asynccontextmanager
async def opened(make_store: MakeStore) -> AsyncIterator[Store]:
    store = make_store()
    await store.open()
    try:
        yield store
    finally:
        await store.close()


async def test_what_was_kept_is_there_after_a_close_and_an_open(make_store: MakeStore) -> None:
    async with opened(make_store) as store:
        await store.prepare_days(await store.now())
        scene = Scene(store, await store.now())
        waiting = await scene.submitted(name="mine", due=scene.later(60))
        records = {record.job.id: record for record in (await scene.record(waiting.id), await scene.ended())}
        running = await scene.running()
        records[running.id] = await scene.record(running.id)
    async with opened(make_store) as store:
        assert await store.load(list(records)) == records
        assert await store.find("default", ["mine"]) == {"mine": waiting.id}
        assert await store.lane_ids([waiting.lane]) == [waiting.lane_id]


async def test_a_closed_store_says_so(make_store: MakeStore) -> None:
    async with opened(make_store) as store:
        pass
    with pytest.raises(Unavailable):
        await store.load([JobKey(12345)])


async def test_closing_twice_is_fine(make_store: MakeStore) -> None:
    store = make_store()
    await store.open()
    await store.close()
    await store.close()


async def test_the_clock_goes_on(store: Store) -> None:
    first = await store.now()
    assert await store.now() >= first


async def test_nodes_at_once_get_different_numbers(store: Store) -> None:
    now = await store.now()
    leases = await asyncio.gather(*(store.acquire_node(f"n{n}", "1", now, now + MINUTE) for n in range(8)))
    assert len({lease.number for lease in leases}) == 8
    assert {lease.until for lease in leases} == {now + MINUTE}
    nodes = await store.nodes()
    assert {node.number: node.name for node in nodes} == {
        lease.number: f"n{position}" for position, lease in enumerate(leases)
    }


async def test_a_node_is_told_with_its_times(store: Store) -> None:
    now = await store.now()
    lease = await store.acquire_node("ann", "1.2", now, now + MINUTE)
    assert await store.beat_node(lease.number, now + 5, now + 2 * MINUTE, 1000)
    (node,) = await store.nodes()
    assert (node.number, node.name, node.version) == (lease.number, "ann", "1.2")
    assert (node.since, node.seen, node.until) == (now, now + 5, now + 2 * MINUTE)


async def acquire_until(store: Store, number: int, now: int) -> NodeLease:
    """Take numbers until that one comes: which free number is given first is the store's to choose."""
    for _ in range(NODES):
        lease = await store.acquire_node("heir", "1", now, now + HOUR)
        if lease.number == number:
            return lease
    raise AssertionError(f"number {number} was never given")


async def test_a_number_given_back_starts_above_the_last_id_made_under_it(store: Store) -> None:
    now = await store.now()
    lease = await store.acquire_node("ann", "1", now, now + MINUTE)
    assert await store.beat_node(lease.number, now, now + MINUTE, 5000)
    await store.release_node(lease.number, 7000)
    again = await acquire_until(store, lease.number, now + 1)
    assert again.floor == 7000


async def test_a_number_whose_holder_went_silent_is_given_on_with_its_floor(store: Store) -> None:
    now = await store.now()
    lease = await store.acquire_node("ann", "1", now, now + MINUTE)
    await store.beat_node(lease.number, now, now + MINUTE, 5000)
    heir = await acquire_until(store, lease.number, now + MINUTE)
    assert heir.floor >= 5000


async def test_a_number_is_given_to_nobody_else_while_its_lease_runs(store: Store) -> None:
    now = await store.now()
    first = await store.acquire_node("ann", "1", now, now + 2 * MINUTE)
    others = {(await store.acquire_node("other", "1", now + MINUTE, now + HOUR)).number for _ in range(NODES - 1)}
    assert first.number not in others
    assert len(others) == NODES - 1
    with pytest.raises(Unavailable):
        await store.acquire_node("late", "1", now + MINUTE, now + HOUR)


async def test_a_node_that_is_late_but_not_replaced_may_go_on(store: Store) -> None:
    now = await store.now()
    lease = await store.acquire_node("ann", "1", now, now + MINUTE)
    assert await store.beat_node(lease.number, now + HOUR, now + 2 * HOUR, 1)


async def test_a_number_that_was_never_given_can_not_be_prolonged(store: Store) -> None:
    now = await store.now()
    assert not await store.beat_node(77, now, now + MINUTE, 1)


@pytest.mark.parametrize("make_store", ["postgres"], indirect=True)  # SQLite has nobody who could replace it
async def test_a_node_replaced_meanwhile_is_told_so_and_takes_nothing_away(make_store: MakeStore) -> None:
    async with opened(make_store) as first:
        now = await first.now()
        lease = await first.acquire_node("ann", "1", now, now + MINUTE)
        async with opened(make_store) as second:
            later = now + MINUTE
            await acquire_until(second, lease.number, later)
            assert not await first.beat_node(lease.number, later, later + HOUR, 1)
            await first.release_node(lease.number, 1)
            assert await second.beat_node(lease.number, later, later + HOUR, 1)


async def test_hints_end_with_the_store(make_store: MakeStore) -> None:
    store = make_store()
    await store.open()

    async def listen() -> list[str]:
        return [hint async for hint in store.hints()]

    listening = asyncio.create_task(listen())
    await store.notify("a hint")
    await store.now()
    await store.close()
    assert set(await listening) <= {"", "a hint"}


async def test_counts_are_by_status_and_never_negative(scene: Scene) -> None:
    await scene.ended(State.COMPLETED)
    await scene.ended(State.FAILED)
    await scene.submitted(due=scene.later(60))
    await scene.running()
    counts = await scene.store.counts("default")
    assert set(counts) <= set(STATUSES)
    assert all(count >= 0 for count in counts.values())


async def drain(store: Store, before: int, limit: int = 1000) -> int:
    taken = 0
    while count := await store.forget(before, limit):
        taken += count
    return taken


async def old_scene(store: Store) -> Scene:
    """A scene forty days ago."""
    scene = Scene(store, await store.now() - 40 * DAY)
    await store.prepare_days(scene.now)
    return scene


async def test_past_jobs_are_forgotten_with_all_that_belongs_to_them(store: Store) -> None:
    scene = await old_scene(store)
    worker = await scene.worker()
    lease = await scene.running(worker, name="old", schedule_id="s")
    await scene.store.append_logs([scene.line(lease)])
    record = await scene.happen(lease.id, events.Release())
    await scene.claim(worker, record.job)
    await scene.happen(lease.id, events.Succeed(result="1"))
    assert await drain(store, await store.now() - 30 * DAY) > 0
    assert await store.load([lease.id]) == {}
    assert await store.find("default", ["old"]) == {}
    assert await store.executions(lease.id) == []
    assert await store.result(lease.id) is None
    assert await store.logs(lease.id, after=0, level=0, limit=10) == []
    (answer,) = await scene.insert(scene.submission(await scene.job(name="old"), body=b"other"))
    assert isinstance(answer, Accepted), "the name is free again"


async def test_live_jobs_stay_however_old(store: Store) -> None:
    scene = await old_scene(store)
    waiting = await scene.submitted(name="waiting", due=scene.later(60))
    ready = await scene.submitted(job_type="ready", payload="[1]")
    retrying = await scene.running(job_type="retrying")
    await scene.happen(retrying.id, events.FailRetriable(error='"e"', retry_after=HOUR))
    running = await scene.running(job_type="running")
    await store.append_logs([scene.line(running)])
    gone = await scene.ended()
    keys = [waiting.id, ready.id, retrying.id, running.id]
    before = await store.load(keys)
    executions = await store.executions(retrying.id)
    await drain(store, await store.now() - 30 * DAY)
    assert await store.load([*keys, gone.job.id]) == before
    assert await store.executions(retrying.id) == executions
    assert await store.find("default", ["waiting"]) == {"waiting": waiting.id}
    assert len(await store.logs(running.id, after=0, level=0, limit=10)) == 1
    ended = await scene.happen(running.id, events.Succeed())
    assert isinstance(ended.row, Ended)


async def test_jobs_of_late_stay(scene: Scene) -> None:
    record = await scene.ended()
    assert await drain(scene.store, scene.now - DAY) == 0
    assert await scene.record(record.job.id) == record


async def test_an_old_job_that_ended_of_late_stays_until_its_end_is_old(store: Store) -> None:
    scene = await old_scene(store)
    lease = await scene.running()
    scene.now += 35 * DAY
    record = await scene.happen(lease.id, events.Succeed())
    await drain(store, await store.now() - 30 * DAY)
    assert await scene.record(lease.id) == record


async def test_forgetting_goes_on_in_chunks_until_nothing_is_left(store: Store) -> None:
    scene = await old_scene(store)
    keys = [(await scene.ended()).job.id for _ in range(12)]
    before = await store.now() - 30 * DAY
    assert await store.forget(before, 5) > 0
    await drain(store, before, limit=5)
    assert await store.load(keys) == {}
    assert await store.forget(before, 5) == 0


async def test_old_request_keys_are_forgotten(store: Store) -> None:
    scene = await old_scene(store)
    await scene.insert(scene.submission(await scene.job(), request_key="k", request_hash=b"h"))
    await drain(store, scene.now - DAY)
    (answer,) = await scene.insert(scene.submission(await scene.job(), request_key="k", request_hash=b"other"))
    assert isinstance(answer, Accepted)
