"""A job that was handed in: how it stands, what it returned, how to end it."""

from collections.abc import AsyncIterator
from typing import Any, Generic, TypeVar

import msgspec
from msgspec import UNSET

from foliot.sdk.async_client import AsyncClient, Lines
from foliot.sdk.facade import Facade, blocking, blocking_iterator
from foliot.wire import Changed, GraphInfo, JobInfo, LogInfo

R = TypeVar("R")


class AsyncJob(Generic[R]):
    """Known by its id alone: nothing is kept that could be out of date. `kind` is what the function returns;
    `duplicate` tells that this submit made no job, because this one waited under the same `unique_key`."""

    def __init__(self, client: AsyncClient, job_id: str, kind: Any = Any, *, duplicate: bool = False) -> None:
        self.job_id = job_id
        self.duplicate = duplicate
        self._asked = client
        self._kind = kind

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.job_id}>"

    @property
    def _client(self) -> AsyncClient:
        return self._asked

    async def info(self) -> JobInfo:
        return await self._client.get(self.job_id)

    async def status(self) -> str:
        return (await self.info()).status

    async def wait(self, timeout: float | None = None) -> JobInfo:
        """The job once it has ended, however it ended; TimeoutError after `timeout` seconds."""
        return await self._client.wait(self.job_id, timeout=timeout)

    async def result(self, timeout: float | None = None) -> R:
        """What the function returned, once it has; JobFailed or JobCancelled where the job ended otherwise,
        TimeoutError after `timeout` seconds. Given as the type that the function is annotated with, where it fits."""
        value: R = _as(self._kind, await self._client.outcome(self.job_id, timeout=timeout))
        return value

    async def cancel(self) -> Changed:
        """Ends it: at once where it waits, by asking its worker where it runs. Conflict where it has ended."""
        return await self._client.cancel(self.job_id)

    async def retry(self, payload: object = UNSET, *, dependents: bool = False) -> Changed:
        """Runs it again where it failed or was cancelled, its tries anew; with `dependents` also the jobs that were
        cancelled because of it. Conflict where it has not ended, or has completed."""
        return await self._client.retry(self.job_id, payload=payload, dependents=dependents)

    async def graph(self) -> GraphInfo:
        """It with all that it depends on and all that depends on it."""
        return await self._client.graph(self.job_id)

    async def logs(self) -> Lines:
        """The lines so far, oldest first."""
        return await self._client.logs(self.job_id)

    def follow_logs(self) -> AsyncIterator[LogInfo]:
        """The lines so far and those to come, until the job has ended."""
        return self._client.follow_logs(self.job_id)


class Job(Facade[AsyncJob[R]]):
    """The same, waiting. `job.aio` is the awaitable one."""

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.job_id}>"

    @property
    def job_id(self) -> str:
        return self.aio.job_id

    @property
    def duplicate(self) -> bool:
        """Whether the submit made no job, because this one waited under the same `unique_key`."""
        return self.aio.duplicate

    def result(self, timeout: float | None = None) -> R:
        """What the function returned, once it has; see `AsyncJob.result`."""
        return self.thread.run(lambda: self.aio.result(timeout))

    info = blocking(AsyncJob.info)
    status = blocking(AsyncJob.status)
    wait = blocking(AsyncJob.wait)
    cancel = blocking(AsyncJob.cancel)
    retry = blocking(AsyncJob.retry)
    graph = blocking(AsyncJob.graph)
    logs = blocking(AsyncJob.logs)
    follow_logs = blocking_iterator(AsyncJob.follow_logs)


def _as(kind: Any, value: Any) -> Any:
    if kind is Any:
        return value
    try:
        return msgspec.convert(value, kind, builtin_types=())
    except (msgspec.ValidationError, TypeError):
        return value  # an annotation that promises too much loses no result
