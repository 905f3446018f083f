"""Graphs and concurrency keys on PostgreSQL, where several nodes work on one database at once."""

import asyncio
from collections.abc import AsyncIterator, Sequence

import asyncpg
import pytest

from foliot.domain import events
from foliot.domain.changes import Change
from foliot.domain.graph import On
from foliot.domain.ids import JobKey
from foliot.domain.job import Ended, Job, Lease, Ready, State, Ties, Waiting
from foliot.store.base import Accepted, Parent, Released, Submission
from foliot.store.postgres import PostgresStore
from foliot.store.postgres.days import Day
from foliot.store.postgres.marks import FULL_LOOK
from foliot.store.postgres.part import SQL
from tests.store.builders import Scene

ROUNDS = 40
CHILDREN = 10_000


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
        self._transaction = self._connection.transaction()
        await self._transaction.start()
        await self._connection.execute(f"lock table {table} in exclusive mode")

    async def so_many_wait(self, count: int) -> None:
        while await self._watcher.fetchval("select count(*) from pg_locks where not granted") < count:
            pass

    async def let_go(self) -> None:
        await self._transaction.rollback()


@pytest.fixture
async def held(database_url: str, sql: asyncpg.Connection) -> AsyncIterator[Held]:
    watcher = await asyncpg.connect(database_url)
    yield Held(sql, watcher)
    await watcher.close()


async def release_all(nodes: Sequence[PostgresStore], now: int, limit: int = 100) -> list[Released]:
    """All nodes at once, until none finds more."""

    async def release(node: PostgresStore) -> list[Released]:
        done = [await node.release(limit, now)]
        while done[-1].more:
            done.append(await node.release(limit, now))
        return done

    answers = await asyncio.gather(*map(release, nodes))
    return [released for answer in answers for released in answer]


async def new_child(scene: Scene, *parents: JobKey, on: On = On.ANY) -> tuple[Job, Submission]:
    job = await scene.job(queue="children")
    return job, scene.request(scene.new(job, *(Parent(parent, on) for parent in parents)))


async def end_of(scene: Scene, key: JobKey) -> Change:
    return scene.decide(await scene.record(key), events.Cancel())


async def check_all_told(scene: Scene, sql: asyncpg.Connection, *children: JobKey) -> None:
    for key in children:
        assert isinstance(await scene.row(key), Ready)
    assert await sql.fetchval("select count(*) from releases") == 0
    assert await sql.fetchval("select count(*) from edges where not done") == 0


@pytest.mark.parametrize("place", ["waiting", "ready", "leases"])
async def test_a_child_that_comes_while_its_parent_ends_is_never_left_blocked(
    nodes: list[PostgresStore], scene: Scene, sql: asyncpg.Connection, place: str
) -> None:
    worker = await scene.worker()
    for number in range(ROUNDS):
        match place:
            case "waiting":
                parent = (await scene.submitted(due=scene.later(60))).id
                end = await end_of(scene, parent)
            case "ready":
                parent = (await scene.submitted(queue=f"q{number}")).id
                end = await end_of(scene, parent)
            case _:
                parent = (await scene.running(worker)).id
                end = scene.decide(await scene.record(parent), events.Succeed())
        child, submission = await new_child(scene, parent)
        submits, ends = nodes[1].insert_jobs([submission], scene.now), nodes[0].save([end], scene.now)
        if number % 2:
            (accepted,), saved = await asyncio.gather(submits, ends)
        else:
            saved, (accepted,) = await asyncio.gather(ends, submits)
        assert isinstance(accepted, Accepted)
        assert saved.done == {parent}
        assert accepted.parents_ended != saved.parents_ended
        await release_all(nodes, scene.now)
        await check_all_told(scene, sql, child.id)


