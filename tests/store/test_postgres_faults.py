"""What the PostgreSQL store does when the connection, or the server, is lost in the middle."""

import asyncio
from collections.abc import AsyncIterator

import msgspec
import pytest

from foliot.domain import events
from foliot.domain.changes import End, Held
from foliot.domain.duration import DAY
from foliot.domain.errors import Unavailable, Unstorable
from foliot.domain.graph import On
from foliot.domain.ids import JobKey
from foliot.domain.job import AttemptStatus, Ended, Ready, State, Waiting
from foliot.domain.placement import Order
from foliot.domain.states import transition
from foliot.store.base import Accepted, Parent, Released, Step
from foliot.store.postgres import PostgresStore
from tests import fault_proxy
from tests.fault_proxy import FaultProxy, Match
from tests.postgres_server import PostgresServer
from tests.store.builders import Scene, shown


@pytest.fixture
async def proxy(database_url: str) -> AsyncIterator[FaultProxy]:
    async with FaultProxy.before(database_url) as proxy:
        yield proxy


@pytest.fixture
async def store(proxy: FaultProxy) -> AsyncIterator[PostgresStore]:
    store = PostgresStore(proxy.url)
    await store.open()
    yield store
    await store.close()


@pytest.fixture
async def scene(store: PostgresStore) -> Scene:
    return Scene(store, await store.now())


@pytest.mark.parametrize(
    ("count", "named", "moment"),
    [(1, False, fault_proxy.execute), (200, False, fault_proxy.commit), (3, True, fault_proxy.commit)],
    ids=["one statement", "copied", "named"],
)
async def test_jobs_whose_answer_was_lost_are_kept_once_when_handed_in_again(
    scene: Scene, proxy: FaultProxy, count: int, named: bool, moment: Match
) -> None:
    jobs = [await scene.job(name=f"mine-{n}" if named else None) for n in range(count)]
    submission = scene.submission(*jobs, request_key="key" if named else None, request_hash=b"hash")
    await scene.submitted(queue="other")  # the first time the driver asks about types before it runs the statement
    proxy.lose_answer(moment)
    with pytest.raises(Unavailable) as lost:
        await scene.insert(submission)
    assert lost.value.fate_unknown
    assert proxy.faults == 1
    (answer,) = await scene.insert(submission)
    assert isinstance(answer, Accepted)
    assert answer.new == []
    records = await scene.store.load([job.id for job in jobs])
    assert {key: record.job for key, record in records.items()} == {job.id: job for job in jobs}
    worker = await scene.worker()
    claimed = await scene.claim(worker, jobs[0], 2 * count)
    assert sorted(c.job.id for c in claimed) == [job.id for job in jobs]


@pytest.mark.parametrize("count", [1, 200])
async def test_jobs_that_never_reached_the_server_are_kept_when_handed_in_again(
    scene: Scene, proxy: FaultProxy, count: int
) -> None:
    submission = scene.submission(*await scene.jobs(count))
    proxy.lose_request(fault_proxy.execute if count == 1 else fault_proxy.commit)
    with pytest.raises(Unavailable) as lost:
        await scene.insert(submission)
    assert lost.value.fate_unknown
    (answer,) = await scene.insert(submission)
    assert isinstance(answer, Accepted)
    assert len(answer.new) == count


async def test_a_failure_before_the_commit_was_sent_is_known_to_have_changed_nothing(
    scene: Scene, proxy: FaultProxy
) -> None:
    job = await scene.job(name="mine")
    proxy.lose_answer(fault_proxy.execute)
    with pytest.raises(Unavailable) as lost:
        await scene.insert(scene.submission(job))
    assert not lost.value.fate_unknown
    assert await scene.store.load([job.id]) == {}


async def test_a_claim_whose_answer_was_lost_gives_the_same_leases_again(scene: Scene, proxy: FaultProxy) -> None:
    jobs = await scene.jobs(3)
    await scene.submit(*jobs)
    worker = await scene.worker()
    orders = [Order(jobs[0].lane_id, worker.id, 2)]
    proxy.lose_answer(fault_proxy.execute)
    with pytest.raises(Unavailable) as lost:
        await scene.store.claim(orders, 77, scene.now)
    assert lost.value.fate_unknown
    again = await scene.store.claim(orders, 77, scene.now, again=True)
    assert [claimed.job for claimed in again] == jobs[:2]
    assert {claimed.lease.nonce for claimed in again} == {77}
    assert isinstance(await scene.row(jobs[2].id), Ready)


async def test_the_fate_of_a_report_whose_answer_was_lost_is_told_by_its_outcome(
    scene: Scene, proxy: FaultProxy
) -> None:
    lease = await scene.running()
    retry = (await scene.record(lease.id)).job.retry
    end = transition(Held(id=lease.id, nonce=lease.nonce), events.Succeed(), scene.now, retry=retry)
    assert isinstance(end, End)
    proxy.lose_answer(fault_proxy.execute)
    with pytest.raises(Unavailable) as lost:
        await scene.store.save([end], scene.now)
    assert lost.value.fate_unknown
    assert await scene.save([end]) == set()
    outcomes = await scene.store.outcomes([(lease.id, lease.nonce)])
    assert outcomes == {(lease.id, lease.nonce): AttemptStatus.SUCCESS}


async def test_a_firing_whose_answer_was_lost_is_not_done_again(scene: Scene, proxy: FaultProxy) -> None:
    schedule = await scene.scheduled()
    new = await scene.run_job(schedule, scene.now)
    changed = msgspec.structs.replace(schedule, version=2)
    step = Step(schedule=changed, runs=[scene.run(scene.now)], jobs=[new])
    proxy.lose_answer(fault_proxy.commit)
    with pytest.raises(Unavailable) as lost:
        await scene.store.save_schedules([step])
    assert lost.value.fate_unknown
    assert await scene.store.save_schedules([step]) == set()
    standing = await scene.standing(schedule)
    assert (standing.schedule, standing.under_way) == (changed, (new.job.id,))
    assert isinstance(await scene.row(new.job.id), Ready)


