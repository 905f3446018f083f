"""Reading on a caller's behalf: the database shows nothing of another namespace, whatever is asked of it."""

import asyncio
import json
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import asyncpg
import pytest

from foliot.domain import events
from foliot.domain.graph import On
from foliot.domain.ids import JobKey
from foliot.domain.queue import Queue, QueueRules
from foliot.domain.retry import Retry
from foliot.domain.status import STATUSES
from foliot.store.base import Filter, Page, Reader
from foliot.store.postgres import PostgresStore
from foliot.store.postgres.connections import Connection, connect
from foliot.store.postgres.part import SQL
from tests.postgres_server import PostgresServer
from tests.store.builders import Scene
from tests.store.test_postgres_plans import Plan, check, literal, steps, visited

MANY = 100_000
HUGE = (1 << 63) - 1

# Jobs ($1 the first id, $2 their lane, $3 how many) that wait, each with an ended attempt and a child.
CROWD = (
    """insert into jobs (id, lane_id, priority, due, created, payload, timeout, owner)
    select $1::bigint + n, $2::int, 5, 0, 0, '', 0, '' from generate_series(0, $3::int - 1) as g (n)""",
    """insert into waiting (id, due, rank, since, lane_id, attempt, counted, tries_left, lost, version, parents,
        priority, hold)
    select $1::bigint + n, 0, n, 0, $2::int, 1, 0, 1, 0, 1, 0, 5, true from generate_series(0, $3::int - 1) as g (n)""",
    """insert into attempts (id, attempt, status, worker, nonce, due, claimed)
    select $1::bigint + n, 1, 7, $2::int, 0, 0, 0 from generate_series(0, $3::int - 1) as g (n)""",
    """insert into edges (parent, child, "on")
    select $1::bigint + n, $1 + n + 1, 1 + 0 * $2::int from generate_series(0, $3::int - 2) as g (n)""",
)


class Filled:
    """A namespace with something in all that readers read."""

    def __init__(self, scene: Scene, namespace: str) -> None:
        self.scene = scene
        self.namespace = namespace

    async def fill(self) -> None:
        scene = self.scene
        here: dict[str, Any] = {"namespace": self.namespace}
        worker = await scene.worker(**here, name=self.namespace)
        number = await scene.limit("door", 1, **here)
        self.ready = await scene.submitted(**here, name="ready")
        self.waiting = await scene.submitted(**here, due=scene.later(60))
        await scene.submit(*await scene.jobs(2, **here, limit_key="door", job_type="held"))
        await scene.store.give_tokens([number], scene.now)
        self.retried = await scene.running(worker, **here, job_type="retried", retry=Retry(delays=(0,)))
        await scene.store.append_logs([scene.line(self.retried)])
        await scene.happen(self.retried.id, events.FailRetriable())
        self.running = await scene.running(worker, **here, job_type="runs")
        self.ended = await scene.ended(worker=worker, **here, job_type="ends")
        self.child = await scene.child(self.ready.id, on=On.ANY, **here)
        self.schedule, _ = await scene.fire(await scene.scheduled(**here), scene.now, job_type="fired")
        wanted = Queue(queue_id=0, **here, name="default", rules=QueueRules(max_concurrency=5))
        queue = await scene.store.put_queue(wanted, expected=None, now=scene.now)
        assert queue is not None
        self.queue = queue
        await scene.store.hold_type(self.namespace, "held", held=True)

    def asked(self, reader: Reader) -> dict[str, Callable[[], Awaitable[Any]]]:
        """Each method, asked for what is there in this namespace."""
        space, keys = self.namespace, [self.ready.id, self.waiting.id, self.running.id, self.ended.job.id]
        return {
            "load": lambda: reader.load(keys),
            "find": lambda: reader.find(space, ["ready"]),
            "list_jobs": lambda: _records(reader, Filter(namespace=space)),
            "executions": lambda: reader.executions(self.retried.id),
            "result": lambda: reader.result(self.ended.job.id),
            "logs": lambda: reader.logs(self.retried.id, after=0, level=0, limit=10),
            "edges": lambda: reader.edges([self.child.id], 10),
            "limits": lambda: reader.limits(space, names=5),
            "queues": lambda: reader.queues(space),
            "crowds": lambda: reader.crowds([self.queue.queue_id]),
            "rooms": lambda: reader.rooms([self.queue.queue_id]),
            "held_types": lambda: reader.held_types(space),
            "schedule": lambda: reader.schedule(space, self.schedule.name),
            "list_schedules": lambda: reader.list_schedules(space, limit=10, before=None),
            "runs": lambda: reader.runs(self.schedule.id, limit=10, before=None),
            "workers": lambda: reader.workers(space),
        }


