"""Who is who: keys, sessions, namespaces, rates, the audit log. There is one writer: nothing needs to be locked."""

import sqlite3
from collections.abc import Mapping, Sequence
from typing import Final

import msgspec

from foliot.domain.access import Caller
from foliot.domain.audit import FIRST, AuditEntry, chained
from foliot.domain.credential import ApiKey
from foliot.domain.duration import Micros
from foliot.domain.job import ENDED_STATES, NAMESPACE
from foliot.domain.rate import NANOS, RateLimit, after_starts, carried_over, may_start, next_start
from foliot.domain.tenancy import Namespace, Quotas
from foliot.store.base import Session
from foliot.store.sqlite.connection import SQL
from foliot.store.sqlite.rows import Columns, to_json
from foliot.store.sqlite.threads import Threads

FORGOTTEN: Final = 10_000  # sessions, and meters, in one call
_BEYOND: Final = (1 << 63) - 1  # above every number of an entry
_ENDED: Final = to_json([state.name.lower() for state in ENDED_STATES])

_decode_words = msgspec.json.Decoder(tuple[str, ...]).decode
_decode_caller = msgspec.json.Decoder(Caller).decode
_decode_quotas = msgspec.json.Decoder(Quotas).decode
_entry_fields: Final = AuditEntry.__struct_fields__


class SqliteAccess(Threads):
    """`AccessStore` on SQLite."""

    async def add_key(self, key: ApiKey) -> bool:
        words = (to_json(key.queues), to_json(key.job_types))
        columns = (key.key_id, key.namespace, key.name, key.role, *words, key.hash, key.old_hash, key.old_until)
        more = (key.created, key.created_by, key.expires, key.last_used, key.revoked)
        return await self._write(lambda connection: _took_effect(connection, "add_key", (*columns, *more)))

    async def api_keys(self, key_ids: Sequence[str]) -> dict[str, ApiKey]:
        return {key.key_id: key for key in await self._keys("api_keys", (to_json(key_ids),))}

    async def list_keys(self, namespace: str | None, *, limit: int, after: str = "") -> list[ApiKey]:
        if namespace is None:
            return await self._keys("keys_of_all", (after, limit))
        return await self._keys("keys_of_namespace", (after, limit, namespace))

    async def change_key(self, key: ApiKey) -> bool:
        columns = (key.key_id, key.hash, key.old_hash, key.old_until, key.expires, key.revoked)
        return await self._write(lambda connection: _took_effect(connection, "change_key", columns))

    async def touch_keys(self, used: Mapping[str, Micros]) -> None:
        await self._write(lambda connection: connection.executemany(SQL["touch_key"], list(used.items())).close())

    async def add_session(self, session: Session) -> None:
        caller = to_json(session.caller)
        columns = (session.hash, session.until, session.once, session.caller.key_id, caller, session.data)
        await self._write(lambda connection: connection.execute(SQL["add_session"], columns).close())

    async def session(self, shown: bytes, now: Micros) -> Session | None:
        found = await self._read(lambda connection: connection.execute(SQL["session"], (shown, now)).fetchone())
        if found is None:
            return None
        hash_, until, once, caller, data = found
        if once and not await self._write(lambda connection: _took_effect(connection, "use_session", (shown,))):
            return None
        return Session(hash=hash_, caller=_decode_caller(caller), until=until, once=bool(once), data=data)

    async def end_session(self, shown: bytes) -> None:
        await self._write(lambda connection: connection.execute(SQL["end_session"], (shown,)).close())

    async def end_sessions_of(self, key_id: str) -> None:
        await self._write(lambda connection: connection.execute(SQL["end_sessions_of"], (key_id,)).close())

    async def put_namespace(self, namespace: Namespace, *, expected: int | None) -> Namespace | None:
        return await self._write(lambda connection: _put_namespace(connection, namespace, expected))

    async def namespaces(self, names: Sequence[str] | None = None) -> list[Namespace]:
        return await self._read(lambda connection: _namespaces(connection, names))

    async def remove_namespace(self, name: str) -> bool:
        return name != NAMESPACE and await self._write(
            lambda connection: _took_effect(connection, "remove_namespace", (name,))
        )

    async def spend(self, meter: str, rate: RateLimit, count: int) -> tuple[int, Micros]:
        return await self._write(lambda connection: _spend(connection, meter, rate, count, self._clock.now()))

    async def live_jobs(self, namespace: str, most: int) -> int:
        def work(connection: sqlite3.Connection) -> int:
            count: int = connection.execute(SQL["live_jobs"], (namespace, _ENDED)).fetchone()[0]
            return min(count, most)

        return await self._read(work)

    async def append_audit(self, entries: Sequence[AuditEntry]) -> list[AuditEntry]:
        def work(connection: sqlite3.Connection) -> list[AuditEntry]:
            seq, previous = connection.execute(SQL["last_audit"]).fetchone() or (0, FIRST)
            made = chained(entries, seq=seq, previous=previous)
            connection.executemany(SQL["append_audit"], map(msgspec.structs.astuple, made))
            return made

        return await self._write(work) if entries else []

    async def audit(
        self, namespace: str | None, *, limit: int, before: int | None = None, after: int | None = None
    ) -> list[AuditEntry]:
        query = "audit_newest" if after is None else "audit_oldest"
        start = after if after is not None else _BEYOND if before is None else before
        named = (start, limit) if namespace is None else (start, limit, namespace)
        text = SQL[query if namespace is None else f"{query}_of"]

        def work(connection: sqlite3.Connection) -> list[AuditEntry]:
            found = connection.execute(text, named).fetchall()
            return [AuditEntry(**dict(zip(_entry_fields, columns, strict=True))) for columns in found]

        return await self._read(work)

    async def forget_access(self, before: Micros, now: Micros) -> int:
        def work(connection: sqlite3.Connection) -> int:
            sessions = connection.execute(SQL["forget_sessions"], (now, FORGOTTEN)).rowcount
            meters = connection.execute(SQL["forget_meters"], (before * NANOS, FORGOTTEN)).rowcount
            return sessions + meters

        return await self._write(work)

    async def _keys(self, query: str, parameters: Columns) -> list[ApiKey]:
        return await self._read(
            lambda connection: [_key_of(columns) for columns in connection.execute(SQL[query], parameters)]
        )


