"""Which jobs wait longest for a worker, a place in their queue or a token, and which run for long."""

import random
from typing import Any

import pytest

from foliot.domain import events
from foliot.domain.duration import HOUR, MINUTE, SECOND
from foliot.domain.job import Job
from foliot.domain.placement import Order
from foliot.store.base import Waiter
from foliot.store.waiters import IN_ORDER
from tests.store.builders import Scene
from tests.store.contract.test_queue_order import put_in_order
from tests.store.contract.test_queues import aged, put


async def jobs_due(scene: Scene, *ages: int, **fields: Any) -> list[Job]:
    """Jobs that were submitted, and due, so many seconds ago."""
    return [await aged(scene, age * SECOND, **fields) for age in ages]


def waiter(job: Job) -> Waiter:
    return Waiter(lane_id=job.lane_id, id=job.id, due=job.due)


async def waiting(scene: Scene, *jobs: Job, limit: int = 10, age: int = 0) -> list[int]:
    """Of the lanes of these jobs: what was due more than so many seconds ago."""
    lanes = [job.lane_id for job in jobs]
    return [found.id for found in await scene.store.waiters(lanes, scene.now - age * SECOND, limit)]


async def test_those_due_first_are_found_whatever_their_priority(scene: Scene) -> None:
    jobs = [(await jobs_due(scene, age, priority=priority))[0] for age, priority in enumerate(range(9, -1, -1), 1)]
    found = await scene.store.waiters([jobs[0].lane_id], scene.now, 3)
    assert found == [waiter(job) for job in jobs[:-4:-1]]
    assert await waiting(scene, jobs[0], limit=50) == [job.id for job in reversed(jobs)]


async def test_what_was_due_at_that_moment_or_later_is_not_found(scene: Scene) -> None:
    before, at, later = await jobs_due(scene, 61, 60, 59)
    assert await waiting(scene, at, age=60) == [before.id]
    assert await scene.store.waiters([at.lane_id], at.due + 1, 9) == [waiter(before), waiter(at)]
    assert await scene.store.waiters([at.lane_id], before.due, 9) == []
    assert await scene.store.waiters([at.lane_id], 0, 9) == []
    assert later.id in await waiting(scene, at)


async def test_each_lane_has_its_own_and_as_many_of_them(scene: Scene) -> None:
    mail, print_ = await jobs_due(scene, 5, 4, 3, queue="mail"), await jobs_due(scene, 9, 8, 7, job_type="print")
    strangers = await jobs_due(scene, 99, queue="other")
    lanes = [mail[0].lane_id, print_[0].lane_id, mail[0].lane_id]
    found = await scene.store.waiters(lanes, scene.now, 2)
    assert found == [waiter(job) for job in (*mail[:2], *print_[:2])]
    assert strangers[0].id not in {one.id for one in found}
    assert await scene.store.waiters([], scene.now, 2) == []
    assert await scene.store.waiters(lanes, scene.now, 0) == []
    assert await scene.store.waiters([1 << 20], scene.now, 2) == []


async def test_what_waits_for_something_else_or_runs_or_ended_is_not_found(scene: Scene) -> None:
    worker = await scene.worker()
    (ended, running, ready) = await jobs_due(scene, 9, 8, 7)
    for job in (ended, running):
        (claimed,) = await scene.claim(worker, job)
        assert claimed.job.id == job.id
    await scene.happen(ended.id, events.Succeed())
    paused = (await jobs_due(scene, 6))[0]
    await scene.happen(paused.id, events.Pause())
    await scene.child(ready.id, due=scene.now - MINUTE)
    assert await waiting(scene, ready) == [ready.id]


async def test_what_is_due_and_not_yet_admitted_is_found_once_it_is(scene: Scene) -> None:
    job = await scene.submitted(due=scene.now + MINUTE)
    await scene.store.admit([job.id])
    assert await scene.store.waiters([job.lane_id], scene.now + HOUR, 9) == []
    (late,) = await jobs_due(scene, 60)
    soon = await scene.submitted(due=scene.now + 1)
    while not (await scene.store.admit([soon.id])).ready:
        pass  # by the store's own clock
    assert await scene.store.waiters([soon.lane_id], scene.now + HOUR, 9) == [waiter(late), waiter(soon)]


async def test_what_waits_for_a_token_is_found_beside_what_has_one(scene: Scene) -> None:
    number = await scene.limit("door", 1)
    free = await jobs_due(scene, 5, 2)
    keyed = await jobs_due(scene, 1, 3, 4, 9, limit_key="door", priority=2)
    (given,) = await scene.store.give_tokens([number], scene.now)
    assert given == (keyed[3].id, keyed[0].lane_id)
    expected = [keyed[3], free[0], keyed[2], keyed[1], free[1], keyed[0]]
    assert await waiting(scene, free[0]) == [job.id for job in expected]
    assert await waiting(scene, free[0], limit=3) == [job.id for job in expected[:3]]
    assert await waiting(scene, free[0], age=3) == [job.id for job in expected[:3]]


async def test_a_token_is_waited_for_in_the_lane_of_the_job(scene: Scene) -> None:
    await scene.limit("door", 1)
    mail = await jobs_due(scene, 7, 6, limit_key="door", queue="mail")
    other = await jobs_due(scene, 9, 8, limit_key="door", queue="other")
    found = await scene.store.waiters([mail[0].lane_id, other[0].lane_id], scene.now, 1)
    assert found == [waiter(mail[0]), waiter(other[0])]


