"""Changes take effect where the row they replace is in its place, and nowhere else."""

import msgspec
import pytest

from foliot.domain import events, states
from foliot.domain.changes import End, Held, Mark, Place, Requeue
from foliot.domain.duration import HOUR, SECOND
from foliot.domain.ids import JobKey
from foliot.domain.job import AttemptStatus, Ended, Lease, Ready, Row, State, Waiting
from foliot.domain.retry import Retry
from tests.store.builders import Scene


async def test_an_end_by_token_alone_copies_what_the_lease_knew(scene: Scene) -> None:
    lease = await scene.running(job_type="t")
    scene.now += SECOND
    started = lease.claimed + 5
    end = states.transition(
        Held(id=lease.id, nonce=lease.nonce),
        events.Succeed(started=started, result='{"x":1}'),
        scene.now,
        retry=Retry(),
    )
    assert isinstance(end, End)
    assert end.version is None
    assert await scene.save([end]) == {lease.id}
    record = await scene.record(lease.id)
    assert isinstance(record.row, Ended)
    assert record.row == Ended(
        id=lease.id,
        lane_id=lease.lane_id,
        state=State.COMPLETED,
        reason=None,
        attempt=1,
        counted=1,
        lost=0,
        version=lease.version + 1,
        due=lease.due,
        ended=scene.now,
        last=record.last,
        result='{"x":1}',
    )
    assert record.last is not None
    assert record.last.status is AttemptStatus.SUCCESS
    assert (record.last.attempt, record.last.worker, record.last.nonce) == (1, lease.worker, lease.nonce)
    assert (record.last.due, record.last.claimed) == (lease.due, lease.claimed)
    assert (record.last.started, record.last.ended) == (started, scene.now)


async def test_an_end_keeps_the_start_that_was_marked_before(scene: Scene) -> None:
    lease = await scene.running()
    await scene.happen(lease.id, events.Progress(started=lease.claimed + 7))
    record = await scene.happen(lease.id, events.FailFatal(error='"e"', exit_code=9, code="bad"))
    assert isinstance(record.row, Ended)
    assert (record.row.state, record.row.reason) == (State.FAILED, "bad")
    assert record.last is not None
    assert record.last.started == lease.claimed + 7
    assert (record.last.error, record.last.exit_code) == ('"e"', 9)


async def test_a_waiting_job_ends_without_an_attempt(scene: Scene) -> None:
    job = await scene.submitted(due=scene.later(60))
    record = await scene.happen(job.id, events.Cancel())
    assert isinstance(record.row, Ended)
    assert (record.row.state, record.row.reason, record.row.last) == (State.CANCELLED, "cancelled_by", None)
    assert record.row.due == job.due
    assert record.last is None


async def test_a_ready_job_that_ends_can_no_longer_be_claimed(scene: Scene) -> None:
    job = await scene.submitted()
    await scene.happen(job.id, events.Cancel())
    assert await scene.claim(await scene.worker(), job) == []


async def test_a_job_cancelled_between_tries_shows_its_latest_attempt(scene: Scene) -> None:
    lease = await scene.running()
    retrying = await scene.happen(lease.id, events.FailRetriable(error='"e"', retry_after=HOUR))
    cancelled = await scene.happen(lease.id, events.Cancel())
    assert isinstance(cancelled.row, Ended)
    assert cancelled.row.last is None
    assert cancelled.row.attempt == 1
    assert cancelled.last == retrying.last


async def test_a_retry_writes_the_attempt_and_the_next_row(scene: Scene) -> None:
    lease = await scene.running()
    before = await scene.record(lease.id)
    change = scene.decide(before, events.FailRetriable(error='"e"', exit_code=1, retry_after=HOUR))
    assert isinstance(change, Requeue)
    assert await scene.save([change]) == {lease.id}
    record = await scene.record(lease.id)
    assert record.row == change.row
    assert record.last == change.attempt
    assert isinstance(record.row, Waiting)


async def test_a_release_is_ready_again_at_once_and_claimed_anew(scene: Scene) -> None:
    worker = await scene.worker()
    lease = await scene.running(worker)
    record = await scene.happen(lease.id, events.Release())
    assert isinstance(record.row, Ready)
    (claimed,) = await scene.claim(worker, record.job)
    assert (claimed.lease.attempt, claimed.lease.counted) == (2, 1)
    assert (await scene.record(lease.id)).last == record.last


