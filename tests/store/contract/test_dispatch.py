"""From waiting to a worker: due times, ranks, claims, and what is missed."""

import asyncio

import msgspec

from foliot.domain import events, states
from foliot.domain.changes import Requeue
from foliot.domain.duration import HOUR, MINUTE, SECOND
from foliot.domain.ids import JobKey, WorkerKey
from foliot.domain.job import Ended, Lease, Ready, Waiting
from foliot.domain.placement import Order
from foliot.domain.rank import rank
from foliot.domain.retry import Retry
from foliot.store.base import Admitted, Due
from tests.store.builders import Scene


async def test_due_jobs_are_peeked_earliest_first(scene: Scene) -> None:
    late, early, middle = [await scene.submitted(due=scene.later(seconds)) for seconds in (30, 10, 20)]
    await scene.submitted()
    due = [Due(job.due, job.id) for job in (early, middle, late)]
    assert await scene.store.peek_due(scene.later(60), 10) == due
    assert await scene.store.peek_due(scene.later(60), 2) == due[:2]
    assert await scene.store.peek_due(middle.due, 10) == due[:2]


async def test_where_nothing_is_due_the_single_earliest_is_peeked(scene: Scene) -> None:
    assert await scene.store.peek_due(scene.now, 10) == []
    await scene.submitted(due=scene.later(30))
    early = await scene.submitted(due=scene.later(20))
    assert await scene.store.peek_due(scene.later(10), 10) == [Due(early.due, early.id)]


async def test_held_and_blocked_jobs_are_not_peeked(scene: Scene) -> None:
    held = await scene.submitted(due=scene.later(10))
    await scene.happen(held.id, events.Pause())
    blocked = await scene.job(due=scene.later(10))
    await scene.submit(blocked, parents=1)
    assert await scene.store.peek_due(scene.later(60), 10) == []


async def test_a_retry_is_peeked_at_its_next_try(scene: Scene) -> None:
    lease = await scene.running()
    await scene.happen(lease.id, events.FailRetriable(retry_after=HOUR))
    assert await scene.store.peek_due(scene.now, 10) == [Due(scene.now + HOUR, lease.id)]


async def waiting_since(scene: Scene, seconds: float = 1, **fields: object) -> JobKey:
    """A job that waits though its time has come: what an admission finds."""
    now, scene.now = scene.now, scene.now - HOUR
    job = await scene.submitted(due=round(now - seconds * SECOND), **fields)
    scene.now = now
    assert isinstance(await scene.row(job.id), Waiting)
    return job.id


async def test_due_jobs_are_admitted_as_the_rules_have_it(scene: Scene) -> None:
    key = await waiting_since(scene, priority=8)
    before = await scene.row(key)
    assert isinstance(before, Waiting)
    assert await scene.store.admit([key]) == Admitted([(key, before.lane_id)], [])
    row = await scene.row(key)
    assert isinstance(row, Ready)
    expected = states.transition(before, events.Due(), row.since, retry=Retry())
    assert isinstance(expected, Requeue)
    assert row == expected.row
    assert row.rank == rank(8, before.due)
    assert abs(row.since - await scene.store.now()) < MINUTE


async def test_what_is_not_due_or_not_waiting_is_not_admitted(scene: Scene) -> None:
    future = (await scene.submitted(due=scene.later(3600))).id
    ready = (await scene.submitted(job_type="ready")).id
    running = (await scene.running(job_type="running")).id
    held = await waiting_since(scene)
    await scene.happen(held, events.Pause())
    blocked = await scene.job()
    await scene.submit(blocked, parents=1)
    keys = [future, ready, running, held, blocked.id]
    before = await scene.store.load(keys)
    assert (await scene.store.admit([*keys, JobKey(12345)])).ready == []
    assert await scene.store.load(keys) == before
    assert await scene.store.admit([]) == Admitted([], [])


async def test_each_job_is_admitted_once_by_many_at_once(scene: Scene) -> None:
    keys = [await waiting_since(scene) for _ in range(40)]
    answers = await asyncio.gather(*(scene.store.admit(keys[start:] + keys[:start]) for start in range(0, 40, 4)))
    assert sorted(key for answer in answers for key, _ in answer.ready) == keys


async def test_lanes_with_ready_jobs_are_told_and_met(scene: Scene) -> None:
    assert await scene.store.occupied_lanes() == []
    one = await scene.submitted(job_type="one")
    await scene.submitted(job_type="one")
    two = await scene.submitted(job_type="two")
    await scene.submitted(job_type="waiting", due=scene.later(60))
    assert sorted(await scene.store.occupied_lanes()) == sorted({one.lane_id, two.lane_id})
    assert scene.store.lane(two.lane_id) == two.lane
    await scene.claim(await scene.worker(), two)
    assert await scene.store.occupied_lanes() == [one.lane_id]


