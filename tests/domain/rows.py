"""One of each row of a job, with any field changed, and what a store makes of a change."""

from typing import Any, assert_never

import msgspec

from foliot.domain.changes import Change, End, Mark, Place, Requeue
from foliot.domain.duration import MINUTE, SECOND, Micros
from foliot.domain.ids import JobKey, WorkerKey
from foliot.domain.job import Attempt, AttemptStatus, Ended, Job, Lane, Lease, Ready, Row, State, Waiting
from foliot.domain.rank import rank
from foliot.domain.states import place_of

NOW: Micros = 1_800_000_000 * SECOND
KEY = JobKey(42)
WORKER = WorkerKey(7)
LANE = Lane("default", "default", "echo")


def make_job(**changes: Any) -> Job:
    job = Job(id=KEY, name=None, lane=LANE, lane_id=1, due=NOW, created=NOW)
    return msgspec.structs.replace(job, **changes)


def make_waiting(**changes: Any) -> Waiting:
    row = Waiting(
        id=KEY,
        lane_id=1,
        priority=5,
        due=NOW + MINUTE,
        deadline=None,
        attempt=0,
        counted=0,
        tries_left=3,
        lost=0,
        version=4,
        since=NOW,
    )
    return msgspec.structs.replace(row, **changes)


def make_ready(**changes: Any) -> Ready:
    row = Ready(
        id=KEY,
        lane_id=1,
        priority=5,
        due=NOW,
        deadline=None,
        attempt=0,
        counted=0,
        tries_left=3,
        lost=0,
        version=4,
        since=NOW,
        rank=rank(5, NOW),
    )
    return msgspec.structs.replace(row, **changes)


def make_lease(**changes: Any) -> Lease:
    row = Lease(
        id=KEY,
        lane_id=1,
        priority=5,
        due=NOW,
        deadline=None,
        attempt=1,
        counted=1,
        tries_left=2,
        lost=0,
        version=5,
        since=NOW,
        worker=WORKER,
        nonce=99,
        claimed=NOW,
        check_at=NOW + MINUTE,
    )
    return msgspec.structs.replace(row, **changes)


def make_attempt(**changes: Any) -> Attempt:
    attempt = Attempt(
        id=KEY,
        attempt=1,
        status=AttemptStatus.FATAL_FAILURE,
        worker=WORKER,
        nonce=99,
        due=NOW,
        claimed=NOW,
        started=None,
        ended=NOW,
        admitted=NOW,
    )
    return msgspec.structs.replace(attempt, **changes)


def make_ended(state: State, **changes: Any) -> Ended:
    row = Ended(
        id=KEY,
        lane_id=1,
        state=state,
        reason=None,
        attempt=1,
        counted=1,
        lost=0,
        version=6,
        due=NOW,
        ended=NOW,
        last=make_attempt(),
    )
    return msgspec.structs.replace(row, **changes)


def carry_out(change: Change, row: Row) -> Row:
    """The row that a store has after the change, by the contract of `store.base.JobStore.save`."""
    assert change.id == row.id
    match change:
        case Requeue():
            assert (change.source, change.version) == (place_of(row), row.version)
            assert change.nonce == (row.nonce if isinstance(row, Lease) else None)
            return change.row
        case End():
            assert not isinstance(row, Ended)
            assert (change.source, change.version) == (place_of(row), row.version)
            return Ended(
                id=row.id,
                lane_id=row.lane_id,
                state=change.state,
                reason=change.reason,
                attempt=row.attempt,
                counted=row.counted,
                lost=row.lost,
                version=row.version + 1,
                due=row.due,
                ended=change.ended,
                last=_last_attempt(change, row) if isinstance(row, Lease) else None,
                result=change.result,
            )
        case Mark():
            assert isinstance(row, Lease)
            assert change.nonce == row.nonce
            told = {name: value for name, value in msgspec.structs.asdict(change).items() if value is not None}
            return msgspec.structs.replace(row, **told, version=row.version + (change.cancel_asked is not None))
        case _:
            assert_never(change)


def _last_attempt(change: End, lease: Lease) -> Attempt:
    assert (change.source, change.nonce) == (Place.LEASES, lease.nonce)
    assert change.attempt_status is not None
    return Attempt(
        id=lease.id,
        attempt=lease.attempt,
        status=change.attempt_status,
        worker=lease.worker,
        nonce=lease.nonce,
        due=lease.due,
        claimed=lease.claimed,
        started=change.started or lease.started,
        ended=change.ended,
        error=change.error,
        exit_code=change.exit_code,
    )
