"""The store's contract. Times are microseconds since 1970 and passed in; `now` alone is the store's own clock."""

from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Protocol

import msgspec

from foliot.domain.changes import Change
from foliot.domain.duration import Micros
from foliot.domain.ids import JobKey, ScheduleKey, WorkerKey
from foliot.domain.job import Attempt, AttemptStatus, Job, Lane, Lease, Ready, Record, Waiting
from foliot.domain.placement import Order
from foliot.domain.schedule import Run, Schedule, Standing
from foliot.domain.worker import Worker


class NewJob(msgspec.Struct, frozen=True, kw_only=True):
    """A job to keep: the wide row and its first narrow row. `body_hash` is kept for jobs that a client named."""

    job: Job
    row: Waiting | Ready
    body_hash: bytes


class Submission(msgspec.Struct, frozen=True, kw_only=True):
    """One request's jobs, kept all or not at all. `request_key` is its `Idempotency-Key`, `request_hash` its whole
    body's."""

    namespace: str
    jobs: Sequence[NewJob]
    request_key: str | None = None
    request_hash: bytes = b""


class Accepted(msgspec.Struct, frozen=True):
    """Kept, now or by an earlier call with the same body: the ids in the order given. `new` are those that this call
    kept."""

    ids: Sequence[str]
    new: Sequence[JobKey]


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
    """Which jobs: every field given must match; of `statuses` (words of `domain.status`) any, of `tags` all."""

    namespace: str
    statuses: tuple[str, ...] = ()
    job_type: str | None = None
    queue: str | None = None
    owner: str | None = None
    tags: tuple[str, ...] = ()
    schedule_id: str | None = None
    due_after: Micros | None = None
    due_before: Micros | None = None


class Page(msgspec.Struct, frozen=True):
    """Records newest first, their payloads left out (""). `next` is the id below which the next page begins; None at
    the end. A page may be short, even empty, and still have a next one: a call scans a bounded number of rows."""

    records: Sequence[Record]
    next: JobKey | None


class Saved(msgspec.Struct, frozen=True):
    """What a `save` did: the jobs whose change took effect, and the schedules of which it ended a run."""

    done: set[JobKey]
    freed: set[ScheduleKey]


NOTHING_SAVED = Saved(set(), set())


class Step(msgspec.Struct, frozen=True, kw_only=True):
    """A schedule's next state, with all that comes with it: rows of the ledger, and jobs, each a run under way from
    then on (of a backfill where its row says so). It takes effect where the schedule stands at the version before it
    (a new one, of version 1, where its name is free) and the store's clock has reached `not_before`."""

    schedule: Schedule
    runs: Sequence[Run] = ()
    jobs: Sequence[NewJob] = ()
    not_before: Micros = 0


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