async def test_heads_are_the_smallest_ranks_of_each_lane(scene: Scene) -> None:
    jobs = [await scene.submitted(priority=priority) for priority in (2, 9, 5)]
    other = await scene.submitted(job_type="other")
    empty = (await scene.job(job_type="empty")).lane_id
    ranks = sorted(rank(job.priority, scene.now) for job in jobs)
    lanes = [jobs[0].lane_id, other.lane_id, empty]
    heads = await scene.store.heads(lanes, 2)
    assert heads[lanes[0]] == ranks[:2]
    assert heads[lanes[1]] == [rank(5, scene.now)]
    assert not heads.get(empty)
    assert (await scene.store.heads(lanes, 10))[lanes[0]] == ranks


async def test_a_claim_leases_by_rank(scene: Scene) -> None:
    low, first, second, high = [await scene.submitted(priority=priority) for priority in (2, 5, 5, 8)]
    worker = await scene.worker()
    batches = [{entry.lease.id for entry in await scene.claim(worker, low, count)} for count in (1, 2, 1)]
    assert batches == [{high.id}, {first.id, second.id}, {low.id}]


async def test_of_equal_ranks_the_older_job_goes_first(scene: Scene) -> None:
    jobs = [await scene.submitted() for _ in range(3)]
    worker = await scene.worker()
    assert [(await scene.claim(worker, jobs[0]))[0].lease.id for _ in jobs] == [job.id for job in jobs]


async def test_a_claimed_job_comes_with_its_lease_and_wide_row(scene: Scene) -> None:
    job = await scene.submitted(payload='{"a":1}', timeout=5 * SECOND, deadline=scene.later(60), name="mine")
    before = await scene.row(job.id)
    assert isinstance(before, Ready)
    worker = await scene.worker()
    scene.now += SECOND
    (claimed,) = await scene.store.claim([Order(job.lane_id, worker.id, 1)], 77, scene.now)
    expected = states.claim(before, events.Claim(worker=worker.id, nonce=77, timeout=5 * SECOND), scene.now)
    assert claimed.lease == expected
    assert claimed.job == job
    assert await scene.row(job.id) == expected


async def test_a_claim_takes_no_more_than_ordered_and_no_more_than_there_is(scene: Scene) -> None:
    jobs = [await scene.submitted() for _ in range(5)]
    worker = await scene.worker()
    assert len(await scene.claim(worker, jobs[0], 3)) == 3
    assert len(await scene.claim(worker, jobs[0], 10)) == 2
    assert await scene.claim(worker, jobs[0], 10) == []
    assert await scene.store.claim([], 99, scene.now) == []


async def test_one_claim_serves_several_workers_and_lanes(scene: Scene) -> None:
    ours = [await scene.submitted(job_type="ours") for _ in range(4)]
    theirs = await scene.submitted(job_type="theirs")
    ann, bob = await scene.worker(), await scene.worker()
    orders = [Order(ours[0].lane_id, ann.id, 3), Order(ours[0].lane_id, bob.id, 3), Order(theirs.lane_id, ann.id, 1)]
    claimed = await scene.store.claim(orders, scene.new_nonce(), scene.now)
    held = {entry.lease.id: entry.lease.worker for entry in claimed}
    assert set(held) == {job.id for job in (*ours, theirs)}
    assert held[theirs.id] == ann.id
    assert sorted(list(held.values()).count(worker.id) for worker in (ann, bob)) == [1, 4]


async def test_a_claim_steps_over_workers_that_may_not_have_work(scene: Scene) -> None:
    job = await scene.submitted()
    dead = await scene.worker(until=scene.now)
    draining = await scene.worker()
    assert await scene.store.drain_worker(draining.id)
    removed = await scene.worker()
    assert await scene.store.remove_worker(removed.id)
    alive = await scene.worker()
    gone = [WorkerKey(12345), dead.id, draining.id, removed.id]
    before = await scene.row(job.id)
    orders = [Order(job.lane_id, worker, 1) for worker in gone]
    assert await scene.store.claim(orders, scene.new_nonce(), scene.now) == []
    assert await scene.row(job.id) == before
    orders.append(Order(job.lane_id, alive.id, 1))
    (claimed,) = await scene.store.claim(orders, scene.new_nonce(), scene.now)
    assert claimed.lease.worker == alive.id


async def test_a_claim_asked_again_returns_what_it_leased_and_claims_nothing(scene: Scene) -> None:
    jobs = [await scene.submitted() for _ in range(4)]
    worker = await scene.worker()
    orders = [Order(jobs[0].lane_id, worker.id, 2)]
    await scene.store.claim(orders, 5, scene.now)
    first = await scene.store.claim(orders, 7, scene.now)
    again = await scene.store.claim(orders, 7, scene.now, again=True)
    assert {entry.lease.id: entry for entry in again} == {entry.lease.id: entry for entry in first}
    assert await scene.store.claim(orders, 8, scene.now, again=True) == []
    await scene.happen(first[0].lease.id, events.Succeed())
    assert [entry.lease.id for entry in await scene.store.claim(orders, 7, scene.now, again=True)] == [
        first[1].lease.id
    ]


