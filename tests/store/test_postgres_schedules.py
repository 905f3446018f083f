"""Schedules on PostgreSQL, where several nodes fire them over one database."""

import asyncio
from collections.abc import AsyncIterator

import asyncpg
import msgspec
import pytest

from foliot.domain import events
from foliot.domain.duration import MINUTE
from foliot.domain.ids import ScheduleKey
from foliot.domain.job import Job
from foliot.domain.schedule import Schedule, Verdict, run_name
from foliot.store.base import Step
from foliot.store.postgres import PostgresStore
from foliot.store.postgres.marks import TOP
from tests.store.builders import Scene

ROUNDS = 40


@pytest.fixture
async def nodes(database_url: str) -> AsyncIterator[list[PostgresStore]]:
    nodes = [PostgresStore(database_url), PostgresStore(database_url)]
    for node in nodes:
        await node.open()
    yield nodes
    for node in nodes:
        await node.close()


@pytest.fixture
async def scene(nodes: list[PostgresStore]) -> Scene:
    return Scene(nodes[0], await nodes[0].now())


@pytest.fixture
async def sql(database_url: str) -> AsyncIterator[asyncpg.Connection]:
    connection = await asyncpg.connect(database_url)
    yield connection
    await connection.close()


class Held:
    """A table that nobody may write to for a while, so that a transaction stops at it."""

    def __init__(self, connection: asyncpg.Connection, watcher: asyncpg.Connection) -> None:
        self._connection = connection
        self._watcher = watcher
        self._transaction = connection.transaction()

    async def hold(self, table: str) -> None:
        await self._transaction.start()
        await self._connection.execute(f"lock table {table} in exclusive mode")

    async def somebody_waits(self) -> None:
        while not await self._watcher.fetchval("select exists (select from pg_locks where not granted)"):
            pass

    async def let_go(self) -> None:
        await self._transaction.rollback()


@pytest.fixture
async def held(database_url: str, sql: asyncpg.Connection) -> AsyncIterator[Held]:
    watcher = await asyncpg.connect(database_url)
    yield Held(sql, watcher)
    await watcher.close()


async def firing(scene: Scene, schedule: Schedule) -> Step:
    """Its next due time becomes a job; each call makes one with an id of its own."""
    assert schedule.next_due is not None
    due = schedule.next_due
    changed = msgspec.structs.replace(schedule, version=schedule.version + 1, next_due=due + MINUTE)
    return Step(schedule=changed, runs=[scene.run(due)], jobs=[await scene.run_job(schedule, due)])


async def test_of_two_nodes_that_fire_the_same_due_time_one_does(
    nodes: list[PostgresStore], scene: Scene, sql: asyncpg.Connection
) -> None:
    schedule = await scene.scheduled(next_due=scene.now)
    for number in range(1, ROUNDS + 1):
        steps = [await firing(scene, schedule) for _ in nodes]
        done = await asyncio.gather(*(node.save_schedules([s]) for node, s in zip(nodes, steps, strict=True)))
        assert sorted(done, key=len) == [set(), {schedule.id}]
        (step,) = (s for s, took_effect in zip(steps, done, strict=True) if took_effect)
        name = run_name(schedule.name, scene.now + (number - 1) * MINUTE)
        assert await nodes[0].find(schedule.namespace, [name]) == {name: step.jobs[0].job.id}
        assert await sql.fetchval("select count(*) from jobs") == number
        assert await sql.fetchval("select count(*) from open_runs") == number
        schedule = step.schedule
    assert (await scene.standing(schedule)).schedule == schedule
    assert len(await scene.store.runs(schedule.id, limit=1000, before=None)) == ROUNDS


async def test_nodes_that_fire_many_schedules_at_once_in_any_order_fire_each_once(
    nodes: list[PostgresStore], scene: Scene, sql: asyncpg.Connection
) -> None:
    schedules = [await scene.scheduled(f"s{number}", next_due=scene.now) for number in range(30)]
    for number in range(1, 6):
        one = [await firing(scene, schedule) for schedule in schedules]
        two = [await firing(scene, schedule) for schedule in reversed(schedules)]
        done = await asyncio.gather(nodes[0].save_schedules(one), nodes[1].save_schedules(two))
        assert sorted(done[0] | done[1]) == sorted(s.id for s in schedules)
        assert not done[0] & done[1]
        assert await sql.fetchval("select count(*) from jobs") == number * len(schedules)
        schedules = [step.schedule for step in one]


async def test_of_two_new_schedules_of_one_name_one_is_kept(nodes: list[PostgresStore], scene: Scene) -> None:
    for number in range(ROUNDS):
        rivals = [scene.schedule(f"s{number}"), scene.schedule(f"s{number}")]
        done = await asyncio.gather(
            *(node.save_schedules([Step(schedule=s)]) for node, s in zip(nodes, rivals, strict=True))
        )
        (winner,) = done[0] | done[1]
        kept = await scene.store.schedule("default", f"s{number}")
        assert kept in rivals
        assert kept.id == winner


async def test_a_schedule_that_is_removed_while_it_fires_is_fired_or_removed_and_leaves_no_half(
    nodes: list[PostgresStore], scene: Scene, sql: asyncpg.Connection
) -> None:
    for number in range(ROUNDS):
        schedule = await scene.scheduled(f"s{number}", next_due=scene.now)
        step = await firing(scene, schedule)
        fired, removed = await asyncio.gather(
            nodes[0].save_schedules([step]), nodes[1].remove_schedule(schedule.id, schedule.version)
        )
        assert (fired == {schedule.id}) is not removed
        for table, key in (("schedules", "id"), ("ledger", "schedule"), ("open_runs", "schedule")):
            count = await sql.fetchval(f"select count(*) from {table} where {key} = $1", schedule.id)
            assert count == (0 if removed else 1), table
        assert (step.jobs[0].job.id in await nodes[0].load([step.jobs[0].job.id])) is not removed


