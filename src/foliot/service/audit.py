"""The audit log: written before what it tells is done, so that nothing is done without a word."""

from collections.abc import AsyncIterator, Sequence

from foliot.clock import Clock
from foliot.domain.access import Caller
from foliot.domain.audit import FIRST, AuditEntry, first_break
from foliot.domain.errors import BadInput, Forbidden
from foliot.service.group import Group
from foliot.store.base import Store
from foliot.wire import AuditCheck, AuditInfo, to_time

CHECK_CHUNK = 1000


class Audit:
    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self.group: Group[AuditEntry, AuditEntry] = Group(self._keep, size=lambda _entry: 1)

    async def note(self, caller: Caller, action: str, *, subject: str, request_id: str, outcome: str = "asked") -> None:
        await self.group.add(
            AuditEntry(
                time=self._clock.now(),
                namespace=caller.namespace,
                actor=caller.name,
                key_id=caller.key_id or caller.subject,
                action=action,
                object=subject,
                source=caller.source,
                request_id=request_id,
                outcome=outcome,
            )
        )

    async def page(self, *, limit: int, cursor: str | None, caller: Caller) -> tuple[list[AuditInfo], str | None]:
        """Newest first: of the caller's namespace, or of all for the node's own admin key."""
        before = None if cursor is None else int(cursor) if cursor.isascii() and cursor.isdigit() else -1
        if before is not None and not 0 < before < 1 << 62:
            raise BadInput.at("cursor", "not one of ours; take it from the Link header of the page before")
        caller.check_whole("the audit log")
        found = await self._store.audit(_reach(caller), limit=limit + 1, before=before)
        page = found[:limit]
        return [_show(entry) for entry in page], str(page[-1].seq) if len(found) > limit else None

    async def check(self, caller: Caller) -> AuditCheck:
        """Go through the whole chain, of all namespaces."""
        if not caller.root:
            raise Forbidden("the chain goes through all namespaces; only the node's own admin key can check it")
        seq, previous = 0, FIRST
        async for entries in self._all():
            broken = first_break(entries, seq=seq, previous=previous)
            if broken is not None:
                return AuditCheck(entries=seq + len(entries), broken_at=broken, last_hash=previous.hex())
            seq, previous = entries[-1].seq, entries[-1].hash
        return AuditCheck(entries=seq, broken_at=None, last_hash=previous.hex())

    async def _all(self) -> AsyncIterator[list[AuditEntry]]:
        after = 0
        while entries := await self._store.audit(None, limit=CHECK_CHUNK, after=after):
            yield entries
            after = entries[-1].seq

    async def _keep(self, entries: Sequence[AuditEntry]) -> Sequence[AuditEntry]:
        return await self._store.append_audit(entries)


def _reach(caller: Caller) -> str | None:
    return None if caller.root else caller.namespace


def _show(entry: AuditEntry) -> AuditInfo:
    return AuditInfo(
        seq=entry.seq,
        time=to_time(entry.time),
        namespace=entry.namespace,
        actor=entry.actor,
        key_id=entry.key_id,
        action=entry.action,
        object=entry.object,
        source=entry.source,
        request_id=entry.request_id,
        outcome=entry.outcome,
        hash=entry.hash.hex(),
    )