async def test_claims_at_once_never_lease_a_job_twice(scene: Scene) -> None:
    jobs = await scene.jobs(60)
    await scene.submit(*jobs)
    workers = [await scene.worker() for _ in range(4)]
    answers = await asyncio.gather(*(scene.claim(workers[turn % 4], jobs[0], 5) for turn in range(20)))
    claimed = [entry.lease.id for answer in answers for entry in answer]
    assert len(claimed) == len(set(claimed))
    rest = await scene.claim(workers[0], jobs[0], 60)  # what rows held by others made the claims step over
    assert sorted([*claimed, *(entry.lease.id for entry in rest)]) == [job.id for job in jobs]


async def test_all_that_a_worker_holds_is_told(scene: Scene) -> None:
    worker, other = await scene.worker(), await scene.worker()
    held = [await scene.running(worker, payload='{"n":1}') for _ in range(3)]
    await scene.running(other)
    await scene.happen(held[0].id, events.Succeed())
    leases = await scene.store.leases_of(worker.id)
    assert {entry.lease.id: entry.lease for entry in leases} == {lease.id: lease for lease in held[1:]}
    assert {entry.job.payload for entry in leases} == {'{"n":1}'}
    assert await scene.store.leases_of(WorkerKey(12345)) == []


async def test_leases_without_a_living_worker_are_missed(scene: Scene) -> None:
    alive, dying, removed = await scene.worker(), await scene.worker(until=scene.later(10)), await scene.worker()
    leases = [await scene.running(worker) for worker in (alive, dying, removed)]
    await scene.store.remove_worker(removed.id)
    assert {missed.record.job.id for missed in await scene.store.missed(scene.now, 10)} == {leases[2].id}
    missed = await scene.store.missed(scene.later(10), 10)
    assert {entry.record.job.id: entry.alive for entry in missed} == {leases[1].id: False, leases[2].id: False}
    assert {entry.record.row for entry in missed} == set(leases[1:])
    assert missed[0].record == await scene.record(missed[0].record.job.id)


async def test_a_draining_worker_is_alive(scene: Scene) -> None:
    worker = await scene.worker()
    await scene.running(worker)
    await scene.store.drain_worker(worker.id)
    assert await scene.store.missed(scene.now, 10) == []


async def test_attempts_past_their_check_are_missed_though_their_worker_lives(scene: Scene) -> None:
    worker = await scene.worker(until=scene.later(7200))
    short = await scene.running(worker, timeout=SECOND)
    await scene.running(worker, timeout=HOUR)
    assert await scene.store.missed(short.check_at - 1, 10) == []
    (missed,) = await scene.store.missed(short.check_at, 10)
    assert (missed.record.row, missed.alive) == (short, True)


async def test_a_cancel_brings_the_check_forward(scene: Scene) -> None:
    worker = await scene.worker(until=scene.later(7200))
    lease = await scene.running(worker)
    await scene.happen(lease.id, events.Cancel())
    (missed,) = await scene.store.missed(scene.now + states.CANCEL_GRACE, 10)
    assert missed.record.job.id == lease.id


async def test_no_more_are_missed_at_once_than_asked_for(scene: Scene) -> None:
    workers = [await scene.worker() for _ in range(2)]
    for _ in range(3):
        for worker in workers:
            await scene.running(worker)
    assert len(await scene.store.missed(scene.later(120), 4)) == 4
    assert len(await scene.store.missed(scene.later(120), 100)) == 6


async def test_jobs_past_their_deadline_are_told_until_they_start(scene: Scene) -> None:
    waiting = await scene.submitted(due=scene.later(60), deadline=scene.later(10))
    ready = await scene.submitted(deadline=scene.later(20), job_type="ready")
    await scene.submitted(deadline=scene.later(40), job_type="later")
    await scene.submitted()
    await scene.running(deadline=scene.later(5), job_type="running")
    assert await scene.store.next_deadline() == waiting.deadline
    assert await scene.store.expired(scene.later(9), 10) == []
    assert [record.job.id for record in await scene.store.expired(scene.later(10), 10)] == [waiting.id]
    expired = await scene.store.expired(scene.later(30), 10)
    assert {record.job.id for record in expired} == {waiting.id, ready.id}
    assert expired[0] == await scene.record(expired[0].job.id)
    assert len(await scene.store.expired(scene.later(30), 1)) == 1


async def test_an_expired_job_is_told_once(scene: Scene) -> None:
    job = await scene.submitted(deadline=scene.later(10))
    scene.now = scene.later(10)
    record = await scene.happen(job.id, events.Expire())
    assert isinstance(record.row, Ended)
    assert record.row.reason == "expired"
    assert await scene.store.expired(scene.now, 10) == []
    assert await scene.store.next_deadline() is None


async def test_a_lease_past_claims_keeps_its_version_growing(scene: Scene) -> None:
    worker = await scene.worker()
    lease = await scene.running(worker)
    record = await scene.happen(lease.id, events.Release())
    (again,) = await scene.claim(worker, record.job)
    assert isinstance(again.lease, Lease)
    assert lease.version < record.row.version < again.lease.version
    assert again.lease == msgspec.structs.replace(again.lease, attempt=lease.attempt + 1, tries_left=lease.tries_left)
