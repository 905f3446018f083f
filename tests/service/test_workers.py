"""Workers register, exchange, drain and leave; what they are told is told, and a lease is written often enough."""

import asyncio

import pytest

from foliot.domain.access import ADMIN, Caller
from foliot.domain.errors import BadInput, Gone, NotFound, Unavailable
from foliot.domain.ids import show_token
from foliot.wire import ExchangeBody
from tests.service.conftest import World, job_key, worker_key
from tests.service.meddling import Gate, failing


async def running(world: World, worker: str) -> str:
    """A job that the worker runs."""
    job_id = await world.submit()
    await world.take_one(worker)
    return job_id


async def resting(world: World, worker: str) -> asyncio.Task[object]:
    """A call of a worker that wants nothing, under way."""
    call: asyncio.Task[object] = asyncio.create_task(world.exchange(worker, wait=10))
    await asyncio.sleep(0)
    return call


async def test_a_worker_offers_nothing_negative(world: World) -> None:
    with pytest.raises(BadInput) as caught:
        await world.worker(resources={"slot": 1, "gpu": -1})
    assert caught.value.errors[0].field == "resources.gpu"


async def test_an_id_that_is_none_or_of_nobody_is_told_so(world: World) -> None:
    workers = world.services.workers
    for wrong in ("x", "w_0000000000000001"):
        with pytest.raises(NotFound):
            await workers.leave(wrong, ADMIN)
        with pytest.raises(NotFound):
            await workers.drain(wrong, ADMIN)
    with pytest.raises(NotFound):
        await world.exchange("x")
    mine = await world.worker()
    with pytest.raises(NotFound):
        await workers.leave(mine, Caller(name="eve", namespace="other"))


async def test_a_worker_whose_lease_is_over_registers_anew(world: World) -> None:
    worker = await world.worker()
    world.clock.pass_seconds(31)
    with pytest.raises(Gone):
        await world.exchange(worker)
    with pytest.raises(Gone):
        await world.exchange("w_0000000000000001")


async def test_the_lease_is_written_anew_only_when_a_tenth_of_it_may_be_missing(world: World) -> None:
    worker = await world.worker()
    for passed, written in ((2, 0), (0.4, 0), (0.2, 1), (2, 1), (1, 2)):
        world.clock.pass_seconds(passed)
        await world.exchange(worker)
        assert world.store.calls["beat"] == written
    (info,) = await world.services.workers.list(ADMIN)
    assert (info.lease_until - info.last_seen).total_seconds() == 30


async def test_a_lease_that_could_not_be_written_is_written_by_the_next_call(world: World) -> None:
    """Else the worker would believe in a lease that nobody prolonged."""
    worker = await world.worker()
    world.clock.pass_seconds(29)
    world.store.before("beat", failing(Unavailable("no answer")))
    with pytest.raises(Unavailable):
        await world.exchange(worker)
    await world.exchange(worker)
    world.clock.pass_seconds(2)
    await world.exchange(worker)
    (info,) = await world.services.workers.list(ADMIN)
    assert info.status == "alive"


async def test_a_worker_of_another_node_is_known_from_its_row(world: World) -> None:
    worker = await world.worker()
    other = World(world.store)
    other.clock = world.clock
    other.services.workers._clock = world.clock
    world.store.before("beat", failing(Unavailable("no answer")))
    with pytest.raises(Unavailable):
        await other.exchange(worker)
    job_id = await other.submit()
    assert [job.job_id for job in await other.take(worker)] == [job_id]


async def test_seats_of_workers_that_never_came_back_are_forgotten(world: World) -> None:
    for _ in range(3):
        await world.worker()
    world.clock.pass_seconds(31)
    worker = await world.worker()
    assert list(world.services.workers._seats) == [worker_key(worker)]


async def test_a_list_tells_who_lives_who_drains_who_is_lost_and_what_each_does(world: World) -> None:
    lost = await world.worker(name="lost")
    world.clock.pass_seconds(20)
    alive = await world.worker(name="alive", queues=["default"], job_types=["echo"], labels={"zone": "eu"})
    draining = await world.worker(name="draining")
    await world.services.workers.drain(draining, ADMIN)
    job_id = await running(world, alive)
    world.clock.pass_seconds(11)
    infos = {info.name: info for info in await world.services.workers.list(ADMIN)}
    assert {name: info.status for name, info in infos.items()} == {
        "lost": "lost", "alive": "alive", "draining": "draining",
    }  # fmt: skip
    info = infos["alive"]
    assert (info.worker_id, info.queues, info.job_types, info.labels) == (alive, ["default"], ["echo"], {"zone": "eu"})
    assert (info.running, info.resources) == ([job_id], {"slot": 10})
    assert infos["lost"].worker_id == lost


async def test_what_a_leaving_worker_held_is_given_to_another_at_once(world: World) -> None:
    worker, other = await world.worker(), await world.worker()
    job_id = await world.submit(retry={"initial": 0, "jitter": 0})
    await world.take_one(worker)
    call = asyncio.create_task(world.exchange(other, free={"slot": 1}, wait=10))
    await asyncio.sleep(0)
    await world.services.workers.leave(worker, ADMIN)
    assert [(job.job_id, job.attempt) for job in (await call).jobs] == [(job_id, 2)]
    with pytest.raises(Gone):
        await world.exchange(worker)