def _took_effect(connection: sqlite3.Connection, query: str, parameters: Columns) -> bool:
    """Whether a statement with RETURNING changed anything."""
    return bool(connection.execute(SQL[query], parameters).fetchall())


def _key_of(columns: Columns) -> ApiKey:
    key_id, namespace, name, role, queues, job_types, hash_, old_hash, old_until, created, created_by, *rest = columns
    expires, last_used, revoked = rest
    return ApiKey(
        key_id=key_id,
        namespace=namespace,
        name=name,
        role=role,
        queues=_decode_words(queues),
        job_types=_decode_words(job_types),
        hash=hash_,
        old_hash=old_hash,
        old_until=old_until,
        created=created,
        created_by=created_by,
        expires=expires,
        last_used=last_used,
        revoked=revoked,
    )


def _namespaces(connection: sqlite3.Connection, names: Sequence[str] | None) -> list[Namespace]:
    query, parameters = ("namespaces", ()) if names is None else ("namespaces_named", (to_json(names),))
    return [
        Namespace(name=name, created=created, version=version, quotas=_decode_quotas(quotas))
        for name, created, version, quotas in connection.execute(SQL[query], parameters)
    ]


def _put_namespace(connection: sqlite3.Connection, wanted: Namespace, expected: int | None) -> Namespace | None:
    known = next(iter(_namespaces(connection, [wanted.name])), None)
    if expected not in (None, 0 if known is None else known.version):
        return None
    if known is None:
        put = msgspec.structs.replace(wanted, version=1)
    elif known.quotas == wanted.quotas:
        return known
    else:
        put = msgspec.structs.replace(known, quotas=wanted.quotas, version=known.version + 1)
    connection.execute(SQL["put_namespace"], (put.name, put.created, put.version, to_json(put.quotas)))
    return put


def _spend(connection: sqlite3.Connection, meter: str, rate: RateLimit, count: int, now: Micros) -> tuple[int, Micros]:
    (next_beat,) = connection.execute(SQL["meter"], (meter,)).fetchone() or (0,)
    # The rate may be another one than the last time, or the clock may have been set back.
    next_beat = carried_over(rate, next_beat, now)
    given = min(count, may_start(rate, next_beat, now))
    if given > 0:
        next_beat = after_starts(rate, next_beat, now, given)
        connection.execute(SQL["move_meter"], (meter, next_beat))
    return given, max(now, next_start(rate, next_beat))
