"""The state table. `transition(row, event, now)` is the only maker of changes to a job; the store carries them out.

A change names the narrow row it replaces by `version` or by `nonce` (the fencing token of a lease), so that one made
from an outdated view loses in the store and changes nothing. `RULES` is the table itself: from which states an event is
legal, where it may lead from each, how it ends an attempt. The diagram in the docs and the test of every (state, event)
pair are made from it.
"""

from collections.abc import Mapping
from typing import Final, assert_never

import msgspec

from foliot.domain import events as e
from foliot.domain.changes import Change, End, Held, Mark, Place, Refusal, Requeue
from foliot.domain.duration import SECOND, Micros
from foliot.domain.job import (
    Attempt,
    AttemptStatus,
    Ended,
    Job,
    Lease,
    Narrow,
    Ready,
    Row,
    State,
    Waiting,
)
from foliot.domain.rank import rank
from foliot.domain.retry import Retry, wait_before_retry

CANCEL_GRACE: Final[Micros] = 10 * SECOND
TIMEOUT_GRACE: Final[Micros] = 10 * SECOND


class Rule(msgspec.Struct, frozen=True, kw_only=True):
    """One line of the table: the states in which the event is legal, each with those that it may lead to, and how an
    attempt stands after it."""

    moves: Mapping[State, tuple[State, ...]]
    attempt: AttemptStatus | None = None

    @property
    def sources(self) -> tuple[State, ...]:
        return tuple(self.moves)

    @property
    def targets(self) -> tuple[State, ...]:
        return tuple(sorted({state for states in self.moves.values() for state in states}))


_WAITING = (State.BLOCKED, State.SCHEDULED, State.QUEUED)
_DUE = (State.SCHEDULED, State.QUEUED)  # its time decides
_RETRY = (State.CANCELLED, State.SCHEDULED, State.QUEUED, State.FAILED)


def _running(*targets: State, attempt: AttemptStatus) -> Rule:
    return Rule(moves={State.RUNNING: targets}, attempt=attempt)


RULES: Final[dict[type[e.Event], Rule]] = {
    e.ParentsDone: Rule(moves={State.BLOCKED: _DUE}),
    e.ParentEndedOtherwise: Rule(moves={State.BLOCKED: (State.CANCELLED,)}),
    e.Due: Rule(moves={State.SCHEDULED: _DUE}),
    e.TokenFree: Rule(moves={State.QUEUED: (State.QUEUED,)}),
    e.Claim: Rule(moves={State.QUEUED: (State.RUNNING,)}, attempt=AttemptStatus.CLAIMED),
    e.Progress: _running(State.RUNNING, attempt=AttemptStatus.PROCESSING),
    e.Succeed: _running(State.COMPLETED, attempt=AttemptStatus.SUCCESS),
    e.FailRetriable: _running(*_RETRY, attempt=AttemptStatus.RETRIABLE_FAILURE),
    e.TimeOut: _running(*_RETRY, attempt=AttemptStatus.TIMED_OUT),
    e.FailFatal: _running(State.FAILED, attempt=AttemptStatus.FATAL_FAILURE),
    e.WorkerGone: _running(*_RETRY, attempt=AttemptStatus.LOST),
    e.Overdue: _running(*_RETRY, attempt=AttemptStatus.TIMED_OUT),
    e.CancelGraceOver: _running(State.CANCELLED, attempt=AttemptStatus.CANCELLED),
    e.Release: _running(State.QUEUED, State.CANCELLED, attempt=AttemptStatus.RELEASED),
    e.Stopped: _running(State.CANCELLED, attempt=AttemptStatus.CANCELLED),
    e.Cancel: Rule(moves={**dict.fromkeys(_WAITING, (State.CANCELLED,)), State.RUNNING: (State.RUNNING,)}),
    e.Expire: Rule(moves=dict.fromkeys(_WAITING, (State.FAILED,))),
    e.Pause: Rule(
        moves={
            State.BLOCKED: (State.BLOCKED,),
            State.SCHEDULED: (State.SCHEDULED,),
            State.QUEUED: (State.SCHEDULED,),
        }
    ),
    e.Resume: Rule(moves={State.BLOCKED: (State.BLOCKED,), State.SCHEDULED: _DUE, State.QUEUED: (State.QUEUED,)}),
    e.Reschedule: Rule(moves={State.BLOCKED: (State.BLOCKED,), State.SCHEDULED: _DUE, State.QUEUED: _DUE}),
    e.Redrive: Rule(moves=dict.fromkeys((State.FAILED, State.CANCELLED), _WAITING)),
}


