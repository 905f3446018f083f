"""Attempts: how they ended, in what order, what they said and what they returned."""

from foliot.domain import events
from foliot.domain.duration import HOUR
from foliot.domain.ids import JobKey
from foliot.domain.job import AttemptStatus, State
from tests.store.builders import Scene


async def test_outcomes_are_told_by_id_and_nonce(scene: Scene) -> None:
    completed = await scene.ended()
    retried = await scene.running()
    await scene.happen(retried.id, events.FailRetriable(retry_after=HOUR))
    running = await scene.running()
    assert completed.last is not None
    one, two = (completed.job.id, completed.last.nonce), (retried.id, retried.nonce)
    others = [(running.id, running.nonce), (one[0], one[1] + 99), (two[0], two[1] + 99), (JobKey(12345), 1)]
    assert await scene.store.outcomes([one, two, *others]) == {
        one: AttemptStatus.SUCCESS,
        two: AttemptStatus.RETRIABLE_FAILURE,
    }
    assert await scene.store.outcomes([]) == {}


async def test_an_outcome_is_still_known_after_a_redrive(scene: Scene) -> None:
    failed = await scene.ended(State.FAILED)
    assert failed.last is not None
    await scene.happen(failed.job.id, events.Redrive(job=failed.job))
    attempt = (failed.job.id, failed.last.nonce)
    assert await scene.store.outcomes([attempt]) == {attempt: AttemptStatus.FATAL_FAILURE}


async def test_executions_are_told_oldest_first_with_the_running_one(scene: Scene) -> None:
    worker = await scene.worker()
    first = await scene.running(worker)
    record = await scene.happen(first.id, events.Release())
    (second,) = await scene.claim(worker, record.job)
    failed = await scene.happen(first.id, events.FailFatal(error='"e"', exit_code=2))
    await scene.happen(first.id, events.Redrive(job=record.job))
    (third,) = await scene.claim(worker, record.job)

    executions = await scene.store.executions(first.id)
    assert [attempt.attempt for attempt in executions] == [1, 2, 3]
    assert executions[0] == record.last
    assert executions[1] == failed.last
    assert (executions[2].status, executions[2].ended) == (AttemptStatus.CLAIMED, None)
    assert (executions[2].nonce, executions[2].worker) == (third.lease.nonce, worker.id)
    assert second.lease.nonce == executions[1].nonce

    await scene.happen(first.id, events.Progress(started=scene.now))
    assert (await scene.store.executions(first.id))[2].status is AttemptStatus.PROCESSING
    await scene.happen(first.id, events.Succeed())
    executions = await scene.store.executions(first.id)
    assert [attempt.status for attempt in executions] == [
        AttemptStatus.RELEASED,
        AttemptStatus.FATAL_FAILURE,
        AttemptStatus.SUCCESS,
    ]


async def test_a_job_that_never_ran_has_no_executions(scene: Scene) -> None:
    assert await scene.store.executions((await scene.submitted()).id) == []
    assert await scene.store.executions(JobKey(12345)) == []


async def test_a_result_is_there_once_the_job_has_ended_with_one(scene: Scene) -> None:
    lease = await scene.running()
    assert await scene.store.result(lease.id) is None
    await scene.happen(lease.id, events.Succeed(result='{"rows":[1,2]}'))
    assert await scene.store.result(lease.id) == '{"rows":[1,2]}'
    assert await scene.store.result((await scene.ended(State.FAILED)).job.id) is None
    assert await scene.store.result(JobKey(12345)) is None


async def test_log_lines_are_told_oldest_first_from_a_line_and_a_level_on(scene: Scene) -> None:
    lease = await scene.running()
    lines = [scene.line(lease, f"line {level}", level=level) for level in (10, 20, 30, 40)]
    assert await scene.store.append_logs(list(reversed(lines))) == set()
    said = [fenced.line for fenced in lines]
    assert await scene.store.logs(lease.id, after=0, level=0, limit=10) == said
    assert await scene.store.logs(lease.id, after=said[1].log_id, level=0, limit=10) == said[2:]
    assert await scene.store.logs(lease.id, after=0, level=30, limit=10) == said[2:]
    assert await scene.store.logs(lease.id, after=0, level=0, limit=2) == said[:2]
    assert await scene.store.logs(JobKey(12345), after=0, level=0, limit=2) == []


async def test_log_lines_without_their_lease_are_refused_and_the_others_kept(scene: Scene) -> None:
    lease = await scene.running()
    ended = await scene.running()
    await scene.happen(ended.id, events.Succeed())
    kept, forged, late = scene.line(lease), scene.line(lease, nonce=lease.nonce + 99), scene.line(ended)
    refused = await scene.store.append_logs([forged, kept, late])
    assert refused == {forged.line.log_id, late.line.log_id}
    assert await scene.store.logs(lease.id, after=0, level=0, limit=10) == [kept.line]
    assert await scene.store.logs(ended.id, after=0, level=0, limit=10) == []
    assert await scene.store.append_logs([]) == set()


async def test_log_lines_sent_again_are_kept_once(scene: Scene) -> None:
    lease = await scene.running()
    line = scene.line(lease)
    assert await scene.store.append_logs([line]) == set()
    assert await scene.store.append_logs([line]) == set()
    assert await scene.store.logs(lease.id, after=0, level=0, limit=10) == [line.line]


async def test_log_lines_outlive_the_attempt(scene: Scene) -> None:
    lease = await scene.running()
    line = scene.line(lease)
    await scene.store.append_logs([line])
    await scene.happen(lease.id, events.Succeed())
    assert await scene.store.logs(lease.id, after=0, level=0, limit=10) == [line.line]
