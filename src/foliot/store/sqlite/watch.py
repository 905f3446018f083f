"""What those who watch keep: definitions, incidents, deliveries, posts, lateness; and what they ask of jobs. There is
one writer: nothing needs to be locked."""

import sqlite3
from collections.abc import Callable, Iterable, Sequence
from typing import Final, TypeVar

import msgspec

from foliot.domain.duration import Micros
from foliot.store.base import Definition, Delivery, Fact, Incident, Kind, LatenessRow, Post, Waiter
from foliot.store.sqlite.batch import fetch, write
from foliot.store.sqlite.connection import SQL
from foliot.store.sqlite.facts import facts
from foliot.store.sqlite.rows import Columns, keys_json, to_json
from foliot.store.sqlite.threads import Threads
from foliot.store.waiters import BEYOND, IN_ORDER, first_due, stretches

_STATES: Final = ("pending", "delivered", "failed")
_FORGET: Final = ("forget_incidents", "forget_deliveries", "forget_lateness")
_TRIED: Final = ("id", "state", "attempts", "next_try", "last_status", "last_error", "changed")

S = TypeVar("S", bound=msgspec.Struct)


class _Refused(Exception):
    """Takes back what was written on the way to finding something else than was told."""


class SqliteWatch(Threads):
    """`WatchStore` on SQLite, but for `depths`."""

    async def put_definition(self, definition: Definition, *, expected: int | None) -> Definition | None:
        return await self._write(lambda connection: _put_definition(connection, definition, expected))

    async def definitions(self, kind: Kind | None = None, *, namespace: str | None = None) -> list[Definition]:
        return await self._all(Definition, "definitions", (kind, namespace))

    async def remove_definition(self, kind: Kind, namespace: str, name: str) -> bool:
        columns = (kind, namespace, name)
        return await self._write(lambda connection: _took_effect(connection, "remove_definition", columns))

    async def take_post(self, name: str, node: int, now: Micros, until: Micros) -> Post | None:
        columns = (name, node, now, until)
        return next(iter(await self._write(lambda connection: _all(connection, Post, "take_post", columns))), None)

    async def leave_post(self, name: str, node: int) -> None:
        await self._write(lambda connection: connection.execute(SQL["leave_post"], (name, node)).close())

    async def advance(
        self,
        post: Post,
        position: str,
        *,
        deliveries: Sequence[Delivery] = (),
        incidents: Sequence[Incident] = (),
    ) -> bool:
        def work(connection: sqlite3.Connection) -> None:
            if not _took_effect(connection, "move_post", (post.name, post.node, post.position, position)):
                raise _Refused
            write(connection, "add_delivery", [msgspec.structs.astuple(delivery) for delivery in deliveries])
            _save(connection, incidents)

        return await self._unless_refused(work)

    async def open_incidents(self, namespace: str | None = None) -> list[Incident]:
        return await self._all(Incident, "open_incidents", (namespace,))

    async def incidents(self, namespace: str, *, limit: int, before: int | None = None) -> list[Incident]:
        return await self._all(Incident, "incidents", (namespace, BEYOND if before is None else before, limit))

    async def incident(self, namespace: str, incident_id: int) -> Incident | None:
        return next(iter(await self._all(Incident, "incident", (namespace, incident_id))), None)

    async def save_incidents(self, incidents: Sequence[Incident]) -> bool:
        return await self._unless_refused(lambda connection: _save(connection, incidents))

    async def take_notices(self, now: Micros, until: Micros, limit: int) -> list[Incident]:
        def work(connection: sqlite3.Connection) -> list[Incident]:
            found = _all(connection, Incident, "incidents_to_notify", (now, limit))
            connection.execute(SQL["hold_notices"], (keys_json(each.id for each in found), until))
            return [msgspec.structs.replace(each, notify_at=until, version=each.version + 1) for each in found]

        return await self._write(work)

    async def take_deliveries(self, now: Micros, until: Micros, limit: int) -> list[Delivery]:
        def work(connection: sqlite3.Connection) -> list[Delivery]:
            found = _all(connection, Delivery, "deliveries_to_try", (now, limit))
            connection.execute(SQL["hold_deliveries"], (keys_json(each.id for each in found), until))
            return [msgspec.structs.replace(each, next_try=until) for each in found]

        return await self._write(work)

    async def finish_deliveries(self, deliveries: Sequence[Delivery]) -> None:
        ends = {delivery.id: delivery for delivery in deliveries}.values()
        rows = [tuple(getattr(delivery, name) for name in _TRIED) for delivery in ends]
        if rows:
            await self._write(lambda connection: write(connection, "finish_delivery", rows))

    async def next_delivery(self) -> Micros | None:
        def work(connection: sqlite3.Connection) -> Micros | None:
            found: tuple[Micros | None] = connection.execute(SQL["next_delivery"]).fetchone()
            return found[0]

        return await self._read(work)

    async def deliveries(
        self, namespace: str, webhook: str, *, limit: int, before: int | None = None, state: str | None = None
    ) -> list[Delivery]:
        start = BEYOND if before is None else before

        def work(connection: sqlite3.Connection) -> list[Delivery]:
            found = [
                delivery
                for each in (_STATES if state is None else (state,))
                for delivery in _all(
                    connection, Delivery, "deliveries_in_state", (namespace, webhook, each, start, limit)
                )
            ]
            return sorted(found, key=lambda delivery: -delivery.id)[:limit]

        return await self._read(work)

    async def delivery(self, namespace: str, webhook: str, delivery_id: int) -> Delivery | None:
        return next(iter(await self._all(Delivery, "delivery", (namespace, webhook, delivery_id))), None)

    async def add_lateness(self, rows: Sequence[LatenessRow]) -> None:
        if rows:
            columns = [msgspec.structs.astuple(row) for row in rows]
            await self._write(lambda connection: write(connection, "put_lateness", columns))

    async def lateness(self, namespace: str | None, since: Micros, until: Micros) -> list[LatenessRow]:
        if namespace is None:
            return await self._all(LatenessRow, "lateness", (since, until))
        return await self._all(LatenessRow, "lateness_of", (since, until, namespace))

    async def waiters(self, lane_ids: Sequence[int], before: Micros, limit: int) -> list[Waiter]:
        own = sorted(set(lane_ids))
        if not own or limit <= 0:
            return []
        return await self._read(lambda connection: _waiters(connection, own, before, limit))

    async def overruns(self, claimed_before: Micros, limit: int) -> list[tuple[int, int, Micros]]:
        return await self._read(
            lambda connection: connection.execute(SQL["overruns"], (claimed_before, limit)).fetchall()
        )

    async def facts(self) -> list[Fact]:
        return await self._read(facts)

    async def forget_watch(self, before: Micros, limit: int) -> int:
        def work(connection: sqlite3.Connection) -> int:
            gone = 0
            for query in _FORGET:
                gone += connection.execute(SQL[query], (before, limit - gone)).rowcount
            return gone

        return await self._write(work)

    async def _all(self, kind: type[S], query: str, parameters: Columns) -> list[S]:
        return await self._read(lambda connection: _all(connection, kind, query, parameters))

    async def _unless_refused(self, work: Callable[[sqlite3.Connection], None]) -> bool:
        try:
            await self._write(work)
        except _Refused:
            return False
        return True