async def test_an_end_that_waits_for_a_submit_notes_its_child(
    nodes: list[PostgresStore], scene: Scene, held: Held, sql: asyncpg.Connection
) -> None:
    worker = await scene.worker()
    for number in range(3):
        parent = (await scene.running(worker)).id
        end = scene.decide(await scene.record(parent), events.Succeed())
        child, submission = await new_child(scene, parent)
        await held.hold("edges")  # the submit has noted the parent and stops before its edge
        submits = asyncio.create_task(nodes[1].insert_jobs([submission], scene.now))
        await held.so_many_wait(1)
        ends = asyncio.create_task(nodes[0].save([end], scene.now))
        await held.so_many_wait(2)
        assert isinstance(await scene.row(parent), Lease)
        await held.let_go()
        (accepted,) = await submits
        assert isinstance(accepted, Accepted)
        assert not accepted.parents_ended
        saved = await ends
        assert (saved.done, saved.parents_ended) == ({parent}, True), number
        await release_all(nodes, scene.now)
        await check_all_told(scene, sql, child.id)


async def test_a_submit_that_waits_for_an_end_leaves_its_edge_to_release(
    nodes: list[PostgresStore], scene: Scene, held: Held, sql: asyncpg.Connection
) -> None:
    parent = (await scene.running()).id
    end = scene.decide(await scene.record(parent), events.Succeed())
    child, submission = await new_child(scene, parent)
    await held.hold(f"history_{Day.at(scene.now).suffix}")  # the end has locked its lease, and stops before history
    ends = asyncio.create_task(nodes[0].save([end], scene.now))
    await held.so_many_wait(1)
    submits = asyncio.create_task(nodes[1].insert_jobs([submission], scene.now))
    await held.so_many_wait(2)
    await held.let_go()
    saved = await ends
    assert (saved.done, saved.parents_ended) == ({parent}, False)
    (accepted,) = await submits
    assert isinstance(accepted, Accepted)
    assert accepted.parents_ended
    await release_all(nodes, scene.now)
    await check_all_told(scene, sql, child.id)


async def test_a_child_that_comes_while_the_end_is_carried_on_is_not_overlooked(
    nodes: list[PostgresStore], scene: Scene, held: Held, sql: asyncpg.Connection
) -> None:
    parent = (await scene.running()).id
    first = await scene.child(parent, on=On.ANY, queue="children")
    await scene.happen(parent, events.Succeed())
    second, submission = await new_child(scene, parent)
    await held.hold("waiting")  # the release has taken the parent, and stops before the first child
    releases = asyncio.create_task(nodes[0].release(10, scene.now))
    await held.so_many_wait(1)
    submits = asyncio.create_task(nodes[1].insert_jobs([submission], scene.now))
    await held.so_many_wait(2)
    await held.let_go()
    await asyncio.gather(releases, submits)
    await release_all(nodes, scene.now)
    await check_all_told(scene, sql, first.id, second.id)


async def test_a_child_that_comes_while_its_parent_moves_finds_it(nodes: list[PostgresStore], scene: Scene) -> None:
    worker = await scene.worker()
    for number in range(ROUNDS):
        parent = await scene.submitted(queue=f"q{number}")
        child, submission = await new_child(scene, parent.id)
        claim = scene.claim(worker, parent)
        answer, claimed = await asyncio.gather(nodes[1].insert_jobs([submission], scene.now), claim)
        assert isinstance(answer[0], Accepted), answer
        # A claim may step over the row while it is noted; it is there for the next, from this node and the other.
        nodes[0]._marks._looked.clear()
        claimed = claimed or await scene.claim(worker, parent)
        assert [one.lease.id for one in claimed] == [parent.id]
        row = await scene.row(parent.id)
        assert isinstance(row, Lease)
        assert row.ties == Ties.CHILDREN
        await scene.happen(parent.id, events.Succeed())
        await release_all(nodes, scene.now)
        assert isinstance(await scene.row(child.id), Ready)


