"""Who could run what: the living workers, looked up at most once a second."""

from foliot.clock import Clock
from foliot.domain.duration import SECOND
from foliot.domain.job import Lane
from foliot.domain.worker import Worker
from foliot.store.base import WorkerStore


class Roster:
    def __init__(self, store: WorkerStore, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._workers: list[Worker] = []
        self._read = 0

    async def offers(self, lane: Lane) -> bool:
        """Whether any living worker takes jobs of this lane. A worker that just came is seen within a tenth of a
        second, one that left within a second."""
        now = self._clock.now()
        found = self._find(lane, now)
        if now - self._read < (SECOND if found else SECOND // 10):
            return found
        self._workers = await self._store.enrolled()
        self._read = now
        return self._find(lane, now)

    def _find(self, lane: Lane, now: int) -> bool:
        return any(worker.until > now and not worker.draining and worker.serves(lane) for worker in self._workers)
