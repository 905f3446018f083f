"""What those who watch keep: definitions, incidents, deliveries, posts, lateness; and what they ask of jobs."""

from collections.abc import Awaitable, Callable, Iterable, Sequence
from operator import itemgetter
from typing import Final, TypeVar

import msgspec
from asyncpg import exceptions as pg

from foliot.domain.duration import Micros
from foliot.store.base import Definition, Delivery, Fact, Incident, Kind, LatenessRow, Post, Waiter
from foliot.store.postgres.connections import Connection, columns
from foliot.store.postgres.facts import NARROW, dead_rows, server_health
from foliot.store.postgres.part import SQL, Part
from foliot.store.waiters import BEYOND, IN_ORDER, first_due, stretches

_STATES: Final = ("pending", "delivered", "failed")
_FORGET: Final = ("forget_incidents", "forget_deliveries", "forget_lateness")
_TRIED: Final = ("id", "state", "attempts", "next_try", "last_status", "last_error", "changed")

S = TypeVar("S", bound=msgspec.Struct)


class _Refused(Exception):
    """Takes a transaction back that found something else than it was told."""


class Watch(Part):
    async def put_definition(self, definition: Definition, *, expected: int | None) -> Definition | None:
        names = (definition.kind, definition.namespace, definition.name, definition.body)
        if expected:
            rows = await self._connections.write(SQL["change_definition"], *names, expected)
        else:
            replace = expected is None
            rows = await self._connections.write(SQL["put_definition"], *names, definition.created, replace)
        return _one(Definition, rows)

    async def definitions(self, kind: Kind | None = None, *, namespace: str | None = None) -> list[Definition]:
        return _all(Definition, await self._connections.read(SQL["definitions"], kind, namespace))

    async def remove_definition(self, kind: Kind, namespace: str, name: str) -> bool:
        return bool(await self._connections.write(SQL["remove_definition"], kind, namespace, name))

    async def take_post(self, name: str, node: int, now: Micros, until: Micros) -> Post | None:
        return _one(Post, await self._connections.write(SQL["take_post"], name, node, now, until))

    async def leave_post(self, name: str, node: int) -> None:
        await self._connections.write(SQL["leave_post"], name, node)

    async def advance(
        self,
        post: Post,
        position: str,
        *,
        deliveries: Sequence[Delivery] = (),
        incidents: Sequence[Incident] = (),
    ) -> bool:
        async def work(connection: Connection) -> None:
            if not await connection.fetch(SQL["move_post"], post.name, post.node, post.position, position):
                raise _Refused
            if deliveries:
                await connection.execute(SQL["add_deliveries"], *_columns(deliveries))
            await _save(connection, incidents)

        return await self._unless_refused(work)

    async def open_incidents(self, namespace: str | None = None) -> list[Incident]:
        return _all(Incident, await self._connections.read(SQL["open_incidents"], namespace))

    async def incidents(self, namespace: str, *, limit: int, before: int | None = None) -> list[Incident]:
        start = BEYOND if before is None else before
        return _all(Incident, await self._connections.read(SQL["incidents"], namespace, start, limit))

    async def incident(self, namespace: str, incident_id: int) -> Incident | None:
        return _one(Incident, await self._connections.read(SQL["incident"], namespace, incident_id))

    async def save_incidents(self, incidents: Sequence[Incident]) -> bool:
        return await self._unless_refused(lambda connection: _save(connection, incidents))

    async def take_notices(self, now: Micros, until: Micros, limit: int) -> list[Incident]:
        return _taken(Incident, await self._connections.write(SQL["take_notices"], now, until, limit))

    async def take_deliveries(self, now: Micros, until: Micros, limit: int) -> list[Delivery]:
        return _taken(Delivery, await self._connections.write(SQL["take_deliveries"], now, until, limit))

    async def finish_deliveries(self, deliveries: Sequence[Delivery]) -> None:
        if deliveries:
            ends = sorted({delivery.id: delivery for delivery in deliveries}.items())
            await self._connections.write(
                SQL["finish_deliveries"], *([getattr(delivery, name) for _, delivery in ends] for name in _TRIED)
            )

    async def next_delivery(self) -> Micros | None:
        rows = await self._connections.read(SQL["next_delivery"])
        return rows[0][0] if rows else None

    async def deliveries(
        self, namespace: str, webhook: str, *, limit: int, before: int | None = None, state: str | None = None
    ) -> list[Delivery]:
        states = _STATES if state is None else (state,)
        start = BEYOND if before is None else before
        return _all(Delivery, await self._connections.read(SQL["deliveries"], namespace, webhook, start, limit, states))

    async def delivery(self, namespace: str, webhook: str, delivery_id: int) -> Delivery | None:
        rows = await self._connections.read(SQL["delivery"], namespace, webhook, delivery_id)
        return _one(Delivery, rows)

    async def add_lateness(self, rows: Sequence[LatenessRow]) -> None:
        # In one order, so that two nodes wait for each other in it.
        newest = {(row.minute, row.node, row.namespace, row.queue, row.job_type): row for row in rows}
        if newest:
            await self._connections.write(SQL["add_lateness"], *_columns([newest[key] for key in sorted(newest)]))

    async def lateness(self, namespace: str | None, since: Micros, until: Micros) -> list[LatenessRow]:
        if namespace is None:
            return _all(LatenessRow, await self._connections.read(SQL["lateness"], since, until))
        return _all(LatenessRow, await self._connections.read(SQL["lateness_of"], since, until, namespace))

    async def waiters(self, lane_ids: Sequence[int], before: Micros, limit: int) -> list[Waiter]:
        own = sorted(set(lane_ids))
        if not own or limit <= 0:
            return []
        ordered = await self._connections.read(SQL["lanes_in_order"], own)
        begin = self._marks.look([*own, *(lane_id for _, lane_id in ordered)]).begin
        wanted = [
            (lane_id, lane_id, *max(begin[lane_id], (first, 0)), end, limit)
            for lane_id in own
            for first, end in stretches(before)
            if begin[lane_id][0] < end
        ]
        wanted += [(base, lane_id, *begin[lane_id], BEYOND, max(limit, IN_ORDER)) for base, lane_id in ordered]
        rows = await self._connections.read(SQL["waiters"], *columns(wanted, 6), own, before, limit)
        return first_due(((lane_id, key, due) for lane_id, key, due in rows), before, limit)

    async def overruns(self, claimed_before: Micros, limit: int) -> list[tuple[int, int, Micros]]:
        rows = await self._connections.read(SQL["overruns"], claimed_before, limit)
        return [(key, lane_id, since) for key, lane_id, since in rows]

    async def facts(self) -> list[Fact]:
        tables = await self._connections.read(SQL["dead_rows"], NARROW)
        server = await self._connections.read(SQL["server_health"])
        return [*dead_rows([tuple(row) for row in tables]), *server_health(*server[0])]

    async def forget_watch(self, before: Micros, limit: int) -> int:
        gone = 0
        for query in _FORGET:
            if gone < limit:
                gone += len(await self._connections.write(SQL[query], before, limit - gone))
        return gone

    async def _unless_refused(self, work: Callable[[Connection], Awaitable[None]]) -> bool:
        try:
            await self._connections.transact(work)
        except _Refused:
            return False
        return True


