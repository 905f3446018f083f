"""Two at once: one wins, the other changes nothing, and nobody waits for ever. Each race is run many times."""

import asyncio
from collections.abc import Sequence

import msgspec

from foliot.domain import events, states
from foliot.domain.changes import Change, End, Held, Mark
from foliot.domain.ids import JobKey
from foliot.domain.job import Ended, Lease, Ready, Waiting
from foliot.domain.placement import Order
from foliot.domain.retry import Retry
from foliot.store.base import Accepted
from tests.store.builders import Scene

ROUNDS = 30
AT_ONCE = Retry(delays=(0,), max_attempts=1000, max_lost=1000)


def end_by(lease: Lease, now: int) -> End:
    end = states.transition(Held(id=lease.id, nonce=lease.nonce), events.Succeed(), now, retry=Retry())
    assert isinstance(end, End)
    return end


async def test_a_claim_racing_a_change_of_the_job_never_gets_a_mix(scene: Scene) -> None:
    worker = await scene.worker()
    for turn in range(ROUNDS):
        job = await scene.submitted(job_type=f"t{turn}", payload='"old"', priority=2)
        changed = msgspec.structs.replace(job, payload='"new"', priority=9)
        change = scene.decide(await scene.record(job.id), events.Reschedule(job=changed, due=scene.now))
        done, claimed = await asyncio.gather(scene.save([change]), scene.claim(worker, job))
        after = await scene.record(job.id)
        assert after.job == (changed if done else job)
        assert after.row.priority == after.job.priority if not isinstance(after.row, Ended) else True
        if claimed:
            assert claimed[0].job == after.job
            assert claimed[0].lease == after.row
        else:
            assert done == {job.id}
            assert isinstance(after.row, Ready)


async def test_a_pause_racing_a_claim_holds_the_job_or_loses(scene: Scene) -> None:
    worker = await scene.worker()
    for turn in range(ROUNDS):
        job = await scene.submitted(job_type=f"t{turn}")
        change = scene.decide(await scene.record(job.id), events.Pause())
        claimed, done = await asyncio.gather(scene.claim(worker, job), scene.save([change]))
        row = await scene.row(job.id)
        assert bool(claimed) != bool(done)
        assert isinstance(row, Waiting if done else Lease)


async def test_a_cancel_racing_an_admission_ends_the_job_or_loses(scene: Scene) -> None:
    for _ in range(ROUNDS):
        now, scene.now = scene.now, scene.later(-60)
        job = await scene.submitted(due=now)
        scene.now = now
        change = scene.decide(await scene.record(job.id), events.Cancel())
        admitted, done = await asyncio.gather(scene.store.admit([job.id]), scene.save([change]))
        assert bool(admitted.ready) != bool(done)
        assert isinstance(await scene.row(job.id), Ended if done else Ready)


async def test_a_lost_job_is_claimed_by_one_and_its_old_token_ends_nothing(scene: Scene) -> None:
    worker = await scene.worker()
    lease = await scene.running(worker, retry=AT_ONCE)
    for _ in range(ROUNDS):
        record = await scene.record(lease.id)
        recovery = scene.decide(record, events.WorkerGone())
        done, claimed = await asyncio.gather(scene.save([recovery]), scene.claim(worker, record.job))
        assert done == {lease.id}
        claimed = claimed or await scene.claim(worker, record.job)
        (again,) = claimed
        assert again.lease.attempt == lease.attempt + 1
        assert await scene.save([end_by(lease, scene.now)]) == set()
        lease = again.lease
    executions = await scene.store.executions(lease.id)
    assert [attempt.attempt for attempt in executions] == list(range(1, ROUNDS + 2))


async def test_of_an_end_and_a_recovery_of_the_same_lease_one_takes_effect(scene: Scene) -> None:
    worker = await scene.worker()
    for _ in range(ROUNDS):
        lease = await scene.running(worker)
        recovery = scene.decide(await scene.record(lease.id), events.WorkerGone())
        ended, recovered = await asyncio.gather(scene.save([end_by(lease, scene.now)]), scene.save([recovery]))
        assert bool(ended) != bool(recovered)
        assert isinstance(await scene.row(lease.id), Ended if ended else Waiting)


async def test_of_many_equal_saves_one_takes_effect(scene: Scene) -> None:
    worker = await scene.worker()
    for _ in range(ROUNDS):
        lease = await scene.running(worker)
        saves = [scene.save([end_by(lease, scene.now)]) for _ in range(5)]
        assert sorted(map(len, await asyncio.gather(*saves))) == [0, 0, 0, 0, 1]
        assert len(await scene.store.executions(lease.id)) == 1


