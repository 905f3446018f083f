"""What only PostgreSQL tells of watching: by which ways rows are found, and how the server is doing."""

import asyncio
from collections.abc import AsyncIterator, Iterable

import asyncpg
import pytest

from foliot.domain.duration import HOUR
from foliot.store.base import Fact
from foliot.store.postgres import PostgresStore
from foliot.store.postgres.connections import Connection, connect
from foliot.store.postgres.facts import dead_rows, server_health
from foliot.store.postgres.part import SQL
from foliot.store.waiters import BEYOND, IN_ORDER, stretches
from tests.store.builders import Scene
from tests.store.contract.test_queue_order import put_in_order
from tests.store.contract.test_queues import jobs_in, put
from tests.store.contract.test_watch import a_delivery, add, an_incident
from tests.store.test_postgres_plans import ASKED, HUGE, ROWS, Filled, check, filled, models, steps, visited, ways

__all__ = ["filled", "models"]

TABLES = ("definitions", "posts", "incidents", "deliveries", "lateness")

# ROWS ($1) of each, all of one webhook, rule and queue; ids and times are numbers from 1 on. One in ten is open.
FILL = (
    """insert into incidents (id, namespace, rule, subject, body, opened, resolved, notify_at, version)
    select n, 'default', 'late', 's' || n, '{}', n, case when n % 10 > 0 then n end, n, 1
    from generate_series(1, $1::int) as g (n)""",
    """insert into deliveries (id, namespace, webhook, event_id, event_type, body, created, state, attempts, next_try,
        changed)
    select n, 'default', 'shop', 'e' || n, 't', '{}', n, case when n % 10 > 0 then 'delivered' else 'pending' end, 1,
        case when n % 10 = 0 then n end, n
    from generate_series(1, $1::int) as g (n)""",
    """insert into lateness (minute, node, namespace, queue, job_type, counts)
    select n, 1, 'default', 'mail', 'send', '{}' from generate_series(1, $1::int) as g (n)""",
    """insert into definitions (kind, namespace, name, body, created, version)
    select 'alert', 'default', 'd' || n, '{}', n, 1 from generate_series(1, $1::int) as g (n)""",
)


@pytest.fixture
async def store(database_url: str) -> AsyncIterator[PostgresStore]:
    store = PostgresStore(database_url)
    await store.open()
    yield store
    await store.close()


@pytest.fixture
async def by_hand(database_url: str) -> AsyncIterator[Connection]:
    connection = await connect(database_url)
    yield connection
    await connection.close()


def named(facts: Iterable[Fact]) -> dict[str, Fact]:
    return {fact.name: fact for fact in facts}


@pytest.mark.parametrize("analyzed", [True, False], ids=["true statistics", "no statistics"])
async def test_what_watchers_keep_is_looked_up_not_searched(
    store: PostgresStore, by_hand: Connection, analyzed: bool
) -> None:
    for statement in FILL:
        await by_hand.execute(statement, 10 * ROWS)
    if analyzed:
        await by_hand.execute("analyze")
    kept = Filled(Scene(store, await store.now()), by_hand)
    plan = await kept.explain("open_incidents", None)
    assert plan["Actual Rows"] == ROWS
    assert ways(plan, "incidents") == {"incidents_open"}
    check(plan, bound=ROWS)
    numbers, nothing, words = list(range(10, 10 + ASKED)), [None] * ASKED, ["x"] * ASKED
    states = ["pending", "delivered", "failed"]
    incident = (numbers, ["default"] * ASKED, words, [f"n{n}" for n in numbers], words, numbers, nothing, nothing)
    for query, arguments, found, table, way in (
        ("change_definition", ("alert", "default", "d7", "{}", 1), 1, "definitions", "definitions_pkey"),
        ("remove_definition", ("alert", "default", "d7"), 1, "definitions", "definitions_pkey"),
        ("change_incidents", (*incident, [2] * ASKED), ASKED, "incidents", "incidents_pkey"),
        ("incidents", ("default", HUGE, ASKED), ASKED, "incidents", "incidents_of_namespace"),
        ("incident", ("default", 7), 1, "incidents", "incidents_pkey"),
        ("take_notices", (HUGE, HUGE, ASKED), ASKED, "incidents", "incidents_notify"),
        ("forget_incidents", (HUGE, ASKED), ASKED, "incidents", "incidents_resolved"),
        ("take_deliveries", (HUGE, HUGE, ASKED), ASKED, "deliveries", "deliveries_next_try"),
        ("next_delivery", (), 1, "deliveries", "deliveries_next_try"),
        ("finish_deliveries", (numbers, words, numbers, nothing, nothing, nothing, numbers), 0, "deliveries", None),
        ("deliveries", ("default", "shop", HUGE, ASKED, states), ASKED, "deliveries", "deliveries_of_webhook"),
        ("deliveries", ("default", "shop", HUGE, ASKED, ["failed"]), 0, "deliveries", "deliveries_of_webhook"),
        ("delivery", ("default", "shop", 7), 1, "deliveries", "deliveries_pkey"),
        ("forget_deliveries", (HUGE, ASKED), ASKED, "deliveries", "deliveries_ended"),
        ("lateness", (5, 5 + ASKED), ASKED, "lateness", "lateness_minute"),
        ("lateness_of", (5, 5 + ASKED, "default"), ASKED, "lateness", None),
        ("forget_lateness", (HUGE, ASKED), ASKED, "lateness", "lateness_minute"),
    ):
        plan = await kept.explain(query, *arguments)
        assert plan["Actual Rows"] == found, query
        if way is not None:
            assert ways(plan, table) == {way}, query
        check(plan)


