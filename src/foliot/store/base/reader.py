"""Reading on a caller's behalf: the same reads as everywhere, fenced to one namespace by the store itself where it can,
so that a forgotten condition shows nothing of others. What the engine does for all namespaces at once goes without."""

from collections.abc import Sequence
from typing import Protocol

from foliot.domain.duration import Micros
from foliot.domain.graph import Edge
from foliot.domain.ids import JobKey, ScheduleKey
from foliot.domain.job import Attempt, Lease, Record
from foliot.domain.queue import Queue, Room
from foliot.domain.schedule import Run, Schedule
from foliot.domain.worker import Worker
from foliot.store.base.values import Crowd, Filter, Limit, LogLine, Page


class Reader(Protocol):
    """Each method as its namesake of the store; what belongs to another namespace is not there."""

    async def load(self, keys: Sequence[JobKey]) -> dict[JobKey, Record]: ...

    async def find(self, namespace: str, names: Sequence[str]) -> dict[str, JobKey]: ...

    async def list_jobs(self, filter: Filter, *, limit: int, before: JobKey | None) -> Page: ...

    async def executions(self, key: JobKey) -> list[Attempt]: ...

    async def result(self, key: JobKey) -> str | None: ...

    async def logs(self, key: JobKey, *, after: int, level: int, limit: int) -> list[LogLine]: ...

    async def edges(self, keys: Sequence[JobKey], limit: int) -> list[Edge]: ...

    async def limits(
        self, namespace: str, *, keys: Sequence[str] | None = None, limit: int = 50, after: str = "", names: int = 0
    ) -> list[Limit]: ...

    async def queues(
        self, namespace: str, *, names: Sequence[str] | None = None, limit: int = 50, after: str = ""
    ) -> list[Queue]: ...

    async def crowds(self, queue_ids: Sequence[int]) -> dict[int, Crowd]: ...

    async def rooms(self, queue_ids: Sequence[int]) -> dict[int, Room]: ...

    async def held_types(self, namespace: str) -> list[str]: ...

    async def schedule(self, namespace: str, name: str) -> Schedule | None: ...

    async def list_schedules(self, namespace: str, *, limit: int, before: ScheduleKey | None) -> Sequence[Schedule]: ...

    async def runs(self, key: ScheduleKey, *, limit: int, before: Micros | None) -> list[Run]: ...

    async def workers(self, namespace: str | None = None) -> list[tuple[Worker, Sequence[Lease]]]: ...
