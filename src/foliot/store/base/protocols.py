"""What nodes ask of a store: a few small protocols, batch-first, each method one transaction."""

from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Protocol

from foliot.domain.changes import Change
from foliot.domain.duration import Micros
from foliot.domain.graph import Edge
from foliot.domain.ids import JobKey, ScheduleKey, WorkerKey
from foliot.domain.job import Attempt, AttemptStatus, Lane, Lease, Record
from foliot.domain.placement import Order
from foliot.domain.queue import Queue, QueueBook, Room
from foliot.domain.schedule import Run, Schedule, Standing
from foliot.domain.worker import Worker
from foliot.store.base.access import AccessStore
from foliot.store.base.feed import FeedStore
from foliot.store.base.reader import Reader
from foliot.store.base.values import (
    Accepted,
    Admitted,
    Beat,
    Claimed,
    Clash,
    Crowd,
    Due,
    Fenced,
    Filter,
    Limit,
    LogLine,
    Missed,
    NodeInfo,
    NodeLease,
    Ordered,
    Orphan,
    Page,
    Released,
    Saved,
    Step,
    Submission,
    Upstream,
)
from foliot.store.base.watch import WatchStore


class JobStore(Protocol):
    async def lane_ids(self, lanes: Sequence[Lane]) -> list[int]:
        """The number of each lane, made where it is new. Numbers never change; known ones cost no I/O."""
        ...

    def lane(self, lane_id: int) -> Lane | None:
        """A lane by its number, if this process has met it (claims, loads, `occupied_lanes` and `put_in_order` make it
        meet them)."""
        ...

    async def insert_jobs(self, submissions: Sequence[Submission], now: Micros) -> list[Accepted | Clash | Orphan]:
        """Keep the jobs of all submissions in one transaction; a clash in one leaves the others untouched.

        A job with parents counts them in its row (`parents`), and they are jobs of the same submission or are there:
        live ones are locked and noted as having children, so that their end can not overlook this one; for one that has
        ended already the edge is left to `release`. A job whose `unique_key` a waiting or ready job has is not kept.

        A job whose name is known with the same `body_hash` counts as accepted and is not written again, nor is a
        submission whose `request_key` was seen within 24 h with the same `request_hash`: that answers with the ids of
        then. The same name twice in one call is treated as if it had come in two calls. Safe to repeat with the same
        ids: what is there already is accepted.
        """
        ...

    async def load(self, keys: Sequence[JobKey]) -> dict[JobKey, Record]:
        """Each job with its row as one snapshot; unknown ones are left out. A row is of the job's own lane, whatever
        lane it stands in."""
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
        of history on. The end of a job with children is noted for `release` in the same transaction. A `Requeue` with
        `reopened` lets the edges from those parents count again; a parent among them that has ended (and is not
        requeued in the same call) is noted for `release`, as at submit. A `Requeue` out of history takes an end back
        that `release` has not carried on: those children wait for the next one.
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

    async def admit(self, keys: Sequence[JobKey]) -> Admitted:
        """Move those that are due by the store's clock as `transition(row, Due())` has it: to ready, or, with a
        concurrency key, to the waiters for its token. Others may try at the same time: each is moved once."""
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
        gets nothing. Nothing is claimed of a paused queue or job type, nor of a queue with limits by an order that is
        not `limited`. Of a limited order no more is than `Room.starts` allows by the store's clock, whoever else claims
        at the same time: the queue's row is locked before its jobs are counted and its rate is looked at, and what was
        claimed is charged to the rate in the same transaction. Where orders of one queue ask for more than that, the
        first ones get it. A claim out of a lane of ordering `fair`, where that is the queue's present order, moves the
        queue's time on to the highest rank that it took. The leases are of the jobs' own lanes.
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

    async def beat(self, worker: WorkerKey, now: Micros, until: Micros, *, namespace: str | None = None) -> Beat | None:
        """Prolong its lease; None, and nothing is prolonged, where it has ended, or is of another namespace than that
        given."""
        ...

    async def drain_worker(self, worker: WorkerKey) -> bool: ...

    async def remove_worker(self, worker: WorkerKey) -> bool:
        """Take its row away; what it held has then no living worker and is found by `missed`."""
        ...

    async def workers(self, namespace: str | None = None) -> list[tuple[Worker, Sequence[Lease]]]:
        """Those whose row is there, alive or not, with what they hold."""
        ...

    async def enrolled(self, namespace: str | None = None) -> list[Worker]:
        """The same without what they hold."""
        ...

    async def forget_workers(self, before: Micros) -> int:
        """Take away the rows of workers whose lease ended before that and that hold nothing."""
        ...


