"""Ready jobs reach the workers that wait for them, and none is lost between a claim and its answer."""

import asyncio
from collections.abc import Coroutine
from typing import Any

import pytest

from foliot.domain.access import ADMIN
from foliot.domain.errors import Unavailable
from foliot.domain.job import Lane
from foliot.service import dispatch as dispatch_module
from foliot.wire import ExchangeAnswer
from tests.service.conftest import World, worker_key
from tests.service.meddling import Gate, failing


def begin(call: Coroutine[Any, Any, ExchangeAnswer]) -> asyncio.Task[ExchangeAnswer]:
    return asyncio.create_task(call)


async def waiting(world: World, count: int = 1) -> None:
    """Until so many calls wait for jobs."""
    while len(world.services.dispatch._waiters) < count:  # noqa: ASYNC110 - calls come in without a word
        await asyncio.sleep(0)


async def test_a_waiting_worker_gets_a_job_as_soon_as_it_is_submitted(world: World) -> None:
    worker = await world.worker()
    call = begin(world.exchange(worker, free={"slot": 1}, wait=10))
    await waiting(world)
    assert world.services.dispatch.hungry
    job_id = await world.submit()
    assert [job.job_id for job in (await call).jobs] == [job_id]
    assert not world.services.dispatch.hungry


async def test_a_call_that_does_not_wait_is_answered_at_once_without_jobs(world: World) -> None:
    worker = await world.worker(job_types=["other"])
    assert await world.take(worker) == []
    await world.submit()
    assert await world.take(worker) == []


async def test_a_wait_ends_by_itself(world: World) -> None:
    worker = await world.worker()
    assert (await world.exchange(worker, free={"slot": 1}, wait=0.001)).jobs == []


async def test_jobs_of_several_lanes_go_by_rank_to_the_workers_that_serve_them(world: World) -> None:
    both, only_b = await world.worker(), await world.worker(job_types=["b"])
    low = await world.submit("a", priority="low")
    high = await world.submit("b", priority="high")
    middle = await world.submit("a")
    assert [job.job_id for job in await world.take(both, 2)] == [high, middle]
    assert await world.take(only_b, 5) == []
    assert [job.job_id for job in await world.take(both, 5)] == [low]


async def test_several_waiting_workers_share_what_comes(world: World) -> None:
    workers = [
        await world.worker(**limits) for limits in ({"job_types": ["b"]}, {"job_types": ["a"]}, {"queues": ["x"]})
    ]
    calls = [begin(world.exchange(worker, free={"slot": 1}, wait=10)) for worker in workers]
    await waiting(world, 3)
    first, second = await world.submit("a"), await world.submit("b")
    answers = await asyncio.gather(*calls[:2])
    assert sorted(job.job_id for answer in answers for job in answer.jobs) == sorted([first, second])
    assert not calls[2].done()
    world.services.close()
    assert (await calls[2]).jobs == []


async def test_a_lane_with_more_than_is_wanted_is_looked_at_again_for_the_next_call(world: World) -> None:
    worker = await world.worker()
    ids = [await world.submit() for _ in range(3)]
    assert [job.job_id for job in await world.take(worker, 2)] == ids[:2]
    assert [job.job_id for job in await world.take(worker, 2)] == ids[2:]
    heads = world.store.calls["claim"]
    assert await world.take(worker, 2) == []
    assert world.store.calls["claim"] == heads, "a lane found empty is not asked again until a hint comes"


async def test_a_look_finds_ready_jobs_of_which_no_hint_came(world: World) -> None:
    worker = await world.worker()
    job_id = await world.submit()
    world.services.dispatch._flagged.clear()
    assert await world.take(worker) == []
    await world.services.dispatch.look()
    assert [job.job_id for job in await world.take(worker)] == [job_id]


async def test_a_lane_that_this_process_has_never_met_is_looked_up(world: World) -> None:
    """A hint from another node may name one."""
    worker = await world.worker()
    job_id = await world.submit("new")
    number = (await world.record(job_id)).job.lane_id
    lanes, world.store._lanes = world.store._lanes, {}
    assert world.store.lane(number) is None

    async def meet() -> None:
        world.store._lanes = lanes

    world.store.before("occupied_lanes", meet)
    assert [job.job_id for job in await world.take(worker)] == [job_id]


async def test_a_lane_that_nobody_knows_is_forgotten_unless_it_was_flagged_meanwhile(world: World) -> None:
    worker = await world.worker()
    world.wake.ready([77])

    async def flag_again() -> None:
        world.wake.ready([77])

    world.store.before("occupied_lanes", flag_again)
    for looked in (1, 2, 2):
        assert await world.take(worker) == []
        assert world.store.calls["occupied_lanes"] == looked


