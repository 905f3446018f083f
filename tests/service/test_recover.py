"""What is stuck comes back: lost workers, overdue attempts, cancels that nobody heeds, deadlines."""

import pytest

from foliot.domain.access import ADMIN
from foliot.domain.duration import SECOND
from foliot.domain.errors import Unavailable
from foliot.domain.states import CANCEL_GRACE, TIMEOUT_GRACE
from foliot.service import recover as recover_module
from foliot.wire import RetryJobBody, UpdateBody, to_time
from tests.service.conftest import World
from tests.service.meddling import failing

AT_ONCE = {"initial": 0, "jitter": 0}
GRACE = TIMEOUT_GRACE / SECOND


async def reason(world: World, job_id: str) -> tuple[str, str | None]:
    info = await world.services.query.job(job_id, ADMIN)
    return info.status, info.reason


async def test_the_work_of_a_lost_worker_is_tried_again_by_another(world: World) -> None:
    lost = await world.worker()
    job_id = await world.submit(retry=AT_ONCE)
    await world.take_one(lost)
    assert await world.services.recover.missed() == 0
    world.clock.pass_seconds(31)
    assert await world.services.recover.missed() == 1
    other = await world.worker()
    job = await world.take_one(other)
    assert (job.job_id, job.attempt) == (job_id, 2)
    assert [one.status for one in await world.services.query.executions(job_id, ADMIN)] == ["lost", "claimed"]


async def test_a_job_that_must_not_run_twice_fails_when_its_worker_is_lost(world: World) -> None:
    job_id = await world.submit(retry={"on_lost": "fail"})
    await world.take_one(await world.worker())
    world.clock.pass_seconds(31)
    await world.services.recover.missed()
    assert await reason(world, job_id) == ("failed", "lost")


async def test_a_job_that_loses_worker_after_worker_is_put_aside(world: World) -> None:
    job_id = await world.submit(retry={"max_attempts": 9, "max_lost": 2, **AT_ONCE})
    for _ in range(2):
        await world.take_one(await world.worker())
        world.clock.pass_seconds(31)
        await world.services.recover.missed()
    assert await reason(world, job_id) == ("failed", "quarantined")


async def test_an_attempt_past_its_timeout_and_grace_counts_as_timed_out(world: World) -> None:
    worker = await world.worker()
    job_id = await world.submit(timeout=1, retry={"max_attempts": 1})
    await world.take_one(worker)
    world.clock.pass_seconds(1)
    assert await world.services.recover.missed() == 0
    world.clock.pass_seconds(GRACE)
    assert await world.services.recover.missed() == 1
    assert await reason(world, job_id) == ("failed", "timed_out")


async def test_a_cancel_that_the_worker_does_not_heed_takes_effect_after_its_grace(world: World) -> None:
    worker = await world.worker()
    job_id = await world.submit()
    job = await world.take_one(worker)
    assert await world.cancel(job_id) == "cancelling"
    assert await world.services.recover.missed() == 0
    world.clock.pass_seconds(CANCEL_GRACE / SECOND)
    assert await world.services.recover.missed() == 1
    assert await reason(world, job_id) == ("cancelled", "cancelled_by")
    (late,) = (await world.report(worker, job, "success")).rejected
    assert late.reason == "the attempt ended as cancelled before"


async def test_more_than_a_chunk_comes_back_in_one_step(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recover_module, "CHUNK", 2)
    worker = await world.worker()
    for _ in range(5):
        await world.submit()
    assert len(await world.take(worker)) == 5
    world.clock.pass_seconds(31)
    assert await world.services.recover.missed() == 5
    for _ in range(4):
        await world.submit("other", deadline=to_time(world.clock.now() + SECOND).isoformat())
    world.clock.pass_seconds(2)
    assert await world.services.recover.expired() == 4