def _all(connection: sqlite3.Connection, kind: type[S], query: str, parameters: Columns) -> list[S]:
    """Structs of a query's rows, which have their fields as columns, in that order."""
    names = kind.__struct_fields__
    found = connection.execute(SQL[query], parameters).fetchall()
    return [kind(**dict(zip(names, columns, strict=True))) for columns in found]


def _took_effect(connection: sqlite3.Connection, query: str, parameters: Columns) -> bool:
    """Whether a statement with RETURNING changed anything."""
    return bool(connection.execute(SQL[query], parameters).fetchall())


def _put_definition(connection: sqlite3.Connection, wanted: Definition, expected: int | None) -> Definition | None:
    names = (wanted.kind, wanted.namespace, wanted.name)
    known = next(iter(_all(connection, Definition, "definition", names)), None)
    version = 0 if known is None else known.version
    if expected not in (None, version):
        return None
    created = wanted.created if known is None else known.created
    put = msgspec.structs.replace(wanted, created=created, version=version + 1)
    connection.execute(SQL["put_definition"], msgspec.structs.astuple(put))
    return put


def _save(connection: sqlite3.Connection, incidents: Iterable[Incident]) -> None:
    for incident in incidents:
        query = "add_incident" if incident.version == 1 else "change_incident"
        if not _took_effect(connection, query, msgspec.structs.astuple(incident)):
            raise _Refused


def _waiters(connection: sqlite3.Connection, own: Sequence[int], before: Micros, limit: int) -> list[Waiter]:
    ordered = fetch(connection, "lanes_in_order", (keys_json(own),))
    plain = [(lane_id, lane_id, *stretch) for lane_id in own for stretch in stretches(before)]
    in_order = [(base, lane_id, 0, BEYOND) for base, lane_id in ordered]
    found = fetch(connection, "first_ready", (to_json(plain), limit))
    found += fetch(connection, "first_ready", (to_json(in_order), max(limit, IN_ORDER)))
    found += fetch(connection, "first_for_key", (keys_json(own), limit, before))
    return first_due(((lane_id, key, due) for lane_id, key, due in found), before, limit)
