"""The schema of the PostgreSQL store: migrations, and the partitions of days."""

import asyncio
from collections.abc import AsyncIterator

import asyncpg
import msgspec
import pytest

from foliot.domain import events
from foliot.domain.duration import DAY, HOUR
from foliot.domain.errors import SchemaMismatch
from foliot.domain.graph import On
from foliot.domain.ids import IdMaker, JobKey
from foliot.domain.job import Ended, Lane, Lease, Ready
from foliot.domain.placement import Order
from foliot.domain.queue import DEFAULT_RULES, QueueRules
from foliot.domain.states import place_of
from foliot.store.migrate import migrations
from foliot.store.postgres import PostgresStore, migrate
from foliot.store.postgres.days import AHEAD, Day
from foliot.store.postgres.part import SQL
from tests.store.builders import Scene

Connection = asyncpg.Connection


@pytest.fixture
async def store(database_url: str) -> AsyncIterator[PostgresStore]:
    store = PostgresStore(database_url)
    await store.open()
    yield store
    await store.close()


@pytest.fixture
async def sql(database_url: str) -> AsyncIterator[Connection]:
    connection = await asyncpg.connect(database_url)
    yield connection
    await connection.close()


async def partitions(sql: Connection, table: str = "jobs") -> set[str]:
    rows = await sql.fetch(
        "select inhrelid::regclass::text from pg_inherits where inhparent = $1::text::regclass", table
    )
    return {row[0] for row in rows}


async def test_nodes_that_migrate_at_once_do_it_once(database_url: str, sql: Connection) -> None:
    await asyncio.gather(*(migrate(database_url) for _ in range(4)))
    rows = await sql.fetch("select number from schema_version order by number")
    assert [row[0] for row in rows] == [migration.number for migration in migrations("postgres")]


async def test_nodes_that_open_at_once_all_get_ready(database_url: str) -> None:
    stores = [PostgresStore(database_url) for _ in range(3)]
    await asyncio.gather(*(store.open() for store in stores))
    for store in stores:
        assert await store.now() > 0
        await store.close()


async def test_a_newer_schema_is_refused_with_what_to_do(database_url: str, sql: Connection) -> None:
    await migrate(database_url)
    await sql.execute("insert into schema_version values (9000, 'from_the_future', 0)")
    with pytest.raises(SchemaMismatch, match="newer"):
        await PostgresStore(database_url).open()


async def test_a_migration_that_fails_leaves_nothing_behind(database_url: str, sql: Connection) -> None:
    await sql.execute("create table lanes (mine int)")
    with pytest.raises(asyncpg.DuplicateTableError):
        await migrate(database_url)
    assert await sql.fetchval("select to_regclass('jobs')") is None
    await sql.execute("drop table lanes")
    await migrate(database_url)
    assert await sql.fetchval("select to_regclass('jobs')") is not None


async def take_steps(sql: Connection, count: int) -> None:
    """A database as a version of that time left it."""
    await sql.execute(SQL["create_schema_version"])
    for step in migrations("postgres")[:count]:
        await sql.execute(step.sql)
        await sql.execute("insert into schema_version values ($1, $2, 0)", step.number, step.name)