async def test_a_job_that_comes_during_a_look_is_not_overlooked(world: World) -> None:
    worker = await world.worker()
    await world.submit()
    (first,) = await world.take(worker)
    lane = (await world.record(first.job_id)).job.lane_id
    gate = Gate()
    world.store.after("claim", gate)
    call = begin(world.exchange(worker, free={"slot": 1}, wait=10))
    await waiting(world)
    world.wake.ready([lane])
    await gate.reached.wait()  # it has found nothing
    job_id = await world.submit()
    gate.opened.set()
    assert [job.job_id for job in (await call).jobs] == [job_id]


async def test_a_worker_that_comes_during_a_look_is_not_overlooked(world: World) -> None:
    first, second = await world.worker(), await world.worker()
    gate = Gate()
    world.store.after("claim", gate)
    early = begin(world.exchange(first, free={"slot": 1}, wait=10))
    await waiting(world)
    ids = [await world.submit(), await world.submit()]
    await gate.reached.wait()
    late = begin(world.exchange(second, free={"slot": 1}))
    await waiting(world, 2)
    gate.opened.set()
    assert [job.job_id for answer in (await early, await late) for job in answer.jobs] == ids


async def test_one_worker_with_two_open_calls_gets_jobs_in_both(world: World) -> None:
    worker = await world.worker()
    gate = Gate()
    world.store.before("claim", gate)
    world.wake.ready(await world.store.lane_ids([Lane("default", "default", "echo")]))
    calls = [begin(world.exchange(worker, free={"slot": n}, wait=10)) for n in (1, 2)]
    await waiting(world, 2)
    await gate.reached.wait()
    ids = [await world.submit() for _ in range(3)]
    gate.opened.set()
    answers = await asyncio.gather(*calls)
    assert sorted(job.job_id for answer in answers for job in answer.jobs) == ids
    assert [len(answer.jobs) for answer in answers] == [1, 2]


async def test_a_call_that_gets_nothing_of_a_claim_waits_on_beside_one_that_does(world: World) -> None:
    worker = await world.worker()
    calls = [begin(world.exchange(worker, free={"slot": 1}, wait=10)) for _ in range(2)]
    await waiting(world, 2)
    first = await world.submit()
    done, _ = await asyncio.wait(calls, return_when=asyncio.FIRST_COMPLETED)
    assert [job.job_id for call in done for job in call.result().jobs] == [first]
    second = await world.submit()
    answers = await asyncio.gather(*calls)
    assert sorted(job.job_id for answer in answers for job in answer.jobs) == [first, second]


async def test_what_a_claim_gives_is_answered_though_the_wait_ends_meanwhile(world: World) -> None:
    """Else it would be leased to a worker that was told of nothing, until its timeout."""
    worker = await world.worker()

    async def dawdle() -> None:
        await asyncio.sleep(0.02)

    world.store.after("claim", dawdle)
    call = begin(world.exchange(worker, free={"slot": 1}, wait=0.005))
    await waiting(world)
    job_id = await world.submit()
    assert [job.job_id for job in (await call).jobs] == [job_id]


@pytest.mark.parametrize("ending", ["stop", "close"])
async def test_what_a_claim_gives_is_answered_though_the_call_is_ended_meanwhile(world: World, ending: str) -> None:
    worker = await world.worker()
    gate = Gate()
    world.store.after("claim", gate)
    call = begin(world.exchange(worker, free={"slot": 1}, wait=10))
    await waiting(world)
    job_id = await world.submit()
    await gate.reached.wait()
    if ending == "stop":
        world.wake.stop(worker_key(worker))
    else:
        world.services.close()
    gate.opened.set()
    assert [job.job_id for job in (await call).jobs] == [job_id]


async def test_a_claim_that_finds_nothing_answers_the_calls_that_were_ended_meanwhile(world: World) -> None:
    worker = await world.worker()
    lanes = await world.store.lane_ids([Lane("default", "default", "echo")])
    gate = Gate()
    world.store.after("claim", gate)
    call = begin(world.exchange(worker, free={"slot": 1}, wait=10))
    await waiting(world)
    world.wake.ready(lanes)
    await gate.reached.wait()
    world.wake.stop(worker_key(worker))
    gate.opened.set()
    assert (await call).jobs == []


