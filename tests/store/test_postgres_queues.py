"""Queues on PostgreSQL, where several nodes claim, put in order and change rules on one database at once."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Any

import asyncpg
import pytest

from foliot.domain import events
from foliot.domain.duration import SECOND
from foliot.domain.graph import On
from foliot.domain.ids import JobKey
from foliot.domain.job import NAMESPACE, Ended, Job, Lane, Lease, Ready, Ties
from foliot.domain.placement import Order
from foliot.domain.queue import DEFAULT_RULES, Queue, QueueRules
from foliot.domain.rank import COST
from foliot.domain.rate import RateLimit
from foliot.domain.worker import Worker
from foliot.store.base import Claimed, Ordered, Parent
from foliot.store.postgres import PostgresStore, connections
from foliot.store.postgres.days import Day
from foliot.store.postgres.marks import FULL_LOOK
from foliot.store.postgres.part import SQL
from tests.store.builders import Scene
from tests.store.test_postgres_graph import Held

ROUNDS = 25
FAIR = QueueRules(policy="fair")


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


@pytest.fixture
async def held(database_url: str, sql: asyncpg.Connection) -> AsyncIterator[Held]:
    watcher = await asyncpg.connect(database_url)
    yield Held(sql, watcher)
    await watcher.close()


@pytest.fixture
def no_second_try(monkeypatch: pytest.MonkeyPatch) -> None:
    """A transaction that loses against another (a deadlock) is not repeated but fails the test."""
    monkeypatch.setattr(connections, "_BUSY", ())


class StoppedClaims:
    """Claims that have taken their locks on tables and seen the store as it is, and go no further until let go."""

    def __init__(self, sql: asyncpg.Connection, held: Held, monkeypatch: pytest.MonkeyPatch) -> None:
        self._sql = sql
        self._held = held
        self._monkeypatch = monkeypatch

    async def start(self, claim: Callable[[], Any]) -> "asyncio.Task[list[Claimed]]":
        begin = "from unnest($1::int[], $2::bigint[], $3::int[], $10::boolean[])"
        assert begin in SQL["claim"]
        stop = f"from (select pg_advisory_xact_lock(77)) stop, {begin.removeprefix('from ')}"
        await self._sql.execute("select pg_advisory_lock(77)")
        with self._monkeypatch.context() as patch:
            patch.setitem(SQL, "claim", SQL["claim"].replace(begin, stop))
            task = asyncio.create_task(claim())
            await self._held.so_many_wait(1)
        return task

    async def let_go(self) -> None:
        await self._sql.execute("select pg_advisory_unlock(77)")


@pytest.fixture
def stopped(sql: asyncpg.Connection, held: Held, monkeypatch: pytest.MonkeyPatch) -> StoppedClaims:
    return StoppedClaims(sql, held, monkeypatch)


async def put(
    node: PostgresStore, rules: QueueRules = DEFAULT_RULES, name: str = "default", *, paused: bool = False
) -> Queue:
    queue = Queue(queue_id=0, namespace=NAMESPACE, name=name, paused=paused, rules=rules)
    changed = await node.put_queue(queue, expected=None, now=await node.now())
    assert changed is not None
    return changed


async def claim(
    node: PostgresStore, scene: Scene, worker: Worker, lane_id: int, count: int, *, limited: bool = True
) -> list[Claimed]:
    return await node.claim([Order(lane_id, worker.id, count, limited)], scene.new_nonce(), scene.now)


async def order_all(node: PostgresStore, *lanes: int, limit: int = 100) -> set[int]:
    """Until nothing is moved; the lanes to which jobs were."""
    found: set[int] = set()
    for lane_id in lanes:
        while (ordered := await node.put_in_order(lane_id, limit)).moved:
            found |= set(ordered.lanes)
    return found


async def ends_of(scene: Scene, keys: Sequence[JobKey], event: events.Event) -> list[Any]:
    records = await scene.store.load(keys)
    return [scene.decide(records[key], event) for key in keys]


async def places(sql: asyncpg.Connection, keys: Sequence[JobKey]) -> dict[JobKey, list[str]]:
    """Where each job is found: exactly one place, or something was lost or doubled."""
    rows = await sql.fetch("select id, place from job_rows where id = any($1::bigint[])", list(keys))
    found: dict[JobKey, list[str]] = {key: [] for key in keys}
    for key, place in rows:
        found[key].append(place)
    return found


async def fair_time(sql: asyncpg.Connection, queue: Queue) -> int:
    time: int = await sql.fetchval("select fair_time from queues where queue_id = $1", queue.queue_id)
    return time


async def test_a_limit_that_is_set_while_a_claim_is_under_way_counts_what_that_claims(
    nodes: list[PostgresStore], scene: Scene, held: Held, stopped: StoppedClaims
) -> None:
    worker = await scene.worker()
    jobs = await scene.jobs(10)
    await scene.submit(*jobs)
    lane = jobs[0].lane_id
    before = await stopped.start(lambda: claim(nodes[0], scene, worker, lane, 2, limited=False))
    sets = asyncio.create_task(put(nodes[1], QueueRules(max_concurrency=3)))
    await held.so_many_wait(2)
    assert await nodes[1].queues(NAMESPACE) == [Queue(queue_id=1, namespace=NAMESPACE, name="default")]
    await stopped.let_go()
    assert len(await before) == 2
    queue = await sets
    assert (await nodes[0].rooms([queue.queue_id]))[queue.queue_id].running == 2
    assert len(await claim(nodes[0], scene, worker, lane, 5)) == 1
    assert await claim(nodes[1], scene, worker, lane, 5, limited=False) == []


async def test_a_claim_that_waits_for_a_limit_to_be_set_sees_it(
    nodes: list[PostgresStore], scene: Scene, sql: asyncpg.Connection, held: Held
) -> None:
    worker = await scene.worker()
    jobs = await scene.jobs(5)
    await scene.submit(*jobs)
    transaction = sql.transaction()
    await transaction.start()
    await sql.execute("select from queues for update")  # the put has fenced claims off, and stops before the queue
    sets = asyncio.create_task(put(nodes[1], QueueRules(max_concurrency=3)))
    await held.so_many_wait(1)
    claims = asyncio.create_task(claim(nodes[0], scene, worker, jobs[0].lane_id, 5, limited=False))
    limited = asyncio.create_task(claim(nodes[0], scene, worker, jobs[0].lane_id, 5))
    await held.so_many_wait(3)
    await transaction.rollback()
    await sets
    assert await claims == []
    assert len(await limited) == 3


@pytest.mark.parametrize("what", ["queue", "type"])
async def test_once_something_is_held_nothing_of_it_is_claimed_any_more(
    nodes: list[PostgresStore], scene: Scene, held: Held, stopped: StoppedClaims, what: str
) -> None:
    worker = await scene.worker()
    jobs = await scene.jobs(3)
    await scene.submit(*jobs)
    before = await stopped.start(lambda: claim(nodes[0], scene, worker, jobs[0].lane_id, 1, limited=False))
    if what == "queue":
        holds: asyncio.Task[Any] = asyncio.create_task(put(nodes[1], paused=True))
    else:
        holds = asyncio.create_task(nodes[1].hold_type(NAMESPACE, "echo", held=True))
    await held.so_many_wait(2)
    assert not holds.done()
    await stopped.let_go()
    assert len(await before) == 1
    await holds
    assert await claim(nodes[0], scene, worker, jobs[0].lane_id, 2, limited=False) == []


async def test_two_nodes_that_claim_at_once_never_run_more_than_a_queue_allows(
    nodes: list[PostgresStore], scene: Scene, sql: asyncpg.Connection, no_second_try: None
) -> None:
    most = 5
    worker = await scene.worker()
    lanes = []
    for job_type in ("one", "two"):
        jobs = await scene.jobs(4 * ROUNDS, job_type=job_type)
        await scene.submit(*jobs)
        lanes.append(jobs[0].lane_id)
    queue = await put(nodes[0], QueueRules(max_concurrency=most))
    running: list[JobKey] = []
    for turn in range(ROUNDS):
        done = running[: 1 + turn % most]
        ends = await ends_of(scene, done, events.Succeed())
        answers: list[Any] = await asyncio.gather(
            nodes[turn % 2].save(ends, scene.now),
            *(claim(node, scene, worker, lane_id, 1 + turn % 4) for node in nodes for lane_id in lanes),
        )
        saved, *claims = answers
        assert saved.done == set(done)
        assert saved.queues == ({queue.queue_id} if done else set())
        running = [key for key in running if key not in saved.done]
        running += [one.lease.id for answer in claims for one in answer]
        assert len(running) <= most
        assert await sql.fetchval("select count(*) from leases") == len(running)
        running += [one.lease.id for one in await claim(nodes[0], scene, worker, lanes[turn % 2], most)]
        assert len(running) == most


async def test_two_nodes_that_claim_at_once_never_start_more_than_a_rate_allows(
    nodes: list[PostgresStore], scene: Scene, no_second_try: None
) -> None:
    rate = RateLimit(limit=100, per=SECOND, burst=3)
    worker = await scene.worker()
    jobs = await scene.jobs(60)
    await scene.submit(*jobs)
    await put(nodes[0], QueueRules(rate_limit=rate))
    calls: list[tuple[int, int, int]] = []  # a moment before, one after, and how many started in between

    async def claim_on(node: PostgresStore) -> None:
        while sum(count for _, _, count in calls) < len(jobs):
            before = await node.now()
            count = len(await claim(node, scene, worker, jobs[0].lane_id, 4))
            if count:
                calls.append((before, await node.now(), count))

    await asyncio.gather(*(claim_on(node) for node in nodes * 2))
    assert sum(count for _, _, count in calls) == len(jobs)
    assert max(count for _, _, count in calls) >= rate.burst
    for first, _, _ in calls:
        for _, last, _ in calls:
            started = sum(count for before, after, count in calls if first <= before and after <= last)
            # Of n starts the last is at least n - 1 - burst beats after the first.
            assert (started - 1 - rate.burst) * rate.beat <= max(last - first, 0) * 1000


async def test_queues_in_any_order_do_not_lock_each_other_out(
    nodes: list[PostgresStore], scene: Scene, no_second_try: None
) -> None:
    worker = await scene.worker()
    rules = [FAIR, QueueRules(policy="fair", max_concurrency=500), QueueRules(max_concurrency=500), DEFAULT_RULES]
    names = [f"q{number}" for number in range(6)]
    own = [(await scene.submitted(queue=name)).lane_id for name in names]
    keys: list[JobKey] = []
    leased: list[JobKey] = []

    async def work(node: PostgresStore, turn: int, way: int) -> None:
        for each in range(way, way + 3):
            await put(node, rules[(turn + each) % 4], names[(turn + each) % 6])
        for lane_id in own[::way]:
            await node.put_in_order(lane_id, 3)
        lanes = await node.occupied_lanes()
        orders = [Order(lane_id, worker.id, 2, limited) for lane_id in lanes[::way] for limited in (True, False)]
        leased.extend(one.lease.id for one in await node.claim(orders, scene.new_nonce(), scene.now))
        await node.refund(NAMESPACE, names[turn % 6], "", 1)

    for turn in range(ROUNDS):
        jobs = [await scene.job(queue=name) for name in names]
        keys += await scene.submit(*jobs)
        await asyncio.gather(*(work(node, turn, way) for node in nodes for way in (1, -1)))
    assert len(leased) == len(set(leased))
    assert {type(record.row) for key, record in (await nodes[0].load(keys)).items() if key in set(leased)} == {Lease}


async def test_a_claim_that_began_before_its_lane_was_put_in_order_takes_nothing_from_it(
    nodes: list[PostgresStore], scene: Scene, sql: asyncpg.Connection, stopped: StoppedClaims
) -> None:
    worker = await scene.worker()
    jobs = await scene.jobs(5)
    keys = await scene.submit(*jobs)
    await put(nodes[1], FAIR)
    lane = jobs[0].lane_id
    claims = await stopped.start(lambda: claim(nodes[0], scene, worker, lane, 5, limited=False))
    (target,) = await order_all(nodes[1], lane)
    await stopped.let_go()
    assert await claims == []
    assert await places(sql, keys) == {key: ["ready"] for key in keys}
    assert [one.job.id for one in await claim(nodes[0], scene, worker, target, 5)] == keys


async def test_what_a_claim_has_taken_is_not_put_in_order(
    nodes: list[PostgresStore], scene: Scene, sql: asyncpg.Connection, held: Held
) -> None:
    worker = await scene.worker()
    jobs = await scene.jobs(5)
    keys = await scene.submit(*jobs)
    queue = await put(nodes[1], FAIR)
    transaction = sql.transaction()
    await transaction.start()
    await sql.execute("select from ready where id = any($1::bigint[]) for update", keys[:2])
    assert (await nodes[1].put_in_order(jobs[0].lane_id, 5)).moved == 3
    await transaction.rollback()
    assert len(await claim(nodes[0], scene, worker, jobs[0].lane_id, 5)) == 2
    assert await places(sql, keys) == {key: ["leases" if key in keys[:2] else "ready"] for key in keys}
    assert await sql.fetchval("select time from shares where queue_id = $1", queue.queue_id) == 3 * COST


@pytest.mark.parametrize("event", [events.Cancel(), events.Pause()], ids=["end", "requeue"])
async def test_a_change_that_waits_for_its_job_to_be_put_in_order_takes_effect(
    nodes: list[PostgresStore], scene: Scene, sql: asyncpg.Connection, held: Held, event: events.Event
) -> None:
    jobs = await scene.jobs(3)
    keys = await scene.submit(*jobs)
    await put(nodes[1], FAIR)
    changes = await ends_of(scene, keys[:2], event)
    await held.hold("shares")  # the rows are taken, and not yet put back
    orders = asyncio.create_task(nodes[1].put_in_order(jobs[0].lane_id, 5))
    await held.so_many_wait(1)
    saves = asyncio.create_task(scene.store.save(changes, scene.now))
    await held.so_many_wait(2)
    await held.let_go()
    assert (await orders).moved == 3
    assert (await saves).done == set(keys[:2])
    left = "history" if isinstance(event, events.Cancel) else "waiting"
    assert await places(sql, keys) == {keys[0]: [left], keys[1]: [left], keys[2]: ["ready"]}
    records = await nodes[1].load(keys)
    assert {record.row.lane_id for record in records.values()} == {jobs[0].lane_id}
    lanes = "select distinct lane_id from waiting union select lane_id from history"
    assert [row[0] for row in await sql.fetch(lanes)] == [jobs[0].lane_id]


async def test_a_job_that_is_cancelled_while_its_lane_is_put_in_order_stays_cancelled(
    nodes: list[PostgresStore], scene: Scene, sql: asyncpg.Connection, held: Held
) -> None:
    jobs = await scene.jobs(3)
    keys = await scene.submit(*jobs)
    await put(nodes[1], FAIR)
    changes = await ends_of(scene, keys[:1], events.Cancel())
    await held.hold(f"history_{Day.at(scene.now).suffix}")  # the row is locked, and its end not written
    saves = asyncio.create_task(scene.store.save(changes, scene.now))
    await held.so_many_wait(1)
    assert (await nodes[1].put_in_order(jobs[0].lane_id, 5)).moved == 2
    await held.let_go()
    assert (await saves).done == {keys[0]}
    assert await places(sql, keys) == {keys[0]: ["history"], keys[1]: ["ready"], keys[2]: ["ready"]}


async def test_children_are_noted_on_a_job_that_is_put_in_order_meanwhile(
    nodes: list[PostgresStore], scene: Scene, sql: asyncpg.Connection, held: Held
) -> None:
    parent = await scene.submitted()
    await put(nodes[1], FAIR)
    child = await scene.job(queue="children")
    submission = scene.request(scene.new(child, Parent(parent.id, On.ANY)))
    await held.hold("shares")
    orders = asyncio.create_task(nodes[1].put_in_order(parent.lane_id, 5))
    await held.so_many_wait(1)
    submits = asyncio.create_task(nodes[0].insert_jobs([submission], scene.now))
    await held.so_many_wait(2)
    await held.let_go()
    ordered, _ = await asyncio.gather(orders, submits)
    row = await scene.row(parent.id)
    assert isinstance(row, Ready)
    assert row.ties == Ties.CHILDREN
    assert await sql.fetchval("select lane_id from ready where id = $1", parent.id) in ordered.lanes
    await scene.happen(parent.id, events.Cancel())
    await scene.release()
    assert isinstance(await scene.row(child.id), Ready)


async def test_a_job_on_which_children_are_noted_is_put_in_order_later(
    nodes: list[PostgresStore], scene: Scene, sql: asyncpg.Connection, held: Held
) -> None:
    parent, other = await scene.submitted(), await scene.submitted()
    await put(nodes[1], FAIR)
    child = await scene.job(queue="children")
    submission = scene.request(scene.new(child, Parent(parent.id, On.ANY)))
    await held.hold("edges")  # the parent is noted, and its edge not written
    submits = asyncio.create_task(nodes[0].insert_jobs([submission], scene.now))
    await held.so_many_wait(1)
    assert (await nodes[1].put_in_order(parent.lane_id, 5)).moved == 1
    await held.let_go()
    await submits
    nodes[1]._marks._looked.clear()  # as a hint or the next full look would
    assert (await nodes[1].put_in_order(parent.lane_id, 5)).moved == 1
    assert await places(sql, [parent.id, other.id]) == {parent.id: ["ready"], other.id: ["ready"]}
    row = await scene.row(parent.id)
    assert isinstance(row, Ready)
    assert row.ties == Ties.CHILDREN


async def test_whatever_happens_while_jobs_are_put_in_order_none_is_lost_or_doubled(
    nodes: list[PostgresStore], scene: Scene, sql: asyncpg.Connection, no_second_try: None
) -> None:
    worker = await scene.worker()
    policies = [FAIR, QueueRules(policy="fifo"), DEFAULT_RULES, QueueRules(aging=SECOND)]
    keys: list[JobKey] = []
    children: list[JobKey] = []
    cancelled: set[JobKey] = set()
    leased: list[JobKey] = []
    for turn in range(ROUNDS):
        jobs = [await scene.job(fair_key=f"k{number % 3}") for number in range(12)]
        keys += await scene.submit(*jobs)
        child = await scene.job(queue="children")
        parents = [Parent(job.id, On.ANY) for job in jobs[:4]]
        changes = await ends_of(scene, [job.id for job in jobs[2:6]], events.Cancel())
        lanes = await nodes[0].occupied_lanes()
        claims = [nodes[1].claim([Order(lane, worker.id, 2)], scene.new_nonce(), scene.now) for lane in lanes]
        answers: list[Any] = await asyncio.gather(
            put(nodes[turn % 2], policies[turn % 4]),
            nodes[0].save(changes, scene.now),
            nodes[1].insert_jobs([scene.request(scene.new(child, *parents))], scene.now),
            *(node.put_in_order(lane, 5) for lane in lanes for node in nodes),
            *claims,
        )
        _, saved, _, *others = answers
        children.append(child.id)
        cancelled |= saved.done
        leased += [one.lease.id for answer in others if not isinstance(answer, Ordered) for one in answer]
    found = await places(sql, keys)
    assert len(leased) == len(set(leased))
    for key, where in found.items():
        assert where == ["history" if key in cancelled else "leases" if key in set(leased) else "ready"], key
    # All that is left can be put in order and claimed, and every child is told.
    for node in nodes:
        node._marks._looked.clear()
    await put(nodes[0], FAIR)
    while moved := await order_all(nodes[0], *await nodes[0].occupied_lanes()):
        leased += [one.lease.id for lane in moved for one in await claim(nodes[0], scene, worker, lane, 1000)]
    assert set(leased) | cancelled >= set(keys)
    await nodes[0].save(await ends_of(scene, [key for key in leased if key in set(keys)], events.Succeed()), scene.now)
    await scene.release()
    for record in (await nodes[0].load(children)).values():
        assert isinstance(record.row, Ready | Lease | Ended)


async def test_who_puts_another_lane_in_order_goes_on_where_a_key_stands_then(
    nodes: list[PostgresStore], scene: Scene, held: Held
) -> None:
    queue = await put(nodes[0], FAIR)
    own = [(await scene.submitted(fair_key="a", job_type=job_type)).lane_id for job_type in ("one", "two")]
    await held.hold("shares")
    orders = [asyncio.create_task(nodes[0].put_in_order(own[0], 5))]
    await held.so_many_wait(1)
    orders.append(asyncio.create_task(nodes[1].put_in_order(own[1], 5)))
    changes = asyncio.create_task(put(nodes[1], QueueRules(policy="fifo")))
    await held.so_many_wait(3)
    await held.let_go()
    one, two = [each for order in orders for each in (await order).lanes]
    assert (await changes).version == queue.version + 1
    heads = await nodes[0].heads([one, two], 5)
    assert heads[one] == [0]
    assert heads[two] == [COST] or heads[two] == [scene.now]  # where the new policy came first


async def test_only_claims_in_the_present_order_move_a_fair_queues_time(
    nodes: list[PostgresStore], scene: Scene, sql: asyncpg.Connection
) -> None:
    worker = await scene.worker()
    jobs = await scene.jobs(9)
    await scene.submit(*jobs)
    queue = await put(nodes[0], FAIR)
    (old,) = await order_all(nodes[0], jobs[0].lane_id)
    assert len(await claim(nodes[0], scene, worker, old, 3, limited=False)) == 3
    assert await fair_time(sql, queue) == 2 * COST
    await put(nodes[1], QueueRules(policy="fair", weights={"a": 2.0}))
    assert len(await claim(nodes[0], scene, worker, old, 3, limited=False)) == 3
    assert await fair_time(sql, queue) == 2 * COST
    (new,) = await order_all(nodes[0], old)
    assert len(await claim(nodes[1], scene, worker, new, 2)) == 2
    assert await fair_time(sql, queue) == 3 * COST


async def test_a_node_finds_what_it_put_in_order_at_once(nodes: list[PostgresStore], scene: Scene) -> None:
    worker = await scene.worker()
    first, *_ = jobs = await scene.jobs(3)
    await scene.submit(*jobs)
    await put(nodes[0], FAIR)
    (lane,) = await order_all(nodes[0], first.lane_id)
    assert len(await claim(nodes[0], scene, worker, lane, 3)) == 3
    assert await nodes[0].heads([lane], 3) == {lane: []}
    nodes[0]._marks._looked[lane] += 1000 * FULL_LOOK  # so that no full look comes meanwhile
    late = await scene.submitted()
    await order_all(nodes[0], first.lane_id)
    assert await nodes[0].occupied_lanes() == [lane]
    assert [one.job for one in await claim(nodes[0], scene, worker, lane, 3)] == [late]


async def test_a_claim_whose_fate_is_unknown_is_told_in_the_jobs_own_lanes(
    nodes: list[PostgresStore], scene: Scene
) -> None:
    worker = await scene.worker()
    jobs = await scene.jobs(2)
    await scene.submit(*jobs)
    await put(nodes[0], QueueRules(policy="fair", max_concurrency=1))
    (lane,) = await order_all(nodes[0], jobs[0].lane_id)
    orders, nonce = [Order(lane, worker.id, 2, True)], scene.new_nonce()
    claimed = await nodes[0].claim(orders, nonce, scene.now)
    assert [(one.job, one.lease.lane_id) for one in claimed] == [(jobs[0], jobs[0].lane_id)]
    assert await nodes[1].claim(orders, nonce, scene.now, again=True) == claimed
    assert await nodes[1].claim(orders, scene.new_nonce(), scene.now) == []


async def test_times_that_their_queue_has_passed_go_in_pieces(
    nodes: list[PostgresStore], scene: Scene, sql: asyncpg.Connection
) -> None:
    worker = await scene.worker()
    queue = await put(nodes[0], FAIR)
    jobs: list[Job] = [await scene.job(fair_key=f"k{number}") for number in range(20)]
    more = [await scene.job(fair_key=key) for key in ("k3", "k3", "z")]
    await scene.submit(*jobs, *more)
    (lane,) = await order_all(nodes[0], jobs[0].lane_id)
    assert len(await claim(nodes[0], scene, worker, lane, 22)) == 22
    assert await fair_time(sql, queue) == COST
    taken = []
    while gone := await nodes[0].forget(0, 4):
        taken.append(gone)
    assert len(taken) >= 5
    assert [tuple(row) for row in await sql.fetch("select fair_key, time from shares")] == [("k3", 3 * COST)]


async def test_lanes_and_their_queues_that_many_make_at_once_are_made_once(
    nodes: list[PostgresStore], sql: asyncpg.Connection
) -> None:
    for turn in range(10):
        lanes = [Lane(NAMESPACE, f"{turn}-{n % 2}", "echo", "", ("", "fifo")[n % 3 == 0]) for n in range(6)]
        others = [PostgresStore(node._connections.url) for node in nodes]
        answers = await asyncio.gather(*(node.lane_ids(lanes[::way]) for node in (*nodes, *others) for way in (1, -1)))
        assert len({tuple(sorted(answer)) for answer in answers}) == 1
        for other in others:
            await other.close()
    assert await sql.fetchval("select count(*) from queues") == 20
    assert await sql.fetchval("select count(*) from lanes") == 40
    wrong = (
        "select count(*) from lanes l join lanes b on b.lane_id = l.base where b.queue_id <> l.queue_id or b.base > 0"
    )
    assert await sql.fetchval(wrong) == 0