def state_of(row: Row | Held) -> State:
    match row:
        case Waiting():
            return State.BLOCKED if row.parents else State.QUEUED if row.for_key else State.SCHEDULED
        case Ready():
            return State.QUEUED
        case Ended():
            return row.state
        case Lease() | Held():
            return State.RUNNING
        case _:
            assert_never(row)


def place_of(row: Row | Held) -> Place:
    match row:
        case Waiting():
            return Place.WAITING
        case Ready():
            return Place.READY
        case Ended():
            return Place.HISTORY
        case Lease() | Held():
            return Place.LEASES
        case _:
            assert_never(row)


def submit(job: Job, now: Micros, *, parents: int = 0, limit_id: int | None = None, ties: int = 0) -> Waiting | Ready:
    """The first row of a new job."""
    return _ready(
        Narrow(
            id=job.id,
            lane_id=job.lane_id,
            priority=job.priority,
            due=max(job.due, now),
            deadline=job.deadline,
            attempt=0,
            counted=0,
            tries_left=job.retry.max_attempts,
            lost=0,
            version=0,
            since=now,
            limit_id=limit_id,
            ties=ties,
        ),
        now,
        parents=parents,
    )


def claim(row: Ready, event: e.Claim, now: Micros) -> Lease:
    """The lease that a claim makes of a ready row."""
    return Lease(
        id=row.id,
        lane_id=row.lane_id,
        priority=row.priority,
        due=row.due,
        deadline=None,
        attempt=row.attempt + 1,
        counted=row.counted + 1,
        tries_left=row.tries_left - 1,
        lost=row.lost,
        version=row.version + 1,
        since=row.since,
        limit_id=row.limit_id,
        ties=row.ties,
        worker=event.worker,
        nonce=event.nonce,
        claimed=now,
        check_at=now + event.timeout + TIMEOUT_GRACE,
    )


def transition(row: Row | Held, event: e.Event, now: Micros, *, retry: Retry) -> Change | Refusal:
    """What `event` makes of the job whose row this is. `retry` is the job's policy.

    A `Claim` is refused here: `claim` makes the lease, because the store pops the row without showing it first. Of a
    `Held` only what needs nothing else of the job is decided; load the lease for the rest.
    """
    if state_of(row) not in RULES[type(event)].moves:
        return refused(row, event)
    match row, event:
        case (Held() | Lease(), e.Succeed()):
            return _end(row, event, State.COMPLETED, now, started=event.started, result=event.result)
        case (Held() | Lease(), e.FailFatal()):
            return _fail(row, event, now, reason=event.code)
        case (Held() | Lease(), e.Progress()):
            return Mark(id=row.id, nonce=row.nonce, started=event.started, progress=event.progress)
        case (Lease(), _):
            return _of_lease(row, event, now, retry)
        case (Ended(), e.Redrive()):
            return _redrive(row, event, now)
        case (Waiting() | Ready(), _):
            return _of_waiting(row, event, now, retry)
    return refused(row, event)


def refused(row: Row | Held, event: e.Event) -> Refusal:
    return Refusal(id=row.id, state=state_of(row), event=type(event).__name__)


def _of_lease(lease: Lease, event: e.Event, now: Micros, retry: Retry) -> Change | Refusal:
    match event:
        case e.FailRetriable():
            return _retry(lease, event, now, retry, reason=event.code, wait=event.retry_after)
        case e.TimeOut():
            return _retry(lease, event, now, retry, reason="timed_out")
        case e.Overdue():
            return _retry(lease, event, now, retry, reason="timed_out")
        case e.WorkerGone():
            return _worker_gone(lease, event, now, retry)
        case e.CancelGraceOver() if lease.cancel_asked is not None:
            return _end(lease, event, State.CANCELLED, now, reason="cancelled_by")
        case e.Stopped() if lease.cancel_asked is not None:
            return _end(
                lease, event, State.CANCELLED, now, reason="cancelled_by", started=event.started, error=event.error
            )
        case e.Release():
            return _release(lease, event, now)
        case e.Cancel():
            asked = lease.cancel_asked or now
            check_at = min(lease.check_at, asked + CANCEL_GRACE)
            return Mark(id=lease.id, nonce=lease.nonce, cancel_asked=asked, check_at=check_at)
    return refused(lease, event)