async def under_way(scene: Scene) -> tuple[Schedule, Job]:
    """A schedule with a run that a worker has."""
    schedule, (job,) = await scene.fire(await scene.scheduled(next_due=scene.now), scene.now)
    (claimed,) = await scene.claim(await scene.worker(), job)
    assert claimed.job == job
    return schedule, job


def waits(scene: Scene, schedule: Schedule) -> Step:
    """A firing that found no room."""
    changed = msgspec.structs.replace(schedule, version=schedule.version + 1)
    return Step(schedule=changed, runs=[scene.run(scene.now + MINUTE, None)])


async def test_a_run_that_ends_while_a_due_time_begins_to_wait_frees_its_schedule(
    nodes: list[PostgresStore], scene: Scene, held: Held
) -> None:
    schedule, job = await under_way(scene)
    end = scene.decide(await scene.record(job.id), events.Succeed())
    await held.hold("ledger")
    fires = asyncio.create_task(nodes[1].save_schedules([waits(scene, schedule)]))
    await held.somebody_waits()
    saved = await nodes[0].save([end], scene.now)
    assert (saved.done, saved.freed) == ({job.id}, {schedule.id})
    assert (await scene.standing(schedule)).waiting == ()
    await held.let_go()
    assert await fires == {schedule.id}
    standing = await scene.standing(schedule)
    assert standing.under_way == ()
    assert [run.due for run in standing.waiting] == [scene.now + MINUTE]


async def test_a_due_time_that_begins_to_wait_while_a_run_ends_is_seen_by_whoever_settles_it(
    nodes: list[PostgresStore], scene: Scene, held: Held
) -> None:
    schedule, job = await under_way(scene)
    end = scene.decide(await scene.record(job.id), events.Succeed())
    await held.hold("open_runs")
    ends = asyncio.create_task(nodes[0].save([end], scene.now))
    await held.somebody_waits()
    assert await nodes[1].save_schedules([waits(scene, schedule)]) == {schedule.id}
    assert (await scene.standing(schedule)).under_way == (job.id,)
    await held.let_go()
    saved = await ends
    assert (saved.done, saved.freed) == ({job.id}, {schedule.id})
    standing = await scene.standing(schedule)
    assert standing.under_way == ()
    assert [run.due for run in standing.waiting] == [scene.now + MINUTE]
    assert await nodes[1].waiting_schedules(10) == [schedule.id]


async def test_a_run_that_goes_before_others_is_seen_at_once(nodes: list[PostgresStore], scene: Scene) -> None:
    job = await scene.submitted(priority=1)
    (rank,) = (await nodes[0].heads([job.lane_id], 5))[job.lane_id]
    await scene.claim(await scene.worker(), job)
    assert await nodes[0].heads([job.lane_id], 5) == {job.lane_id: []}
    assert nodes[0]._marks.look([job.lane_id]).begin == {job.lane_id: TOP}
    await scene.fire(await scene.scheduled(), scene.now, priority=9)
    (higher,) = (await nodes[0].heads([job.lane_id], 5))[job.lane_id]
    assert higher < rank


async def test_a_backfill_of_a_hundred_thousand_due_times_is_one_step(scene: Scene, sql: asyncpg.Connection) -> None:
    schedule = await scene.scheduled()
    dues = [scene.now - number * MINUTE for number in range(1, 100_001)]
    ran, *others = dues
    schedule, _ = await scene.fire(schedule, ran)
    rows = [scene.run(due, None, promised=Verdict.BACKFILLED) for due in dues]
    schedule = await scene.step(schedule, *rows, backfill_limit=3)
    assert await sql.fetchval("select count(*) from ledger where verdict is null") == len(others)
    assert len(await scene.store.settled_dues(schedule.id, dues[-1], dues[0])) == len(dues)
    standing = await scene.standing(schedule)
    assert [run.due for run in standing.waiting] == sorted(others)[: len(standing.waiting)]
    assert await scene.store.waiting_schedules(10) == [schedule.id]
    assert await scene.store.remove_schedule(schedule.id, schedule.version)
    assert await sql.fetchval("select count(*) from ledger") == 1


async def test_the_ledger_is_forgotten_in_pieces_also_where_its_schedule_is_gone(
    scene: Scene, sql: asyncpg.Connection
) -> None:
    schedule, gone = await scene.scheduled(), await scene.scheduled("gone")
    old = [scene.run(due, Verdict.MISSED, decided=100) for due in range(20)]
    kept = [scene.run(100, Verdict.MISSED, decided=200), scene.run(101, None, decided=100)]
    await scene.step(schedule, *old, *kept)
    gone = await scene.step(gone, *old)
    assert await scene.store.remove_schedule(gone.id, gone.version)
    taken = []
    while count := await scene.store.forget(200, 15):
        taken.append(count)
    assert taken == [15, 15, 10]
    rows = await sql.fetch("select schedule, due from ledger order by due")
    assert [(ScheduleKey(row[0]), row[1]) for row in rows] == [(schedule.id, 100), (schedule.id, 101)]
