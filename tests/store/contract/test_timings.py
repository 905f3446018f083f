"""When what happened of an attempt, and whom a job tells and in which trace it is."""

import msgspec

from foliot.domain import events
from foliot.domain.duration import HOUR
from foliot.domain.job import Ended, Lease, State
from foliot.store.base import Filter, Store, Timing
from tests.store.builders import Scene


async def test_the_times_of_an_attempt_that_ended_its_job_are_told(scene: Scene) -> None:
    worker, due = await scene.worker(), scene.now
    job = (await scene.running(worker)).id
    scene.now += 10
    ready, record = scene.now, await scene.happen(job, events.Release())
    scene.now += 10
    claimed, lease = scene.now, (await scene.claim(worker, record.job))[0].lease
    scene.now += 10
    end = scene.decide(await scene.record(lease.id), events.Succeed(started=claimed + 3))
    saved = await scene.store.save([end], scene.now)
    assert list(saved.timings) == [
        Timing(lease.lane_id, int(State.COMPLETED), due, ready, claimed, claimed + 3, scene.now, job)
    ]
    assert list((await scene.store.save([end], scene.now)).timings) == []


async def test_a_start_that_was_noted_before_is_told_and_otherwise_there_is_none(scene: Scene) -> None:
    worker = await scene.worker()
    noted, unknown = await scene.running(worker, job_type="a"), await scene.running(worker, job_type="b")
    await scene.happen(noted.id, events.Progress(started=scene.now + 1))
    ends = [scene.decide(await scene.record(lease.id), events.FailFatal()) for lease in (noted, unknown)]
    timings = (await scene.store.save(ends, scene.now)).timings
    assert {timing.lane_id: (timing.state, timing.started) for timing in timings} == {
        noted.lane_id: (State.FAILED, scene.now + 1),
        unknown.lane_id: (State.FAILED, None),
    }


async def test_an_attempt_that_did_not_end_its_job_has_no_times_to_tell(scene: Scene) -> None:
    retried, waiting = await scene.running(), await scene.submitted(job_type="other")
    changes = [
        scene.decide(await scene.record(retried.id), events.FailRetriable()),
        scene.decide(await scene.record(waiting.id), events.Cancel()),
    ]
    saved = await scene.store.save(changes, scene.now)
    assert saved.done == {retried.id, waiting.id}
    assert list(saved.timings) == []


async def test_a_lease_tells_since_when_only_a_worker_was_missing(store: Store) -> None:
    scene = Scene(store, await store.now() - HOUR)
    await store.prepare_days(scene.now)
    job = await scene.submitted(due=scene.later(1))
    before = await store.now()
    await store.admit([job.id])
    row = await scene.row(job.id)
    assert before <= row.since <= await store.now()
    scene.now = await store.now()
    lease = (await scene.claim(await scene.worker(), job))[0].lease
    assert lease.since == row.since <= lease.claimed == scene.now
    assert (await store.leases_of(lease.worker))[0].lease == lease == await scene.row(job.id)
    (running,) = await store.executions(job.id)
    assert running.admitted == row.since
    record = await scene.happen(job.id, events.Succeed())
    assert isinstance(record.row, Ended)
    assert record.last is not None
    assert record.last.admitted == row.since
    assert [attempt.admitted for attempt in await store.executions(job.id)] == [row.since]
    page = await store.list_jobs(Filter(namespace="default"), limit=10, before=None)
    assert [listed.last for listed in page.records] == [msgspec.structs.replace(record.last)]


async def test_earlier_attempts_keep_when_they_became_ready(scene: Scene) -> None:
    worker, ready = await scene.worker(), []
    lease = await scene.running(worker)
    for _ in range(2):
        ready.append(lease.since)
        scene.now += 10
        record = await scene.happen(lease.id, events.Release())
        scene.now += 5
        lease = (await scene.claim(worker, record.job))[0].lease
    ready.append(lease.since)
    assert len(set(ready)) == 3
    assert [attempt.admitted for attempt in await scene.store.executions(lease.id)] == ready
    record = await scene.happen(lease.id, events.FailFatal())
    await scene.happen(lease.id, events.Redrive(job=record.job))
    executions = await scene.store.executions(lease.id)
    assert [attempt.admitted for attempt in executions] == ready
    assert all(attempt.admitted is not None and attempt.admitted <= attempt.claimed for attempt in executions)


async def test_whom_a_job_tells_and_its_trace_come_with_it(scene: Scene) -> None:
    notify, trace = '{"on":["failed"],"to":["ops"]}', "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
    plain, job = await scene.submitted(job_type="plain"), await scene.submitted(notify=notify, trace=trace)
    assert (await scene.record(plain.id)).job == plain
    assert (plain.notify, plain.trace) == (None, None)
    assert (await scene.record(job.id)).job == job
    (claimed,) = await scene.claim(await scene.worker(), job)
    assert (claimed.job.notify, claimed.job.trace) == (notify, trace)
    assert isinstance(claimed.lease, Lease)
    (leased,) = await scene.store.leases_of(claimed.lease.worker)
    assert leased.job == job
    page = await scene.store.list_jobs(Filter(namespace="default"), limit=10, before=None)
    assert {(record.job.notify, record.job.trace) for record in page.records} == {(None, None), (notify, trace)}


async def test_whom_a_job_tells_can_be_changed(scene: Scene) -> None:
    trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
    job = await scene.submitted(notify='{"to":["ops"]}', trace=trace, payload='"x"' * 5000)
    changed = msgspec.structs.replace(job, notify='{"to":["dev"]}')
    record = await scene.happen(job.id, events.Reschedule(job=changed, due=job.due))
    assert record.job == changed
    nobody = msgspec.structs.replace(job, notify=None)
    record = await scene.happen(job.id, events.Reschedule(job=nobody, due=job.due))
    assert (record.job.notify, record.job.trace) == (None, trace)


async def test_runs_of_schedules_tell_whom_they_are_to(scene: Scene) -> None:
    _, (job,) = await scene.fire(await scene.scheduled(), scene.now, notify='{"to":["ops"]}', trace="t")
    assert (await scene.record(job.id)).job == job
    assert (job.notify, job.trace) == ('{"to":["ops"]}', "t")
