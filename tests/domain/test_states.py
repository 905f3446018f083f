"""What becomes of a job, one behaviour at a time."""

import msgspec
import pytest

from foliot.domain import events as e
from foliot.domain.changes import Change, End, Held, Mark, Place, Refusal, Requeue
from foliot.domain.duration import HOUR, MINUTE, SECOND
from foliot.domain.ids import JobKey
from foliot.domain.job import AttemptStatus, Lease, Ready, Row, State, Ties, Waiting
from foliot.domain.rank import rank
from foliot.domain.retry import Retry, wait_before_retry
from foliot.domain.states import CANCEL_GRACE, TIMEOUT_GRACE, claim, place_of, submit, transition
from tests.domain.rows import (
    KEY,
    NOW,
    WORKER,
    make_attempt,
    make_ended,
    make_job,
    make_lease,
    make_ready,
    make_waiting,
)

LATER = NOW + HOUR
PAST = NOW - HOUR


def requeued(outcome: Change | Refusal) -> Requeue:
    assert isinstance(outcome, Requeue), outcome
    return outcome


def ended(outcome: Change | Refusal) -> End:
    assert isinstance(outcome, End), outcome
    return outcome


# submit and claim


def test_a_job_that_is_due_is_ready_at_once() -> None:
    row = submit(make_job(priority=8), NOW)
    assert isinstance(row, Ready)
    assert (row.version, row.attempt, row.counted, row.tries_left, row.since) == (1, 0, 0, 3, NOW)
    assert row.rank == rank(8, NOW)


def test_a_due_time_in_the_past_means_now_and_does_not_jump_the_queue() -> None:
    late, punctual = submit(make_job(due=PAST), NOW), submit(make_job(due=NOW), NOW)
    assert late == punctual


def test_a_job_of_the_future_waits_for_its_time() -> None:
    row = submit(make_job(due=NOW + 1, deadline=LATER), NOW)
    assert isinstance(row, Waiting)
    assert (row.due, row.deadline, row.hold, row.parents) == (NOW + 1, LATER, False, 0)


def test_a_job_with_open_parents_waits_even_when_it_is_due() -> None:
    row = submit(make_job(), NOW, parents=2)
    assert isinstance(row, Waiting)
    assert row.parents == 2


def test_a_claim_takes_a_try_and_sets_when_a_node_must_step_in() -> None:
    row = make_ready(attempt=4, counted=3, tries_left=1, lost=1, deadline=LATER)
    lease = claim(row, e.Claim(worker=WORKER, nonce=11, timeout=MINUTE), NOW)
    assert (lease.attempt, lease.counted, lease.tries_left, lease.lost) == (5, 4, 0, 1)
    assert (lease.worker, lease.nonce, lease.claimed, lease.started) == (WORKER, 11, NOW, None)
    assert lease.check_at == NOW + MINUTE + TIMEOUT_GRACE
    assert lease.deadline is None
    assert lease.version == row.version + 1


# concurrency keys and ties


def test_a_job_with_a_key_waits_for_a_token_once_it_is_due() -> None:
    row = submit(make_job(), NOW, limit_id=3, ties=Ties.CHILDREN)
    assert isinstance(row, Waiting)
    assert (row.limit_id, row.for_key, row.ties) == (3, True, Ties.CHILDREN)
    for early in (submit(make_job(due=LATER), NOW, limit_id=3), submit(make_job(), NOW, limit_id=3, parents=1)):
        assert isinstance(early, Waiting)
        assert (early.limit_id, early.for_key) == (3, False)


def test_a_token_makes_a_job_ready_with_the_rank_of_its_due_time() -> None:
    for due in (PAST, NOW + 1):  # a clock a little behind makes it wait no more
        row = make_waiting(due=due, limit_id=3, for_key=True, ties=Ties.PARENTS)
        ready = requeued(transition(row, e.TokenFree(), NOW, retry=Retry())).row
        assert isinstance(ready, Ready)
        assert (ready.limit_id, ready.due, ready.rank) == (3, due, rank(5, due))
        assert (ready.ties, ready.version) == (Ties.PARENTS, row.version + 1)


def test_only_who_waits_for_a_token_is_given_one() -> None:
    for row in (make_ready(limit_id=3), make_waiting(due=PAST, limit_id=3), make_waiting(for_key=False, hold=True)):
        assert isinstance(transition(row, e.TokenFree(), NOW, retry=Retry()), Refusal)


