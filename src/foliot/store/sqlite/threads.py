"""What all parts of the store stand on: the writer's thread, the reader's, and the lanes this process has met."""

import sqlite3
from collections.abc import Callable, Mapping
from typing import TypeVar

from foliot.clock import Clock, WallClock
from foliot.domain.duration import Micros
from foliot.domain.job import Lane
from foliot.store.sqlite.changes import Moves
from foliot.store.sqlite.connection import FileLock, connect, in_memory, migrate
from foliot.store.sqlite.thread import ConnectionThread

T = TypeVar("T")

_MOST_WRITES = 256


class Threads:
    """One connection that writes, and one beside it that only reads; in memory there is only the first."""

    def __init__(self, path: str, *, clock: Clock | None = None, recording: bool = True) -> None:
        self.recording = recording
        self._clock = clock or WallClock()
        self._lanes: dict[int, Lane] = {}
        self._lane_numbers: dict[Lane, int] = {}
        self._lock = None if in_memory(path) else FileLock(path)
        self._writer = ConnectionThread(
            "foliot-sqlite-writer",
            lambda: self._connect_writer(path),
            begin="BEGIN IMMEDIATE",
            most=_MOST_WRITES,
        )
        self._reader = (
            self._writer
            if in_memory(path)
            else ConnectionThread("foliot-sqlite-reader", lambda: connect(path, writes=False), begin="BEGIN", most=1)
        )

    def _connect_writer(self, path: str) -> sqlite3.Connection:
        connection = connect(path, writes=True)
        try:
            migrate(connection, self._clock.now())
        except BaseException:
            connection.close()
            raise
        return connection

    async def _write(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """Run it in a transaction of the writer's; returns once that is on the disk."""
        return await self._writer.run(work)

    async def _read(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """Run it on one snapshot, which has all that was committed before."""
        return await self._reader.run(work)

    def _moves(self, now: Micros) -> Moves:
        """What a call is to gather its moves in."""
        return Moves(now, recording=self.recording)

    def _meet(self, lanes: Mapping[int, Lane]) -> None:
        self._lanes.update(lanes)
        self._lane_numbers.update((lane, number) for number, lane in lanes.items())
