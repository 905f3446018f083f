"""Whether a node can do its work, told in checks: does the store answer, is its schema this version's, does this
machine's clock agree with it. And what the store says of itself."""

import asyncio
from functools import cache
from typing import Literal

from foliot.clock import monotonic, wall
from foliot.domain.access import Caller
from foliot.domain.duration import SECOND, Micros
from foliot.domain.errors import FoliotError, SchemaMismatch
from foliot.store.base import Store
from foliot.store.migrate import Migration, check, migrations
from foliot.wire import HealthCheck, Readiness, StoreFact

CLOCK_TOLERANCE = 5 * SECOND
PATIENCE_SECONDS = 5.0
KEPT = SECOND  # anybody may ask, as often as they like: the store is asked once in that time


class Health:
    def __init__(self, store: Store, *, tolerance: Micros = CLOCK_TOLERANCE) -> None:
        self._store = store
        self._tolerance = tolerance
        self._asking = asyncio.Lock()
        self._known: tuple[Micros, Readiness] | None = None

    async def readiness(self) -> Readiness:
        """Not older than a second. It is for everybody to see: neither addresses nor versions are in it."""
        async with self._asking:
            if self._known is None or monotonic() - self._known[0] >= KEPT:
                checks = await self._checks()
                failed = any(each.status == "failed" for each in checks)
                self._known = monotonic(), Readiness(status="not ready" if failed else "ready", checks=checks)
            return self._known[1]

    async def facts(self, caller: Caller) -> list[StoreFact]:
        """What is measured of the store, which all namespaces share."""
        caller.check_whole("the store's health")
        return [StoreFact(name=fact.name, value=fact.value, trouble=fact.trouble) for fact in await self._store.facts()]

    async def _checks(self) -> list[HealthCheck]:
        try:
            async with asyncio.timeout(PATIENCE_SECONDS):
                applied = await self._store.applied()
                asked = wall()
                reading = await self._store.now()
                here = (asked + wall()) // 2
        except (FoliotError, TimeoutError):
            return [_failed("store", "does not answer; what is taken in meanwhile is refused, and nothing is lost")]
        return [
            _ok("store", "answers"),
            _schema(self._store.kind, applied),
            _clock(reading - here, self._tolerance),
        ]


@cache
def _steps(kind: str) -> list[Migration]:
    return migrations(kind)


def _schema(kind: str, applied: set[int]) -> HealthCheck:
    known = _steps(kind)
    try:
        check(known, applied)
    except SchemaMismatch:
        if max(applied, default=0) > len(known):
            return _failed("schema", "is newer than this node knows: a newer version has used the database; install it")
        return _failed("schema", "is older than this node needs: run foliot migrate")
    return _ok("schema", "is this version's")


def _clock(behind: Micros, tolerance: Micros) -> HealthCheck:
    """`behind` is how much this machine's clock is behind the store's. A node goes by the store's, so that a wrong one
    here fires nothing early or late; but logs, certificates and tokens go by it."""
    seconds = abs(behind) / SECOND
    if abs(behind) <= tolerance:
        return _ok("clock", f"agrees with the store's within {tolerance // SECOND} s")
    word = "behind" if behind > 0 else "ahead of"
    return _check("clock", "warning", f"is {seconds:.1f} s {word} the store's: set this machine's time, as by NTP")


def _ok(name: str, detail: str) -> HealthCheck:
    return _check(name, "ok", detail)


def _failed(name: str, detail: str) -> HealthCheck:
    return _check(name, "failed", detail)


def _check(name: str, status: Literal["ok", "warning", "failed"], detail: str) -> HealthCheck:
    return HealthCheck(name=name, status=status, detail=detail)