class JobStore(Protocol):
    async def lane_ids(self, lanes: Sequence[Lane]) -> list[int]:
        """The number of each lane, made where it is new. Numbers never change; known ones cost no I/O."""
        ...

    def lane(self, lane_id: int) -> Lane | None:
        """A lane by its number, if this process has met it (claims, loads and `occupied_lanes` make it meet them)."""
        ...

    async def insert_jobs(self, submissions: Sequence[Submission], now: Micros) -> list[Accepted | Clash]:
        """Keep the jobs of all submissions in one transaction; a clash in one leaves the others untouched.

        A job whose name is known with the same `body_hash` counts as accepted and is not written again, nor is a
        submission whose `request_key` was seen within 24 h with the same `request_hash`: that answers with the ids of
        then. The same name twice in one call is treated as if it had come in two calls. Safe to repeat with the same
        ids: what is there already is accepted.
        """
        ...

    async def load(self, keys: Sequence[JobKey]) -> dict[JobKey, Record]:
        """Each job with its row as one snapshot; unknown ones are left out."""
        ...

    async def find(self, namespace: str, names: Sequence[str]) -> dict[str, JobKey]:
        """The ids behind clients' own names."""
        ...

    async def list_jobs(self, filter: Filter, *, limit: int, before: JobKey | None) -> Page: ...

    async def save(self, changes: Sequence[Change], now: Micros) -> Saved:
        """Carry out changes (at most one a job) in one transaction.

        A change takes effect where the row it replaces is in its place with the version and nonce it names (where it
        names them). `Requeue` writes the new narrow row, the attempt's record and the wide row where given; `End`
        writes history with what it copies from the row; `Mark` changes the lease in place, and adds one to its
        version where it notes a cancel. A schedule's run is under way until its `End`, and again from a `Requeue` out
        of history on.
        """
        ...

    async def outcomes(self, attempts: Sequence[tuple[JobKey, int]]) -> dict[tuple[JobKey, int], AttemptStatus]:
        """How attempts ended, by (id, nonce); those still running or unknown are left out."""
        ...

    async def executions(self, key: JobKey) -> list[Attempt]:
        """All attempts, oldest first, the running one included."""
        ...

    async def result(self, key: JobKey) -> str | None:
        """What the handler returned, as JSON text; None where there is none."""
        ...

    async def append_logs(self, lines: Sequence[Fenced]) -> set[int]:
        """Keep the lines whose (id, nonce) is leased; the log ids of the others are returned and nothing of them is
        kept."""
        ...

    async def logs(self, key: JobKey, *, after: int, level: int, limit: int) -> list[LogLine]:
        """Lines above `after`, of that level or worse, oldest first."""
        ...


class DispatchStore(Protocol):
    async def peek_due(self, until: Micros, limit: int) -> list[Due]:
        """The earliest waiting jobs that only wait for their time (no hold, no parents), due up to `until`; where
        there is none up to then, the single earliest one of all."""
        ...

    async def admit(self, keys: Sequence[JobKey]) -> list[tuple[JobKey, int]]:
        """Move those that are due by the store's clock from waiting to ready, as `transition(row, Due())` has it; the
        (id, lane) of those moved. Others may try at the same time: each is moved once."""
        ...

    async def occupied_lanes(self) -> list[int]:
        """The lanes that have ready jobs, without counting them."""
        ...

    async def heads(self, lane_ids: Sequence[int], depth: int) -> dict[int, list[int]]:
        """The smallest ranks of each lane, up to `depth`, ascending, read without locks."""
        ...

    async def claim(self, orders: Sequence[Order], nonce: int, now: Micros, *, again: bool = False) -> list[Claimed]:
        """Pop up to `count` of each order's lane by rank and lease them to its worker, as `domain.states.claim` has it.

        Rows that others hold are stepped over. `nonce` is fresh for each call; with `again` it is that of a call
        whose fate is unknown: what that call leased is returned and nothing else is claimed. A worker that is gone
        gets nothing.
        """
        ...

    async def leases_of(self, worker: WorkerKey) -> list[Claimed]:
        """All that is leased to a worker."""
        ...

    async def missed(self, now: Micros, limit: int) -> list[Missed]:
        """Leases whose worker is not alive (its lease is over, or it has no row), or that are past their `check_at`."""
        ...

    async def expired(self, now: Micros, limit: int) -> list[Record]:
        """Jobs in waiting or ready whose deadline is over."""
        ...

    async def next_deadline(self) -> Micros | None:
        """The earliest deadline of any waiting or ready job."""
        ...


class WorkerStore(Protocol):
    async def add_worker(self, worker: Worker) -> None: ...

    async def beat(self, worker: WorkerKey, now: Micros, until: Micros) -> Beat | None:
        """Prolong its lease; None where it has ended (then nothing is prolonged)."""
        ...

    async def drain_worker(self, worker: WorkerKey) -> bool: ...

    async def remove_worker(self, worker: WorkerKey) -> bool:
        """Take its row away; what it held has then no living worker and is found by `missed`."""
        ...

    async def workers(self, namespace: str | None = None) -> list[tuple[Worker, Sequence[Lease]]]:
        """Those whose row is there, alive or not, with what they hold."""
        ...

    async def forget_workers(self, before: Micros) -> int:
        """Take away the rows of workers whose lease ended before that and that hold nothing."""
        ...


