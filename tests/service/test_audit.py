"""The audit log: who did what, in a chain that shows when it was meddled with."""

import asyncio
from collections.abc import AsyncIterator

import msgspec
import pytest

from foliot.domain.access import ADMIN, Caller
from foliot.domain.audit import AuditEntry
from foliot.domain.errors import BadInput, Forbidden
from tests.service.almanac import Almanac, open_almanac

OTHER = Caller(name="ann", namespace="team-a", key_id="k", source="192.0.2.9")


@pytest.fixture
async def almanac() -> AsyncIterator[Almanac]:
    async with open_almanac() as almanac:
        yield almanac


async def note(almanac: Almanac, caller: Caller = ADMIN, subject: str = "job_id=a") -> None:
    await almanac.services.audit.note(caller, "POST /x", subject=subject, request_id="r1")


async def test_entries_are_listed_newest_first_and_only_those_of_the_callers_namespace(almanac: Almanac) -> None:
    audit = almanac.services.audit
    for number in range(3):
        await note(almanac, subject=f"n={number}")
    await note(almanac, OTHER)
    first, cursor = await audit.page(limit=2, cursor=None, caller=ADMIN)
    second, end = await audit.page(limit=2, cursor=cursor, caller=ADMIN)
    assert [entry.seq for entry in (*first, *second)] == [4, 3, 2, 1]
    assert end is None
    (own,), _ = await audit.page(limit=9, cursor=None, caller=OTHER)
    assert (own.actor, own.key_id, own.source, own.request_id, own.outcome) == ("ann", "k", "192.0.2.9", "r1", "asked")
    with pytest.raises(BadInput, match="cursor"):
        await audit.page(limit=9, cursor="x", caller=ADMIN)
    with pytest.raises(Forbidden):
        await audit.page(limit=9, cursor=None, caller=Caller(name="n", queues=("mail",)))


async def test_the_chain_is_whole_also_when_many_write_at_once(almanac: Almanac) -> None:
    check = await almanac.services.audit.check(ADMIN)
    assert (check.entries, check.broken_at) == (0, None)
    await asyncio.gather(*(note(almanac, subject=f"n={number}") for number in range(50)))
    check = await almanac.services.audit.check(ADMIN)
    assert (check.entries, check.broken_at) == (50, None)
    assert len(check.last_hash) == 64
    with pytest.raises(Forbidden):
        await almanac.services.audit.check(OTHER)


async def test_an_entry_that_was_changed_breaks_the_chain(almanac: Almanac, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(3):
        await note(almanac, subject=f"n={number}")
    real = almanac.store.audit

    async def changed(namespace: str | None, **which: int) -> list[AuditEntry]:
        found = await real(namespace, **which)
        return [msgspec.structs.replace(entry, actor="eve") if entry.seq == 2 else entry for entry in found]

    monkeypatch.setattr(almanac.store, "audit", changed)
    assert (await almanac.services.audit.check(ADMIN)).broken_at == 2
