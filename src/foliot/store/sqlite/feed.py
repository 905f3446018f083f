"""The record of what happened, as it is read; who is lost; and how many jobs stand where."""

import sqlite3
from collections.abc import Sequence
from typing import Final

import msgspec

from foliot.domain.duration import Micros
from foliot.domain.feed import Batch, Happening, Position
from foliot.store.base import Reading
from foliot.store.losses import lost_node, lost_worker
from foliot.store.sqlite.batch import fetch
from foliot.store.sqlite.connection import SQL
from foliot.store.sqlite.journal import entries_of, write_batch
from foliot.store.sqlite.threads import Threads

WRITER: Final = 1
"""There is one, whatever the process."""

_AT_ONCE: Final = 200  # batches that one call forgets
_decoder = msgspec.json.Decoder(list[tuple[int, int, list[Happening], list[list[int | str | None]]]])


class SqliteFeed(Threads):
    """`FeedStore` on SQLite, and `depths`."""

    async def read_feed(self, position: Position, limit: int, *, mask: int) -> Reading:
        if not self.recording:
            return Reading(batches=(), position=position)
        return await self._read(lambda connection: _reading(connection, position, limit, mask))

    async def feed_end(self) -> Position:
        return await self._read(lambda connection: _at(*_last(connection)))

    async def note(self, happenings: Sequence[Happening], now: Micros) -> None:
        if self.recording:
            await self._write(lambda connection: write_batch(connection, now, (), happenings))

    async def lose_workers(self, now: Micros) -> int:
        def work(connection: sqlite3.Connection) -> int:
            lost = [
                lost_worker(key, namespace, name, last_seen=seen, holds=holds)
                for key, namespace, name, seen, holds in connection.execute(SQL["lose_workers"], (now,)).fetchall()
            ]
            if self.recording:
                write_batch(connection, now, (), lost)
            return len(lost)

        return await self._write(work)

    async def lose_nodes(self, now: Micros) -> int:
        def work(connection: sqlite3.Connection) -> int:
            lost = [
                lost_node(number, name, last_seen=seen)
                for number, name, seen in connection.execute(SQL["lose_nodes"], (now,)).fetchall()
            ]
            if self.recording:
                write_batch(connection, now, (), lost)
            return len(lost)

        return await self._write(work)

    async def forget_feed(self, before: Micros) -> int:
        return await self._write(
            lambda connection: connection.execute(SQL["forget_events"], (before, _AT_ONCE)).rowcount
        )

    async def depths(self) -> list[tuple[int, str, int]]:
        return await self._read(
            lambda connection: [(lane_id, status, jobs) for lane_id, status, jobs in fetch(connection, "depths", ())]
        )


def _reading(connection: sqlite3.Connection, position: Position, limit: int, mask: int) -> Reading:
    last = position.seen.get(WRITER)
    if last is None:  # a floor above it tells that all there was of it is read
        last = 0 if position.floor <= WRITER else _last(connection)[0]
    (text,) = connection.execute(SQL["events_after"], (last, limit, mask)).fetchone()
    batches = [
        Batch(writer=WRITER, number=number, time=time, entries=entries_of(columns), happenings=happenings)
        for number, time, happenings, columns in (() if text is None else _decoder.decode(f"[{text}]"))
    ]
    if not batches:
        return Reading(batches=(), position=msgspec.structs.replace(position, floor=WRITER + 1, seen={WRITER: last}))
    time = max(position.time, *(batch.time for batch in batches))
    return Reading(batches=batches, position=_at(batches[-1].number, time), more=len(batches) >= limit)


def _at(number: int, time: Micros) -> Position:
    return Position(floor=WRITER + 1, seen={WRITER: number}, time=time)


def _last(connection: sqlite3.Connection) -> tuple[int, Micros]:
    """The highest number that was ever given, and that batch's time, 0 where it is forgotten."""
    found: tuple[int, Micros] | None = connection.execute(SQL["last_event"]).fetchone()
    return (0, 0) if found is None else found