async def test_a_claim_that_began_before_a_child_came_takes_its_parent_whole_or_not_at_all(
    nodes: list[PostgresStore], scene: Scene, sql: asyncpg.Connection, held: Held, monkeypatch: pytest.MonkeyPatch
) -> None:
    begin = "from unnest($1::int[], $2::bigint[], $3::int[], $10::boolean[])"
    assert begin in SQL["claim"]
    stopped = SQL["claim"].replace(
        begin, f"from (select pg_advisory_xact_lock(77)) stop, {begin.removeprefix('from ')}"
    )
    worker, parent = await scene.worker(), await scene.submitted()
    child, submission = await new_child(scene, parent.id)
    await sql.execute("select pg_advisory_lock(77)")
    with monkeypatch.context() as patch:
        patch.setitem(SQL, "claim", stopped)
        claims = asyncio.create_task(scene.claim(worker, parent))  # it sees the store as it is now, and stops
        await held.so_many_wait(1)
    await nodes[1].insert_jobs([submission], scene.now)
    await sql.execute("select pg_advisory_unlock(77)")
    claimed = await claims
    assert await sql.fetchval("select (select count(*) from ready) + (select count(*) from leases)") == 1
    claimed = claimed or await scene.claim(worker, parent)
    assert [one.lease for one in claimed] == [await scene.row(parent.id)]
    await scene.happen(parent.id, events.Succeed())
    await release_all(nodes, scene.now)
    await check_all_told(scene, sql, child.id)


async def test_a_ready_parent_is_found_by_its_own_node_at_once_though_a_claim_stepped_over_it(
    nodes: list[PostgresStore], scene: Scene, held: Held
) -> None:
    worker = await scene.worker()
    parent, next_one = await scene.submitted(), await scene.submitted()
    await nodes[0].heads([parent.lane_id], 1)
    nodes[0]._marks._looked[parent.lane_id] += 1000 * FULL_LOOK
    _, submission = await new_child(scene, parent.id)
    await held.hold("edges")
    submits = asyncio.create_task(nodes[0].insert_jobs([submission], scene.now))
    await held.so_many_wait(1)
    assert [one.job for one in await scene.claim(worker, parent, 2)] == [next_one]
    await held.let_go()
    await submits
    assert [one.job for one in await scene.claim(worker, parent, 2)] == [parent]


async def test_a_change_of_a_parent_that_was_decided_before_its_child_came_keeps_the_child(
    nodes: list[PostgresStore], scene: Scene, sql: asyncpg.Connection
) -> None:
    parent = await scene.submitted()
    pause = scene.decide(await scene.record(parent.id), events.Pause())
    child, submission = await new_child(scene, parent.id)
    await nodes[1].insert_jobs([submission], scene.now)
    assert await scene.save([pause]) == {parent.id}
    await scene.happen(parent.id, events.Cancel())
    await release_all(nodes, scene.now)
    await check_all_told(scene, sql, child.id)


async def test_two_parents_that_end_in_one_batch_count_twice(
    nodes: list[PostgresStore], scene: Scene, sql: asyncpg.Connection
) -> None:
    worker = await scene.worker()
    parents = [(await scene.running(worker)).id for _ in range(2)]
    child, submission = await new_child(scene, *parents)
    await scene.insert(submission)
    records = await scene.store.load(parents)
    saved = await scene.store.save([scene.decide(records[key], events.Succeed()) for key in parents], scene.now)
    assert saved.parents_ended
    await release_all(nodes, scene.now)
    await check_all_told(scene, sql, child.id)


async def test_two_parents_that_end_in_two_batches_at_once_count_twice(
    nodes: list[PostgresStore], scene: Scene, sql: asyncpg.Connection
) -> None:
    worker = await scene.worker()

    async def end(node: PostgresStore, change: Change) -> None:
        assert (await node.save([change], scene.now)).parents_ended
        await release_all([node], scene.now)

    for _ in range(ROUNDS):
        parents = [(await scene.running(worker)).id for _ in range(2)]
        child, submission = await new_child(scene, *parents)
        await scene.insert(submission)
        records = await scene.store.load(parents)
        ends = [scene.decide(records[key], events.Succeed()) for key in parents]
        await asyncio.gather(*(end(node, change) for node, change in zip(nodes, ends, strict=True)))
        await release_all(nodes, scene.now)
        await check_all_told(scene, sql, child.id)


