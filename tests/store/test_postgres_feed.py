"""The record of what happened on PostgreSQL: what commits late, writers that end, days that go, tallies that fold."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Sequence

import asyncpg
import pytest

from foliot.domain import events
from foliot.domain.duration import DAY
from foliot.domain.feed import ALL_STATUSES, Happening, Position
from foliot.domain.ids import JobKey
from foliot.domain.job import State
from foliot.domain.status import STATUSES, status_of
from foliot.store.postgres import PostgresStore
from foliot.store.postgres import folding as folding_module
from foliot.store.postgres.connections import Connection, connect
from foliot.store.postgres.days import Day
from foliot.store.postgres.part import SQL
from foliot.store.postgres.writer import Numbers
from tests.store.builders import Scene
from tests.store.feed_reader import FeedReader, follow
from tests.store.test_postgres_schema import take_steps, write_jobs_of_then

HAPPENING = Happening(kind="node.lost", subject="n_1")


@pytest.fixture
async def store(database_url: str) -> AsyncIterator[PostgresStore]:
    store = PostgresStore(database_url)
    await store.open()
    yield store
    await store.close()


@pytest.fixture
async def scene(store: PostgresStore) -> Scene:
    return Scene(store, await store.now())


@pytest.fixture
async def sql(database_url: str) -> AsyncIterator[Connection]:
    connection = await connect(database_url)
    yield connection
    await connection.close()


async def cancel_late(scene: Scene, sql: Connection) -> tuple[JobKey, "asyncio.Task[object]"]:
    """A cancel that has begun and waits for a row that somebody else has: it has its number, and commits later. It goes
    on when the transaction on `sql` ends."""
    late = await scene.submitted(job_type="late", due=scene.later(60))
    change = scene.decide(await scene.record(late.id), events.Cancel())
    await sql.execute("begin")
    await sql.execute("select from waiting where id = $1 for update", late.id)
    saving = asyncio.create_task(scene.save([change]))
    while not await sql.fetchval("select exists (select from pg_locks where not granted)"):
        pass
    return late.id, saving


async def test_what_commits_late_is_read_all_the_same(scene: Scene, sql: Connection) -> None:
    reader = await follow(scene.store)
    key, saving = await cancel_late(scene, sql)
    others = [await scene.submitted() for _ in range(20)]
    assert [told for told in await reader.statuses() if told[0] != key] == [(job.id, "queued") for job in others]
    assert await reader.statuses() == []
    await sql.execute("rollback")
    await saving
    assert await reader.statuses() == [(key, "cancelled")]
    assert await reader.statuses() == []


async def test_what_is_under_way_at_the_end_of_the_record_is_found_from_there(scene: Scene, sql: Connection) -> None:
    key, saving = await cancel_late(scene, sql)
    await scene.submitted()
    reader = await follow(scene.store)
    await sql.execute("rollback")
    await saving
    later = await scene.submitted()
    assert await reader.statuses() == [(key, "cancelled"), (later.id, "queued")]


async def enrolled(url: str) -> Connection:
    connection = await connect(url)
    await connection.become_writer(Numbers())
    return connection


async def end(writer: Connection, sql: Connection) -> None:
    await writer.close()
    while not await sql.fetchval("select foliot_writer_ended($1)", writer._writer):
        pass


async def write(connection: Connection) -> None:
    writer, number = connection.stamp()
    nothing: Sequence[object] = [None] * 9
    await connection.execute(SQL["record"], 7, 0, *nothing, [], [], [], writer, number, "[]")


async def test_the_last_batch_of_a_writer_that_ends_is_read_and_then_the_writer_is_known_no_more(
    store: PostgresStore, database_url: str, sql: Connection
) -> None:
    reader = await follow(store)
    known = set(reader.position.seen)
    writer = await enrolled(database_url)
    assert await reader.batches() == []
    assert len(reader.position.seen) == len(known) + 1
    for _ in range(2):
        await write(writer)
    await end(writer, sql)
    assert len(await reader.batches(limit=1)) == 2
    await reader.batches()
    assert set(reader.position.seen) == known
    assert await reader.batches() == []
    assert await FeedReader(store, await store.feed_end()).batches() == []


async def test_a_writer_that_is_there_later_is_not_below_the_floor(store: PostgresStore, database_url: str) -> None:
    reader = await follow(store)
    first, second = await enrolled(database_url), await enrolled(database_url)
    await write(second)
    assert len(await reader.batches()) == 1
    await write(first)
    third = await enrolled(database_url)
    await write(third)
    assert len(await reader.batches()) == 2
    for writer in (first, second, third):
        await writer.close()


async def test_a_reader_that_writes_as_well_never_takes_itself_for_ended(
    scene: Scene, store: PostgresStore, database_url: str
) -> None:
    await scene.submitted()
    reader = await follow(store)
    known = set(reader.position.seen)
    assert known
    for _ in range(3):
        assert await reader.batches() == []
    assert set(reader.position.seen) == known
    await scene.submitted()
    assert len(await reader.batches()) == 1


async def test_a_position_of_no_sense_is_read_from(store: PostgresStore) -> None:
    await store.note([HAPPENING], 7)
    nonsense = Position(floor=(1 << 63) - 1, seen={1 << 40: 5, 3: (1 << 63) - 1}, time=9)
    assert (await store.read_feed(nonsense, 10, mask=ALL_STATUSES)).batches == []


async def test_batches_lie_in_their_day_and_go_with_it(scene: Scene, store: PostgresStore, sql: Connection) -> None:
    await scene.submitted()
    today = Day.at(await store.now())
    assert await sql.fetchval(f"select count(*) from events_{today.suffix}") == 1
    await sql.execute("insert into events (writer, number, time, mask) values (1, 5, 5, 0)")
    assert await sql.fetchval("select count(*) from events_other") == 1
    assert await store.forget_feed(today.begin) == 1
    assert await store.forget_feed(today.begin) == 0
    reader = FeedReader(store, Position())
    assert len(await reader.batches()) == 1
    assert await store.forget_feed(today.end) >= 1
    assert await FeedReader(store, Position()).batches() == []
    job = await scene.submitted()
    assert await sql.fetchval("select count(*) from events_other") == 1, "a write without a day is no failure"
    assert await reader.statuses() == [(job.id, "queued")]
    await store.prepare_days(await store.now())
    assert await sql.fetchval(f"select count(*) from events_{today.suffix}") == 1


async def test_writers_go_when_they_have_ended_and_their_batches_are_gone(
    store: PostgresStore, database_url: str, sql: Connection
) -> None:
    silent, spoke, living = [await enrolled(database_url) for _ in range(3)]
    await write(spoke)
    for writer in (silent, spoke):
        await end(writer, sql)
    today = Day.at(await store.now())
    await store.forget_feed(today.begin)
    there = {row[0] for row in await sql.fetch("select writer from event_writers")}
    assert silent._writer not in there
    assert {spoke._writer, living._writer} <= there
    await store.forget_feed(today.end)
    assert {row[0] for row in await sql.fetch("select writer from event_writers")} == there - {spoke._writer}
    await living.close()


async def standing(scene: Scene, keys: Sequence[JobKey]) -> Counter[tuple[int, str]]:
    records = await scene.store.load(keys)
    return Counter((record.job.lane_id, status_of(record.row)) for record in records.values())


async def depths(store: PostgresStore) -> Counter[tuple[int, str]]:
    return Counter({(lane_id, status): jobs for lane_id, status, jobs in await store.depths()})


async def test_tallies_are_folded_along_with_writes_and_count_right(
    scene: Scene, store: PostgresStore, sql: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(folding_module, "WRITES", 5)
    monkeypatch.setattr(folding_module, "ROWS", 7)
    monkeypatch.setattr(folding_module, "_SHARE", 0)
    worker = await scene.worker()

    async def life(number: int) -> JobKey:
        job = await scene.submitted(job_type=f"kind{number % 3}")
        if number % 2:
            await scene.happen(job.id, events.Pause())
        if number % 3:
            await scene.happen(job.id, events.Cancel())
        return job.id

    keys = await asyncio.gather(*(life(number) for number in range(40)))
    keys += [lease.id for lease in [await scene.running(worker, job_type=f"run{number}") for number in range(9)]]
    await scene.happen(keys[-1], events.FailFatal())
    assert await depths(store) == await standing(scene, keys)
    counts = await store.counts("default")
    assert sum(counts.values()) == len(keys)
    monkeypatch.setattr(folding_module, "ROWS", 1000)
    await store._folding.fold()
    assert await sql.fetchval("select count(*) from tallies") == len(await store.depths())
    assert await depths(store) == await standing(scene, keys)


async def test_many_tallies_are_folded_by_who_reads_them(store: PostgresStore, sql: Connection) -> None:
    await sql.execute(
        "insert into tallies (lane_id, status, jobs) select n % 3, 2, n % 5 - 2 from generate_series(1, 3000) as g (n)"
    )
    assert await store.depths() == []
    assert await sql.fetchval("select count(*) from tallies") == 0


async def test_who_folds_steps_over_what_another_one_folds(store: PostgresStore, sql: Connection) -> None:
    await sql.execute("insert into tallies (lane_id, status, jobs) values (1, 2, 5), (1, 2, 4)")
    await sql.execute("begin")
    assert await sql.fetchval(SQL["fold_tallies"], 1) == 1
    await sql.execute("insert into tallies (lane_id, status, jobs) values (1, 2, 1)")
    await store._folding.fold()
    assert await store.depths() == [(1, "queued", 9)]
    await sql.execute("commit")
    assert await store.depths() == [(1, "queued", 10)]


@pytest.mark.parametrize("steps", [3, 6])
async def test_what_is_there_when_the_tallies_come_is_counted(database_url: str, steps: int) -> None:
    sql = await asyncpg.connect(database_url)
    store = PostgresStore(database_url)
    scene = Scene(store, await store.now())
    keys = {place: JobKey(scene.new_id()) for place in ("waiting", "ready", "leases", "history")}
    await take_steps(sql, steps)
    await write_jobs_of_then(sql, scene.now, keys)
    await store.open()
    assert await depths(store) == await standing(scene, list(keys.values()))
    assert {status for _, status in await depths(store)} == {"scheduled", "queued", "running", "cancelled"}
    assert (await scene.record(keys["history"])).last is None
    (running,) = await store.executions(keys["leases"])
    assert running.admitted == scene.now
    await sql.close()
    await store.close()


async def test_a_batch_of_a_transaction_that_is_taken_back_is_nowhere(scene: Scene, store: PostgresStore) -> None:
    reader = await follow(store)
    job = await scene.job()

    async def fail(connection: Connection) -> None:
        writer, number = connection.stamp()
        await connection.execute(SQL["record"], 7, 0, *[None] * 9, [job.lane_id], [2], [1], writer, number, "[]")
        raise asyncpg.exceptions.DataError("no")

    with pytest.raises(Exception, match="no"):
        await store._connections.transact(fail)
    assert await reader.batches() == []
    assert await store.depths() == []


async def test_numbers_grow_although_the_clock_is_set_back(scene: Scene, store: PostgresStore) -> None:
    reader = await follow(store)
    await scene.submitted()
    asked = 0
    store._numbers._clock.set(await store.now() - DAY, asked=asked, answered=asked)
    for _ in range(3):
        await scene.submitted()
    numbers = [batch.number for batch in await reader.batches()]
    assert len(numbers) == 4
    assert numbers == sorted(set(numbers))


async def test_many_jobs_are_told_like_few(scene: Scene) -> None:
    """Those of a call with many jobs go another way into the database."""
    reader = await follow(scene.store)
    jobs = await scene.jobs(100)
    later = [await scene.job(due=scene.later(60)) for _ in range(50)]
    await scene.submit(*jobs, *later)
    (batch,) = await reader.batches()
    assert Counter(STATUSES[entry.status] for entry in batch.entries) == {"queued": 100, "scheduled": 50}
    assert {entry.id for entry in batch.entries} == {job.id for job in (*jobs, *later)}
    assert {(entry.version, entry.attempt, entry.counted, entry.worker) for entry in batch.entries} == {(1, 0, 0, None)}
    worker = await scene.worker()
    claimed = await scene.claim(worker, jobs[0], 100)
    await scene.save([scene.decide(await scene.record(each.lease.id), events.Succeed()) for each in claimed])
    told = [entry for each in await reader.batches() for entry in each.entries]
    assert Counter(STATUSES[entry.status] for entry in told) == {"running": 100, "completed": 100}
    assert {entry.worker for entry in told} == {worker.id}
    assert State.COMPLETED.name.lower() in {status for _, status, _ in await scene.store.depths()}