@pytest.mark.parametrize(
    ("row", "event"),
    [
        (make_waiting(due=PAST, limit_id=3), e.Due()),
        (make_waiting(due=PAST, limit_id=3, parents=1), e.ParentsDone()),
        (make_waiting(due=PAST, limit_id=3, hold=True), e.Resume()),
        (make_waiting(due=NOW + 1, limit_id=3, for_key=True), e.Resume()),
        (make_ready(limit_id=3), e.Resume()),
        (make_lease(limit_id=3), e.FailRetriable(retry_after=0)),
        (make_lease(limit_id=3), e.Release()),
        (make_ready(), e.Reschedule(job=make_job(), due=NOW, limit_id=3)),
        (make_ended(State.FAILED), e.Redrive(job=make_job(), limit_id=3)),
    ],
    ids=lambda value: type(value).__name__,
)
def test_a_token_is_never_taken_along(row: Row, event: e.Event) -> None:
    after = requeued(transition(row, event, NOW, retry=Retry())).row
    assert isinstance(after, Waiting)
    assert (after.for_key, after.limit_id) == (True, 3)


def test_a_key_that_is_taken_away_leaves_a_job_ready() -> None:
    row = make_waiting(due=PAST, limit_id=3, for_key=True)
    after = requeued(transition(row, e.Reschedule(job=make_job(), due=NOW), NOW, retry=Retry())).row
    assert isinstance(after, Ready)
    assert after.limit_id is None


def test_a_claim_keeps_key_and_ties() -> None:
    lease = claim(make_ready(limit_id=3, ties=3), e.Claim(worker=WORKER, nonce=1, timeout=MINUTE), NOW)
    assert (lease.limit_id, lease.ties) == (3, 3)


def test_a_redrive_waits_for_the_reopened_parents() -> None:
    parents = (JobKey(7), JobKey(8))
    event = e.Redrive(job=make_job(), reopened=parents, ties=Ties.PARENTS)
    change = requeued(transition(make_ended(State.CANCELLED), event, NOW, retry=Retry()))
    assert change.reopened == parents
    assert isinstance(change.row, Waiting)
    assert (change.row.parents, change.row.ties) == (2, Ties.PARENTS)


# waiting and ready


def test_a_held_job_that_becomes_due_stays_held() -> None:
    for event, row in (
        (e.Due(), make_waiting(due=PAST, hold=True)),
        (e.ParentsDone(), make_waiting(due=PAST, hold=True, parents=1)),
        (e.Reschedule(job=make_job(), due=PAST), make_waiting(hold=True)),
    ):
        then = requeued(transition(row, event, NOW, retry=Retry())).row
        assert isinstance(then, Waiting)
        assert (then.hold, then.parents) == (True, 0)


def test_pause_and_resume_give_back_what_was_there() -> None:
    for row in (make_ready(), make_waiting(), make_waiting(parents=2)):
        paused = requeued(transition(row, e.Pause(), NOW, retry=Retry())).row
        assert isinstance(paused, Waiting)
        assert paused.hold
        resumed = requeued(transition(paused, e.Resume(), NOW, retry=Retry())).row
        assert resumed == msgspec.structs.replace(row, version=row.version + 2)


def test_resume_makes_ready_what_became_due_during_the_pause() -> None:
    then = requeued(transition(make_waiting(hold=True), e.Resume(), LATER, retry=Retry())).row
    assert isinstance(then, Ready)


def test_a_job_expires_only_once_its_deadline_is_over() -> None:
    row = make_ready(deadline=NOW)
    assert isinstance(transition(row, e.Expire(), NOW - 1, retry=Retry()), Refusal)
    change = ended(transition(row, e.Expire(), NOW, retry=Retry()))
    assert (change.state, change.reason, change.source) == (State.FAILED, "expired", Place.READY)
    assert isinstance(transition(make_ready(), e.Expire(), NOW, retry=Retry()), Refusal)


def test_a_parents_end_tells_its_reason() -> None:
    event = e.ParentEndedOtherwise(reason="parent_cancelled")
    change = ended(transition(make_waiting(parents=1), event, NOW, retry=Retry()))
    assert (change.state, change.reason) == (State.CANCELLED, "parent_cancelled")


