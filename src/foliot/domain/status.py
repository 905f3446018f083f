"""How a job's standing is shown: the words of the API. `paused` and `retrying` are shown, never stored."""

from foliot.domain.job import ENDED_STATES, AttemptStatus, Lease, Row, Waiting
from foliot.domain.states import state_of

STATUSES = ("scheduled", "blocked", "queued", "running", "retrying", "paused", "completed", "failed", "cancelled")
WAITING_STATUSES = ("scheduled", "blocked", "queued", "retrying", "paused")  # what a filter's `waiting` means


def status_of(row: Row) -> str:
    if isinstance(row, Waiting):
        if row.hold:
            return "paused"
        if row.attempt and not row.parents and not row.for_key:
            return "retrying"
    return state_of(row).name.lower()


def execution_status(row: Lease) -> AttemptStatus:
    """How a running attempt stands."""
    return AttemptStatus.CLAIMED if row.started is None else AttemptStatus.PROCESSING


def is_ended(status: str) -> bool:
    return any(status == state.name.lower() for state in ENDED_STATES)