async def test_a_caller_that_went_away_harms_nobody(world: World) -> None:
    worker = await world.worker()
    gate = Gate()
    world.store.after("claim", gate)
    gone = begin(world.exchange(worker, free={"slot": 1}, wait=10))
    await waiting(world)
    job_id = await world.submit()
    await gate.reached.wait()
    gone.cancel()
    await asyncio.wait([gone])
    gate.opened.set()
    assert await world.take(worker) == []
    again = await world.exchange(worker, holds=[])
    assert [job.job_id for job in again.jobs] == [job_id]


async def test_after_close_nobody_waits_and_nothing_is_handed_out(world: World) -> None:
    idle, worker = await world.worker(), await world.worker()
    resting = begin(world.exchange(idle, wait=10))
    await asyncio.sleep(0)
    world.services.close()
    assert (await resting).jobs == []
    job_id = await world.submit()
    assert (await world.exchange(worker, free={"slot": 1}, wait=10)).jobs == []
    assert (await world.exchange(worker, wait=10)).jobs == []
    assert await world.status(job_id) == "queued"
    await world.services.drain()


async def test_drain_waits_for_a_claim_under_way(world: World) -> None:
    worker = await world.worker()
    gate = Gate()
    world.store.before("claim", gate)
    await world.submit()
    call = begin(world.exchange(worker, free={"slot": 1}))
    await gate.reached.wait()
    draining = asyncio.create_task(world.services.drain())
    await asyncio.sleep(0)
    assert not draining.done()
    gate.opened.set()
    await draining
    assert len((await call).jobs) == 1


async def test_an_error_of_the_store_is_the_answer_of_all_who_wait(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dispatch_module, "PATIENCE", 0)
    workers = [await world.worker(), await world.worker()]
    calls = [begin(world.exchange(worker, free={"slot": 1}, wait=10)) for worker in workers]
    await waiting(world, 2)
    calls[1].cancel()
    world.store.before("claim", failing(Unavailable("no answer")))
    job_id = await world.submit()
    with pytest.raises(Unavailable, match="no answer"):
        await calls[0]
    assert [job.job_id for job in await world.take(workers[0])] == [job_id]


async def test_a_call_that_was_answered_right_before_an_error_keeps_its_answer(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dispatch_module, "PATIENCE", 0)
    first, second = await world.worker(), await world.worker()
    gate = Gate()
    world.store.before("claim", gate)
    early = begin(world.exchange(first, free={"slot": 1}, wait=10))
    await waiting(world)
    await world.submit()
    await gate.reached.wait()
    late = begin(world.exchange(second, free={"slot": 1}, wait=10))
    await waiting(world, 2)

    async def stop_and_fail() -> None:
        world.wake.stop(worker_key(second))
        raise Unavailable("no answer")

    world.store.after("claim", stop_and_fail)
    gate.opened.set()
    assert (await late).jobs == []
    with pytest.raises(Unavailable):
        await early


async def test_a_claim_whose_answer_was_lost_is_asked_for_again_and_claims_nothing_twice(world: World) -> None:
    worker = await world.worker()
    ids = [await world.submit(), await world.submit()]
    world.store.after("claim", failing(Unavailable("cut off", fate_unknown=True)))
    assert [job.job_id for job in await world.take(worker, 1)] == ids[:1]
    assert await world.status(ids[1]) == "queued"


async def test_a_call_that_was_ended_is_not_ended_twice(world: World) -> None:
    worker, other = await world.worker(), await world.worker()
    calls = [begin(world.exchange(one, free={"slot": 1}, wait=10)) for one in (worker, other)]
    await waiting(world, 2)
    world.wake.stop(worker_key(worker))
    world.wake.stop(worker_key(worker))
    assert (await calls[0]).jobs == []
    assert not calls[1].done()
    world.services.close()
    assert (await calls[1]).jobs == []


async def test_what_is_started_is_counted(world: World) -> None:
    worker = await world.worker()
    for _ in range(10):
        await world.submit()
    await world.take(worker, 10)
    world.clock.pass_seconds(1)
    stats = await world.services.query.stats(ADMIN)
    assert (stats.submitted_per_second, stats.started_per_second, stats.ended_per_second) == (1.0, 1.0, 0.0)


async def test_of_many_lanes_a_few_are_read_and_more_where_one_of_them_goes_first(world: World) -> None:
    worker = await world.worker(resources={})
    first = [await world.submit("a", priority="high") for _ in range(100)]
    others = [await world.submit(f"b{number}") for number in range(20)]
    taken: list[str] = []
    sizes = []
    while part := await world.take(worker, 200):
        taken += [job.job_id for job in part]
        sizes.append(len(part))
    assert taken[:100] == first
    assert sorted(taken[100:]) == sorted(others)
    assert sizes[0] == 2 * 200 // 21, "twice its share of what is wanted"
    assert sizes[1] > sizes[0]