async def test_a_release_whose_answer_was_lost_is_not_done_again(scene: Scene, proxy: FaultProxy) -> None:
    lease = await scene.running()
    other = await scene.submitted(queue="other")
    ready, blocked = await scene.child(lease.id), await scene.child(lease.id, other.id)
    await scene.happen(lease.id, events.Succeed())
    proxy.lose_answer(fault_proxy.commit)
    with pytest.raises(Unavailable) as lost:
        await scene.store.release(10, scene.now)
    assert lost.value.fate_unknown
    assert await scene.store.release(10, scene.now) == Released()
    assert isinstance(await scene.row(ready.id), Ready)
    row = await scene.row(blocked.id)
    assert isinstance(row, Waiting)
    assert row.parents == 1
    (claimed,) = await scene.claim(await scene.worker(), ready)
    assert claimed.job == ready


async def test_tokens_whose_answer_was_lost_are_not_given_again(scene: Scene, proxy: FaultProxy) -> None:
    number = await scene.limit("key", 2)
    jobs = [await scene.job(limit_key="key") for _ in range(4)]
    await scene.submit(*jobs)
    proxy.lose_answer(fault_proxy.commit)
    with pytest.raises(Unavailable) as lost:
        await scene.store.give_tokens([number], scene.now)
    assert lost.value.fate_unknown
    assert await scene.store.give_tokens([number], scene.now) == []
    claimed = await scene.claim(await scene.worker(), jobs[0], 10)
    assert [one.job for one in claimed] == jobs[:2]


async def test_a_child_whose_answer_was_lost_has_its_edges_once_when_handed_in_again(
    scene: Scene, proxy: FaultProxy
) -> None:
    lease = await scene.running()
    child = await scene.job(unique_key="once")
    request = scene.request(scene.new(child, Parent(lease.id, On.SUCCESS)))
    proxy.lose_answer(fault_proxy.commit)
    with pytest.raises(Unavailable) as lost:
        await scene.insert(request)
    assert lost.value.fate_unknown
    (answer,) = await scene.insert(request)
    assert isinstance(answer, Accepted)
    assert (list(answer.ids), list(answer.new), list(answer.duplicates)) == ([shown(child)], [], [])
    row = await scene.row(child.id)
    assert isinstance(row, Waiting)
    assert row.parents == 1
    await scene.happen(lease.id, events.Succeed())
    await scene.release()
    assert isinstance(await scene.row(child.id), Ready)


async def test_a_read_survives_the_loss_of_its_connection(scene: Scene, proxy: FaultProxy) -> None:
    job = await scene.submitted()
    proxy.lose_answer(fault_proxy.execute)
    assert (await scene.record(job.id)).job == job
    assert proxy.faults == 1


async def test_a_cancelled_caller_leaves_no_broken_connection_behind(scene: Scene, proxy: FaultProxy) -> None:
    job = await scene.submitted()
    proxy.open.clear()
    reads = [asyncio.create_task(scene.store.load([job.id])) for _ in range(4)]
    await asyncio.sleep(0)
    for read in reads:
        read.cancel()
    await asyncio.gather(*reads, return_exceptions=True)
    proxy.open.set()
    assert (await scene.record(job.id)).job == job


@pytest.mark.parametrize("count", [1, 100])
async def test_what_the_database_can_not_keep_is_refused_and_the_store_goes_on(scene: Scene, count: int) -> None:
    bad = [await scene.job(payload='"\x00"') for _ in range(count)]
    with pytest.raises(Unstorable):
        await scene.insert(scene.submission(*bad))
    with pytest.raises(Unstorable):
        await scene.insert(scene.submission(await scene.job(payload='"\ud800"')))
    with pytest.raises(Unstorable):
        await scene.insert(scene.submission(await scene.job(name="n", due=1 << 63)))
    good = await scene.submitted()
    assert set(await scene.store.load([good.id, *(job.id for job in bad)])) == {good.id}


async def test_the_store_goes_on_after_a_restart_of_the_server() -> None:
    server = await asyncio.to_thread(PostgresServer.start)
    try:
        store = PostgresStore(server.url("postgres"))
        await store.open()
        hints = store.hints()
        scene = Scene(store, await store.now())
        lease = await scene.running()
        await asyncio.gather(*(store.now() for _ in range(6)))
        await asyncio.to_thread(server.restart)
        assert await anext(hints) == ""
        ended = await scene.happen(lease.id, events.Succeed())
        assert isinstance(ended.row, Ended)
        assert ended.row.state is State.COMPLETED
        await asyncio.to_thread(server.kill)
        with pytest.raises(Unavailable):
            await scene.submitted()
        await asyncio.to_thread(server.restart)
        assert (await scene.record(lease.id)) == ended
        await store.prepare_days(scene.now + DAY)
        await store.close()
    finally:
        await asyncio.to_thread(server.stop)


async def test_a_server_that_is_not_there_is_told_as_unavailable(free_port: int) -> None:
    with pytest.raises(Unavailable):
        await PostgresStore(f"postgresql://postgres@127.0.0.1:{free_port}/postgres").open()


async def test_jobs_handed_in_again_among_new_ones_are_not_written_twice(scene: Scene) -> None:
    jobs = await scene.jobs(150)
    await scene.submit(*jobs[:100])
    (answer,) = await scene.insert(scene.submission(*jobs))
    assert isinstance(answer, Accepted)
    assert list(answer.new) == [JobKey(job.id) for job in jobs[100:]]
