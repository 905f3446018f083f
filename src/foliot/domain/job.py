"""A job as the engine holds it: what was asked (`Job`, written once) and where it stands (one narrow row).

A live job has exactly one narrow row: `Waiting`, `Ready` or `Lease`. Its end is `Ended`, the row of history, which also
carries its last attempt. `Attempt` is an attempt that did not end the job. All times are microseconds since 1970.
"""

from enum import IntEnum, IntFlag

import msgspec

from foliot.domain.duration import HOUR, Micros
from foliot.domain.ids import JobKey, WorkerKey
from foliot.domain.priority import DEFAULT as DEFAULT_PRIORITY
from foliot.domain.retry import DEFAULT as DEFAULT_RETRY
from foliot.domain.retry import Retry

DEFAULT_TIMEOUT = HOUR
NAMESPACE = "default"


class State(IntEnum):
    """A job's stored state; the numbers are those of the store and never change."""

    BLOCKED = 1
    SCHEDULED = 2
    QUEUED = 3
    RUNNING = 4
    COMPLETED = 5
    FAILED = 6
    CANCELLED = 7


ENDED_STATES = (State.COMPLETED, State.FAILED, State.CANCELLED)


class AttemptStatus(IntEnum):
    """How one attempt stands; the numbers are those of the store."""

    CLAIMED = 1
    PROCESSING = 2
    SUCCESS = 3
    RETRIABLE_FAILURE = 4
    FATAL_FAILURE = 5
    TIMED_OUT = 6
    LOST = 7
    RELEASED = 8
    CANCELLED = 9


QueueName = tuple[str, str]  # namespace and queue


class Lane(msgspec.Struct, frozen=True):
    """Jobs of a lane need exactly the same of a worker, so that what fits a worker is arithmetic on lanes. `needs` is
    what `domain.needs` makes of resources and labels: empty for a slot and nothing else. `ordering` is how ranks are
    made in it (see `domain.rank`); a job's own lane has none, only what is ready may stand in a lane that has one."""

    namespace: str
    queue: str
    job_type: str
    needs: str = ""
    ordering: str = ""

    @property
    def own(self) -> "Lane":
        """The lane of the same kind without an ordering."""
        return Lane(self.namespace, self.queue, self.job_type, self.needs) if self.ordering else self

    @property
    def line(self) -> QueueName:
        """The queue it belongs to."""
        return self.namespace, self.queue


class Ties(IntFlag):
    """What else hangs on a job, so that a move of its row knows what to do besides."""

    CHILDREN = 1  # jobs depend on it
    PARENTS = 2  # it depends on jobs, whose results it is given


class Job(msgspec.Struct, frozen=True, kw_only=True):
    """What was asked for: the wide row. Only a user's `PUT` changes it."""

    id: JobKey
    name: str | None  # the client's own job_id; None where the shown id is made from `id`
    lane: Lane
    lane_id: int
    priority: int = DEFAULT_PRIORITY
    due: Micros  # schedule_time
    created: Micros
    payload: str = "{}"  # JSON as it came, never parsed by us
    retry: Retry = DEFAULT_RETRY
    timeout: Micros = DEFAULT_TIMEOUT
    deadline: Micros | None = None
    tags: tuple[str, ...] = ()
    owner: str = ""
    schedule_id: str | None = None
    limit_key: str | None = None  # its concurrency key
    unique_key: str | None = None
    fair_key: str | None = None  # None: its owner
    secret_fields: tuple[str, ...] = ()  # of its payload, written and never shown
    notify: str | None = None  # JSON: whom to tell of what; None: as its queue has it
    trace: str | None = None  # the trace it was submitted in, as W3C's `traceparent`


class Narrow(msgspec.Struct, frozen=True, kw_only=True):
    """What every live row carries. `attempt` never repeats; `counted` leaves out released attempts; `tries_left` is
    what a redrive fills up again; `lost` counts attempts whose worker was gone; `version` grows with each change;
    `deadline` is there only until the first claim. `limit_id` is the number of its concurrency key: a row that is ready
    or leased holds one of the key's tokens."""

    id: JobKey
    lane_id: int
    priority: int
    due: Micros  # when this row's work is due: the schedule time, or the next try
    deadline: Micros | None
    attempt: int
    counted: int
    tries_left: int
    lost: int
    version: int
    since: Micros  # when this row was written; of a lease: when the job had become ready
    limit_id: int | None = None
    ties: int = 0  # of `Ties`


class Waiting(Narrow, frozen=True, kw_only=True):
    """Not yet ready: for its time, its parents, because it is held; or (`for_key`) only for a token of its key."""

    hold: bool = False
    parents: int = 0
    for_key: bool = False


class Ready(Narrow, frozen=True, kw_only=True):
    """Only a worker is missing."""

    rank: int


class Lease(Narrow, frozen=True, kw_only=True):
    """Running: owned by one worker under one nonce. `check_at` is when a node itself must step in: the timeout, or the
    end of the grace after a cancel, whichever is first."""

    worker: WorkerKey
    nonce: int
    claimed: Micros
    check_at: Micros
    started: Micros | None = None
    cancel_asked: Micros | None = None
    progress: str | None = None  # JSON: {"value":…, "note":…}


class Attempt(msgspec.Struct, frozen=True, kw_only=True):
    """One attempt of a job. `error` is JSON text."""

    id: JobKey
    attempt: int
    status: AttemptStatus
    worker: WorkerKey
    nonce: int
    due: Micros
    claimed: Micros
    started: Micros | None
    ended: Micros | None
    error: str | None = None
    exit_code: int | None = None
    admitted: Micros | None = None  # when only a worker was missing; unknown of attempts from before it was noted


class Ended(msgspec.Struct, frozen=True, kw_only=True):
    """A job's end: the row of history. The attempt's columns are None where it ended without one."""

    id: JobKey
    lane_id: int
    state: State
    reason: str | None
    attempt: int
    counted: int
    lost: int
    version: int
    due: Micros
    ended: Micros
    last: Attempt | None
    result: str | None = None  # JSON text


Row = Waiting | Ready | Lease | Ended


class Record(msgspec.Struct, frozen=True, kw_only=True):
    """A job and where it stands, as one snapshot. `last` is its latest attempt that has ended, if any; for an ended job
    that is `row.last`."""

    job: Job
    row: Row
    last: Attempt | None = None