async def test_what_another_node_brought_back_meanwhile_is_left_alone(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recover_module, "CHUNK", 1)
    job_id = await world.submit(retry=AT_ONCE, deadline=to_time(world.clock.now() + SECOND).isoformat())
    world.clock.pass_seconds(1)
    world.store.before("save", world.services.recover.expired)
    assert await world.services.recover.expired() == 0
    assert await reason(world, job_id) == ("failed", "expired")
    job_id = await world.submit(retry=AT_ONCE)
    await world.take_one(await world.worker())
    world.clock.pass_seconds(31)
    world.store.before("save", world.services.recover.missed)
    assert await world.services.recover.missed() == 0
    assert (await world.services.query.job(job_id, ADMIN)).attempt == 1


async def test_a_job_that_did_not_start_by_its_deadline_fails(world: World) -> None:
    deadline = to_time(world.clock.now() + 60 * SECOND).isoformat()
    queued, scheduled = await world.submit(deadline=deadline), await world.submit(deadline=deadline, delay="2m")
    running = await world.submit("started", deadline=deadline)
    await world.take_one(await world.worker(job_types=["started"]))
    world.clock.pass_seconds(59)
    assert await world.services.recover.expired() == 0
    world.clock.pass_seconds(1)
    assert await world.services.recover.expired() == 2
    assert await reason(world, queued) == await reason(world, scheduled) == ("failed", "expired")
    assert await world.status(running) == "running"


async def test_a_job_past_its_deadline_is_not_started_though_nobody_has_ended_it_yet(world: World) -> None:
    worker = await world.worker()
    late = await world.submit(deadline=to_time(world.clock.now() + SECOND).isoformat())
    fine = await world.submit(deadline=to_time(world.clock.now() + 2 * SECOND).isoformat())
    world.clock.pass_seconds(1)
    assert [job.job_id for job in await world.take(worker)] == [fine]
    assert await reason(world, late) == ("failed", "expired")
    assert await world.services.recover.expired() == 0


async def test_a_claim_past_the_deadline_is_ended_though_a_cancel_came_between(world: World) -> None:
    worker = await world.worker()
    late = await world.submit(deadline=to_time(world.clock.now() + SECOND).isoformat())
    world.clock.pass_seconds(1)
    world.store.after("claim", lambda: world.cancel(late))
    assert await world.take(worker) == []
    assert await reason(world, late) == ("failed", "expired")


async def test_a_claim_past_the_deadline_that_could_not_be_ended_is_not_sent_again_either(world: World) -> None:
    worker = await world.worker()
    late = await world.submit(deadline=to_time(world.clock.now() + SECOND).isoformat())
    world.clock.pass_seconds(1)
    world.store.before("save", failing(Unavailable("no answer")))
    with pytest.raises(Unavailable):
        await world.take(worker)
    assert (await world.exchange(worker, holds=[])).jobs == []
    assert await reason(world, late) == ("failed", "expired")


async def test_a_deadline_counts_for_the_first_start_only(world: World) -> None:
    worker = await world.worker()
    job_id = await world.submit(retry=AT_ONCE, deadline=to_time(world.clock.now() + SECOND).isoformat())
    job = await world.take_one(worker)
    world.clock.pass_seconds(5)
    assert [again.job_id for again in (await world.exchange(worker, holds=[])).jobs] == [job_id]
    await world.report(worker, job, "retriable_failure")
    job = await world.take_one(worker)
    assert job.attempt == 2
    await world.report(worker, job, "fatal_failure")
    await world.services.control.retry(job_id, RetryJobBody(), if_match=None, caller=ADMIN)
    assert (await world.take_one(worker)).attempt == 3


async def test_a_new_deadline_wakes_whoever_ends_jobs(world: World) -> None:
    heard: list[int] = []
    world.wake.on_deadline.append(heard.append)
    first, second = world.clock.now() + SECOND, world.clock.now() + 2 * SECOND
    job_id = await world.submit(deadline=to_time(first).isoformat())
    body = UpdateBody(deadline=to_time(second))
    await world.services.control.update(job_id, body, if_match=None, caller=ADMIN)
    assert heard == [first, second]