def test_cancelling_what_waits_ends_it_at_once() -> None:
    change = ended(transition(make_waiting(), e.Cancel(), NOW, retry=Retry()))
    assert (change.state, change.reason, change.ended) == (State.CANCELLED, "cancelled_by", NOW)


def test_reschedule_takes_over_the_new_wide_row() -> None:
    job = make_job(lane_id=9, priority=2, deadline=LATER + HOUR, retry=Retry(max_attempts=5))
    change = requeued(transition(make_waiting(parents=1), e.Reschedule(job=job, due=LATER), NOW, retry=Retry()))
    row = change.row
    assert isinstance(row, Waiting)
    assert (row.lane_id, row.priority, row.due, row.deadline) == (9, 2, LATER, LATER + HOUR)
    assert (row.tries_left, row.parents) == (5, 1)
    assert change.job is job


@pytest.mark.parametrize(("before", "after", "tries_left"), [(3, 5, 3), (3, 2, 1), (5, 1, 1)])
def test_reschedule_counts_the_tries_already_used(before: int, after: int, tries_left: int) -> None:
    row = make_waiting(attempt=2, counted=2, tries_left=before - 2)
    job = make_job(retry=Retry(max_attempts=after))
    then = requeued(transition(row, e.Reschedule(job=job, due=LATER), NOW, retry=Retry(max_attempts=before))).row
    assert then.tries_left == tries_left
    assert then.attempt == 2


def test_reschedule_brings_no_deadline_to_a_job_that_has_started() -> None:
    row = make_waiting(attempt=1, counted=1, tries_left=2)
    then = requeued(transition(row, e.Reschedule(job=make_job(deadline=PAST), due=LATER), NOW, retry=Retry())).row
    assert then.deadline is None


# the ends of an attempt


def test_a_failed_attempt_is_tried_again_after_the_backoff() -> None:
    retry = Retry(max_attempts=3, initial=10 * SECOND)
    lease = make_lease(attempt=7, counted=5, tries_left=1, lost=1)
    event = e.FailRetriable(started=NOW - 5, error='"no"', exit_code=3, code="busy")
    change = requeued(transition(lease, event, NOW, retry=retry))
    row = change.row
    assert isinstance(row, Waiting)
    assert row.due == NOW + wait_before_retry(retry, failures=2, seed=KEY)
    assert (row.attempt, row.counted, row.tries_left, row.lost) == (7, 5, 1, 1)
    assert change.attempt == make_attempt(
        attempt=7,
        status=AttemptStatus.RETRIABLE_FAILURE,
        started=NOW - 5,
        error='"no"',
        exit_code=3,
    )


def test_a_worker_may_ask_for_its_own_wait() -> None:
    event = e.FailRetriable(retry_after=MINUTE)
    assert requeued(transition(make_lease(), event, NOW, retry=Retry())).row.due == NOW + MINUTE
    now = requeued(transition(make_lease(), e.FailRetriable(retry_after=0), NOW, retry=Retry())).row
    assert isinstance(now, Ready)
    assert now.rank == rank(5, NOW)


def test_a_retry_waits_like_a_first_failure_where_the_policy_shrank_below_the_tries_left() -> None:
    retry = Retry(max_attempts=1, backoff="linear", jitter=0)
    assert requeued(transition(make_lease(tries_left=4), e.TimeOut(), NOW, retry=retry)).row.due == NOW + SECOND


@pytest.mark.parametrize(
    ("event", "reason"),
    [
        (e.FailRetriable(code="busy"), "busy"),
        (e.FailRetriable(), None),
        (e.TimeOut(code="slow"), "timed_out"),
        (e.Overdue(), "timed_out"),
        (e.WorkerGone(), "lost"),
        (e.FailFatal(code="bad_card"), "bad_card"),
    ],
)
def test_a_job_without_tries_left_fails_for_the_reason_of_its_last_attempt(event: e.Event, reason: str | None) -> None:
    change = ended(transition(make_lease(tries_left=0), event, NOW, retry=Retry()))
    assert (change.state, change.reason) == (State.FAILED, reason)


