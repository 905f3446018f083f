"""Why a job does not run yet, or how it ended: loads what `domain.why` decides from."""

from datetime import datetime

from foliot.clock import Clock
from foliot.domain.access import Caller
from foliot.domain.duration import Micros
from foliot.domain.ids import WORKER, show
from foliot.domain.job import Ended, Lease, Ready, Record, State, Waiting
from foliot.domain.needs import SLOT, UNIT, read_needs
from foliot.domain.placement import Demand
from foliot.domain.status import status_of
from foliot.domain.why import Key, OpenParent, Reason, reasons
from foliot.service.limits import limits_of
from foliot.service.query import EDGES_SHOWN, Query
from foliot.service.sealing import Sealer
from foliot.service.view import show_error, shown_id
from foliot.store.base import Store
from foliot.wire import ErrorInfo, ReasonInfo, WhyInfo, to_time

NAMES_SHOWN = 100
PLENTY = 1 << 40  # slots of a worker that does not say how many it has


class Explain:
    def __init__(self, store: Store, clock: Clock, query: Query, sealer: Sealer) -> None:
        self._store = store
        self._sealer = sealer
        self._clock = clock
        self._query = query

    async def why(self, job_id: str, caller: Caller) -> WhyInfo:
        record = await self._query.find(job_id, caller)
        row = record.row
        if isinstance(row, Ended):
            return WhyInfo(summary=_story(record, row, self._sealer), reasons=[], expected_start=None)
        if isinstance(row, Lease):
            asked = ", and was asked to stop" if row.cancel_asked is not None else ""
            since = to_time(row.started or row.claimed)
            summary = f"running since {since:%Y-%m-%d %H:%M:%S} UTC on {show(WORKER, row.worker)}{asked}"
            return WhyInfo(summary=summary, reasons=[], expected_start=None)
        return await self._waits(record, row, caller)

    async def _waits(self, record: Record, row: Waiting | Ready, caller: Caller) -> WhyInfo:
        lane = record.job.lane
        queue = next(iter(await self._store.queues(lane.namespace, names=[lane.queue])), None)
        rooms = await self._store.rooms([queue.queue_id]) if queue is not None and queue.rules.limited else {}
        held_types = await self._store.held_types(lane.namespace)
        now = self._clock.now()
        found = reasons(
            row,
            lane,
            now,
            parents=await self._open_parents(record, row, caller),
            key=await self._key(record, row, caller),
            queue=queue,
            room=next(iter(rooms.values()), None),
            type_held=lane.job_type in held_types,
            demands=await self._demands(lane.namespace, now),
        )
        return WhyInfo(
            summary=_summary(found),
            reasons=[
                ReasonInfo(
                    reason=each.reason,
                    detail=each.detail,
                    by=list(each.by),
                    until=None if each.until is None else to_time(each.until),
                )
                for each in found
            ],
            expected_start=_expected(found, now),
        )

    async def _open_parents(self, record: Record, row: Waiting | Ready, caller: Caller) -> list[OpenParent]:
        if not isinstance(row, Waiting) or not row.parents:
            return []
        edges = [
            edge
            for edge in await self._store.edges([record.job.id], EDGES_SHOWN)
            if edge.child == record.job.id and not edge.done
        ]
        parents = await self._store.load([edge.parent for edge in edges])
        return [
            OpenParent(name=shown_id(parent.job), status=status_of(parent.row), on=edge.on)
            for edge in edges
            if (parent := parents.get(edge.parent)) is not None and caller.reaches(parent.job.lane)
        ]

    async def _key(self, record: Record, row: Waiting | Ready, caller: Caller) -> Key | None:
        if not isinstance(row, Waiting) or record.job.limit_key is None:
            return None
        limits = await limits_of(self._store, [record], names=NAMES_SHOWN)
        limit = limits[record.job.lane.namespace, record.job.limit_key]
        holders = await self._store.load(limit.holders)
        waiters = list(limit.waiters)
        return Key(
            key=limit.key,
            most=limit.most,
            held=limit.held,
            holders=tuple(
                shown_id(holders[key].job)
                for key in limit.holders
                if key in holders and caller.reaches(holders[key].job.lane)
            ),
            before=waiters.index(record.job.id) if record.job.id in waiters else limit.waiting,
        )

    async def _demands(self, namespace: str, now: Micros) -> list[Demand]:
        """The workers that may be given something, each with what its leases leave of what it has."""
        demands: list[Demand] = []
        for worker, leases in await self._store.workers(namespace):
            if worker.until <= now or worker.draining:
                continue
            free = {name: worker.offer(name) or 0 for name in worker.resources}
            free.setdefault(SLOT, PLENTY * UNIT)
            for lease in leases:
                lane = self._store.lane(lease.lane_id)
                for name, amount in read_needs(lane.needs if lane is not None else "").amounts:
                    free[name] = free.get(name, 0) - amount
            demands.append(Demand(worker, free))
        return demands


def _summary(found: list[Reason]) -> str:
    return "it starts as soon as a worker asks" if not found else "; ".join(each.detail for each in found)


def _expected(found: list[Reason], now: Micros) -> datetime | None:
    """When it starts, where that can be told: now, or at its time if nothing else holds it back."""
    if not found:
        return to_time(now)
    only = found[0] if len(found) == 1 else None
    return to_time(only.until) if only is not None and only.reason == "time" and only.until is not None else None


def _story(record: Record, row: Ended, sealer: Sealer) -> str:
    attempts = f"{row.attempt} attempt{'' if row.attempt == 1 else 's'}"
    if row.state is State.COMPLETED:
        return f"completed after {attempts}"
    reason = f" ({row.reason})" if row.reason else ""
    if row.state is State.CANCELLED:
        return f"cancelled{reason} after {attempts}" if row.attempt else f"cancelled{reason} before it started"
    if row.reason == "expired":
        return "failed (expired): it had not started by its deadline"
    error = show_error(record.last, sealer) if record.last is not None else None
    message = error.message if isinstance(error, ErrorInfo) else error
    return f"failed{reason} after {attempts}" + (f": {message}" if message else "")