async def test_who_waits_longest_is_found_without_a_look_at_all_that_wait(filled: Filled) -> None:
    lane, now = filled.lane, filled.scene.now + HOUR
    ordered = await filled.connection.fetchval(
        "insert into lanes (namespace, queue, job_type, ordering) select namespace, queue, job_type, 'fifo' "
        "from lanes where lane_id = $1 returning lane_id",
        lane,
    )
    await filled.connection.execute(
        "update ready set lane_id = $1 where id in (select id from ready where lane_id = $2 limit $3)",
        ordered,
        lane,
        ROWS // 2,
    )
    parts = [(lane, lane, first, 0, end, ASKED) for first, end in stretches(now)]
    parts.append((lane, ordered, 0, 0, BEYOND, IN_ORDER))
    columns = [list(column) for column in zip(*parts, strict=True)]
    plan = await filled.explain("waiters", *columns, [lane], now, ASKED)
    assert plan["Actual Rows"] == ASKED + IN_ORDER + ASKED
    assert ways(plan, "ready") == {"ready_rank"}
    assert ways(plan, "waiting") == {"waiting_for_key_due"}
    check(plan)
    lanes = await filled.explain("lanes_in_order", [lane])
    assert ways(lanes, "lanes") == {"lanes_base"}
    assert lanes["Actual Rows"] == 1


async def test_what_runs_for_long_takes_one_look_at_the_leases(filled: Filled) -> None:
    plan = await filled.explain("overruns", filled.scene.now + HOUR, ASKED)
    assert plan["Actual Rows"] == ASKED
    assert max(map(visited, steps(plan))) <= ROWS


async def test_a_look_for_waiters_begins_behind_what_is_known_to_be_gone(
    store: PostgresStore, by_hand: Connection, database_url: str
) -> None:
    scene = Scene(store, await store.now())
    watcher = await asyncpg.connect(database_url)
    old = watcher.transaction(isolation="repeatable_read")
    await old.start()
    await watcher.fetchval("select count(*) from ready")
    worker = await scene.worker(until=scene.later(3600))
    jobs = await jobs_in(scene, 2 * ROWS)
    assert len(await scene.claim(worker, jobs[0], len(jobs))) == len(jobs)
    last = await scene.submitted()
    lane = last.lane_id
    store._marks._looked[lane] += HOUR  # so that a slow machine does not bring the time of the full look
    mark = store._marks.look([lane]).begin[lane]
    assert mark[1] in {job.id for job in jobs}
    filled = Filled(scene, by_hand)
    first, end = stretches(scene.now + HOUR)[4]
    full = await filled.explain("waiters", [lane], [lane], [first], [0], [end], [9], [lane], 0, 9)
    marked = await filled.explain("waiters", [lane], [lane], [mark[0]], [mark[1]], [end], [9], [lane], 0, 9)
    assert full["Actual Rows"] == marked["Actual Rows"] == 1
    assert marked["Shared Hit Blocks"] * 5 < full["Shared Hit Blocks"]
    assert [one.id for one in await store.waiters([lane], scene.now + 1, 9)] == [last.id]
    await old.rollback()
    await watcher.close()


async def test_waiters_are_found_behind_marks_in_every_priority_and_in_a_lane_in_order(store: PostgresStore) -> None:
    scene = Scene(store, await store.now())
    worker = await scene.worker()
    await put(scene, policy="fifo")
    for priority in (9, 4):
        jobs = await jobs_in(scene, 5, priority=priority)
        await scene.claim(worker, jobs[0], 3)
    await put_in_order(scene)
    more = await jobs_in(scene, 2, priority=4)
    await scene.claim(worker, more[0], 1)
    assert len(await store.waiters([more[0].lane_id], scene.now + 1, 50)) == 5


async def test_a_notice_or_delivery_that_another_transaction_holds_is_stepped_over(
    store: PostgresStore, by_hand: Connection
) -> None:
    incidents = [an_incident(notify_at=n) for n in range(3)]
    deliveries = [a_delivery(next_try=n) for n in range(3)]
    await store.save_incidents(incidents)
    await add(store, *deliveries)
    async with by_hand.transaction():
        await by_hand.execute("select from incidents where id = $1 for update", incidents[0].id)
        await by_hand.execute("select from deliveries where id = $1 for update", deliveries[0].id)
        assert [one.id for one in await store.take_notices(9, 50, 9)] == [one.id for one in incidents[1:]]
        assert [one.id for one in await store.take_deliveries(9, 50, 9)] == [one.id for one in deliveries[1:]]
    assert [one.id for one in await store.take_deliveries(9, 50, 9)] == [deliveries[0].id]


