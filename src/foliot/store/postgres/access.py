"""Who is who: keys, sessions, namespaces, rates that all nodes share, the audit log."""

from collections.abc import Mapping, Sequence
from typing import Final

import msgspec

from foliot.domain.access import Caller
from foliot.domain.audit import AuditEntry, chained
from foliot.domain.credential import ApiKey
from foliot.domain.duration import Micros
from foliot.domain.job import NAMESPACE
from foliot.domain.rate import NANOS, RateLimit, after_starts, carried_over, may_start, next_start
from foliot.domain.tenancy import Namespace, Quotas
from foliot.store.base import Session
from foliot.store.postgres.connections import Connection, columns
from foliot.store.postgres.part import SQL, Part
from foliot.store.postgres.rows import Values

FORGOTTEN: Final = 10_000  # sessions, and meters, in one call
_BEYOND: Final = (1 << 63) - 1  # above every number of an entry
_AUDIT_WIDTH: Final = 11

_encode = msgspec.json.Encoder().encode
_decode_caller = msgspec.json.Decoder(Caller).decode
_decode_quotas = msgspec.json.Decoder(Quotas).decode


class Access(Part):
    async def add_key(self, key: ApiKey) -> bool:
        values = (key.key_id, key.namespace, key.name, key.role, key.queues, key.job_types, key.hash, key.old_hash)
        more = (key.old_until, key.created, key.created_by, key.expires, key.last_used, key.revoked)
        return bool(await self._connections.write(SQL["add_key"], *values, *more))

    async def api_keys(self, key_ids: Sequence[str]) -> dict[str, ApiKey]:
        rows = await self._connections.read(SQL["api_keys"], list(key_ids))
        return {row[0]: _key_of(tuple(row)) for row in rows}

    async def list_keys(self, namespace: str | None, *, limit: int, after: str = "") -> list[ApiKey]:
        if namespace is None:
            rows = await self._connections.read(SQL["keys_of_all"], after, limit)
        else:
            rows = await self._connections.read(SQL["keys_of_namespace"], after, limit, namespace)
        return [_key_of(tuple(row)) for row in rows]

    async def change_key(self, key: ApiKey) -> bool:
        values = (key.key_id, key.hash, key.old_hash, key.old_until, key.expires, key.revoked)
        return bool(await self._connections.write(SQL["change_key"], *values))

    async def touch_keys(self, used: Mapping[str, Micros]) -> None:
        await self._connections.write(SQL["touch_keys"], *columns(sorted(used.items()), 2))

    async def add_session(self, session: Session) -> None:
        caller = _encode(session.caller).decode()
        values = (session.hash, session.until, session.once, session.caller.key_id, caller, session.data)
        await self._connections.write(SQL["add_session"], *values)

    async def session(self, shown: bytes, now: Micros) -> Session | None:
        for hash_, until, once, caller, data in await self._connections.read(SQL["session"], shown, now):
            if not once or await self._connections.write(SQL["use_session"], shown):
                return Session(hash=hash_, caller=_decode_caller(caller), until=until, once=once, data=data)
        return None

    async def end_session(self, shown: bytes) -> None:
        await self._connections.write(SQL["end_session"], shown)

    async def end_sessions_of(self, key_id: str) -> None:
        await self._connections.write(SQL["end_sessions_of"], key_id)

    async def put_namespace(self, namespace: Namespace, *, expected: int | None) -> Namespace | None:
        return await self._connections.transact(lambda connection: _put(connection, namespace, expected))

    async def namespaces(self, names: Sequence[str] | None = None) -> list[Namespace]:
        if names is None:
            rows = await self._connections.read(SQL["namespaces"])
        else:
            rows = await self._connections.read(SQL["namespaces_named"], list(names))
        return [_namespace_of(tuple(row)) for row in rows]

    async def remove_namespace(self, name: str) -> bool:
        return name != NAMESPACE and bool(await self._connections.write(SQL["remove_namespace"], name))

    async def spend(self, meter: str, rate: RateLimit, count: int) -> tuple[int, Micros]:
        async def work(connection: Connection) -> tuple[int, Micros]:
            while not (rows := await connection.fetch(SQL["lock_meter"], meter)):
                await connection.execute(SQL["add_meter"], meter)
            next_beat, now, _ = rows[0]
            # The rate may be another one than the last time, or the clock may have been set back.
            next_beat = carried_over(rate, next_beat, now)
            given = min(count, may_start(rate, next_beat, now))
            if given > 0:
                next_beat = after_starts(rate, next_beat, now, given)
                await connection.execute(SQL["move_meter"], meter, next_beat)
            return given, max(now, next_start(rate, next_beat))

        return await self._connections.transact(work)

    async def live_jobs(self, namespace: str, most: int) -> int:
        count: int = (await self._connections.read(SQL["live_jobs"], namespace, most))[0][0]
        return count

    async def append_audit(self, entries: Sequence[AuditEntry]) -> list[AuditEntry]:
        async def work(connection: Connection) -> list[AuditEntry]:
            seq, previous = (await connection.fetch(SQL["lock_audit"]))[0]
            made = chained(entries, seq=seq, previous=previous)
            values = [msgspec.structs.astuple(entry) for entry in made]
            await connection.execute(SQL["append_audit"], *columns(values, _AUDIT_WIDTH))
            await connection.execute(SQL["move_audit"], made[-1].seq, made[-1].hash)
            return made

        return await self._connections.transact(work) if entries else []

    async def audit(
        self, namespace: str | None, *, limit: int, before: int | None = None, after: int | None = None
    ) -> list[AuditEntry]:
        query = "audit_newest" if after is None else "audit_oldest"
        start = after if after is not None else _BEYOND if before is None else before
        if namespace is None:
            rows = await self._connections.read(SQL[query], start, limit)
        else:
            rows = await self._connections.read(SQL[f"{query}_of"], start, limit, namespace)
        return [_entry_of(*row) for row in rows]

    async def forget_access(self, before: Micros, now: Micros) -> int:
        sessions = await self._connections.write(SQL["forget_sessions"], now, FORGOTTEN)
        meters = await self._connections.write(SQL["forget_meters"], before * NANOS, FORGOTTEN)
        return len(sessions) + len(meters)


