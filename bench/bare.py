"""What the machine can do: the least statements that a job's durable life takes, on the driver, nothing around them.

A job is written (its wide row and a row that says it is ready), claimed (the ready row becomes a lease, the wide row is
read), and ended (the lease becomes a row of history). The tables have the keys this needs and no others, so the figures
are a limit for any store of that shape, not a description of Foliot's.
"""

import asyncio
import statistics
import time
from collections.abc import Sequence
from typing import Protocol

import msgspec

from bench.load import PAYLOAD_BYTES, payload

SECONDS = 0.7  # how long a rate is looked at
PAIRS = 150


class BareStore(Protocol):
    """Every call is one durable transaction."""

    lanes: int  # how many calls at once serve it best

    async def open(self) -> None: ...

    async def insert(self, lane: int, ids: Sequence[int], text: str) -> None: ...

    async def claim(self, lane: int, count: int) -> list[int]: ...

    async def end(self, lane: int, ids: Sequence[int]) -> None: ...

    async def size(self) -> int:
        """Bytes of the tables and indexes that keep ended jobs."""
        ...

    async def close(self) -> None: ...


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """Jobs a second, milliseconds, bytes."""

    insert: dict[int, float] = {}  # by batch size
    drain: float | None = None
    bytes: float | None = None
    pair_p50: float | None = None  # one insert, then one claim
    pair_p99: float | None = None


class BareRun:
    def __init__(self, store: BareStore) -> None:
        self._store = store
        self._last = 0
        self._text = payload(0).decode()
        assert len(self._text) == PAYLOAD_BYTES

    def _ids(self, count: int) -> range:
        self._last += count
        return range(self._last - count, self._last)

    async def insert(self, batch: int, lanes: int = 1) -> float:
        """Jobs a second in batches of that size."""
        written = 0
        begin = time.perf_counter()

        async def lane(number: int) -> None:
            nonlocal written
            while time.perf_counter() - begin < SECONDS:
                await self._store.insert(number, self._ids(batch), self._text)
                written += batch

        await asyncio.gather(*map(lane, range(lanes)))
        return written / (time.perf_counter() - begin)

    async def drain(self, jobs: int, batch: int) -> float:
        """Jobs a second from claim to end, of a backlog."""
        for _ in range(0, jobs, 1000):
            await self._store.insert(0, self._ids(1000), self._text)
        ended = 0
        begin = time.perf_counter()

        async def lane(number: int) -> None:
            nonlocal ended
            while ids := await self._store.claim(number, batch):
                await self._store.end(number, ids)
                ended += len(ids)

        await asyncio.gather(*map(lane, range(self._store.lanes)))
        return ended / (time.perf_counter() - begin)

    async def pairs(self) -> list[float]:
        """Milliseconds of one insert and one claim after it, with a pause between two pairs."""
        found = []
        for _ in range(PAIRS):
            await asyncio.sleep(0.005)
            begin = time.perf_counter()
            await self._store.insert(0, self._ids(1), self._text)
            ids = await self._store.claim(0, 1)
            found.append((time.perf_counter() - begin) * 1000)
            await self._store.end(0, ids)
        return found


async def measure(
    store: BareStore, *, insert: Sequence[int] = (), drain: int = 0, batch: int = 500, pairs: bool = False
) -> Limits:
    """What is asked for; the tables are fresh."""
    await store.open()
    try:
        run = BareRun(store)
        size, rate = None, None
        if drain:
            empty = await store.size()
            rate = await run.drain(drain, batch)
            size = (await store.size() - empty) / drain
        found = await run.pairs() if pairs else []
        return Limits(
            insert={each: await run.insert(each, store.lanes if each > 1 else 1) for each in insert},
            drain=rate,
            bytes=size,
            pair_p50=statistics.median(found) if found else None,
            pair_p99=sorted(found)[len(found) * 99 // 100] if found else None,
        )
    finally:
        await store.close()
