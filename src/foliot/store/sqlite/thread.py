"""A thread that owns a connection. Everything queued while a transaction is under way forms the next one."""

import asyncio
import contextlib
import queue
import sqlite3
import threading
from collections.abc import Callable
from typing import Any, TypeVar

import msgspec

from foliot.domain.errors import Unavailable
from foliot.store.sqlite.connection import explained

T = TypeVar("T")
Work = Callable[[sqlite3.Connection], T]


class _Call(msgspec.Struct, frozen=True):
    work: Work[Any]
    future: asyncio.Future[Any]
    loop: asyncio.AbstractEventLoop


class _Outcome(msgspec.Struct, frozen=True):
    future: asyncio.Future[Any]
    value: Any = None
    error: BaseException | None = None


class ConnectionThread:
    """Runs functions on one connection, up to `most` of them in one transaction opened by `begin`.

    Each runs under its own savepoint (one alone needs none), so that one that fails leaves no trace and harms no
    neighbour. Callers are
    answered after the commit. A call cancelled before its turn is not run; one cancelled later takes effect all the
    same.
    """

    def __init__(self, name: str, connect: Callable[[], sqlite3.Connection], *, begin: str, most: int) -> None:
        self._connect = connect
        self._begin = begin
        self._most = most
        self._calls: queue.SimpleQueue[_Call | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._open = False
        self._ended: asyncio.Future[None] | None = None
        self._started: asyncio.Future[None] | None = None

    async def start(self) -> None:
        """Open the connection; raises what opening it raised."""
        loop = asyncio.get_running_loop()
        self._loop = loop
        self._started, self._ended = loop.create_future(), loop.create_future()
        self._thread.start()
        await self._started
        self._open = True

    async def stop(self) -> None:
        """Do what is queued, then close the connection."""
        if self._open and self._ended is not None:
            self._open = False
            self._calls.put(None)
            await self._ended
            self._thread.join()

    async def run(self, work: Work[T]) -> T:
        if not self._open:
            raise Unavailable("The store is closed.")
        loop = asyncio.get_running_loop()
        future: asyncio.Future[T] = loop.create_future()
        self._calls.put(_Call(work, future, loop))
        return await future

    def _run(self) -> None:
        assert self._started is not None
        assert self._ended is not None
        try:
            connection = self._connect()
        except BaseException as error:
            self._deliver(self._loop, [_Outcome(self._started, error=explained(error))])
            return
        self._deliver(self._loop, [_Outcome(self._started)])
        try:
            while (call := self._calls.get()) is not None:
                if not self._serve(connection, self._gather(call)):
                    break
        finally:
            connection.close()
            self._deliver(self._loop, [_Outcome(self._ended)])

    def _gather(self, first: _Call) -> list[_Call | None]:
        calls: list[_Call | None] = [first]
        while len(calls) < self._most and calls[-1] is not None:
            try:
                calls.append(self._calls.get_nowait())
            except queue.Empty:
                break
        return calls

    def _serve(self, connection: sqlite3.Connection, calls: list[_Call | None]) -> bool:
        """Carry out calls in one transaction and answer them; False where the end was asked for."""
        asked = [call for call in calls if call is not None and not call.future.cancelled()]
        if asked:
            outcomes = self._transact(connection, asked)
            for loop in {call.loop for call in asked}:
                self._deliver(loop, [o for c, o in zip(asked, outcomes, strict=True) if c.loop is loop])
        return calls[-1] is not None

    def _transact(self, connection: sqlite3.Connection, calls: list[_Call]) -> list[_Outcome]:
        outcomes = []
        committing = False
        try:
            connection.execute(self._begin)
            if len(calls) == 1:
                outcomes.append(_Outcome(calls[0].future, calls[0].work(connection)))
            else:
                outcomes += [self._under_savepoint(connection, call) for call in calls]
            committing = True
            connection.execute("COMMIT")
        except BaseException as error:
            if connection.in_transaction:
                with contextlib.suppress(sqlite3.Error):  # the error that counts is the first
                    connection.execute("ROLLBACK")
            return [_Outcome(call.future, error=explained(error, committing=committing)) for call in calls]
        return outcomes

    @staticmethod
    def _under_savepoint(connection: sqlite3.Connection, call: _Call) -> _Outcome:
        connection.execute("SAVEPOINT work")
        try:
            outcome = _Outcome(call.future, call.work(connection))
        except BaseException as error:
            if not connection.in_transaction:  # SQLite gave up the whole of it
                raise
            outcome = _Outcome(call.future, error=explained(error))
            connection.execute("ROLLBACK TO work")
        connection.execute("RELEASE work")
        return outcome

    @staticmethod
    def _deliver(loop: asyncio.AbstractEventLoop, outcomes: list[_Outcome]) -> None:
        try:
            loop.call_soon_threadsafe(_resolve, outcomes)
        except RuntimeError:
            if not loop.is_closed():
                raise


def _resolve(outcomes: list[_Outcome]) -> None:
    for outcome in outcomes:
        if not outcome.future.done():
            if outcome.error is None:
                outcome.future.set_result(outcome.value)
            else:
                outcome.future.set_exception(outcome.error)
