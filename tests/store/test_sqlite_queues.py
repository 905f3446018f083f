"""What only the SQLite store tells of queues: a clock that is set, few statements, a database from before."""

import contextlib
import sqlite3
from bisect import bisect_right
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from foliot.domain import events
from foliot.domain.changes import Held
from foliot.domain.duration import MINUTE, SECOND
from foliot.domain.job import NAMESPACE, Lease
from foliot.domain.placement import Order
from foliot.domain.rate import RateLimit, next_start
from foliot.domain.retry import Retry
from foliot.domain.states import transition
from foliot.store.sqlite import SqliteStore
from foliot.store.sqlite.connection import SQL, connect, migrate
from tests.store.builders import Scene
from tests.store.contract.test_queue_order import put_in_order
from tests.store.contract.test_queues import claim, jobs_in, put, room
from tests.store.test_sqlite import SetClock, _copy_to_older


@pytest.fixture
def path(folder: Path) -> str:
    return str(folder / "foliot.db")


@contextlib.asynccontextmanager
async def opened(path: str, clock: SetClock | None = None) -> AsyncIterator[Scene]:
    store = SqliteStore(path, clock=clock)
    await store.open()
    try:
        yield Scene(store, await store.now())
    finally:
        await store.close()


async def test_in_any_stretch_of_time_there_are_never_more_starts_than_limit_and_burst(path: str) -> None:
    clock = SetClock(1_600_000_000 * SECOND)
    rate = RateLimit(limit=5, per=MINUTE, burst=3)
    starts: list[int] = []
    async with opened(path, clock) as scene:
        worker = await scene.worker(until=scene.now + 600 * MINUTE)
        jobs = await jobs_in(scene, 60)
        await put(scene, rate_limit=rate)
        for gap in ([5 * MINUTE] + [SECOND] * 70 + [0, 1, 13 * SECOND] * 5) * 2:
            clock.time += gap
            starts += [clock.time] * len(await claim(scene, worker, jobs[0], 9))
    counts = [bisect_right(starts, first + rate.per) - place for place, first in enumerate(starts)]
    assert max(counts) == rate.limit + rate.burst


async def test_the_next_one_starts_at_its_moment_and_not_a_microsecond_earlier(path: str) -> None:
    clock = SetClock(1_600_000_000 * SECOND)
    rate = RateLimit(limit=7, per=MINUTE, burst=1)
    async with opened(path, clock) as scene:
        worker = await scene.worker(until=scene.now + 60 * MINUTE)
        jobs = await jobs_in(scene, 9)
        queue = await put(scene, rate_limit=rate)
        assert len(await claim(scene, worker, jobs[0], 9)) == 2
        for _ in range(5):
            moment = next_start(rate, (await room(scene, queue)).next_beat)
            clock.time = moment - 1
            assert await claim(scene, worker, jobs[0], 9) == []
            clock.time = moment
            assert len(await claim(scene, worker, jobs[0], 9)) == 1


async def test_many_jobs_of_a_limited_fair_queue_take_as_few_statements_as_few_do(path: str) -> None:
    async with opened(path) as scene:
        assert isinstance(scene.store, SqliteStore)
        worker, statements = await scene.worker(), 0
        rate = RateLimit(limit=1_000_000, per=SECOND, burst=1_000_000)
        queue = await put(scene, policy="fair", weights={"k1": 2.0}, max_concurrency=1000, rate_limit=rate)

        def count(_: str) -> None:
            nonlocal statements
            statements += 1

        async def life(jobs: int) -> int:
            nonlocal statements
            made = [await scene.job(fair_key=f"k{number % 100}") for number in range(jobs)]
            await scene.submit(*made)
            statements = 0
            (lane_id,) = (await scene.store.put_in_order(made[0].lane_id, jobs)).lanes
            orders = [Order(lane_id, worker.id, jobs, True)]
            claimed = await scene.store.claim(orders, scene.new_nonce(), scene.now)
            held = [Held(id=one.lease.id, nonce=one.lease.nonce) for one in claimed]
            ends = [transition(one, events.Succeed(), scene.now, retry=Retry()) for one in held]
            saved = await scene.store.save(ends, scene.now)  # type: ignore[arg-type]
            assert (len(saved.done), saved.queues) == (jobs, {queue.queue_id})
            return statements

        await scene.store._write(lambda connection: connection.set_trace_callback(count))
        await life(1)  # the lane is new
        assert await life(500) == await life(2) < 40