async def _put(connection: Connection, namespace: Namespace, expected: int | None) -> Namespace | None:
    quotas = _encode(namespace.quotas).decode()
    while not (rows := await connection.fetch(SQL["lock_namespace"], namespace.name)):
        if expected:
            return None
        made = await connection.fetch(SQL["make_namespace"], namespace.name, namespace.created, quotas)
        if made:
            return _namespace_of(tuple(made[0]))
    known = _namespace_of(tuple(rows[0]))
    if expected not in (None, known.version):
        return None
    if known.quotas == namespace.quotas:
        return known
    await connection.execute(SQL["change_namespace"], known.name, known.version + 1, quotas)
    return msgspec.structs.replace(known, quotas=namespace.quotas, version=known.version + 1)


def _namespace_of(values: Values) -> Namespace:
    name, created, version, quotas = values
    return Namespace(name=name, created=created, version=version, quotas=_decode_quotas(quotas))


def _key_of(values: Values) -> ApiKey:
    key_id, namespace, name, role, queues, job_types, hash_, old_hash, old_until, created, created_by, *rest = values
    expires, last_used, revoked = rest
    return ApiKey(
        key_id=key_id,
        namespace=namespace,
        name=name,
        role=role,
        queues=tuple(queues),
        job_types=tuple(job_types),
        hash=hash_,
        old_hash=old_hash,
        old_until=old_until,
        created=created,
        created_by=created_by,
        expires=expires,
        last_used=last_used,
        revoked=revoked,
    )


def _entry_of(
    seq: int,
    time: Micros,
    namespace: str,
    actor: str,
    key_id: str | None,
    action: str,
    subject: str,
    source: str,
    request_id: str,
    outcome: str,
    hash_: bytes,
) -> AuditEntry:
    return AuditEntry(
        seq=seq,
        time=time,
        namespace=namespace,
        actor=actor,
        key_id=key_id,
        action=action,
        object=subject,
        source=source,
        request_id=request_id,
        outcome=outcome,
        hash=hash_,
    )
