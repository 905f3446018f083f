"""What the state table makes of an event: a change for the store to carry out, or a refusal.

There is one type per outcome, so that combinations that mean nothing can not be built. A change names the row it
replaces by its place, and by `version` or `nonce`.
"""

from collections.abc import Sequence
from enum import Enum

import msgspec

from foliot.domain.duration import Micros
from foliot.domain.ids import JobKey
from foliot.domain.job import Attempt, AttemptStatus, Job, Ready, State, Waiting


class Place(Enum):
    """Where a job's one row is."""

    WAITING = "waiting"
    READY = "ready"
    LEASES = "leases"
    HISTORY = "history"


class Held(msgspec.Struct, frozen=True, kw_only=True):
    """What a token proves: its bearer holds this attempt, if the lease is still there. Enough for the ends that need
    nothing else of the job, so that it need not be loaded first."""

    id: JobKey
    nonce: int


class Requeue(msgspec.Struct, frozen=True, kw_only=True):
    """Replace the narrow row by another one that waits or is ready. `attempt` is the record of the attempt that this
    ended; `job` is the new wide row where a user changed it; `reopened` are the parents that it waits for once more."""

    id: JobKey
    source: Place
    version: int
    nonce: int | None = None
    row: Waiting | Ready
    attempt: Attempt | None = None
    job: Job | None = None
    reopened: Sequence[JobKey] = ()


class End(msgspec.Struct, frozen=True, kw_only=True):
    """Replace the narrow row by a row of history; what it says of lane, due time, attempt and worker is copied, and so
    is `started` where this one is None. The version goes one on."""

    id: JobKey
    source: Place
    version: int | None
    nonce: int | None = None
    state: State
    reason: str | None = None
    ended: Micros
    attempt_status: AttemptStatus | None = None
    started: Micros | None = None
    error: str | None = None
    exit_code: int | None = None
    result: str | None = None


class Mark(msgspec.Struct, frozen=True, kw_only=True):
    """Note something on a lease that stays: progress, or that a cancel was asked. None leaves a column as it is."""

    id: JobKey
    nonce: int
    started: Micros | None = None
    progress: str | None = None
    cancel_asked: Micros | None = None
    check_at: Micros | None = None


Change = Requeue | End | Mark


class Refusal(msgspec.Struct, frozen=True, kw_only=True):
    """The event is not legal in the job's state; nothing changes."""

    id: JobKey
    state: State
    event: str