async def test_a_claim_of_plain_lanes_looks_at_them_once_and_writes_nothing_of_queues(path: str) -> None:
    async with opened(path) as scene:
        assert isinstance(scene.store, SqliteStore)
        worker = await scene.worker()
        jobs = await jobs_in(scene, 5)
        seen: list[str] = []
        await scene.store._write(lambda connection: connection.set_trace_callback(seen.append))
        assert len(await scene.claim(worker, jobs[0], 5)) == 5
        await scene.store._write(lambda connection: connection.set_trace_callback(None))
        assert sum("queues" in statement for statement in seen) == 1
        assert not [statement for statement in seen if "UPDATE leases" in statement or "UPDATE queues" in statement]


async def test_times_that_are_behind_the_queues_are_forgotten(path: str) -> None:
    async with opened(path) as scene:
        assert isinstance(scene.store, SqliteStore)
        worker = await scene.worker()
        await put(scene, policy="fair")
        for key in "abc":
            await jobs_in(scene, 1, fair_key=key)
        await jobs_in(scene, 5, fair_key="d")
        (lane_id,) = await put_in_order(scene)
        await scene.store.claim([Order(lane_id, worker.id, 6)], scene.new_nonce(), scene.now)
        assert await scene.store.forget(0, 2) == 2
        assert await scene.store.forget(0, 2) == 1
        assert await scene.store.forget(0, 2) == 0
        left = await scene.store._read(lambda connection: connection.execute("SELECT fair_key FROM shares").fetchall())
        assert left == [("d",)]


async def test_what_stands_in_order_is_there_after_a_restart(path: str) -> None:
    async with opened(path) as scene:
        (job,) = await jobs_in(scene, 1)
        queue = await put(scene, policy="fair", max_concurrency=1)
        (lane_id,) = await put_in_order(scene)
        record, ids = await scene.record(job.id), scene
    async with opened(path) as scene:
        assert await scene.record(job.id) == record
        assert await scene.store.occupied_lanes() == [lane_id]
        lane = scene.store.lane(lane_id)
        assert lane is not None
        assert lane.ordering == queue.ordering
        worker = await scene.worker()
        claimed = await scene.store.claim([Order(lane_id, worker.id, 1, True)], ids.new_nonce(), scene.now)
        assert [one.job for one in claimed] == [job]


async def test_leases_of_a_database_from_before_queues_count_once_there_is_a_limit(folder: Path) -> None:
    new, old = str(folder / "new.db"), str(folder / "old.db")
    async with opened(new) as scene:
        worker = await scene.worker()
        jobs = await jobs_in(scene, 4)
        leases = [one.lease for one in await scene.claim(worker, jobs[0], 2)]
    _copy_to_older(new, old, 3)
    async with opened(old) as scene:
        assert [await scene.row(lease.id) for lease in leases] == leases
        assert await claim(scene, worker, jobs[0], 0, limited=False) == []
        (queue,) = await scene.store.queues(NAMESPACE)
        assert (queue.name, queue.version, queue.ordering) == ("default", 1, "")
        crowds = await scene.store.crowds([queue.queue_id])
        assert (crowds[queue.queue_id].waiting, crowds[queue.queue_id].running) == (2, 2)
        await put(scene, policy="fifo", max_concurrency=3)
        (lane_id,) = await put_in_order(scene)
        claimed = await scene.store.claim([Order(lane_id, worker.id, 9, True)], 77, scene.now)
        assert [one.job.id for one in claimed] == [jobs[2].id]
        assert isinstance(await scene.row(jobs[2].id), Lease)
        change = scene.decide(await scene.record(leases[0].id), events.Succeed())
        assert (await scene.store.save([change], scene.now)).queues == {queue.queue_id}


def test_what_is_put_in_order_is_read_by_the_index_and_its_keys_by_their_ids() -> None:
    with contextlib.closing(connect(":memory:", writes=True)) as connection:
        migrate(connection, 0)
        plan = _plan(connection, "first_keys_of_lane", (1, 1))
    assert any("SEARCH ready USING COVERING INDEX ready_order (lane_id=?)" in step for step in plan), plan
    assert any("SEARCH j USING INTEGER PRIMARY KEY" in step for step in plan), plan
    assert not [step for step in plan if "B-TREE" in step], plan


def _plan(connection: sqlite3.Connection, name: str, parameters: tuple[object, ...]) -> list[str]:
    return [step for *_, step in connection.execute(f"EXPLAIN QUERY PLAN {SQL[name]}", parameters)]