def test_a_fatal_failure_is_not_tried_again() -> None:
    event = e.FailFatal(started=NOW - 1, error='"no"', exit_code=2)
    change = ended(transition(make_lease(tries_left=5), event, NOW, retry=Retry(max_attempts=6)))
    assert change.state is State.FAILED
    assert (change.started, change.error, change.exit_code) == (NOW - 1, '"no"', 2)


def test_an_attempt_that_a_node_ends_keeps_the_start_that_its_worker_told() -> None:
    lease = make_lease(started=NOW - 7)
    change = requeued(transition(lease, e.Overdue(), NOW, retry=Retry()))
    assert change.attempt is not None
    assert (change.attempt.started, change.attempt.error) == (NOW - 7, None)


def test_losing_the_worker_costs_a_try_and_is_counted() -> None:
    row = requeued(transition(make_lease(lost=1), e.WorkerGone(), NOW, retry=Retry())).row
    assert (row.lost, row.tries_left) == (2, 2)


def test_a_job_that_keeps_losing_its_workers_is_quarantined() -> None:
    change = ended(transition(make_lease(lost=2), e.WorkerGone(), NOW, retry=Retry(max_attempts=9, max_lost=3)))
    assert (change.state, change.reason) == (State.FAILED, "quarantined")


def test_a_job_that_must_not_run_twice_fails_with_its_worker() -> None:
    change = ended(transition(make_lease(), e.WorkerGone(), NOW, retry=Retry(on_lost="fail")))
    assert (change.state, change.reason, change.attempt_status) == (State.FAILED, "lost", AttemptStatus.LOST)


def test_a_released_attempt_gives_its_try_back_and_its_place_in_the_queue() -> None:
    lease = make_lease(due=PAST, attempt=3, counted=2, tries_left=1)
    change = requeued(transition(lease, e.Release(started=NOW), NOW, retry=Retry()))
    row = change.row
    assert isinstance(row, Ready)
    assert (row.attempt, row.counted, row.tries_left, row.rank) == (3, 1, 2, rank(5, PAST))
    assert change.attempt is not None
    assert (change.attempt.status, change.attempt.started) == (AttemptStatus.RELEASED, NOW)


def test_success_keeps_the_result() -> None:
    change = ended(transition(make_lease(cancel_asked=NOW), e.Succeed(started=NOW, result="7"), NOW, retry=Retry()))
    assert (change.state, change.result, change.started) == (State.COMPLETED, "7", NOW)


def test_progress_is_noted_and_nothing_else() -> None:
    event = e.Progress(started=NOW, progress='{"value":1}')
    assert transition(make_lease(), event, NOW, retry=Retry()) == Mark(
        id=KEY, nonce=99, started=NOW, progress='{"value":1}'
    )


# cancelling what runs


def test_a_running_job_is_asked_to_stop_and_has_a_grace() -> None:
    mark = transition(make_lease(check_at=LATER), e.Cancel(), NOW, retry=Retry())
    assert mark == Mark(id=KEY, nonce=99, cancel_asked=NOW, check_at=NOW + CANCEL_GRACE)


def test_asking_again_prolongs_neither_grace_nor_timeout() -> None:
    lease = make_lease(cancel_asked=NOW, check_at=NOW + CANCEL_GRACE)
    again = transition(lease, e.Cancel(), NOW + SECOND, retry=Retry())
    assert again == Mark(id=KEY, nonce=99, cancel_asked=NOW, check_at=NOW + CANCEL_GRACE)
    nearly_over = transition(make_lease(check_at=NOW + SECOND), e.Cancel(), NOW, retry=Retry())
    assert isinstance(nearly_over, Mark)
    assert nearly_over.check_at == NOW + SECOND


@pytest.mark.parametrize(
    "event",
    [e.FailRetriable(), e.TimeOut(), e.Overdue(), e.WorkerGone(), e.Release(), e.CancelGraceOver(), e.Stopped()],
    ids=lambda event: type(event).__name__,
)
@pytest.mark.parametrize("on_lost", ["retry", "fail"])
def test_whatever_ends_an_attempt_that_was_asked_to_stop_cancels_the_job(event: e.Event, on_lost: str) -> None:
    retry = msgspec.convert({"on_lost": on_lost, "max_lost": 1}, Retry)
    change = ended(transition(make_lease(cancel_asked=NOW), event, NOW, retry=retry))
    assert (change.state, change.reason) == (State.CANCELLED, "cancelled_by")