async def test_a_worker_that_leaves_while_a_call_of_its_waits_is_told_that_it_is_gone(world: World) -> None:
    worker = await world.worker()
    hungry = asyncio.create_task(world.exchange(worker, free={"slot": 1}, wait=10))
    idle = await resting(world, worker)
    await world.services.workers.leave(worker, ADMIN)
    for call in (hungry, idle):
        with pytest.raises(Gone):
            await call


async def test_a_draining_worker_is_told_so_at_once_and_gets_nothing_more(world: World) -> None:
    worker = await world.worker()
    call = asyncio.create_task(world.exchange(worker, free={"slot": 1}, wait=10))
    await asyncio.sleep(0)
    await world.services.workers.drain(worker, ADMIN)
    assert (await call).drain
    job_id = await world.submit()
    answer = await world.exchange(worker, free={"slot": 1})
    assert (answer.jobs, answer.drain) == ([], True)
    assert await world.status(job_id) == "queued"
    assert (await world.services.query.job(job_id, ADMIN)).reason == "no_worker"


async def test_a_call_that_wants_nothing_ends_when_its_wait_is_over(world: World) -> None:
    answer = await world.exchange(await world.worker(), wait=0.001)
    assert (answer.jobs, answer.stop, answer.drain) == ([], [], False)


async def test_what_is_leased_and_not_held_is_sent_again_with_the_same_token(world: World) -> None:
    worker = await world.worker()
    first, second = await world.submit(), await world.submit()
    jobs = await world.take(worker)
    answer = await world.exchange(worker, holds=[jobs[0].token], wait=10)
    assert [(job.job_id, job.token) for job in answer.jobs] == [(second, jobs[1].token)]
    answer = await world.exchange(worker, holds=[job.token for job in jobs], wait=0.001)
    assert answer.jobs == []
    assert jobs[0].job_id == first


async def test_a_stop_whose_answer_was_lost_is_told_again(world: World) -> None:
    worker = await world.worker()
    job_id = await running(world, worker)
    await world.cancel(job_id)
    for _ in range(2):
        answer = await world.exchange(worker, holds=[])
        assert [stop.job_id for stop in answer.stop] == [job_id]
    assert (await world.exchange(worker)).stop == []


@pytest.mark.parametrize("step", ["beat", "load"])
async def test_a_stop_that_could_not_be_told_is_told_by_the_next_call(world: World, step: str) -> None:
    worker = await world.worker()
    job_id = await running(world, worker)
    await world.cancel(job_id)
    world.store.before(step, failing(Unavailable("no answer")))
    with pytest.raises(Unavailable):
        await world.exchange(worker)
    assert [stop.job_id for stop in (await world.exchange(worker)).stop] == [job_id]


@pytest.mark.parametrize("free", [0, 1])
async def test_a_stop_that_comes_while_a_call_begins_does_not_wait_for_its_end(world: World, free: int) -> None:
    worker = await world.worker()
    job_id = await running(world, worker)
    (leased,) = await world.store.leases_of(worker_key(worker))
    held = [show_token(leased.lease.id, leased.lease.nonce)]
    gate = Gate()
    world.store.after("leases_of", gate)
    call = asyncio.create_task(world.exchange(worker, holds=held, free={"slot": free}, wait=10))
    await gate.reached.wait()
    await world.cancel(job_id)
    gate.opened.set()
    assert [stop.job_id for stop in (await call).stop] == [job_id]


async def test_two_stops_in_calls_that_overlap_are_both_told(world: World) -> None:
    worker = await world.worker()
    first, second = await running(world, worker), await running(world, worker)
    gate = Gate()
    await world.cancel(first)
    world.store.after("load", gate)
    call = asyncio.create_task(world.exchange(worker))
    await gate.reached.wait()
    await world.cancel(second)
    told = [stop.job_id for stop in (await world.exchange(worker)).stop]
    gate.opened.set()
    told += [stop.job_id for stop in (await call).stop]
    assert set(told) == {first, second}
    assert (await world.exchange(worker)).stop == []


async def test_a_stop_of_a_job_that_is_gone_by_then_is_left_out(world: World) -> None:
    worker = await world.worker()
    job_id = await running(world, worker)
    await world.cancel(job_id)

    async def end_and_forget() -> None:
        key = job_key(job_id)
        (job,) = await world.store.leases_of(worker_key(worker))
        assert job.lease.id == key
        world.clock.pass_seconds(31)
        await world.services.recover.missed()
        await world.store.forget(await world.store.now(), 100)

    world.store.after("beat", end_and_forget)
    assert (await world.exchange(worker)).stop == []
    (info,) = await world.services.workers.list(ADMIN)
    assert info.running == []


async def test_hints_for_workers_that_this_node_does_not_know_are_nothing_to_it(world: World) -> None:
    world.wake.stop(worker_key("w_0000000000000001"))
    assert world.services.workers._seats == {}


async def test_a_call_waits_no_longer_than_a_heartbeat(world: World) -> None:
    quick = World(world.store, heartbeat=0.01)
    worker = await quick.worker()
    answer = await quick.services.workers.exchange(worker, ExchangeBody(wait=300, free={"slot": 1}), ADMIN)
    assert answer.jobs == []
