"""From waiting to ready to a worker, and back from workers that are gone."""

from collections.abc import Sequence
from operator import itemgetter

import asyncpg
import msgspec

from foliot.domain.duration import Micros
from foliot.domain.ids import JobKey, WorkerKey
from foliot.domain.job import Ended, Lease, Ready, Record, Waiting
from foliot.domain.placement import Order
from foliot.domain.rank import Turn
from foliot.domain.states import TIMEOUT_GRACE
from foliot.store.base import Admitted, Claimed, Due, Missed
from foliot.store.postgres.charges import Charges
from foliot.store.postgres.connections import Connection
from foliot.store.postgres.jobs import Jobs
from foliot.store.postgres.marks import TOP, Look
from foliot.store.postgres.part import SQL
from foliot.store.postgres.rows import JOB_WIDTH, job_of, lease_of


class Dispatch(Jobs):
    async def peek_due(self, until: Micros, limit: int) -> list[Due]:
        return [Due(time, key) for time, key in await self._connections.read(SQL["peek_due"], until, limit)]

    async def admit(self, keys: Sequence[JobKey]) -> Admitted:
        try:
            rows = await self._record(SQL["admit"], sorted(set(keys)))
        except BaseException:
            self._marks.reset()
            raise
        ready = [(key, lane_id, rank) for key, lane_id, rank, limit_id in rows if limit_id is None]
        self._marks.lower((lane_id, (rank, key)) for key, lane_id, rank in ready)
        return Admitted(
            [(key, lane_id) for key, lane_id, _ in ready],
            [(key, limit_id) for key, _, _, limit_id in rows if limit_id is not None],
        )

    async def occupied_lanes(self) -> list[int]:
        rows = await self._connections.read(SQL["occupied_lanes"], *self._marks.columns())
        for row in rows:
            self._meet(*row)
        return [row[0] for row in rows]

    async def heads(self, lane_ids: Sequence[int], depth: int) -> dict[int, list[int]]:
        look = self._marks.look(lane_ids)
        rows = await self._connections.read(SQL["heads"], *look.columns(), depth)
        heads: dict[int, list[int]] = {lane_id: [] for lane_id in look.begin}
        first: dict[int, Turn] = {}
        for lane_id, rank, key in rows:
            heads[lane_id].append(rank)
            first.setdefault(lane_id, (rank, key))
        for lane_id in heads:
            look.found(lane_id, first.get(lane_id, TOP))
        await self._meet_lanes(heads)
        return heads

    async def claim(self, orders: Sequence[Order], nonce: int, now: Micros, *, again: bool = False) -> list[Claimed]:
        if again:
            return await self._leases(sorted({order.worker for order in orders}), nonce)
        orders = [order for order in orders if order.count > 0]
        if not orders:
            return []
        # Met before the claim: nothing that could fail may come between a commit and its answer.
        await self._meet_lanes({order.lane_id for order in orders})
        look = self._marks.look(sorted({order.lane_id for order in orders}))
        charges = Charges(orders, self._lanes, self._queue_ids)
        if charges:
            rows = await self._transact(lambda c: _claim_charged(c, charges, look, nonce, now))
            now = charges.time or now
        else:
            rows = await self._record(SQL["claim"], *_claim_values(orders, look, nonce, now))
        reached: dict[int, Turn] = {}
        claimed = []
        for row in rows:
            values = tuple(row)
            (
                lane_id,
                priority,
                due,
                attempt,
                counted,
                tries_left,
                lost,
                version,
                since,
                limit_id,
                ties,
                worker,
                check_at,
                rank,
            ) = values[JOB_WIDTH:]
            reached[lane_id] = (rank, values[0])
            lease = Lease(
                id=values[0],
                lane_id=values[1],  # the job's own
                priority=priority,
                due=due,
                deadline=None,
                attempt=attempt,
                counted=counted,
                tries_left=tries_left,
                lost=lost,
                version=version,
                since=since,
                worker=worker,
                nonce=nonce,
                claimed=now,
                check_at=check_at,
            )
            if limit_id is not None or ties:  # apart: see `job_of`
                lease = msgspec.structs.replace(lease, limit_id=limit_id, ties=ties)
            claimed.append(Claimed(lease, job_of(values[:JOB_WIDTH], self._lanes)))
        for lane_id, place in reached.items():
            look.found(lane_id, place)
        return claimed

    async def leases_of(self, worker: WorkerKey) -> list[Claimed]:
        return await self._leases([worker], None)

    async def missed(self, now: Micros, limit: int) -> list[Missed]:
        rows = await self._connections.read(SQL["missed"], now, limit)
        records = await self.load([row[0] for row in rows])
        return [
            Missed(record, alive)
            for key, nonce, alive in rows
            if (record := records.get(key)) is not None and isinstance(record.row, Lease) and record.row.nonce == nonce
        ]

    async def expired(self, now: Micros, limit: int) -> list[Record]:
        keys = list(map(itemgetter(0), await self._connections.read(SQL["expired"], now, limit)))
        records = await self.load(keys)
        return [record for record in records.values() if _is_expired(record.row, now)]

    async def next_deadline(self) -> Micros | None:
        deadline: Micros | None = (await self._connections.read(SQL["next_deadline"]))[0][0]
        return deadline

    async def _leases(self, workers: Sequence[WorkerKey], nonce: int | None) -> list[Claimed]:
        rows = [tuple(row) for row in await self._connections.read(SQL["leases_of"], workers, nonce)]
        await self._meet_lanes({row[1] for row in rows})
        return [Claimed(lease_of(row[JOB_WIDTH:]), job_of(row[:JOB_WIDTH], self._lanes)) for row in rows]


async def _claim_charged(
    connection: Connection, charges: Charges, look: Look, nonce: int, now: Micros
) -> list[asyncpg.Record]:
    orders = await charges.trim(connection)
    if not orders:
        return []
    values = _claim_values(orders, look, nonce, charges.time or now)
    rows = await connection.fetch(SQL["claim"], *values, *connection.stamp())
    await charges.pay(connection, [(row[JOB_WIDTH], row[-1]) for row in rows])
    return rows


def _claim_values(orders: Sequence[Order], look: Look, nonce: int, now: Micros) -> tuple[object, ...]:
    return (
        [order.lane_id for order in orders],
        [order.worker for order in orders],
        [order.count for order in orders],
        *look.columns(),
        nonce,
        now,
        TIMEOUT_GRACE,
        [order.limited for order in orders],
    )


def _is_expired(row: Waiting | Ready | Lease | Ended, now: Micros) -> bool:
    return isinstance(row, Waiting | Ready) and row.deadline is not None and row.deadline <= now