async def _save(connection: Connection, incidents: Sequence[Incident]) -> None:
    for part in _apart(incidents):
        new = [incident for incident in part if incident.version == 1]
        known = sorted((incident for incident in part if incident.version > 1), key=lambda each: each.id)
        saved = 0
        if known:
            try:
                saved += len(await connection.fetch(SQL["change_incidents"], *_columns(known)))
            except pg.UniqueViolationError as error:  # open again, and another one is
                raise _Refused from error
        if new:
            saved += len(await connection.fetch(SQL["add_incidents"], *_columns(new)))
        if saved < len(part):
            raise _Refused


def _apart(incidents: Iterable[Incident]) -> list[list[Incident]]:
    """Parts, in order, in which none is about the same as another one: they can be saved at once. Mostly one."""
    parts: list[list[Incident]] = []
    seen: set[object] = set()
    for incident in incidents:
        names: set[object] = {incident.id, (incident.namespace, incident.rule, incident.subject)}
        if not parts or seen & names:
            parts.append([])
            seen = set()
        parts[-1].append(incident)
        seen |= names
    return parts


def _all(kind: type[S], rows: Iterable[Iterable[object]]) -> list[S]:
    """Structs of rows that have their fields as columns, in that order."""
    return [kind(**dict(zip(kind.__struct_fields__, row, strict=True))) for row in rows]


def _one(kind: type[S], rows: Iterable[Iterable[object]]) -> S | None:
    return next(iter(_all(kind, rows)), None)


def _taken(kind: type[S], rows: Iterable[Iterable[object]]) -> list[S]:
    """Of rows that end with when their turn came: in that order."""
    ordered = sorted((tuple(row) for row in rows), key=itemgetter(-1, 0))
    return _all(kind, [row[:-1] for row in ordered])


def _columns(structs: Sequence[msgspec.Struct]) -> list[list[object]]:
    return columns([msgspec.structs.astuple(each) for each in structs], len(structs[0].__struct_fields__))
