"""The SQLite store in memory, without its thread: there is nobody to wait for, and a hop costs more than a query."""

import sqlite3
from collections.abc import Callable
from typing import TypeVar

from foliot.clock import Clock
from foliot.store.sqlite import SqliteStore
from foliot.store.sqlite.connection import explained

T = TypeVar("T")


class MemoryStore(SqliteStore):
    """`Store` for one event loop: everything is done at once, on the loop's own thread."""

    def __init__(self, clock: Clock) -> None:
        super().__init__(":memory:", clock=clock)
        self._connection: sqlite3.Connection | None = None

    async def open(self) -> None:
        self._connection = self._connect_writer(":memory:")

    async def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    async def _write(self, work: Callable[[sqlite3.Connection], T]) -> T:
        connection = self._connection
        assert connection is not None, "the store is not open"
        try:
            with connection:
                connection.execute("BEGIN")
                return work(connection)
        except Exception as error:
            raise explained(error) from error

    async def _read(self, work: Callable[[sqlite3.Connection], T]) -> T:
        assert self._connection is not None, "the store is not open"
        return work(self._connection)
