"""Who writes the record of what happened: a connection, under a number of its own, from its first write until its
session ends. It has one transaction under way at a time, so that the numbers that it gives to batches grow in the order
of its commits.

A number is the database's time, as this process reckons it, in microseconds: what was written on a day is found by it.
"""

from typing import TYPE_CHECKING, Final

import asyncpg

from foliot.clock import OffsetClock, monotonic
from foliot.domain.duration import SECOND, Micros
from foliot.store.queries import load_queries

if TYPE_CHECKING:
    _Base = asyncpg.Connection[asyncpg.Record]  # generic in its type stubs only
else:
    _Base = asyncpg.Connection

SQL: Final = load_queries("postgres")
Stamp = tuple[int | None, int | None]  # a batch's writer and number; None, where nothing is to be recorded
_SLOWEST: Final[Micros] = SECOND  # an answer that took longer tells too little of the time


class Numbers:
    """Those of a process, for all of its connections."""

    def __init__(self) -> None:
        self._clock = OffsetClock()
        self._last = 0

    def take(self) -> int:
        """Above all that were taken."""
        self._last = max(self._last + 1, self._clock.now())
        return self._last

    def set(self, reading: Micros, *, asked: Micros) -> None:
        """The database's clock read this, in a question asked at that moment and answered now."""
        answered = monotonic()
        if answered - asked < _SLOWEST:
            self._clock.set(reading, asked=asked, answered=answered)


class Connection(_Base):
    """A connection to the database, which may be a writer."""

    _writer: int | None = None
    _numbers: Numbers | None = None

    def stamp(self) -> Stamp:
        """Of the next batch, where this is a writer."""
        return (None, None) if self._numbers is None else (self._writer, self._numbers.take())

    async def become_writer(self, numbers: Numbers) -> None:
        """Not within a transaction."""
        if self._numbers is None:
            asked = monotonic()
            row = await self.fetchrow(SQL["add_writer"])
            assert row is not None
            self._writer, now = row
            numbers.set(now, asked=asked)
            self._numbers = numbers