async def write_jobs_of_then(sql: Connection, now: int, keys: dict[str, JobKey]) -> None:
    """A job in each place, in the columns that all versions know."""
    await sql.execute("insert into lanes (namespace, queue, job_type) values ('default', 'default', 'echo')")
    for place, key in keys.items():
        await sql.execute(
            "insert into jobs (id, lane_id, priority, name, due, created, payload, timeout, owner) "
            "values ($1, 1, 5, $2, $3, $3, '{}', $4, 'ann')",
            key,
            place,
            now,
            HOUR,
        )
        await sql.execute("insert into job_keys values ('default', $1, $2, 'body')", place, key)
    narrow = "id, due, since, lane_id, attempt, counted, tries_left, lost, version, priority"
    values = "$1, $2, $2, 1, 0, 0, 3, 0, 1, 5"
    await sql.execute(
        f"insert into waiting ({narrow}, rank, parents, hold) values ({values}, $3, 0, false)", keys["waiting"], now, 7
    )
    await sql.execute(f"insert into ready ({narrow}, rank) values ({values}, $3)", keys["ready"], now, 7)
    await sql.execute(
        f"insert into leases ({narrow}, worker, nonce, claimed, check_at) values ({values}, 1, 9, $2, $2)",
        keys["leases"],
        now,
    )
    await sql.execute(
        "insert into history (id, lane_id, state, attempt, counted, lost, version, due, ended) "
        "values ($1, 1, 7, 0, 0, 0, 2, $2, $2)",
        keys["history"],
        now,
    )


@pytest.mark.parametrize("steps", [1, 2, 3])
async def test_a_database_of_an_earlier_version_is_brought_up_to_date_with_its_jobs(
    database_url: str, sql: Connection, steps: int
) -> None:
    store = PostgresStore(database_url)
    scene = Scene(store, await store.now())
    keys = {place: JobKey(scene.new_id()) for place in ("waiting", "ready", "leases", "history")}
    await take_steps(sql, steps)
    await write_jobs_of_then(sql, scene.now, keys)
    await store.open()
    taken = [row[0] for row in await sql.fetch("select number from schema_version order by 1")]
    assert taken == [migration.number for migration in migrations("postgres")]
    records = await store.load(list(keys.values()))
    for place, key in keys.items():
        assert (records[key].job.name, records[key].job.lane.needs) == (place, "")
        assert (records[key].job.limit_key, records[key].job.unique_key, records[key].job.fair_key) == (
            None,
            None,
            None,
        )
        assert place_of(records[key].row).value == place
        row = records[key].row
        assert isinstance(row, Ended) or (row.ties, row.limit_id) == (0, None)
    assert (await store.admit([keys["waiting"]])).ready == [(keys["waiting"], 1)]
    child = await scene.child(keys["leases"], keys["ready"], keys["history"], on=On.ANY)
    saved = await store.save([scene.decide(records[keys["leases"]], events.Succeed())], scene.now)
    assert (saved.done, saved.parents_ended) == ({keys["leases"]}, True)
    await scene.happen(keys["ready"], events.Cancel())
    await scene.release()
    assert isinstance(await scene.row(child.id), Ready)
    schedule, (run,) = await scene.fire(await scene.scheduled(), scene.now)
    assert (await scene.standing(schedule)).under_way == (run.id,)
    await store.close()


async def test_lanes_of_an_earlier_version_have_their_queues_whose_limits_count_what_ran_then(
    database_url: str, sql: Connection
) -> None:
    store = PostgresStore(database_url)
    scene = Scene(store, await store.now())
    keys = {place: JobKey(scene.new_id()) for place in ("waiting", "ready", "leases", "history")}
    await take_steps(sql, 3)
    await write_jobs_of_then(sql, scene.now, keys)
    others = [("default", "mail", "a", ""), ("default", "mail", "b", ""), ("other", "default", "echo", "needs")]
    for names in others:
        await sql.execute("insert into lanes (namespace, queue, job_type, needs) values ($1, $2, $3, $4)", *names)
    await store.open()
    lanes = [Lane("default", "default", "echo"), *(Lane(*names) for names in others)]
    assert await store.lane_ids(lanes) == [1, 2, 3, 4]
    queues = {(queue.namespace, queue.name): queue for ns in ("default", "other") for queue in await store.queues(ns)}
    assert set(queues) == {("default", "default"), ("default", "mail"), ("other", "default")}
    assert all(queue.rules == DEFAULT_RULES and queue.version == 1 for queue in queues.values())
    # A node of the earlier version that is still there makes a lane as it knows them.
    await sql.execute("insert into lanes (namespace, queue, job_type, needs) values ('default', 'late', 'echo', '')")
    assert [queue.name for queue in await store.queues("default")] == ["default", "late", "mail"]
    limited = msgspec.structs.replace(queues["default", "default"], rules=QueueRules(max_concurrency=2, policy="fifo"))
    queue = await store.put_queue(limited, expected=1, now=scene.now)
    assert queue is not None
    assert (await store.rooms([queue.queue_id]))[queue.queue_id].running == 1
    (ordered,) = (await store.put_in_order(1, 9)).lanes
    worker = await scene.worker()
    await store.admit([keys["waiting"]])
    orders = [Order(lane_id, worker.id, 5, True) for lane_id in (ordered, 1)]
    (claimed,) = await store.claim(orders, scene.new_nonce(), scene.now)
    assert (claimed.lease.id, claimed.lease.lane_id) == (keys["ready"], 1)
    await store.close()


