"""From waiting to a worker: what is due, what is ready, claims, and what was missed."""

import heapq
import sqlite3
from collections.abc import Iterable, Mapping, Sequence

import msgspec

from foliot.domain import events, states
from foliot.domain.changes import Requeue
from foliot.domain.duration import Micros
from foliot.domain.ids import JobKey, WorkerKey
from foliot.domain.job import Lane, Lease, Record
from foliot.domain.placement import Order
from foliot.domain.retry import DEFAULT as ANY_RETRY
from foliot.store.base import Admitted, Claimed, Due, Missed
from foliot.store.sqlite.admission import Admission
from foliot.store.sqlite.batch import fetch
from foliot.store.sqlite.changes import Moves
from foliot.store.sqlite.connection import SQL
from foliot.store.sqlite.lanes import lanes_numbered
from foliot.store.sqlite.records import INLINE, build_jobs, jobs_of, load
from foliot.store.sqlite.rows import Columns, Lanes, keys_json, lease_of, ready_of, waiting_of
from foliot.store.sqlite.threads import Threads

_READY_COLUMNS = 14


class SqliteDispatch(Threads):
    """`DispatchStore` on SQLite."""

    async def peek_due(self, until: Micros, limit: int) -> list[Due]:
        def work(connection: sqlite3.Connection) -> list[Due]:
            due = fetch(connection, "due_until", (until, limit))
            return [Due(time, key) for time, key in due or connection.execute(SQL["next_due"])]

        return await self._read(work)

    async def admit(self, keys: Sequence[JobKey]) -> Admitted:
        return await self._write(lambda connection: _admit(connection, keys, self._moves(self._clock.now())))

    async def occupied_lanes(self) -> list[int]:
        def work(connection: sqlite3.Connection) -> tuple[list[int], dict[int, Lane]]:
            found = [lane_id for (lane_id,) in connection.execute(SQL["occupied_lanes"])]
            new = [lane_id for lane_id in found if lane_id not in self._lanes]
            return found, lanes_numbered(connection, new) if new else {}

        found, new = await self._read(work)
        self._meet(new)
        return found

    async def heads(self, lane_ids: Sequence[int], depth: int) -> dict[int, list[int]]:
        return await self._read(lambda connection: dict(fetch(connection, "heads", (keys_json(lane_ids), depth))))

    async def claim(self, orders: Sequence[Order], nonce: int, now: Micros, *, again: bool = False) -> list[Claimed]:
        if again:
            workers = {order.worker for order in orders}
            leased = await self._read(lambda connection: _leased_to(connection, workers, self._lanes))
            return [claimed for claimed in leased if claimed.lease.nonce == nonce]
        return await self._write(
            lambda connection: _claim(
                connection, orders, nonce, self._moves(now), Admission(self._clock.now()), self._lanes
            )
        )

    async def leases_of(self, worker: WorkerKey) -> list[Claimed]:
        return await self._read(lambda connection: _leased_to(connection, [worker], self._lanes))

    async def missed(self, now: Micros, limit: int) -> list[Missed]:
        return await self._read(lambda connection: _missed(connection, now, limit, self._lanes))

    async def expired(self, now: Micros, limit: int) -> list[Record]:
        def work(connection: sqlite3.Connection) -> list[Record]:
            over = heapq.merge(
                connection.execute(SQL["expired_waiting"], (now, limit)).fetchall(),
                connection.execute(SQL["expired_ready"], (now, limit)).fetchall(),
            )
            return list(load(connection, [key for _, key in over][:limit], self._lanes).values())

        return await self._read(work)

    async def next_deadline(self) -> Micros | None:
        def work(connection: sqlite3.Connection) -> Micros | None:
            (deadline,) = connection.execute(SQL["next_deadline"]).fetchone()
            return None if deadline is None else int(deadline)

        return await self._read(work)


def _admit(connection: sqlite3.Connection, keys: Iterable[JobKey], moves: Moves) -> Admitted:
    now, ready, for_key = moves.now, [], []
    for columns in fetch(connection, "admissible", (keys_json(keys), now)):
        row = waiting_of(columns)
        change = states.transition(row, events.Due(), now, retry=ANY_RETRY)
        assert isinstance(change, Requeue)
        moves.take(row)
        moves.put(change.row)
        if row.limit_id is None:
            ready.append((row.id, row.lane_id))
        else:
            for_key.append((row.id, row.limit_id))
    moves.write(connection)
    return Admitted(ready, for_key)


def _claim(
    connection: sqlite3.Connection,
    orders: Sequence[Order],
    nonce: int,
    moves: Moves,
    admission: Admission,
    lanes: Lanes,
) -> list[Claimed]:
    named = keys_json({order.worker for order in orders})
    able = {key for (key,) in connection.execute(SQL["workers_able"], (named, moves.now))}
    takers: dict[int, list[WorkerKey]] = {}
    for order in admission.admitted(connection, [order for order in orders if order.worker in able]):
        takers.setdefault(order.lane_id, []).extend([order.worker] * order.count)
    claimed = []
    popped = _pop(connection, takers)
    jobs = build_jobs(connection, [columns[_READY_COLUMNS:] for columns in popped], lanes)
    turns = {lane_id: iter(workers) for lane_id, workers in takers.items()}
    for columns, job in zip(popped, jobs, strict=True):
        row = ready_of(columns)
        event = events.Claim(worker=next(turns[row.lane_id]), nonce=nonce, timeout=job.timeout)
        lease = states.claim(row, event, moves.now)
        if row.lane_id != job.lane_id:
            lease = msgspec.structs.replace(lease, lane_id=job.lane_id)
        claimed.append(Claimed(lease, job))
    moves.lease([one.lease for one in claimed])
    moves.write(connection)
    admission.charge(connection, [(columns[0], columns[1], columns[13]) for columns in popped])
    return claimed


def _pop(connection: sqlite3.Connection, takers: Mapping[int, Sequence[WorkerKey]]) -> list[Columns]:
    """The first of each lane, as many as it has takers; lanes with equally many in one step."""
    lanes_by_count: dict[int, list[int]] = {}
    for lane_id, workers in takers.items():
        lanes_by_count.setdefault(len(workers), []).append(lane_id)
    return [
        columns
        for count, lane_ids in lanes_by_count.items()
        for columns in fetch(connection, "pop", (keys_json(lane_ids), count, INLINE))
    ]


def _leased_to(connection: sqlite3.Connection, workers: Iterable[WorkerKey], lanes: Lanes) -> list[Claimed]:
    leases = leases_of_workers(connection, workers)
    jobs = jobs_of(connection, (lease.id for lease in leases), lanes)
    return [Claimed(lease, jobs[lease.id]) for lease in leases]


def leases_of_workers(connection: sqlite3.Connection, workers: Iterable[WorkerKey]) -> list[Lease]:
    return [lease_of(columns) for worker in workers for columns in fetch(connection, "leases_of_worker", (worker,))]


_FOREVER = (1 << 63) - 1


def _missed(connection: sqlite3.Connection, now: Micros, limit: int, lanes: Lanes) -> list[Missed]:
    alive: dict[JobKey, bool] = {}
    for worker, lives in connection.execute(SQL["leasing_workers"], (now,)).fetchall():
        bounds = (worker, now if lives else _FOREVER, limit - len(alive))
        alive.update((key, bool(lives)) for (key,) in connection.execute(SQL["overdue_leases"], bounds))
        if len(alive) >= limit:
            break
    records = load(connection, alive, lanes)
    return [Missed(record, alive[key]) for key, record in records.items()]