class GraphStore(Protocol):
    async def release(self, limit: int, now: Micros) -> Released:
        """Carry ended parents on to their children, about `limit` edges in one transaction, each once: an edge that
        holds counts one parent less, and with the last one the child goes on as `transition(row, ParentsDone())` has
        it; one that never will cancels the child, as `ParentEndedOtherwise` has it, which may be a parent itself.
        Others may do so at the same time."""
        ...

    async def edges(self, keys: Sequence[JobKey], limit: int) -> list[Edge]:
        """The edges to and from these jobs, up to `limit`."""
        ...

    async def upstream(self, keys: Sequence[JobKey], longest: int) -> dict[JobKey, list[Upstream]]:
        """What these jobs are told of their parents that have ended; a result above `longest` characters is left
        out."""
        ...


class LimitStore(Protocol):
    async def set_limits(self, limits: Sequence[tuple[str, str, int]]) -> list[int]:
        """The number of each concurrency key (namespace, key), made where it is new; `limit`, the third, applies from
        now on. Numbers never change. Of a key given twice the last counts."""
        ...

    async def limits(
        self, namespace: str, *, keys: Sequence[str] | None = None, limit: int = 50, after: str = "", names: int = 0
    ) -> list[Limit]:
        """Concurrency keys by name, those after `after`, or these; with up to `names` holders and waiters each."""
        ...

    async def give_tokens(self, limit_ids: Sequence[int], now: Micros) -> list[tuple[JobKey, int]]:
        """Let those that wait for a token of these keys have what is free, by rank, as `transition(row, TokenFree())`
        has it; the (id, lane) of those moved. Never more than the limit are ready or leased at once, whoever else gives
        tokens at the same time: the key's row is locked before they are counted."""
        ...

    async def crowded_limits(self, limit: int, *, after: int = 0) -> list[int]:
        """Concurrency keys that have waiters, by number, those above `after`."""
        ...


class QueueStore(Protocol):
    async def queues(
        self, namespace: str, *, names: Sequence[str] | None = None, limit: int = 50, after: str = ""
    ) -> list[Queue]:
        """Queues by name, those after `after`, or these. A queue is there from its first lane on, or its first
        `put_queue`."""
        ...

    async def special_queues(self) -> QueueBook:
        """The queues of all namespaces that have other rules than the default ones or are paused, and the job types
        that are paused."""
        ...

    async def put_queue(self, queue: Queue, *, expected: int | None, now: Micros) -> Queue | None:
        """Let the rules and `paused` of this queue (by namespace and name; its other fields are not looked at) be
        these, and return it as it is then; a queue that is new is made, at version 1. None, and nothing is changed,
        where it stands at another version than `expected` (0: where it is there at all; None: whatever version it is
        at). The version grows by one where anything changes; `ordered` becomes that version where `changes_order` says
        so, and then the times of its fair keys are forgotten. The rate's next beat is `carried_over` where the rate
        changes. From a change of `max_concurrency` on all its leases count, those that were made before too."""
        ...

    async def hold_type(self, namespace: str, job_type: str, *, held: bool) -> None:
        """Let nothing of a job type start from now on, or let it start again."""
        ...

    async def held_types(self, namespace: str) -> list[str]:
        """The job types that are paused, by name."""
        ...

    async def crowds(self, queue_ids: Sequence[int]) -> dict[int, Crowd]:
        """How full these queues are."""
        ...

    async def rooms(self, queue_ids: Sequence[int]) -> dict[int, Room]:
        """What the limits of these queues allow, read without locks."""
        ...

    async def put_in_order(self, lane_id: int, limit: int) -> Ordered:
        """Move up to `limit` ready jobs of a lane, by rank, to the lane of the same kind that has its queue's ordering
        (made where it is new), with the ranks that `domain.rank` makes; nothing where it is that lane. The rows are
        otherwise as they were, their version too. Those that others hold are stepped over. The queue's row is locked
        meanwhile, so that its policy and the times of its fair keys are the same for all."""
        ...

    async def refund(self, namespace: str, queue: str, fair_key: str, count: int) -> None:
        """So many jobs of a fair key that stood in order went away without a start: its time goes back by what they
        cost. Nothing where the queue is not fair now."""
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

    async def applied(self) -> set[int]:
        """The numbers of the steps that the schema has taken, as they stand in the database now."""
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


class Store(
    JobStore,
    DispatchStore,
    GraphStore,
    LimitStore,
    QueueStore,
    ScheduleStore,
    WorkerStore,
    AccessStore,
    FeedStore,
    WatchStore,
    LifecycleStore,
    Protocol,
):
    """Everything, as nodes use it."""

    def reader(self, namespace: str) -> Reader:
        """Reads on behalf of a caller of this namespace."""
        ...