async def _records(reader: Reader, filter: Filter) -> list[Any]:
    return list((await reader.list_jobs(filter, limit=50, before=None)).records)


@pytest.fixture
async def store(database_url: str) -> AsyncIterator[PostgresStore]:
    store = PostgresStore(database_url)
    await store.open()
    yield store
    await store.close()


@pytest.fixture
async def shop(store: PostgresStore) -> Filled:
    filled = Filled(Scene(store, await store.now()), "shop")
    await filled.fill()
    return filled


@pytest.fixture
async def by_hand(database_url: str) -> AsyncIterator[Connection]:
    connection = await connect(database_url)
    yield connection
    await connection.close()


async def relations(connection: Connection) -> list[asyncpg.Record]:
    """All that can be selected from, whether readers may, and whether it is fenced."""
    return await connection.fetch("""
        select c.relname as name, has_any_column_privilege('foliot_reader', c.oid, 'select') as readable,
            case when c.relkind = 'v' then 'security_invoker=true' = any(coalesce(c.reloptions, '{}'))
                else c.relrowsecurity and exists (select from pg_policy where polrelid = c.oid) end as fenced
        from pg_class c
        where c.relnamespace = current_schema()::regnamespace and c.relkind in ('r', 'p', 'v', 'm', 'f')
        order by 1""")


async def seen(connection: Connection, namespace: str) -> dict[str, int]:
    """How many rows each relation shows behind the fence; those that show nothing but a refusal are left out."""
    found = {}
    for relation in await relations(connection):
        await connection.fetchrow(SQL["go_behind_fence"], namespace)
        try:
            found[relation["name"]] = len(await connection.fetch(f'select * from "{relation["name"]}"'))
        except asyncpg.InsufficientPrivilegeError:
            assert not relation["readable"]
        finally:
            await connection.execute("reset role")
    return found


async def test_no_relation_shows_a_row_of_another_namespace(shop: Filled, by_hand: Connection) -> None:
    there, elsewhere = await seen(by_hand, "shop"), await seen(by_hand, "other")
    assert set(there) == set(elsewhere) == {row["name"] for row in await relations(by_hand) if row["readable"]}
    assert {name for name, rows in there.items() if not rows} == set(), "fill it, so that it can be seen"
    assert {name for name, rows in elsewhere.items() if rows} == set()
    assert {name for name, rows in (await seen(by_hand, "")).items() if rows} == set()
    assert {"jobs", "history", "attempts", "job_logs", "edges", "job_rows"} <= set(there)
    assert not {"api_keys", "sessions", "audit", "audit_head", "jobs_kept", "request_keys"} & set(there)


async def test_whatever_readers_may_read_has_a_policy(store: PostgresStore, by_hand: Connection) -> None:
    async def unfenced() -> set[str]:
        return {row["name"] for row in await relations(by_hand) if row["readable"] and not row["fenced"]}

    assert await unfenced() == set()
    await by_hand.execute("create table later (namespace text); grant select on later to foliot_reader")
    await by_hand.execute("create view around as select * from jobs; grant select on around to foliot_reader")
    assert await unfenced() == {"later", "around"}


async def test_readers_may_not_write(store: PostgresStore, by_hand: Connection) -> None:
    names = [row["name"] for row in await relations(by_hand)]
    for right in ("insert", "update", "delete", "truncate", "references", "trigger"):
        asked = "select has_table_privilege('foliot_reader', $1::text, $2::text)"
        assert [name for name in names if await by_hand.fetchval(asked, name, right)] == []


METHODS = sorted(name for name in vars(Reader) if not name.startswith("_"))


async def test_each_method_shows_what_is_there_and_nothing_to_another_namespace(shop: Filled) -> None:
    store = shop.scene.store
    own, other, engine = (shop.asked(reader) for reader in (store.reader("shop"), store.reader("other"), store))
    assert sorted(own) == METHODS
    for name in METHODS:
        expected = await engine[name]()
        assert expected, name
        assert await own[name]() == expected, name
        assert not await other[name](), name


async def test_workers_of_all_namespaces_are_those_of_ones_own(shop: Filled) -> None:
    store = shop.scene.store
    await shop.scene.worker(namespace="other", name="theirs")
    assert len(await store.workers()) == 2
    assert [worker.name for worker, _ in await store.reader("other").workers()] == ["theirs"]


