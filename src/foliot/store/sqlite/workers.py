"""Workers: who is there, until when, holding what."""

import sqlite3
from collections.abc import Sequence

from foliot.domain.duration import Micros
from foliot.domain.ids import WorkerKey
from foliot.domain.job import Lease
from foliot.domain.worker import Worker
from foliot.store.base import Beat
from foliot.store.sqlite.connection import SQL
from foliot.store.sqlite.dispatch import leases_of_workers
from foliot.store.sqlite.rows import lease_of, worker_columns, worker_of
from foliot.store.sqlite.threads import Threads


class SqliteWorkers(Threads):
    """`WorkerStore` on SQLite."""

    async def add_worker(self, worker: Worker) -> None:
        await self._write(lambda connection: connection.execute(SQL["insert_worker"], worker_columns(worker)).close())

    async def beat(self, worker: WorkerKey, now: Micros, until: Micros, *, namespace: str | None = None) -> Beat | None:
        def work(connection: sqlite3.Connection) -> Beat | None:
            found = connection.execute(SQL["beat_worker"], (worker, now, until, namespace)).fetchall()
            if not found:
                return None
            stop = connection.execute(SQL["leases_to_stop"], (worker,)).fetchall()
            return Beat(worker_of(found[0]), [lease_of(columns) for columns in stop])

        return await self._write(work)

    async def drain_worker(self, worker: WorkerKey) -> bool:
        return await self._write(lambda connection: bool(connection.execute(SQL["drain_worker"], (worker,)).fetchall()))

    async def remove_worker(self, worker: WorkerKey) -> bool:
        return await self._write(
            lambda connection: bool(connection.execute(SQL["remove_worker"], (worker,)).fetchall())
        )

    async def workers(self, namespace: str | None = None) -> list[tuple[Worker, Sequence[Lease]]]:
        def work(connection: sqlite3.Connection) -> list[tuple[Worker, Sequence[Lease]]]:
            found = [worker_of(columns) for columns in connection.execute(SQL["all_workers"], (namespace,))]
            return [(worker, leases_of_workers(connection, [worker.id])) for worker in found]

        return await self._read(work)

    async def enrolled(self, namespace: str | None = None) -> list[Worker]:
        return await self._read(
            lambda connection: [worker_of(columns) for columns in connection.execute(SQL["all_workers"], (namespace,))]
        )

    async def forget_workers(self, before: Micros) -> int:
        return await self._write(lambda connection: connection.execute(SQL["forget_workers"], (before,)).rowcount)