async def test_a_pause_of_a_child_that_races_its_parents_ends_loses_no_count(
    nodes: list[PostgresStore], scene: Scene, sql: asyncpg.Connection
) -> None:
    worker = await scene.worker()
    for _ in range(ROUNDS):
        parents = [(await scene.running(worker)).id for _ in range(2)]
        child, submission = await new_child(scene, *parents)
        await scene.insert(submission)
        await scene.happen(parents[0], events.Succeed())
        pause = scene.decide(await scene.record(child.id), events.Pause())
        _, done = await asyncio.gather(release_all(nodes[1:], scene.now), scene.save([pause]))
        if done:
            await release_all(nodes, scene.now)
            await scene.happen(child.id, events.Resume())
        row = await scene.row(child.id)
        assert isinstance(row, Waiting)
        assert (row.parents, row.hold) == (1, False)
        await scene.happen(parents[1], events.Succeed())
        await release_all(nodes, scene.now)
        await check_all_told(scene, sql, child.id)


async def test_a_fan_out_of_thousands_is_released_in_chunks_by_two_nodes_each_child_once(
    nodes: list[PostgresStore], scene: Scene, sql: asyncpg.Connection
) -> None:
    lease = await scene.running()
    children = await scene.jobs(CHILDREN, queue="children")
    await scene.insert(scene.request(*(scene.new(child, Parent(lease.id, On.SUCCESS)) for child in children)))
    await scene.happen(lease.id, events.Succeed())
    done = await release_all(nodes, scene.now, 500)
    assert len(done) >= CHILDREN // 500
    assert await sql.fetchval("select count(*) from ready where version = 2") == CHILDREN
    assert await sql.fetchval("select count(*) from waiting") == 0
    await check_all_told(scene, sql, children[0].id, children[-1].id)


async def test_a_parent_of_thousands_does_not_hold_up_another_ones_child(
    nodes: list[PostgresStore], scene: Scene
) -> None:
    worker = await scene.worker()
    big, small = await scene.running(worker), await scene.running(worker)
    children = await scene.jobs(200, queue="children")
    await scene.insert(scene.request(*(scene.new(child, Parent(big.id, On.SUCCESS)) for child in children)))
    child = await scene.child(small.id, queue="children")
    for lease in (big, small):
        await scene.happen(lease.id, events.Succeed())
    assert (await nodes[0].release(50, scene.now)).more
    assert isinstance(await scene.row(child.id), Ready)


async def test_a_parent_that_is_run_again_while_its_end_is_carried_on_reaches_every_child(
    nodes: list[PostgresStore], scene: Scene, sql: asyncpg.Connection
) -> None:
    for number in range(ROUNDS):
        lease = await scene.running(queue=f"q{number}")
        children = [await scene.child(lease.id, on=On.ANY, queue="children") for _ in range(3)]
        record = await scene.happen(lease.id, events.FailFatal())
        again = scene.decide(record, events.Redrive(job=record.job))
        done, _ = await asyncio.gather(scene.save([again]), nodes[1].release(1, scene.now))
        assert done == {lease.id}
        await release_all(nodes, scene.now)
        await scene.happen(lease.id, events.Cancel())
        await release_all(nodes, scene.now)
        await check_all_told(scene, sql, *(child.id for child in children))


async def test_children_that_are_cancelled_take_theirs_along_from_two_nodes(
    nodes: list[PostgresStore], scene: Scene, sql: asyncpg.Connection
) -> None:
    lease = await scene.running()
    above, all_below = [lease.id], []
    for _ in range(4):
        above = [(await scene.child(*above, queue="children")).id for _ in range(5)]
        all_below += above
    await scene.happen(lease.id, events.FailFatal())
    done = await release_all(nodes, scene.now, 7)
    while await sql.fetchval("select count(*) from releases"):
        done += await release_all(nodes, scene.now, 7)
    cancelled = [key for released in done for key in released.cancelled]
    assert sorted(cancelled) == sorted(all_below)
    for record in (await scene.store.load(all_below)).values():
        assert isinstance(record.row, Ended)
        assert record.row.state is State.CANCELLED
    assert await sql.fetchval("select count(*) from edges where not done") == 0


