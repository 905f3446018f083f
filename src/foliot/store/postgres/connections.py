"""A few connections to one database, and what their failures mean to a caller.

Settings: every query of the store is a look-up through an index, so sequential scans and the joins that read whole
tables are switched off. The planner would choose them when a table's statistics are from a moment at which it was
empty, as those of the narrow tables often are.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any, Final, TypeVar

import asyncpg
from asyncpg import exceptions as pg

from foliot.domain.errors import FoliotError, StoreFull, Unavailable, Unstorable
from foliot.store.postgres.writer import Connection, Numbers

__all__ = ["Connection", "Connections", "close", "columns", "connect", "translated"]

T = TypeVar("T")

CONNECTIONS: Final = 6
CONNECT_SECONDS: Final = 10.0
STATEMENT_SECONDS: Final = 30
_ATTEMPTS: Final = 6  # of a transaction that lost against another one

SETTINGS: Final = {
    "application_name": "foliot",
    "jit": "off",
    "statement_timeout": f"{STATEMENT_SECONDS}s",
    "idle_in_transaction_session_timeout": f"{STATEMENT_SECONDS}s",
    "synchronous_commit": "on",
    "enable_seqscan": "off",
    "enable_hashjoin": "off",
    "enable_mergejoin": "off",
    "plan_cache_mode": "force_generic_plan",
}

LOST = (
    pg.PostgresConnectionError,
    pg.InterfaceError,
    pg.InternalClientError,  # the driver lost its place, as it may when a server dies between two messages
    pg.AdminShutdownError,
    pg.CrashShutdownError,
    pg.CannotConnectNowError,
    OSError,
    asyncio.TimeoutError,
)
_BUSY = (pg.SerializationError, pg.DeadlockDetectedError)
_REFUSED = (
    pg.TooManyConnectionsError,
    pg.QueryCanceledError,
    pg.LockNotAvailableError,
    pg.ReadOnlySQLTransactionError,
    pg.InsufficientResourcesError,
    pg.InvalidAuthorizationSpecificationError,
    pg.InvalidCatalogNameError,
    pg.PostgresIOError,
)
_UNSTORABLE = (pg.DataError, pg.ProgramLimitExceededError, UnicodeEncodeError)


async def connect(url: str) -> Connection:
    """A connection outside of any pool, with the store's settings."""
    # The client's limit is above the server's, so that a server that answers is never cut off in mid-sentence.
    return await asyncpg.connect(
        url,
        connection_class=Connection,
        server_settings=SETTINGS,
        timeout=CONNECT_SECONDS,
        command_timeout=STATEMENT_SECONDS + 5,
    )


async def close(connection: Connection) -> None:
    """End it in peace, or by force where that takes long."""
    try:
        await connection.close(timeout=1)
    except (*LOST, pg.PostgresError):
        connection.terminate()
        await asyncio.sleep(0)


