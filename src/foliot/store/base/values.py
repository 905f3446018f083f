"""What goes into a store and comes out of it, beside the domain's own values."""

from collections.abc import Sequence, Set

import msgspec

from foliot.domain.duration import Micros
from foliot.domain.feed import Happening
from foliot.domain.graph import On
from foliot.domain.ids import JobKey, ScheduleKey
from foliot.domain.job import Job, Lease, Ready, Record, State, Waiting
from foliot.domain.schedule import Run, Schedule
from foliot.domain.worker import Worker
from foliot.store.base.feed import Timing


class Parent(msgspec.Struct, frozen=True):
    """A job that a new one depends on, and which end of it is asked for."""

    id: JobKey
    on: On


class NewJob(msgspec.Struct, frozen=True, kw_only=True):
    """A job to keep: the wide row and its first narrow row. `body_hash` is kept for jobs that a client named;
    `older_hashes` are what was kept of the same body earlier, under other keys."""

    job: Job
    row: Waiting | Ready
    body_hash: bytes
    older_hashes: Sequence[bytes] = ()
    parents: Sequence[Parent] = ()


class Submission(msgspec.Struct, frozen=True, kw_only=True):
    """One request's jobs, kept all or not at all. `request_key` is its `Idempotency-Key`, `request_hash` its whole
    body's, and `older_hashes` those that may have been kept of it earlier."""

    namespace: str
    jobs: Sequence[NewJob]
    request_key: str | None = None
    request_hash: bytes = b""
    older_hashes: Sequence[bytes] = ()


class Accepted(msgspec.Struct, frozen=True):
    """Kept, now or by an earlier call with the same body: the ids in the order given. `new` are those that this call
    kept. `duplicates` are the places, in that order, of jobs whose `unique_key` another waiting job has: that one's id
    is given. `parents_ended` tells that a parent of a new one has ended already, so that `release` has something to
    do."""

    ids: Sequence[str]
    new: Sequence[JobKey]
    duplicates: Sequence[int] = ()
    parents_ended: bool = False


class Orphan(msgspec.Struct, frozen=True):
    """Not kept: it depends on this job, which is not there (any more)."""

    parent: JobKey


class Clash(msgspec.Struct, frozen=True):
    """Not kept: this job_id (or Idempotency-Key, then `name` is None) was used before with another body."""

    name: str | None


class Due(msgspec.Struct, frozen=True):
    """A waiting job's next moment."""

    time: Micros
    id: JobKey


class Claimed(msgspec.Struct, frozen=True):
    """A lease just given, and what the worker needs of the wide row."""

    lease: Lease
    job: Job


class Missed(msgspec.Struct, frozen=True):
    """A lease that a node must end. `alive` tells whether its worker's lease still runs (then it is the attempt that
    is past its `check_at`)."""

    record: Record
    alive: bool


class LogLine(msgspec.Struct, frozen=True, kw_only=True):
    """One line of a job's log; `level` is logging's number (10, 20, 30, 40)."""

    log_id: int
    id: JobKey
    attempt: int
    time: Micros
    level: int
    message: str


class Fenced(msgspec.Struct, frozen=True):
    """A log line and the nonce under which it is handed in."""

    nonce: int
    line: LogLine


class Filter(msgspec.Struct, frozen=True, kw_only=True):
    """Which jobs: every field given must match; of `statuses` (words of `domain.status`), `queues` and `job_types` any,
    of `tags` all. `queues` and `job_types` are what the one who asks reaches at all."""

    namespace: str
    statuses: tuple[str, ...] = ()
    job_type: str | None = None
    queue: str | None = None
    owner: str | None = None
    tags: tuple[str, ...] = ()
    schedule_id: str | None = None
    due_after: Micros | None = None
    due_before: Micros | None = None
    queues: tuple[str, ...] = ()
    job_types: tuple[str, ...] = ()