async def test_an_edge_to_another_namespace_is_not_shown(shop: Filled) -> None:
    store = shop.scene.store
    await shop.scene.child(shop.ready.id, namespace="other")
    assert len(await store.edges([shop.ready.id], 10)) == 2
    assert [edge.child for edge in await store.reader("shop").edges([shop.ready.id], 10)] == [shop.child.id]
    assert await store.reader("other").edges([shop.ready.id], 10) == []


@pytest.mark.parametrize("status", STATUSES)
async def test_lists_by_status_are_those_of_the_engine(shop: Filled, status: str) -> None:
    store, wanted = shop.scene.store, Filter(namespace="shop", statuses=(status,))
    page = await store.list_jobs(wanted, limit=50, before=None)
    assert await store.reader("shop").list_jobs(wanted, limit=50, before=None) == Page(list(page.records), page.next)
    assert await _records(store.reader("other"), wanted) == []


async def test_a_list_goes_on_where_its_page_ended(shop: Filled) -> None:
    reader, wanted = shop.scene.store.reader("shop"), Filter(namespace="shop")
    keys: list[JobKey] = []
    page = await reader.list_jobs(wanted, limit=3, before=None)
    while page.next is not None:
        keys += [record.job.id for record in page.records]
        page = await reader.list_jobs(wanted, limit=3, before=page.next)
    keys += [record.job.id for record in page.records]
    assert keys == [record.job.id for record in await _records(shop.scene.store, wanted)]


async def test_readers_of_many_namespaces_share_connections_and_see_their_own(store: PostgresStore) -> None:
    scene = Scene(store, await store.now())
    jobs = {f"space{n}": await scene.submitted(namespace=f"space{n}") for n in range(12)}
    keys = [job.id for job in jobs.values()]
    for _ in range(3):
        answers = await asyncio.gather(*(store.reader(name).load(keys) for name in jobs))
        assert [list(answer) for answer in answers] == [[job.id] for job in jobs.values()]


async def test_a_reader_whose_connections_were_cut_is_behind_the_fence_again(shop: Filled, by_hand: Connection) -> None:
    own, other = shop.scene.store.reader("shop"), shop.scene.store.reader("other")
    assert await own.load([shop.ready.id])
    await by_hand.execute(
        "select pg_terminate_backend(pid, 5000) from pg_stat_activity "
        "where datname = current_database() and pid <> pg_backend_pid()"
    )
    assert await other.load([shop.ready.id]) == {}
    assert list(await own.load([shop.ready.id])) == [shop.ready.id]


async def test_the_engine_sees_every_namespace(shop: Filled, by_hand: Connection) -> None:
    tables = ["lanes", "jobs", "waiting", "ready", "leases", "history", "schedules", "ledger", "workers", "queues"]
    assert [table for table in tables if await by_hand.fetchval("select row_security_active($1::text)", table)] == []


async def explain(connection: Connection, namespace: str | None, query: str, *arguments: object) -> Plan:
    """Run it for its plan, behind the fence where there is a namespace."""
    if namespace is not None:
        await connection.fetchrow(SQL["go_behind_fence"], namespace)
    try:
        types = [each.name for each in (await connection.prepare(SQL[query])).get_parameters()]
        names = [f"{name[:-2].lstrip('_')}[]" if name.endswith("[]") else name for name in types]
        await connection.execute(f"prepare explained ({', '.join(names)}) as {SQL[query]}")
        values = ", ".join(literal(argument) for argument in arguments)
        text = await connection.fetchval(
            f"explain (analyze, buffers, timing off, format json) execute explained ({values})"
        )
        await connection.execute("deallocate explained")
        plan: Plan = json.loads(text)[0]["Plan"]
        return plan
    finally:
        await connection.execute("reset role")


async def add_many(scene: Scene, connection: Connection) -> list[int]:
    """A namespace with many jobs; some of them."""
    (lane,) = await scene.store.lane_ids([(await scene.job(namespace="crowd")).lane])
    first = scene.new_id()
    scene._ids.take(MANY, scene.now)
    for statement in CROWD:
        await connection.execute(statement, first, lane, MANY)
    return [first + number * 1000 for number in range(20)]