class Connections:
    """Up to `CONNECTIONS` connections, made when needed. The one used last is next: its statements are prepared. With
    `numbers` those that write are writers of the record."""

    def __init__(self, url: str, numbers: Numbers | None = None) -> None:
        self.url = url
        self._numbers = numbers
        self._idle: list[Connection] = []
        self._room = asyncio.Semaphore(CONNECTIONS)
        self._open = True

    async def read(self, query: str, *arguments: object) -> list[asyncpg.Record]:
        """The rows of a statement that changes nothing. Tried once more, on a new connection, where one was lost."""
        for last in (False, True):
            try:
                async with self._connection(fresh=last) as connection:
                    return await connection.fetch(query, *arguments)
            except Exception as error:
                if not last and _is_lost(error):
                    continue
                raise translated(error, fate_unknown=False) from error
        raise AssertionError

    async def write(self, query: str, *arguments: object) -> list[asyncpg.Record]:
        """The rows of one statement that is a transaction of its own."""
        return await self._write(query, arguments, stamped=False)

    async def record(self, query: str, *arguments: object) -> list[asyncpg.Record]:
        """As `write`, of a statement that takes a stamp behind its other arguments."""
        return await self._write(query, arguments, stamped=True)

    async def _write(self, query: str, arguments: Sequence[object], *, stamped: bool) -> list[asyncpg.Record]:
        for attempt in range(_ATTEMPTS):
            sent = False
            try:
                async with self._connection() as connection:
                    if not stamped:
                        sent = True
                        return await connection.fetch(query, *arguments)
                    if self._numbers is not None:
                        await connection.become_writer(self._numbers)
                    sent = True
                    return await connection.fetch(query, *arguments, *connection.stamp())
            except Exception as error:
                if isinstance(error, _BUSY) and attempt < _ATTEMPTS - 1:
                    continue
                raise translated(error, fate_unknown=sent and _is_lost(error)) from error
        raise AssertionError

    async def transact(self, work: Callable[[Connection], Awaitable[T]]) -> T:
        """What `work` returns, its statements being one transaction. Called again where it lost against another."""
        for attempt in range(_ATTEMPTS):
            committing = False
            try:
                async with self._connection() as connection:
                    if self._numbers is not None:
                        await connection.become_writer(self._numbers)
                    transaction = connection.transaction()
                    await transaction.start()
                    try:
                        outcome = await work(connection)
                    except Exception as error:
                        if not _is_lost(error):
                            await transaction.rollback()
                        raise
                    committing = True
                    await transaction.commit()
                    return outcome
            except Exception as error:
                if isinstance(error, _BUSY) and attempt < _ATTEMPTS - 1:
                    continue
                raise translated(error, fate_unknown=committing and _is_lost(error)) from error
        raise AssertionError

    async def close(self) -> None:
        self._open = False
        idle, self._idle = self._idle, []
        for connection in idle:
            await close(connection)
        await asyncio.sleep(0)  # so that the loop sees the end of those that were cut off

    @asynccontextmanager
    async def _connection(self, *, fresh: bool = False) -> AsyncIterator[Connection]:
        if not self._open:
            raise Unavailable("The store is closed.")
        async with self._room:
            connection = await self._take(fresh=fresh)
            try:
                yield connection
            except BaseException as error:
                # After an error that the server told, the connection is in order; after any other (a lost answer, a
                # cancelled caller) nobody knows what it would say next.
                self._give_back(connection, usable=isinstance(error, Exception) and not _is_lost(error))
                raise
            self._give_back(connection, usable=True)

    def _give_back(self, connection: Connection, *, usable: bool) -> None:
        if usable and self._open and not connection.is_in_transaction():
            self._idle.append(connection)
        else:
            connection.terminate()

    async def _take(self, *, fresh: bool) -> Connection:
        if fresh:
            # Where one connection was lost the others that lie idle most likely are as well.
            while self._idle:
                self._idle.pop().terminate()
        while self._idle:
            connection = self._idle.pop()
            if not connection.is_closed():
                return connection
        return await connect(self.url)


def _is_lost(error: BaseException) -> bool:
    """The answer is missing, and with it the knowledge of what was done."""
    return isinstance(error, LOST)


def translated(error: Exception, *, fate_unknown: bool) -> Exception:
    """The error in the words of the domain; what is not ours to explain stays as it is."""
    match error:
        case FoliotError():
            return error
        case pg.DiskFullError():
            return StoreFull("The database has no room left on its disk: make room there; nothing was written.")
        case pg.PostgresError() | UnicodeEncodeError() | ValueError() if isinstance(error, _UNSTORABLE):
            return Unstorable(f"The database can not keep this: {_words(error)}")
        case _ if isinstance(error, (*LOST, *_BUSY, *_REFUSED)):
            return Unavailable(f"The database did not answer as it should: {_words(error)}", fate_unknown=fate_unknown)
    return error


def _words(error: Exception) -> str:
    return str(error) or type(error).__name__


def columns(rows: Sequence[Sequence[Any]], width: int) -> list[list[Any]]:
    """Rows turned into the arrays that `unnest` takes."""
    return [list(column) for column in zip(*rows, strict=True)] if rows else [[] for _ in range(width)]
