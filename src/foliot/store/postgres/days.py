"""Partitions: one for each UTC day of ids, made ahead of time and dropped whole."""

import asyncio
from collections.abc import Awaitable, Callable
from datetime import date
from typing import Any, Final, TypeVar

from asyncpg import exceptions as pg

from foliot.domain.duration import DAY, Micros
from foliot.domain.errors import Unavailable
from foliot.domain.ids import first_of
from foliot.store.postgres.connections import Connection
from foliot.store.postgres.intake import REQUEST_KEY_AGE
from foliot.store.postgres.part import SQL, Part

AHEAD: Final = 3
MOST_KEPT: Final = 50_000  # rows of a day copied under lock; a day of which more lives stays as it is
_BY_ID: Final = ("forget_job_keys", "forget_unique_keys", "forget_edges")
_FIRST_SHARE: Final = (0, "")
_LOCK_WAIT: Final = "200ms"
_TRIES: Final = 20
_PAUSE: Final = 0.1
_EPOCH: Final = date(1970, 1, 1).toordinal()
T = TypeVar("T")


class Day:
    """A UTC day: its name in the database, its range of ids, and when it begins and ends."""

    def __init__(self, number: int) -> None:
        self.suffix = f"d{date.fromordinal(_EPOCH + number):%Y%m%d}"
        self.begin, self.end = number * DAY, (number + 1) * DAY
        self.low, self.high = first_of(self.begin), first_of(self.end)

    @classmethod
    def at(cls, time: Micros) -> "Day":
        return cls(time // DAY)

    @classmethod
    def named(cls, suffix: str) -> "Day":
        year, month, day = int(suffix[1:5]), int(suffix[5:7]), int(suffix[7:9])
        return cls(date(year, month, day).toordinal() - _EPOCH)


class Days(Part):
    def __init__(self, url: str, *, recording: bool = True) -> None:
        super().__init__(url, recording=recording)
        self._looked_at = dict.fromkeys(_BY_ID, 0)  # what belongs to ids below was looked at by an earlier call
        self._shares_looked_at = _FIRST_SHARE

    async def prepare_days(self, now: Micros) -> None:
        there = set(await self._days())
        recorded = set(await self._days("feed_days"))
        for ahead in range(AHEAD + 1):
            day = Day.at(now + ahead * DAY)
            if day.suffix not in there:
                await self._change_days(SQL["add_day"], day.suffix, day.low, day.high)
            if day.suffix not in recorded:
                await self._change_days(SQL["add_feed_day"], day.suffix, day.begin, day.end)

    async def forget(self, before: Micros, limit: int) -> int:
        gone = len(await self._connections.write(SQL["forget_request_keys"], REQUEST_KEY_AGE, limit))
        gone += len(await self._connections.write(SQL["forget_kept"], before, first_of(before), limit))
        gone += len(await self._connections.write(SQL["forget_ledger"], before, limit))
        gone += await self._forget_shares(limit)
        past = [day for day in map(Day.named, await self._days()) if day.high <= first_of(before)]
        for day in past:
            if gone >= limit:
                break
            gone += await self._forget_day(day, before, limit)
        return gone

    async def _forget_shares(self, limit: int) -> int:
        """The next times of fair keys that count no more; 0 when all were looked at, after which it begins again."""
        gone, looked = 0, limit
        while not gone and looked >= limit:
            rows = await self._connections.write(SQL["forget_shares"], *self._shares_looked_at, limit)
            looked, gone, *last = rows[0]
            self._shares_looked_at = (last[0], last[1]) if looked >= limit else _FIRST_SHARE
        return gone

    async def _forget_day(self, day: Day, before: Micros, limit: int) -> int:
        """A piece of what belongs to the day's jobs by their id; when all of that is looked at, the day itself."""
        for query in _BY_ID:
            while (start := max(self._looked_at[query], day.low)) < day.high:
                last, gone = (await self._connections.write(SQL[query], start, day.high, limit, before))[0]
                self._looked_at[query] = day.high if last is None else last + 1
                if gone:
                    return int(gone)
        self._looked_at = dict.fromkeys(_BY_ID, 0)
        dropped: int = await self._change_days(SQL["drop_day"], day.suffix, day.low, day.high, before, MOST_KEPT)
        return max(0, dropped)

    async def _days(self, query: str = "days") -> list[str]:
        return [row[0] for row in await self._connections.read(SQL[query])]

    async def _change_days(self, query: str, *arguments: object) -> Any:
        """Run a change of the partitions with little patience for locks, again and again: who waits for an exclusive
        lock holds up all who come after."""

        async def work(connection: Connection) -> Any:
            await connection.fetchval(SQL["short_locks"], _LOCK_WAIT)
            return await connection.fetchval(query, *arguments)

        return await _patiently(lambda: self._connections.transact(work))


async def _patiently(work: Callable[[], Awaitable[T]]) -> T:
    for _ in range(_TRIES - 1):
        try:
            return await work()
        except Unavailable as error:
            if not isinstance(error.__cause__, pg.LockNotAvailableError):
                raise
            await asyncio.sleep(_PAUSE)
    return await work()
