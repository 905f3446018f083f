"""Workers: who is there, until when, with what."""

from collections.abc import Sequence

from foliot.domain.duration import Micros
from foliot.domain.ids import WorkerKey
from foliot.domain.job import Lease
from foliot.domain.worker import Worker
from foliot.store.base import Beat
from foliot.store.postgres.part import SQL, Part
from foliot.store.postgres.rows import WORKER_WIDTH, lease_of, worker_of, worker_values


class Workers(Part):
    async def add_worker(self, worker: Worker) -> None:
        await self._connections.write(SQL["add_worker"], *worker_values(worker))

    async def beat(self, worker: WorkerKey, now: Micros, until: Micros, *, namespace: str | None = None) -> Beat | None:
        rows = [tuple(row) for row in await self._connections.write(SQL["beat"], worker, now, until, namespace)]
        if not rows:
            return None
        stop = [lease_of(row[WORKER_WIDTH:]) for row in rows if row[WORKER_WIDTH] is not None]
        return Beat(worker_of(rows[0][:WORKER_WIDTH]), stop)

    async def drain_worker(self, worker: WorkerKey) -> bool:
        return bool(await self._connections.write(SQL["drain_worker"], worker))

    async def remove_worker(self, worker: WorkerKey) -> bool:
        return bool(await self._connections.write(SQL["remove_worker"], worker))

    async def workers(self, namespace: str | None = None) -> list[tuple[Worker, Sequence[Lease]]]:
        found: dict[int, tuple[Worker, list[Lease]]] = {}
        for row in await self._connections.read(SQL["workers"], namespace):
            values = tuple(row)
            if values[0] not in found:
                found[values[0]] = (worker_of(values[:WORKER_WIDTH]), [])
            if values[WORKER_WIDTH] is not None:
                found[values[0]][1].append(lease_of(values[WORKER_WIDTH:]))
        return list(found.values())

    async def enrolled(self, namespace: str | None = None) -> list[Worker]:
        return [worker_of(tuple(row)) for row in await self._connections.read(SQL["enrolled"], namespace)]

    async def forget_workers(self, before: Micros) -> int:
        return len(await self._connections.write(SQL["forget_workers"], before))