class ScheduleStore(Protocol):
    async def save_schedules(self, steps: Sequence[Step]) -> set[ScheduleKey]:
        """Carry out steps (at most one a schedule) in one transaction; the ids of those that took effect.

        A run of the ledger replaces the one with the same `due` and `until`, unless that has its job (`WITH_JOB`), or
        both have no verdict. A job whose name is taken is not written again: the due time has its job.
        """
        ...

    async def schedule(self, namespace: str, name: str) -> Schedule | None: ...

    async def list_schedules(self, namespace: str, *, limit: int, before: ScheduleKey | None) -> Sequence[Schedule]:
        """Newest first, those made before `before`."""
        ...

    async def remove_schedule(self, key: ScheduleKey, version: int) -> bool:
        """Take it away, where it stands at that version, with its waiting due times. Its jobs stay; its ledger is not
        found any more and goes with its time."""
        ...

    async def peek_schedules(self, until: Micros, limit: int) -> list[Standing]:
        """The schedules that are not paused and due up to `until`, earliest first; where there is none up to then, the
        single earliest one of all."""
        ...

    async def standings(self, keys: Sequence[ScheduleKey]) -> dict[ScheduleKey, Standing]:
        """Each schedule as one snapshot; unknown ones are left out."""
        ...

    async def waiting_schedules(self, limit: int, *, after: int = 0) -> list[ScheduleKey]:
        """Schedules that are not paused and have due times that wait, by id, those above `after`."""
        ...

    async def runs(self, key: ScheduleKey, *, limit: int, before: Micros | None) -> list[Run]:
        """The ledger, newest due time first, from before `before` on; of the same `due`, the longer range first."""
        ...

    async def settled_dues(self, key: ScheduleKey, since: Micros, until: Micros) -> set[Micros]:
        """The due times from `since` to `until`, both included, that have their job, or wait for it."""
        ...

    async def due_by_minute(self, namespace: str, since: Micros, until: Micros) -> dict[Micros, int]:
        """How many waiting jobs (no hold, no parents) are due from `since` on and before `until`, in each minute that
        has some; the key is its start."""
        ...


class LifecycleStore(Protocol):
    kind: str  # "sqlite" or "postgres", for people

    async def open(self) -> None:
        """Connect, bring the schema up to date. Raises `Unavailable`, or `SchemaMismatch` where it is newer."""
        ...

    async def close(self) -> None: ...

    async def now(self) -> Micros:
        """The store's clock."""
        ...

    async def acquire_node(self, name: str, version: str, now: Micros, until: Micros) -> NodeLease:
        """A node number that nobody else has."""
        ...

    async def beat_node(self, number: int, now: Micros, until: Micros, last_id: int) -> bool:
        """Prolong; False where the number was given to another meanwhile."""
        ...

    async def release_node(self, number: int, last_id: int) -> None: ...

    async def nodes(self) -> list[NodeInfo]: ...

    async def prepare_days(self, now: Micros) -> None:
        """Make room for the coming days' rows (partitions), where the store has such."""
        ...

    async def forget(self, before: Micros, limit: int) -> int:
        """Take away what is past: jobs made and ended before `before`, with all that belongs to them, and request
        keys older than 24 h before the store's clock, and rows of the ledger decided before `before` (not those that
        wait). Live jobs stay, however old. At most about `limit` rows a call;
        the number taken, 0 when nothing is left to do."""
        ...

    async def notify(self, hint: str) -> None:
        """Tell the other nodes. A lost hint costs a short poll, never a job."""
        ...

    def hints(self) -> AsyncIterator[str]:
        """What other nodes told, from now on; `""` after a gap (a reconnect), when anything may have been missed."""
        ...

    async def counts(self, namespace: str) -> Mapping[str, int]:
        """About how many jobs stand in each state, cheaply: an estimate is right, a full count is not."""
        ...


class Store(JobStore, DispatchStore, ScheduleStore, WorkerStore, LifecycleStore, Protocol):
    """Everything, as nodes use it."""