async def test_in_a_fifo_queue_those_due_first_are_found_under_their_own_lane(scene: Scene) -> None:
    await put(scene, policy="fifo")
    jobs = await jobs_due(scene, *range(20, 0, -1), priority=3)
    assert await put_in_order(scene)
    assert await scene.store.waiters([jobs[0].lane_id], scene.now, 4) == [waiter(job) for job in jobs[:4]]
    assert await waiting(scene, jobs[0], age=18) == [job.id for job in jobs[:2]]


async def test_what_is_in_order_and_what_is_not_yet_are_found_together(scene: Scene) -> None:
    await put(scene, policy="fifo")
    first = await jobs_due(scene, 8, 4)
    await put_in_order(scene)
    rest = await jobs_due(scene, 6, 2)
    assert await waiting(scene, first[0]) == [first[0].id, rest[0].id, first[1].id, rest[1].id]


@pytest.mark.parametrize("rules", [{"policy": "fair"}, {"aging": MINUTE}], ids=["fair", "aging"])
async def test_of_a_queue_in_another_order_some_that_are_late_are_found(scene: Scene, rules: dict[str, Any]) -> None:
    await put(scene, **rules)
    jobs = [(await jobs_due(scene, age, priority=age % 10, fair_key=str(age % 3)))[0] for age in range(1, 20)]
    await put_in_order(scene)
    assert await waiting(scene, jobs[0], limit=2, age=5) == [jobs[-1].id, jobs[-2].id]
    found = await waiting(scene, jobs[0], limit=50, age=5)
    assert found == [job.id for job in reversed(jobs[5:])]


async def test_of_a_long_fair_queue_only_its_beginning_is_looked_at(scene: Scene) -> None:
    await put(scene, policy="fair")
    jobs = await jobs_due(scene, *range(1, IN_ORDER + 21), fair_key="one")
    await put_in_order(scene)
    found = await waiting(scene, jobs[0], limit=3)
    assert len(found) == 3
    assert len(await waiting(scene, jobs[0], limit=IN_ORDER + 10)) == IN_ORDER + 10


async def test_what_was_claimed_and_comes_back_is_found_again(scene: Scene) -> None:
    worker = await scene.worker()
    jobs = await jobs_due(scene, 9, 8, 7)
    claimed = await scene.claim(worker, jobs[0], 3)
    assert await waiting(scene, jobs[0]) == []
    await scene.happen(claimed[1].lease.id, events.Release())
    assert await waiting(scene, jobs[0]) == [jobs[1].id]


async def test_waiters_are_those_that_a_look_at_all_jobs_would_find(scene: Scene) -> None:
    chance = random.Random(7)
    await scene.limit("door", 3)
    jobs: list[Job] = []
    for queue in ("a", "b", "c"):
        for _ in range(40):
            jobs += await jobs_due(
                scene,
                chance.randint(1, 15),
                queue=queue,
                priority=chance.randint(0, 9),
                limit_key="door" if chance.random() < 0.3 else None,
            )
    await put(scene, "b", policy="fifo")
    await put_in_order(scene)
    worker = await scene.worker()
    running = {claimed.job.id for job in jobs[::40] for claimed in await scene.claim(worker, job, 5)}
    for limit in (1, 4, 100):
        for age in (0, 5, 14, 15):
            expected = []
            for lane in sorted({job.lane_id for job in jobs}):
                late = [job for job in jobs if job.lane_id == lane and job.id not in running]
                late = [job for job in late if job.due < scene.now - age * SECOND]
                expected += [job.due for job in sorted(late, key=lambda job: job.due)[:limit]]
            found = await scene.store.waiters([job.lane_id for job in jobs], scene.now - age * SECOND, limit)
            assert [one.due for one in found] == expected
            due: dict[int, Waiter] = {job.id: waiter(job) for job in jobs}
            assert found == [due[one.id] for one in found]


async def test_attempts_that_run_for_long_are_found_oldest_first(scene: Scene) -> None:
    worker, now, leases = await scene.worker(until=scene.later(3600)), scene.now, []
    for minute in range(6):
        scene.now = now + minute * MINUTE
        leases.append(await scene.running(worker, queue=f"q{minute}"))
    expected = [(lease.id, lease.lane_id, lease.claimed) for lease in leases]
    assert await scene.store.overruns(scene.now, 100) == expected[:5]
    assert await scene.store.overruns(scene.now + 1, 100) == expected
    assert await scene.store.overruns(scene.now, 2) == expected[:2]
    assert await scene.store.overruns(now, 100) == []
    await scene.happen(leases[0].id, events.Succeed())
    assert await scene.store.overruns(scene.now, 2) == expected[1:3]


async def test_an_attempt_runs_since_its_worker_said_so(scene: Scene) -> None:
    worker, claimed = await scene.worker(), scene.now
    first, second = await scene.running(worker, queue="a"), await scene.running(worker, queue="b")
    scene.now += MINUTE
    await scene.happen(first.id, events.Progress(started=scene.now))
    assert await scene.store.overruns(scene.now + 1, 9) == [
        (second.id, second.lane_id, claimed),
        (first.id, first.lane_id, scene.now),
    ]
    assert await scene.store.overruns(scene.now, 9) == [(second.id, second.lane_id, claimed)]


async def test_an_attempt_from_a_queue_in_order_is_told_with_the_jobs_own_lane(scene: Scene) -> None:
    await put(scene, policy="fifo")
    job = await scene.submitted()
    (ordered,) = await put_in_order(scene)
    worker = await scene.worker()
    await scene.store.claim([Order(ordered, worker.id, 1)], scene.new_nonce(), scene.now)
    assert await scene.store.overruns(scene.now + 1, 9) == [(job.id, job.lane_id, scene.now)]