async def save_both_ways(scene: Scene, changes: Sequence[Change]) -> None:
    """Several callers, the same changes in opposite orders: each takes effect once, and all return."""
    orders = [list(changes), list(reversed(changes))] * 2
    answers = await asyncio.gather(*(scene.save(order) for order in orders))
    taken = sorted(key for answer in answers for key in answer)
    assert taken == sorted(change.id for change in changes)


async def test_batches_in_opposite_order_do_not_lock_each_other_out(scene: Scene) -> None:
    jobs = await scene.jobs(20)
    keys = await scene.submit(*jobs)
    for _ in range(ROUNDS // 2):
        for event in (events.Pause(), events.Resume()):
            records = await scene.store.load(keys)
            await save_both_ways(scene, [scene.decide(records[key], event) for key in keys])


async def test_ends_in_opposite_order_do_not_lock_each_other_out(scene: Scene) -> None:
    worker = await scene.worker()
    for _ in range(ROUNDS // 3):
        jobs = await scene.jobs(20)
        await scene.submit(*jobs)
        claimed = await scene.claim(worker, jobs[0], 20)
        await save_both_ways(scene, [end_by(entry.lease, scene.now) for entry in claimed])


async def test_marks_and_ends_in_opposite_order_do_not_lock_each_other_out(scene: Scene) -> None:
    worker = await scene.worker()
    for _ in range(ROUNDS // 3):
        jobs = await scene.jobs(10)
        await scene.submit(*jobs)
        leases = [entry.lease for entry in await scene.claim(worker, jobs[0], 10)]
        marks = [Mark(id=lease.id, nonce=lease.nonce, progress="{}") for lease in leases]
        ends = [end_by(lease, scene.now) for lease in reversed(leases)]
        _, ended = await asyncio.gather(scene.save(marks), scene.save(ends))
        assert ended == {lease.id for lease in leases}


async def test_the_same_names_in_opposite_order_become_one_job_each(scene: Scene) -> None:
    for turn in range(ROUNDS):
        names = [f"{turn}-{position}" for position in range(6)]
        ways = [names, list(reversed(names))] * 2
        submissions = [scene.submission(*[await scene.job(name=name) for name in way]) for way in ways]
        answers = [answer for (answer,) in await asyncio.gather(*map(scene.insert, submissions))]
        new: list[JobKey] = []
        for answer, way in zip(answers, ways, strict=True):
            assert isinstance(answer, Accepted)
            assert list(answer.ids) == way
            new.extend(answer.new)
        assert sorted(new) == sorted((await scene.store.find("default", names)).values())
        assert len(new) == len(names)


async def test_the_same_request_key_at_once_is_one_request(scene: Scene) -> None:
    for turn in range(ROUNDS):
        submissions = [scene.submission(await scene.job(), request_key=f"k{turn}", request_hash=b"h") for _ in range(4)]
        answers = [answer for (answer,) in await asyncio.gather(*map(scene.insert, submissions))]
        assert all(isinstance(answer, Accepted) for answer in answers)
        assert len({tuple(answer.ids) for answer in answers if isinstance(answer, Accepted)}) == 1
        assert sum(len(answer.new) for answer in answers if isinstance(answer, Accepted)) == 1


async def test_claims_of_the_same_lanes_in_opposite_order_do_not_lock_each_other_out(scene: Scene) -> None:
    ann, bob = await scene.worker(), await scene.worker()
    for turn in range(ROUNDS // 2):
        jobs = [await scene.job(job_type=f"{turn}-{kind}") for kind in range(3) for _ in range(4)]
        await scene.submit(*jobs)
        lanes = sorted({job.lane_id for job in jobs})
        claims = [
            scene.store.claim([Order(lane, who.id, 2) for who in workers for lane in way], scene.new_nonce(), scene.now)
            for way, workers in ((lanes, (ann, bob)), (lanes[::-1], (bob, ann)))
        ]
        answers = await asyncio.gather(*claims)
        claimed = [entry.lease.id for answer in answers for entry in answer]
        assert len(claimed) == len(set(claimed))
        for record in (await scene.store.load([job.id for job in jobs])).values():
            assert isinstance(record.row, Lease if record.job.id in claimed else Ready)


async def test_a_removed_worker_gets_nothing_from_then_on(scene: Scene) -> None:
    for turn in range(ROUNDS):
        worker = await scene.worker()
        job = await scene.submitted(job_type=f"t{turn}")
        await asyncio.gather(scene.claim(worker, job), scene.store.remove_worker(worker.id))
        assert await scene.claim(worker, job) == []
        leased = isinstance(await scene.row(job.id), Lease)
        missed = {entry.record.job.id for entry in await scene.store.missed(scene.now, 1000)}
        assert (job.id in missed) == leased
