"""Jobs that hold more than a slot reach workers that have room for them, and nobody is given more than it has."""

import asyncio
from collections.abc import Sequence

import pytest

from foliot.domain.access import ADMIN
from foliot.domain.errors import BadInput
from foliot.wire import AssignedJob
from tests.service.conftest import World, report
from tests.service.meddling import Gate
from tests.service.test_dispatch import begin, waiting

OFFER = {"slot": 8, "cpu": 4, "memory": "8Gi", "gpu": 1}


async def offering(world: World, **fields: object) -> str:
    return await world.worker(**({"resources": OFFER} | fields))


async def given(world: World, worker: str, **free: float | str) -> list[str]:
    return ids((await world.exchange(worker, free=free)).jobs)


def ids(jobs: Sequence[AssignedJob]) -> list[str]:
    return [job.job_id for job in jobs]


async def test_a_job_tells_its_worker_what_it_holds(world: World) -> None:
    worker = await offering(world)
    await world.submit(resources={"cpu": 0.5, "memory": "1Gi"})
    await world.submit("plain")
    jobs = (await world.exchange(worker, free=OFFER)).jobs
    assert {job.job_type: job.resources for job in jobs} == {
        "echo": {"slot": 1, "cpu": 0.5, "memory": 2**30},
        "plain": {"slot": 1},
    }


async def test_an_answer_never_holds_more_than_is_free(world: World) -> None:
    worker = await offering(world)
    jobs = [await world.submit(resources={"cpu": 1.5}) for _ in range(4)]
    assert await given(world, worker, slot=8, cpu=4) == jobs[:2]
    assert await given(world, worker, slot=6, cpu=1) == []
    assert await given(world, worker, slot=1, cpu=4) == jobs[2:3]
    assert await given(world, worker, slot=8, cpu="1.5") == jobs[3:]


async def test_an_answer_never_holds_more_than_was_offered(world: World) -> None:
    worker = await world.worker(resources={"slot": 2, "cpu": 1})
    jobs = [await world.submit(resources={"cpu": 1}) for _ in range(2)]
    plain = [await world.submit("plain") for _ in range(4)]
    first = await given(world, worker, slot=100, cpu=100)
    assert len(first) == 2
    assert len({*first} & {*jobs}) == 1
    assert len({*first} & {*plain}) == 1


async def test_a_worker_that_offers_nothing_is_given_as_many_plain_jobs_as_it_asks_for(world: World) -> None:
    worker = await world.worker(resources={})
    big = await world.submit(resources={"cpu": 1})
    plain = [await world.submit("plain") for _ in range(3)]
    assert await given(world, worker, slot=2, cpu=8) == plain[:2]
    assert await given(world, worker, slot=2, cpu=8) == plain[2:]
    assert await world.status(big) == "queued"


async def test_what_is_sent_again_is_not_free_any_more(world: World) -> None:
    worker = await offering(world)
    first, second = [await world.submit(resources={"cpu": 3}) for _ in range(2)]
    assert await given(world, worker, slot=8, cpu=4) == [first]
    answer = await world.exchange(worker, free={"slot": 8, "cpu": 4}, holds=[])
    assert ids(answer.jobs) == [first], "the worker has four, and the first holds three of them"
    assert await world.status(second) == "queued"


async def test_a_job_that_nobody_can_serve_waits_and_stands_in_nobodys_way(world: World) -> None:
    worker = await offering(world, labels={"zone": "us"})
    impossible = [
        await world.submit(priority="high", resources={"cpu": 5}),
        await world.submit(priority="high", resources={"tape": 1}),
        await world.submit(priority="high", requires={"zone": "eu"}),
        await world.submit(priority="high", resources={"slot": 9}),
    ]
    plain = [await world.submit(priority="low") for _ in range(3)]
    assert await given(world, worker, **OFFER) == plain  # type: ignore[arg-type]
    looks = world.store.calls["claim"]
    assert await given(world, worker, **OFFER) == []  # type: ignore[arg-type]
    assert world.store.calls["claim"] == looks, "what nobody can take is not claimed again and again"
    assert [await world.status(job) for job in impossible] == ["queued"] * 4
    europe = await offering(world, labels={"zone": "eu"})
    assert await given(world, europe, slot=1) == [impossible[2]]


async def test_a_big_job_is_stepped_over_until_there_is_room(world: World) -> None:
    worker = await offering(world)
    big = await world.submit(priority="high", resources={"cpu": 4})
    small = await world.submit("small", priority="low", resources={"cpu": 1})
    assert await given(world, worker, slot=8, cpu=3) == [small]
    assert await given(world, worker, slot=8, cpu=4) == [big]


async def test_a_waiting_call_with_too_little_free_is_not_asked_again_and_again(world: World) -> None:
    worker = await offering(world)
    call = begin(world.exchange(worker, free={"slot": 8, "cpu": 1}, wait=10))
    await waiting(world)
    big = await world.submit(resources={"cpu": 2})
    await world.services.dispatch.look()
    await world.services.dispatch.drain()
    assert not call.done()
    assert world.store.calls["claim"] == 0
    plain = await world.submit("plain")
    assert ids((await call).jobs) == [plain]
    assert await world.status(big) == "queued"


