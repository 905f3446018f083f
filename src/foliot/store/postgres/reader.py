"""Reading on a caller's behalf, behind the fence that 0005_access.sql puts up.

Its connections take the role `foliot_reader`, which owns nothing and is shown by the database only what belongs to the
namespace that is set. Where a statement is bounded by the rows that it looks at, or finds them by an index that the
database does not use behind a fence (it would have to tell something of rows that are not to be seen), the engine tells
which ids to look for, and the rows of those are read behind the fence.

A user who may not make roles has no fence until somebody makes the role: then reads are fenced by their conditions
alone, and the log says so.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Final
from weakref import WeakKeyDictionary

from foliot.domain.graph import Edge, On
from foliot.domain.ids import JobKey
from foliot.domain.status import status_of
from foliot.store.base import Crowd, Filter, Page
from foliot.store.base.reader import Reader
from foliot.store.postgres.connections import Connection, Connections, columns
from foliot.store.postgres.graph import Graph
from foliot.store.postgres.lifecycle import Lifecycle
from foliot.store.postgres.limits import Limits
from foliot.store.postgres.lists import Lists
from foliot.store.postgres.part import SQL
from foliot.store.postgres.queues import Queues
from foliot.store.postgres.schedules import Schedules
from foliot.store.postgres.workers import Workers

READERS: Final = 3
_log = logging.getLogger("foliot.store")


class Engine(Lists, Graph, Limits, Queues, Schedules, Workers):
    """All that has something to read."""


class Readers(Engine, Lifecycle):
    """The readers of a store."""

    def __init__(self, url: str, *, recording: bool = True) -> None:
        super().__init__(url, recording=recording)
        self._behind = Behind(url)
        self._fenced = False
        self._readers: dict[str, FencedReader] = {}

    async def open(self) -> None:
        await super().open()
        reason = (await self._connections.write(SQL["fence"]))[0][0]
        self._fenced = reason is None
        if reason is not None:
            _log.warning(
                "reads on behalf of callers run without row-level security: %s; let an administrator of the database "
                "create the role foliot_reader and grant it to this user, then start again",
                reason,
            )

    async def close(self) -> None:
        await self._behind.close()
        await super().close()

    def reader(self, namespace: str) -> Reader:
        if not self._fenced:
            return self
        if namespace not in self._readers:
            self._readers[namespace] = FencedReader(self, self._behind, namespace)
        return self._readers[namespace]


class Behind(Connections):
    """Up to `READERS` connections behind the fence, for whatever namespace."""

    def __init__(self, url: str) -> None:
        super().__init__(url)
        self._room = asyncio.Semaphore(READERS)
        self._namespaces: WeakKeyDictionary[Connection, str] = WeakKeyDictionary()

    @asynccontextmanager
    async def of(self, namespace: str, *, fresh: bool) -> AsyncIterator[Connection]:
        self._idle.sort(key=lambda connection: self._namespaces.get(connection) == namespace)  # the last one is next
        async with self._connection(fresh=fresh) as connection:
            if self._namespaces.get(connection) != namespace:
                await connection.fetchrow(SQL["go_behind_fence"], namespace)
                self._namespaces[connection] = namespace
            yield connection


class OnBehalf(Connections):
    """Connections behind the fence, for one namespace."""

    def __init__(self, behind: Behind, namespace: str) -> None:
        super().__init__(behind.url)
        self._behind = behind
        self._namespace = namespace

    @asynccontextmanager
    async def _connection(self, *, fresh: bool = False) -> AsyncIterator[Connection]:
        async with self._behind.of(self._namespace, fresh=fresh) as connection:
            yield connection


class FencedReader(Engine):
    """`Reader` of one namespace."""

    def __init__(self, engine: Engine, behind: Behind, namespace: str) -> None:
        super().__init__(behind.url, recording=False)
        self._connections = OnBehalf(behind, namespace)
        self._engine = engine

    async def list_jobs(self, filter: Filter, *, limit: int, before: JobKey | None) -> Page:
        """What has another status by the time its row is read is left out, like what was never found."""
        page = await self._engine.list_jobs(filter, limit=limit, before=before)
        keys = [record.job.id for record in page.records]
        rows = await self._connections.read(SQL["list_among"], keys)
        found = {record.job.id: record for record in await self._records([tuple(row) for row in rows])}
        shown = [found[key] for key in keys if key in found]
        if filter.statuses:
            shown = [record for record in shown if status_of(record.row) in filter.statuses]
        return Page(shown, page.next)

    async def edges(self, keys: Sequence[JobKey], limit: int) -> list[Edge]:
        ends = [(edge.parent, edge.child) for edge in await self._engine.edges(keys, limit)]
        rows = await self._connections.read(SQL["edges_among"], *columns(ends, 2))
        return [Edge(parent, child, On(on), done) for parent, child, on, done in rows]

    async def crowds(self, queue_ids: Sequence[int]) -> dict[int, Crowd]:
        seen = await self._connections.read(SQL["queues_among"], sorted(set(queue_ids)))
        return await self._engine.crowds([row[0] for row in seen])