async def test_tokens_given_from_two_nodes_at_once_never_exceed_the_limit(
    nodes: list[PostgresStore], scene: Scene, sql: asyncpg.Connection
) -> None:
    number = await scene.limit("key", 3)
    worker = await scene.worker()
    jobs = [await scene.job(limit_key="key") for _ in range(2 * ROUNDS)]
    await scene.submit(*jobs)
    given: list[JobKey] = []
    ended: set[JobKey] = set()
    while len(ended) < len(jobs):
        answers = await asyncio.gather(*(node.give_tokens([number], scene.now) for node in nodes * 2))
        given += [key for answer in answers for key, _ in answer]
        holders = await sql.fetchval("select (select count(*) from ready) + (select count(*) from leases)")
        assert holders == len(given) - len(ended) == min(3, len(jobs) - len(ended))
        claimed = await scene.claim(worker, jobs[0], 2)
        ends = [scene.decide(await scene.record(one.lease.id), events.Succeed()) for one in claimed]
        saved, *answers = await asyncio.gather(
            scene.store.save(ends, scene.now),
            nodes[0].give_tokens([number], scene.now),
            nodes[1].give_tokens([number], scene.now),
        )
        assert saved.limits == {number}
        ended |= saved.done
        given += [key for answer in answers for key, _ in answer]
        assert await sql.fetchval("select (select count(*) from ready) + (select count(*) from leases)") <= 3
    assert given == [job.id for job in jobs]


async def test_keys_in_opposite_order_do_not_lock_each_other_out(nodes: list[PostgresStore], scene: Scene) -> None:
    numbers = [await scene.limit(f"k{number}", 1) for number in range(10)]
    jobs = [await scene.job(limit_key=f"k{number % 10}") for number in range(60)]
    await scene.submit(*jobs)
    names = [("default", f"k{number}", 6) for number in range(10)]
    answers = await asyncio.gather(
        nodes[0].give_tokens(numbers, scene.now),
        nodes[1].give_tokens(numbers[::-1], scene.now),
        nodes[0].set_limits(names),
        nodes[1].set_limits(names[::-1]),
    )
    assert answers[2] == numbers
    assert answers[3] == numbers[::-1]
    given = [key for answer in answers[:2] for key, _ in answer]
    given += [key for key, _ in await nodes[0].give_tokens(numbers, scene.now)]
    assert sorted(given) == [job.id for job in jobs]


async def test_a_key_that_many_make_at_once_has_one_number(nodes: list[PostgresStore]) -> None:
    for turn in range(10):
        names = [("default", f"{turn}-{number}", 2) for number in range(5)]
        answers = await asyncio.gather(*(node.set_limits(names[::way]) for node in nodes for way in (1, -1)))
        assert answers[0] == answers[2] == answers[1][::-1] == answers[3][::-1]
        assert len(set(answers[0])) == 5


async def test_of_two_jobs_with_one_unique_key_at_once_one_is_kept(nodes: list[PostgresStore], scene: Scene) -> None:
    for turn in range(ROUNDS):
        rivals = [await scene.job(unique_key=f"k{turn}") for _ in nodes]
        answers = await asyncio.gather(
            *(node.insert_jobs([scene.submission(job)], scene.now) for node, job in zip(nodes, rivals, strict=True))
        )
        (one,), (two,) = answers
        assert isinstance(one, Accepted)
        assert isinstance(two, Accepted)
        assert len(one.new) + len(two.new) == 1
        assert one.ids == two.ids
        assert sorted([list(one.duplicates), list(two.duplicates)]) == [[], [0]]