async def test_a_progress_mark_changes_the_lease_and_not_its_version(scene: Scene) -> None:
    lease = await scene.running()
    record = await scene.happen(lease.id, events.Progress(started=lease.claimed + 1, progress='{"value":0.5}'))
    expected = msgspec.structs.replace(lease, started=lease.claimed + 1, progress='{"value":0.5}')
    assert record.row == expected
    again = await scene.happen(lease.id, events.Progress(progress='{"value":0.6}'))
    assert again.row == msgspec.structs.replace(expected, progress='{"value":0.6}')


async def test_a_cancel_mark_is_kept_and_adds_a_version(scene: Scene) -> None:
    lease = await scene.running()
    scene.now += SECOND
    record = await scene.happen(lease.id, events.Cancel())
    assert record.row == msgspec.structs.replace(
        lease, cancel_asked=scene.now, check_at=scene.now + states.CANCEL_GRACE, version=lease.version + 1
    )


async def test_a_change_of_the_job_replaces_the_wide_row(scene: Scene) -> None:
    job = await scene.submitted(name="mine", deadline=scene.later(90), tags=("old",))
    (lane_id,) = await scene.store.lane_ids([other := (await scene.job(queue="other")).lane])
    changed = msgspec.structs.replace(
        job, lane=other, lane_id=lane_id, payload="[1]", priority=9, tags=(), deadline=None, owner="bob"
    )
    record = await scene.happen(job.id, events.Reschedule(job=changed, due=scene.now))
    assert record.job == changed
    assert isinstance(record.row, Ready)
    assert (record.row.lane_id, record.row.priority, record.row.deadline) == (lane_id, 9, None)
    worker = await scene.worker()
    assert await scene.claim(worker, job) == []
    (claimed,) = await scene.claim(worker, changed)
    assert claimed.job == changed


@pytest.mark.parametrize("state", [State.FAILED, State.CANCELLED])
async def test_a_redrive_takes_the_job_out_of_history_and_keeps_its_attempt(scene: Scene, state: State) -> None:
    ended = await scene.ended(state)
    changed = msgspec.structs.replace(ended.job, payload='"again"')
    record = await scene.happen(ended.job.id, events.Redrive(job=changed, rewrite=True))
    assert isinstance(record.row, Ready)
    assert record.job == changed
    assert record.last == ended.last
    assert [attempt.attempt for attempt in await scene.store.executions(ended.job.id)] == [1]
    assert await scene.store.result(ended.job.id) is None


async def test_a_redrive_of_a_job_that_never_ran_writes_no_attempt(scene: Scene) -> None:
    job = await scene.submitted()
    await scene.happen(job.id, events.Cancel())
    record = await scene.happen(job.id, events.Redrive(job=job))
    assert isinstance(record.row, Ready)
    assert await scene.store.executions(job.id) == []


async def test_pause_and_resume_move_the_row_out_and_back(scene: Scene) -> None:
    job = await scene.submitted()
    worker = await scene.worker()
    paused = await scene.happen(job.id, events.Pause())
    assert isinstance(paused.row, Waiting)
    assert paused.row.hold
    assert await scene.claim(worker, job) == []
    await scene.happen(job.id, events.Resume())
    assert len(await scene.claim(worker, job)) == 1


async def test_the_last_parent_lets_a_blocked_job_go(scene: Scene) -> None:
    job = await scene.job()
    await scene.submit(job, parents=1)
    assert isinstance((await scene.happen(job.id, events.ParentsDone())).row, Ready)