@pytest.mark.parametrize("analyzed", [True, False], ids=["true statistics", "no statistics"])
async def test_behind_the_fence_rows_are_looked_up_not_searched(
    shop: Filled, by_hand: Connection, analyzed: bool
) -> None:
    for table in ("jobs_kept", "waiting", "attempts_kept", "edges"):
        await by_hand.execute(f"alter table {table} set (autovacuum_enabled = off)")
    crowd = await add_many(shop.scene, by_hand)
    if analyzed:
        await by_hand.execute("analyze")
    own = [shop.ready.id, shop.waiting.id, shop.running.id, shop.ended.job.id]
    queries: dict[str, tuple[object, ...]] = {
        "load": (own,),
        "list_among": (own,),
        "find": ("shop", ["ready"]),
        "executions": (shop.retried.id,),
        "result": (shop.ended.job.id,),
        "logs": (shop.retried.id, 0, 0, 10),
        "edges_among": ([shop.ready.id], [shop.child.id]),
        "limits": ("shop", "", None, 50, 10_000, 5),
        "queues": ("shop", "", None, 50),
        "rooms": ([shop.queue.queue_id],),
        "held_types": ("shop",),
        "schedule": ("shop", shop.schedule.name),
        "list_schedules": ("shop", HUGE, 10),
        "runs": (shop.schedule.id, HUGE, 10),
        "workers": ("shop",),
        "lanes_by_id": ([shop.ready.lane_id],),
    }
    for query, arguments in queries.items():
        plan = await explain(by_hand, "shop", query, *arguments)
        assert plan["Actual Rows"] > 0, query
        check(plan, bound=60)
    for query in ("load", "list_among"):
        plan = await explain(by_hand, "shop", query, crowd)
        assert plan["Actual Rows"] == 0
        check(plan, bound=60)
        plan = await explain(by_hand, "crowd", query, crowd)
        assert plan["Actual Rows"] == len(crowd)
        check(plan, bound=60)


async def test_a_list_in_a_small_namespace_is_not_a_walk_through_a_large_one(shop: Filled, by_hand: Connection) -> None:
    """The engine looks at a bounded number of rows; behind the fence only those that it names are read."""
    await add_many(shop.scene, by_hand)
    reader = shop.scene.store.reader("shop")
    for wanted in (Filter(namespace="shop"), Filter(namespace="shop", statuses=("paused", "scheduled"))):
        page = await reader.list_jobs(wanted, limit=50, before=None)
        assert page.next is not None
        assert list(page.records) == []
    plan = await explain(by_hand, "shop", "list_among", [shop.ready.id])
    assert max(map(visited, steps(plan))) < 10


async def test_a_user_who_may_not_make_roles_goes_without_the_fence_and_says_so(
    caplog: pytest.LogCaptureFixture,
) -> None:
    server = PostgresServer.start()
    try:
        url = await owned_database(server, "plain", "login password 'secret'")
        with caplog.at_level(logging.WARNING, "foliot.store"):
            assert not await is_fenced(url)
        assert [record.message.count("foliot_reader") for record in caplog.records] == [1]
        caplog.clear()
        admin = await asyncpg.connect(server.url("postgres"))
        await admin.execute("create role foliot_reader nologin; grant foliot_reader to plain")
        await admin.close()
        assert await is_fenced(url)
        assert caplog.records == []
    finally:
        server.stop()


async def test_a_user_who_may_make_roles_makes_the_one_for_readers(caplog: pytest.LogCaptureFixture) -> None:
    server = PostgresServer.start()
    try:
        url = await owned_database(server, "maker", "login password 'secret' createrole")
        answers = await asyncio.gather(*(is_fenced(url) for _ in range(3)))
        assert answers == [True] * 3
        second = await owned_database(server, "plain", "login password 'secret'")
        assert not await is_fenced(second)
        assert len(caplog.records) == 1
    finally:
        server.stop()


async def owned_database(server: PostgresServer, user: str, options: str) -> str:
    """The address of a database for a user of its own."""
    admin = await asyncpg.connect(server.url("postgres"))
    try:
        await admin.execute(f"create role {user} {options}")
        await admin.execute(f"create database {user} owner {user} template template0")
    finally:
        await admin.close()
    return server.url(user).replace("//postgres@", f"//{user}:secret@")


async def is_fenced(url: str) -> bool:
    """Whether a job of another namespace can not be seen; everything else works in either case."""
    store = PostgresStore(url)
    await store.open()
    try:
        job = await Scene(store, await store.now()).submitted(namespace="shop")
        assert list(await store.reader("shop").load([job.id])) == [job.id]
        return not await store.reader("other").load([job.id])
    finally:
        await store.close()