def _of_waiting(row: Waiting | Ready, event: e.Event, now: Micros, retry: Retry) -> Change | Refusal:
    hold, parents, due = False, 0, row.due
    if isinstance(row, Waiting):
        hold, parents = row.hold, row.parents
    if state_of(row) is State.QUEUED:
        due = min(row.due, now)  # it was due: a clock a little behind makes it wait no more
    match event:
        case e.ParentsDone():
            return _requeue(row, _ready(row, now, hold=hold))
        case e.ParentEndedOtherwise():
            return _end(row, event, State.CANCELLED, now, reason=event.reason)
        case e.Due():
            return _requeue(row, _ready(row, now, hold=hold))
        case e.TokenFree() if isinstance(row, Waiting):
            return _requeue(row, _ready(row, now, token=True))
        case e.Cancel():
            return _end(row, event, State.CANCELLED, now, reason="cancelled_by")
        case e.Expire() if row.deadline is not None and row.deadline <= now:
            return _end(row, event, State.FAILED, now, reason="expired")
        case e.Pause():
            return _requeue(row, _ready(row, now, hold=True, parents=parents))
        case e.Resume():
            return _requeue(row, _ready(row, now, due=due, parents=parents))
        case e.Reschedule(job=job):
            used = retry.max_attempts - row.tries_left
            changed = msgspec.structs.replace(
                row,
                lane_id=job.lane_id,
                priority=job.priority,
                limit_id=event.limit_id,
                due=event.due,
                deadline=None if row.attempt else job.deadline,
                tries_left=max(1, job.retry.max_attempts - used),
            )
            return _requeue(row, _ready(changed, now, hold=hold, parents=parents), job=job)
    return refused(row, event)


def _redrive(row: Ended, event: e.Redrive, now: Micros) -> Requeue:
    job, rewrite = event.job, event.rewrite
    if job.deadline is not None:  # it was the first start's; left there, a later reschedule would bring it back
        job, rewrite = msgspec.structs.replace(job, deadline=None), True
    again = Narrow(
        id=row.id,
        lane_id=job.lane_id,
        priority=job.priority,
        due=max(job.due, now),
        deadline=None,
        attempt=row.attempt,
        counted=row.counted - (row.last is not None and row.last.status is AttemptStatus.RELEASED),
        tries_left=job.retry.max_attempts,
        lost=0,
        version=row.version,
        since=now,
        limit_id=event.limit_id,
        ties=event.ties,
    )
    change = _requeue(
        row, _ready(again, now, parents=len(event.reopened)), job=job if rewrite else None, attempt=row.last
    )
    return msgspec.structs.replace(change, reopened=event.reopened)


def _retry(
    lease: Lease,
    event: e.Event,
    now: Micros,
    retry: Retry,
    *,
    reason: str | None,
    wait: Micros | None = None,
) -> Requeue | End:
    """*retry* of the table: cancelled if that was asked; later again if tries are left; else failed."""
    if lease.cancel_asked is not None:
        return _fail(lease, event, now, reason="cancelled_by", state=State.CANCELLED)
    if lease.tries_left <= 0:
        return _fail(lease, event, now, reason=reason)
    if wait is None:
        wait = wait_before_retry(retry, failures=max(1, retry.max_attempts - lease.tries_left), seed=lease.id)
    return _give_back(lease, _ready(lease, now, due=now + wait), _attempt(lease, event, now))


def _worker_gone(lease: Lease, event: e.WorkerGone, now: Micros, retry: Retry) -> Requeue | End:
    lost = lease.lost + 1
    if lease.cancel_asked is None and retry.on_lost == "fail":
        return _fail(lease, event, now, reason="lost")
    if lease.cancel_asked is None and lost >= retry.max_lost:
        return _fail(lease, event, now, reason="quarantined")
    return _retry(msgspec.structs.replace(lease, lost=lost), event, now, retry, reason="lost")