@pytest.mark.parametrize("event", [e.Stopped(), e.CancelGraceOver()], ids=lambda event: type(event).__name__)
def test_nobody_may_stop_what_was_not_asked_to_stop(event: e.Event) -> None:
    assert isinstance(transition(make_lease(), event, NOW, retry=Retry()), Refusal)


def test_a_worker_that_stopped_tells_what_happened() -> None:
    lease = make_lease(cancel_asked=NOW)
    change = ended(transition(lease, e.Stopped(started=NOW - 1, error='"half done"'), NOW, retry=Retry()))
    assert (change.started, change.error, change.attempt_status) == (NOW - 1, '"half done"', AttemptStatus.CANCELLED)


# what a token alone decides


@pytest.mark.parametrize(
    "event",
    [
        e.Succeed(started=NOW, result="1"),
        e.FailFatal(started=NOW, error='"no"', exit_code=1, code="broken"),
        e.Progress(started=NOW, progress='{"note":"half"}'),
    ],
    ids=lambda event: type(event).__name__,
)
@pytest.mark.parametrize("lease", [make_lease(), make_lease(cancel_asked=NOW)], ids=["running", "asked to stop"])
def test_what_is_decided_by_token_is_decided_as_with_the_lease(event: e.Event, lease: Lease) -> None:
    known = transition(lease, event, NOW, retry=Retry())
    by_token = transition(Held(id=lease.id, nonce=lease.nonce), event, NOW, retry=Retry())
    if isinstance(known, End):
        known = msgspec.structs.replace(known, version=None)
    assert by_token == known


@pytest.mark.parametrize("event", [e.FailRetriable(), e.Release(), e.Stopped(), e.Cancel(), e.WorkerGone()])
def test_what_needs_the_lease_is_refused_by_token_alone(event: e.Event) -> None:
    assert isinstance(transition(Held(id=KEY, nonce=99), event, NOW, retry=Retry()), Refusal)


def test_a_claim_is_no_transition() -> None:
    event = e.Claim(worker=WORKER, nonce=1, timeout=MINUTE)
    assert isinstance(transition(make_ready(), event, NOW, retry=Retry()), Refusal)


# redrive


def test_a_redriven_job_runs_now_with_its_tries_anew_and_its_attempts_counting_on() -> None:
    row = make_ended(State.FAILED, attempt=4, counted=3, lost=2)
    change = requeued(transition(row, e.Redrive(job=make_job(priority=8, lane_id=3)), NOW, retry=Retry()))
    then = change.row
    assert isinstance(then, Ready)
    assert (then.attempt, then.counted, then.tries_left, then.lost) == (4, 3, 3, 0)
    assert (then.priority, then.lane_id, then.due, then.version) == (8, 3, NOW, row.version + 1)
    assert change.attempt == row.last
    assert change.job is None


def test_a_redrive_writes_the_wide_row_where_it_changed() -> None:
    job = make_job(payload="[1]")
    change = requeued(transition(make_ended(State.FAILED), e.Redrive(job=job, rewrite=True), NOW, retry=Retry()))
    assert change.job == job


def test_an_expired_job_that_is_redriven_does_not_expire_again() -> None:
    row = make_ended(State.FAILED, reason="expired", attempt=0, counted=0, last=None)
    change = requeued(transition(row, e.Redrive(job=make_job(deadline=PAST)), NOW, retry=Retry()))
    assert change.row.deadline is None
    assert change.job == make_job()
    later = requeued(transition(change.row, e.Reschedule(job=change.job, due=LATER), NOW, retry=Retry())).row
    assert later.deadline is None


def test_an_attempt_that_was_released_when_the_job_was_cancelled_is_not_counted_after_a_redrive() -> None:
    row = make_ended(State.CANCELLED, attempt=2, counted=2, last=make_attempt(status=AttemptStatus.RELEASED))
    then = requeued(transition(row, e.Redrive(job=make_job()), NOW, retry=Retry())).row
    assert (then.attempt, then.counted) == (2, 1)


def test_a_row_has_one_place() -> None:
    assert place_of(make_waiting()) is Place.WAITING
    assert place_of(make_ready()) is Place.READY
    assert place_of(make_lease()) is place_of(Held(id=KEY, nonce=99)) is Place.LEASES
    assert place_of(make_ended(State.FAILED)) is Place.HISTORY