async def test_a_worker_with_more_free_than_its_waiting_call_says_is_asked_anew(world: World) -> None:
    """A call that hands in an end and gets nothing leaves the amounts that became free asked for by none."""
    worker = await offering(world)
    running = await world.submit(resources={"cpu": 3})
    (job,) = (await world.exchange(worker, free={"slot": 8, "cpu": 4})).jobs
    assert job.job_id == running
    call = begin(world.exchange(worker, free={"slot": 7, "cpu": 1}, wait=10))
    await waiting(world)
    ended = await world.exchange(worker, reports=[report(job, "success")], free={"slot": 1, "cpu": 3})
    assert ended.jobs == []
    big = await world.submit(resources={"cpu": 4})
    assert (await call).jobs == [], "it does not know that four are free, and its worker does"
    assert await given(world, worker, slot=8, cpu=4) == [big]


async def test_a_call_that_comes_while_another_is_asked_anew_is_looked_at_itself(world: World) -> None:
    worker = await offering(world)
    big = await world.submit(resources={"cpu": 4})
    lane = (await world.record(big)).job.lane_id
    world.services.dispatch._flagged.clear()
    gate = Gate()
    world.store.before("occupied_lanes", gate)
    early = begin(world.exchange(worker, free={"slot": 7, "cpu": 1}, wait=10))
    await waiting(world)
    world.wake.ready([77, lane])  # the first is unknown: while it is looked up, the worker calls again
    await gate.reached.wait()
    late = begin(world.exchange(worker, free={"slot": 1, "cpu": 2}, wait=10))
    await waiting(world, 2)
    gate.opened.set()
    assert (await early).jobs == []
    assert not late.done()
    plain = await world.submit("plain")
    assert ids((await late).jobs) == [plain]


async def test_a_call_that_gets_the_amounts_of_two_ends_the_other(world: World) -> None:
    worker = await offering(world)
    gate = Gate()
    world.store.before("claim", gate)
    plain = await world.submit("plain")
    big = await world.submit(resources={"cpu": 4})
    held = begin(world.exchange(await world.worker(job_types=["plain"]), free={"slot": 1}))
    await gate.reached.wait()  # both of the worker's calls come before the next look
    calls = [begin(world.exchange(worker, free={"slot": 1, "cpu": cpu}, wait=10)) for cpu in (1, 3)]
    await waiting(world, 3)
    gate.opened.set()
    answers = await asyncio.gather(*calls)
    assert [ids(answer.jobs) for answer in answers] == [[big], []]
    assert ids((await held).jobs) == [plain]


async def test_each_of_two_calls_gets_what_it_asked_for(world: World) -> None:
    worker = await offering(world)
    gate = Gate()
    world.store.before("claim", gate)
    plain = [await world.submit("plain"), await world.submit("plain")]
    gpu = await world.submit(resources={"gpu": 1})
    held = begin(world.exchange(await world.worker(job_types=["plain"]), free={"slot": 1}))
    await gate.reached.wait()
    calls = [begin(world.exchange(worker, free=free, wait=10)) for free in ({"slot": 1}, {"slot": 1, "gpu": 1})]
    await waiting(world, 3)
    gate.opened.set()
    answers = await asyncio.gather(*calls)
    assert [ids(answer.jobs) for answer in answers] == [plain[1:], [gpu]]
    assert ids((await held).jobs) == plain[:1]


async def test_jobs_that_hold_nothing_are_not_held_up_by_anything(world: World) -> None:
    worker = await offering(world)
    jobs = [await world.submit(resources={"slot": 0}) for _ in range(3)]
    assert await given(world, worker, cpu=0.001) == jobs


async def test_a_draining_worker_is_given_nothing(world: World) -> None:
    worker = await offering(world)
    await world.services.workers.drain(worker, ADMIN)
    await world.submit(resources={"cpu": 1})
    assert await given(world, worker, **OFFER) == []  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("free", "field"), [({"cpu": -1}, "free.cpu"), ({"cpu": "four"}, "free.cpu"), ({"slot": 1e300}, "free.slot")]
)
async def test_an_absurd_amount_is_refused_by_name(world: World, free: dict[str, float | str], field: str) -> None:
    worker = await offering(world)
    with pytest.raises(BadInput) as refused:
        await world.exchange(worker, free=free)
    assert [error.field for error in refused.value.errors] == [field]


async def test_no_worker_that_could_hold_it_is_no_worker(world: World) -> None:
    await offering(world)
    wrong, right = await world.submit(resources={"cpu": 5}), await world.submit(resources={"cpu": 4})
    jobs = {job: await world.services.query.job(job, ADMIN) for job in (wrong, right)}
    assert {job: info.reason for job, info in jobs.items()} == {wrong: "no_worker", right: None}