def _release(lease: Lease, event: e.Release, now: Micros) -> Requeue | End:
    if lease.cancel_asked is not None:
        return _fail(lease, event, now, reason="cancelled_by", state=State.CANCELLED)
    given_back = msgspec.structs.replace(lease, counted=lease.counted - 1, tries_left=lease.tries_left + 1)
    return _give_back(lease, _ready(given_back, now, due=min(lease.due, now)), _attempt(lease, event, now))


def _ready(
    row: Narrow,
    now: Micros,
    *,
    due: Micros | None = None,
    hold: bool = False,
    parents: int = 0,
    token: bool = False,
) -> Waiting | Ready:
    """*ready* of the table: waiting for parents, for its time, for a resume, or for a token of its key (unless it was
    just given one); else queued. One version on."""
    when = row.due if due is None else due
    early = hold or parents > 0 or (when > now and not token)  # who waits for a token was due
    if early or (row.limit_id is not None and not token):
        return Waiting(
            id=row.id,
            lane_id=row.lane_id,
            priority=row.priority,
            due=when,
            deadline=row.deadline,
            attempt=row.attempt,
            counted=row.counted,
            tries_left=row.tries_left,
            lost=row.lost,
            version=row.version + 1,
            since=now,
            limit_id=row.limit_id,
            ties=row.ties,
            hold=hold,
            parents=parents,
            for_key=not early,
        )
    return Ready(
        id=row.id,
        lane_id=row.lane_id,
        priority=row.priority,
        due=when,
        deadline=row.deadline,
        attempt=row.attempt,
        counted=row.counted,
        tries_left=row.tries_left,
        lost=row.lost,
        version=row.version + 1,
        since=now,
        limit_id=row.limit_id,
        ties=row.ties,
        rank=rank(row.priority, when),
    )


def _requeue(
    row: Waiting | Ready | Ended, then: Waiting | Ready, *, job: Job | None = None, attempt: Attempt | None = None
) -> Requeue:
    return Requeue(id=row.id, source=place_of(row), version=row.version, row=then, job=job, attempt=attempt)


def _give_back(lease: Lease, then: Waiting | Ready, attempt: Attempt) -> Requeue:
    return Requeue(
        id=lease.id, source=Place.LEASES, version=lease.version, nonce=lease.nonce, row=then, attempt=attempt
    )


def _attempt(lease: Lease, event: e.Event, now: Micros) -> Attempt:
    """The record of the attempt that `event` ends without ending the job."""
    return Attempt(
        id=lease.id,
        attempt=lease.attempt,
        status=_status_after(event),
        worker=lease.worker,
        nonce=lease.nonce,
        due=lease.due,
        claimed=lease.claimed,
        started=getattr(event, "started", None) or lease.started,
        ended=now,
        error=getattr(event, "error", None),
        exit_code=getattr(event, "exit_code", None),
        admitted=lease.since,
    )


def _fail(row: Lease | Held, event: e.Event, now: Micros, *, reason: str | None, state: State = State.FAILED) -> End:
    return _end(
        row,
        event,
        state,
        now,
        reason=reason,
        started=getattr(event, "started", None),
        error=getattr(event, "error", None),
        exit_code=getattr(event, "exit_code", None),
    )


def _end(
    row: Waiting | Ready | Lease | Held,
    event: e.Event,
    state: State,
    now: Micros,
    *,
    reason: str | None = None,
    started: Micros | None = None,
    error: str | None = None,
    exit_code: int | None = None,
    result: str | None = None,
) -> End:
    nonce = row.nonce if isinstance(row, Lease | Held) else None
    return End(
        id=row.id,
        source=place_of(row),
        version=None if isinstance(row, Held) else row.version,
        nonce=nonce,
        state=state,
        reason=reason,
        ended=now,
        attempt_status=None if nonce is None else _status_after(event),
        started=started,
        error=error,
        exit_code=exit_code,
        result=result,
    )


def _status_after(event: e.Event) -> AttemptStatus:
    status = RULES[type(event)].attempt
    assert status is not None, f"{type(event).__name__} ends no attempt"
    return status