class Page(msgspec.Struct, frozen=True):
    """Records newest first, their payloads left out (""). `next` is the id below which the next page begins; None at
    the end. A page may be short, even empty, and still have a next one: a call scans a bounded number of rows."""

    records: Sequence[Record]
    next: JobKey | None


class Saved(msgspec.Struct, frozen=True):
    """What a `save` did: the jobs whose change took effect, the schedules of which it ended a run, the concurrency keys
    that may have a token or a waiter more, the queues that were full and have a place more, whether jobs ended on
    which others depend (then `release` has something to do), and the times of the attempts that ended their job."""

    done: set[JobKey]
    freed: set[ScheduleKey]
    limits: Set[int] = frozenset()
    parents_ended: bool = False
    queues: Set[int] = frozenset()
    timings: Sequence[Timing] = ()


NOTHING_SAVED = Saved(set(), set())


class Admitted(msgspec.Struct, frozen=True):
    """What came of jobs whose time has come: the (id, lane) of those that are ready, and the (id, limit_id) of those
    that wait for a token of their concurrency key now."""

    ready: Sequence[tuple[JobKey, int]]
    for_key: Sequence[tuple[JobKey, int]] = ()


class Released(msgspec.Struct, frozen=True, kw_only=True):
    """What the ends of parents brought their children: `lanes` with new ready jobs, the due times of those that wait
    for their time now, the keys of those that wait for a token, the jobs that were cancelled and the schedules whose
    runs those were. `more` tells that there is more to do."""

    lanes: Set[int] = frozenset()
    due: Sequence[Due] = ()
    limits: Set[int] = frozenset()
    cancelled: Set[JobKey] = frozenset()
    freed: Set[ScheduleKey] = frozenset()
    more: bool = False


class Upstream(msgspec.Struct, frozen=True, kw_only=True):
    """What a child is told of a parent: its id as clients know it, how it ended, what it returned (JSON text, left out
    where it is `too_long`)."""

    id: JobKey
    name: str
    state: State
    result: str | None
    too_long: bool = False


class Limit(msgspec.Struct, frozen=True, kw_only=True):
    """A concurrency key: its number, how many at once, and who holds a token and who waits for one (by rank), up to
    the limit asked for; the counts end at 10,000."""

    limit_id: int
    key: str
    most: int
    held: int
    waiting: int
    holders: Sequence[JobKey] = ()
    waiters: Sequence[JobKey] = ()


class Crowd(msgspec.Struct, frozen=True, kw_only=True):
    """How full a queue is: jobs of which only a worker or the queue's own limits are missing, those that run, and since
    when the one that was due first waits. `waiting` ends at 100,000, and `oldest` is then of those."""

    waiting: int = 0
    running: int = 0
    oldest: Micros | None = None


class Ordered(msgspec.Struct, frozen=True):
    """What `put_in_order` did: how many jobs it moved, and to which lanes."""

    moved: int
    lanes: Set[int] = frozenset()


class Step(msgspec.Struct, frozen=True, kw_only=True):
    """A schedule's next state, with all that comes with it: rows of the ledger, and jobs, each a run under way from
    then on (of a backfill where its row says so). It takes effect where the schedule stands at the version before it
    (a new one, of version 1, where its name is free) and the store's clock has reached `not_before`. `happenings` are
    recorded with it."""

    schedule: Schedule
    runs: Sequence[Run] = ()
    jobs: Sequence[NewJob] = ()
    not_before: Micros = 0
    happenings: Sequence[Happening] = ()


class Beat(msgspec.Struct, frozen=True):
    """What a worker's heartbeat brings back: the worker, and its attempts that are to stop."""

    worker: Worker
    stop: Sequence[Lease]


class NodeLease(msgspec.Struct, frozen=True):
    """A node's number, its own until `until`, and the highest id that was ever made under it."""

    number: int
    floor: int
    until: Micros


class NodeInfo(msgspec.Struct, frozen=True, kw_only=True):
    number: int
    name: str
    version: str
    since: Micros
    seen: Micros
    until: Micros