async def test_days_are_prepared_once_from_many_nodes(store: PostgresStore, sql: Connection) -> None:
    later = await store.now() + 100 * DAY
    before = await partitions(sql)
    await asyncio.gather(*(store.prepare_days(later) for _ in range(4)))
    days = {f"jobs_{Day.at(later + ahead * DAY).suffix}" for ahead in range(AHEAD + 1)}
    assert await partitions(sql) == before | days
    for table in ("history", "attempts", "job_logs"):
        assert len(await partitions(sql, table)) == len(before | days)


async def test_a_day_waits_for_a_lock_without_giving_up(store: PostgresStore, sql: Connection) -> None:
    later = await store.now() + 100 * DAY
    transaction = sql.transaction()
    await transaction.start()
    await sql.execute("lock table jobs_kept in access exclusive mode")
    preparing = asyncio.create_task(store.prepare_days(later))
    watcher = await asyncpg.connect(store._connections.url)
    while not await watcher.fetchval("select exists (select from pg_locks where not granted)"):
        pass
    await transaction.rollback()
    await preparing
    await watcher.close()
    assert f"jobs_{Day.at(later).suffix}" in await partitions(sql)


async def test_rows_that_came_before_their_day_are_moved_into_it(store: PostgresStore, sql: Connection) -> None:
    scene = Scene(store, await store.now() + 50 * DAY)
    ended = await scene.ended()
    assert await sql.fetchval("select count(*) from jobs_kept") == 1
    await store.prepare_days(scene.now)
    assert await sql.fetchval("select count(*) from jobs_kept") == 0
    assert await sql.fetchval(f"select count(*) from history_{Day.at(scene.now).suffix}") == 1
    assert await scene.record(ended.job.id) == ended


async def test_a_past_day_is_dropped_and_what_lives_stays_readable_and_claimable(
    store: PostgresStore, sql: Connection
) -> None:
    now = await store.now()
    scene = Scene(store, now - 40 * DAY)
    await store.prepare_days(scene.now)
    day = Day.at(scene.now)
    worker = await scene.worker()
    past = await scene.ended(name="past")
    leased = await scene.running(worker, name="leased")
    await scene.store.append_logs([scene.line(leased)])
    retried = await scene.running(worker)
    record = await scene.happen(retried.id, events.FailRetriable(error='"e"', retry_after=DAY))
    waiting = await scene.submitted(due=now + DAY, name="waiting")
    ready = await scene.submitted(queue="ready")
    late = await scene.running(worker)
    scene.now = now
    late_end = await scene.happen(late.id, events.Succeed())
    while await store.forget(now - 30 * DAY, 100):
        pass
    assert f"jobs_{day.suffix}" not in await partitions(sql)
    kept = await store.load([past.job.id, leased.id, retried.id, waiting.id, ready.id, late.id])
    assert set(kept) == {leased.id, retried.id, waiting.id, ready.id, late.id}
    assert kept[retried.id] == record
    assert kept[late.id] == late_end
    assert len(await store.logs(leased.id, after=0, level=0, limit=10)) == 1
    assert await store.find("default", ["past", "leased", "waiting"]) == {"leased": leased.id, "waiting": waiting.id}
    alive = await scene.worker()
    (claimed,) = await scene.claim(alive, ready)
    assert claimed.job == ready
    assert isinstance(await scene.row(ready.id), Lease)
    assert isinstance((await scene.happen(ready.id, events.Succeed())).row, Ended)
    await scene.happen(leased.id, events.Succeed())
    # All that has ended goes when its end, too, is past.
    while await store.forget(now + DAY, 2):
        pass
    assert set(await store.load([leased.id, retried.id, waiting.id, ready.id, late.id])) == {retried.id, waiting.id}
    assert await store.find("default", ["leased", "waiting"]) == {"waiting": waiting.id}
    for table in ("history_kept", "job_logs_kept"):
        assert await sql.fetchval(f"select count(*) from {table}") == 0