@pytest.mark.parametrize(
    ("place", "event"),
    [
        (Place.WAITING, events.Cancel()),
        (Place.WAITING, events.Pause()),
        (Place.READY, events.Cancel()),
        (Place.READY, events.Pause()),
        (Place.LEASES, events.WorkerGone()),
        (Place.LEASES, events.FailRetriable()),
        (Place.LEASES, events.FailFatal()),
        (Place.HISTORY, None),
    ],
)
async def test_a_change_made_from_an_outdated_view_changes_nothing(
    scene: Scene, place: Place, event: events.Event | None
) -> None:
    key: JobKey
    match place:
        case Place.WAITING:
            key = (await scene.submitted(due=scene.later(60))).id
        case Place.READY:
            key = (await scene.submitted()).id
        case Place.LEASES:
            key = (await scene.running()).id
        case Place.HISTORY:
            key = (await scene.ended(State.FAILED)).job.id
    record = await scene.record(key)
    change = scene.decide(record, event or events.Redrive(job=record.job))
    assert isinstance(change, Requeue | End)
    assert change.version is not None
    for stale in (change.version - 1, change.version + 1):
        assert await scene.save([msgspec.structs.replace(change, version=stale)]) == set()
    if change.nonce is not None:
        wrong = msgspec.structs.replace(change, nonce=change.nonce + 1)
        assert await scene.save([wrong]) == set()
    for other in Place:
        if other is not place and not (isinstance(change, End) and other is Place.HISTORY):
            elsewhere = msgspec.structs.replace(change, source=other)
            assert await scene.save([elsewhere]) == set()
    assert await scene.record(key) == record
    assert await scene.save([change]) == {key}
    assert await scene.save([change]) == set()


async def test_an_end_or_mark_with_an_old_nonce_changes_nothing(scene: Scene) -> None:
    lease = await scene.running()
    record = await scene.record(lease.id)
    old = Held(id=lease.id, nonce=lease.nonce + 1)
    end = states.transition(old, events.Succeed(), scene.now, retry=Retry())
    mark = states.transition(old, events.Progress(progress="{}"), scene.now, retry=Retry())
    assert isinstance(end, End)
    assert isinstance(mark, Mark)
    assert await scene.save([end]) == set()
    assert await scene.save([mark]) == set()
    assert await scene.record(lease.id) == record


async def test_a_token_of_an_earlier_attempt_ends_nothing(scene: Scene) -> None:
    worker = await scene.worker()
    first = await scene.running(worker)
    record = await scene.happen(first.id, events.WorkerGone())
    scene.now += HOUR
    await scene.happen(first.id, events.Due())
    worker = await scene.worker()
    (second,) = await scene.claim(worker, record.job)
    end = states.transition(Held(id=first.id, nonce=first.nonce), events.Succeed(), scene.now, retry=Retry())
    assert isinstance(end, End)
    assert await scene.save([end]) == set()
    assert await scene.row(first.id) == second.lease


async def test_changes_of_unknown_jobs_take_no_effect(scene: Scene) -> None:
    nobody = JobKey(12345)
    end = states.transition(Held(id=nobody, nonce=1), events.Succeed(), scene.now, retry=Retry())
    assert isinstance(end, End)
    mark = Mark(id=nobody, nonce=1, progress="{}")
    assert await scene.save([end]) == set()
    assert await scene.save([mark]) == set()
    assert await scene.save([]) == set()


async def test_a_batch_of_all_kinds_carries_out_what_is_current(scene: Scene) -> None:
    worker = await scene.worker()
    marked, retried, completed, lost = [await scene.running(worker, job_type=f"t{n}") for n in range(4)]
    paused = await scene.submitted(due=scene.later(60))
    cancelled = await scene.submitted()
    redriven = (await scene.ended(State.FAILED, job_type="redriven")).job
    stale = (await scene.submitted(job_type="stale")).id
    stale_change = scene.decide(await scene.record(stale), events.Pause())
    await scene.happen(stale, events.Pause())
    happenings: dict[JobKey, events.Event] = {
        marked.id: events.Progress(progress="{}"),
        retried.id: events.FailRetriable(retry_after=HOUR),
        completed.id: events.Succeed(),
        lost.id: events.WorkerGone(),
        paused.id: events.Pause(),
        cancelled.id: events.Cancel(),
        redriven.id: events.Redrive(job=redriven),
    }
    changes = [scene.decide(await scene.record(key), event) for key, event in happenings.items()]
    assert await scene.save([stale_change, *changes]) == set(happenings)
    expected: dict[JobKey, type[Row]] = {
        marked.id: Lease,
        retried.id: Waiting,
        completed.id: Ended,
        lost.id: Waiting,
        paused.id: Waiting,
        cancelled.id: Ended,
        redriven.id: Ready,
    }
    records = await scene.store.load(list(expected))
    assert {key: type(record.row) for key, record in records.items()} == expected