async def test_a_step_waits_for_who_takes_the_post_at_that_moment_and_loses(
    store: PostgresStore, by_hand: Connection
) -> None:
    post = await store.take_post("watch", 1, 0, 100)
    assert post is not None
    async with by_hand.transaction():
        assert await by_hand.fetch(SQL["take_post"], "watch", 2, 100, 200)
        step = asyncio.create_task(store.advance(post, "1-1", incidents=[an_incident()]))
        waiting = "select exists (select from pg_locks where not granted)"
        while not await by_hand.fetchval(waiting):
            pass
    assert not await step
    assert await store.open_incidents() == []


async def test_readers_may_read_nothing_that_watchers_keep(store: PostgresStore, by_hand: Connection) -> None:
    asked = "select has_any_column_privilege('foliot_reader', $1::text, 'select')"
    assert [table for table in TABLES if await by_hand.fetchval(asked, table)] == []


async def test_a_transaction_that_is_open_is_told_by_its_age(store: PostgresStore, by_hand: Connection) -> None:
    async with by_hand.transaction(isolation="repeatable_read"):
        await by_hand.fetchval("select count(*) from lanes")
        age = "select extract(epoch from clock_timestamp() - transaction_timestamp())::float8"
        at_least = await by_hand.fetchval(age)
        fact = named(await store.facts())["oldest_snapshot_seconds"]
        at_most = await by_hand.fetchval(age)
    assert at_least < fact.value < at_most
    assert not fact.trouble


async def test_a_plain_user_of_the_server_gets_what_it_may_see(store: PostgresStore, by_hand: Connection) -> None:
    role = f"plain_{await by_hand.fetchval('select pg_backend_pid()')}"
    snapshot = await connect(store._connections.url)
    await by_hand.execute(f"create role {role} nologin")
    try:
        async with snapshot.transaction(isolation="repeatable_read"):
            await snapshot.fetchval("select count(*) from lanes")
            await by_hand.execute(f"set role {role}")
            ((age, connections, lag),) = await by_hand.fetch(SQL["server_health"])
            assert await by_hand.fetch(SQL["dead_rows"], ["ready"])
            await by_hand.execute("reset role")
        assert (age, lag) == (None, None)
        assert connections > 0
    finally:
        await by_hand.execute(f"drop role {role}")
        await snapshot.close()


async def test_dead_rows_are_told_of_the_table_that_has_the_most(store: PostgresStore, by_hand: Connection) -> None:
    await by_hand.execute("alter table waiting set (autovacuum_enabled = off)")
    await by_hand.execute(
        "insert into waiting (id, due, rank, since, lane_id, attempt, counted, tries_left, lost, version, parents, "
        "priority, hold) select n, 0, 0, 0, 1, 0, 0, 1, 0, 1, 1, 5, true from generate_series(1, 1000) as g (n)"
    )
    await by_hand.execute("delete from waiting where id <= 900")
    await by_hand.execute("select pg_stat_force_next_flush()")
    await by_hand.execute("select 1")
    facts = named(await store.facts())
    assert facts["dead_rows"] == Fact(name="dead_rows", value=900)
    assert facts["dead_rows_share"] == Fact(name="dead_rows_share", value=0.9)


@pytest.mark.parametrize(
    ("live", "dead", "age", "trouble"),
    [
        (0, 0, 9_999, False),
        (0, 100_000, 9_999, False),
        (0, 100_001, 9_999, True),
        (0, 100_001, 299, False),
        (200_000, 190_000, 9_999, False),
        (0, 2_000_001, 1, True),
        (9_000_000, 2_000_001, 1, False),
    ],
)
def test_dead_rows_are_trouble_where_they_are_many_and_stay(live: int, dead: int, age: float, trouble: bool) -> None:
    count, share = dead_rows([("leases", 5, 0, 1.0), ("ready", live, dead, age)])
    assert (count.value, count.trouble) == (dead, "")
    assert bool(share.trouble) == trouble
    assert ("table ready" in share.trouble) == trouble


def test_without_statistics_nothing_is_told_of_dead_rows() -> None:
    assert dead_rows([]) == []


def test_the_server_is_in_trouble_beyond_its_limits() -> None:
    good = server_health(600.0, 0.9, 60.0)
    bad = server_health(601.0, 0.91, 61.0)
    assert [(fact.name, fact.value) for fact in good] == [
        ("oldest_snapshot_seconds", 600.0),
        ("connections_share", 0.9),
        ("replication_lag_seconds", 60.0),
    ]
    assert not any(fact.trouble for fact in good)
    assert ["601 seconds" in bad[0].trouble, "91%" in bad[1].trouble, "61 seconds" in bad[2].trouble] == [True] * 3


def test_a_server_without_standbys_and_transactions_tells_of_none() -> None:
    assert [(fact.name, fact.value) for fact in server_health(None, 0.1, None)] == [
        ("oldest_snapshot_seconds", 0.0),
        ("connections_share", 0.1),
    ]