async def test_many_names_of_a_past_day_go_in_pieces(store: PostgresStore, sql: Connection) -> None:
    now = await store.now()
    scene = Scene(store, now - 40 * DAY)
    await store.prepare_days(scene.now)
    worker = await scene.worker()
    jobs = [await scene.job(name=f"n{number}") for number in range(20)]
    await scene.submit(*jobs)
    for claimed in await scene.claim(worker, jobs[0], 15):
        await scene.happen(claimed.lease.id, events.Succeed())
    taken = []
    while count := await store.forget(now - 30 * DAY, 4):
        taken.append(count)
    assert await sql.fetchval("select count(*) from job_keys") == 5
    assert len(taken) >= 4
    assert len(await store.load([job.id for job in jobs])) == 5


async def test_edges_and_unique_keys_of_a_past_day_go_in_pieces_with_it(store: PostgresStore, sql: Connection) -> None:
    now = await store.now()
    scene = Scene(store, now - 40 * DAY)
    await store.prepare_days(scene.now)
    parents = [await scene.submitted(unique_key=f"k{number}") for number in range(10)]
    children = [await scene.child(parent.id) for parent in parents]
    lives = await scene.child(parents[0].id, due=now + DAY, unique_key="lives")
    for claimed in await scene.claim(await scene.worker(), parents[0], 10):
        await scene.happen(claimed.lease.id, events.Succeed())
    await scene.release()
    for child in children:
        await scene.happen(child.id, events.Cancel())
    taken = []
    while count := await store.forget(now - 30 * DAY, 4):
        taken.append(count)
    assert len(taken) >= 6
    assert [edge.child for edge in await store.edges([parents[0].id, lives.id], 100)] == [lives.id]
    assert await sql.fetchval("select count(*) from edges") == 1
    assert [row[0] for row in await sql.fetch("select key from unique_keys")] == ["lives"]
    scene.now = now
    await scene.happen(lives.id, events.Cancel())
    while await store.forget(now + DAY, 4):
        pass
    assert await sql.fetchval("select count(*) from edges") == 0
    assert await sql.fetchval("select count(*) from unique_keys") == 0


async def test_two_nodes_forget_at_once(database_url: str, store: PostgresStore) -> None:
    other = PostgresStore(database_url)
    await other.open()
    now = await store.now()
    scene = Scene(store, now - 40 * DAY)
    await store.prepare_days(scene.now)
    keys = [(await scene.ended()).job.id for _ in range(5)]

    async def forget(node: PostgresStore) -> None:
        while await node.forget(now - 30 * DAY, 100):
            pass

    await asyncio.gather(forget(store), forget(other))
    assert await store.load(keys) == {}
    await other.close()


def test_days_meet_without_gap_or_overlap() -> None:
    now = 1_800_000_000 * 1_000_000
    one, two = Day.at(now), Day.at(now + DAY)
    assert one.high == two.low
    assert one.low <= IdMaker(node=0).one(now) < one.high
    assert Day.named(one.suffix).low == one.low
    assert JobKey(one.low) < one.high
