"""The app object: which functions are jobs, and where they are handed in."""

import asyncio
import atexit
import importlib
import os
from collections.abc import Callable, Coroutine, Sequence
from typing import Any, ParamSpec, Protocol, Self, TypeVar, Unpack, cast, overload

import msgspec
from msgspec import Raw

from foliot.sdk.async_client import PATIENCE_SECONDS, AsyncClient
from foliot.sdk.client import Client
from foliot.sdk.embedded import SCHEME, EmbeddedTransport
from foliot.sdk.facade import Facade, blocking, blocking_as
from foliot.sdk.handler import Handler, Isolation
from foliot.sdk.home_transport import HomeTransport
from foliot.sdk.job import AsyncJob, Job
from foliot.sdk.job_function import JobFunction
from foliot.sdk.location import find_key, find_url
from foliot.sdk.loop_thread import LoopThread
from foliot.sdk.options import Options, submit_body
from foliot.sdk.transport import HttpTransport, Transport

P = ParamSpec("P")
R = TypeVar("R")


class JobDecorator(Protocol):
    """What `@app.job(…)` gives: makes a job of the function below it."""

    @overload
    def __call__(self, function: Callable[P, Coroutine[Any, Any, R]], /) -> JobFunction[P, R]: ...

    @overload
    def __call__(self, function: Callable[P, R], /) -> JobFunction[P, R]: ...


class AsyncApp:
    """The awaitable side of an app."""

    def __init__(self, client: AsyncClient, home: HomeTransport, thread: LoopThread) -> None:
        self.client = client
        self.home = home
        self._thread = thread

    async def submit(self, job_type: str, payload: object = None, **options: Unpack[Options]) -> AsyncJob[Any]:
        """Hands in a job whose function lives elsewhere. `payload` is anything that JSON can carry."""
        text = Raw(msgspec.json.encode({} if payload is None else payload))
        return AsyncJob(self.client, await self.client.submit(submit_body(job_type, text, options)))

    def attach(self, job_id: str) -> AsyncJob[Any]:
        """The job of that id, handed in whenever and by whom ever."""
        return AsyncJob(self.client, job_id)

    async def start(self) -> None:
        """Opens the way to the node; embedded, starts node and worker. The first call does it too."""
        await self.home.start()

    async def close(self) -> None:
        """Closes connections; embedded, stops node and worker. The next use starts anew."""
        await self.home.close()
        await asyncio.to_thread(self._thread.close)


class Foliot(Facade[AsyncApp]):
    """An app: `Foliot("http://127.0.0.1:7070")` speaks to a node, `Foliot("sqlite:///jobs.db")` is one, with a worker,
    in this process. Nothing is opened before it is needed."""

    def __init__(self, url: str | None = None, key: str | None = None, *, patience: float = PATIENCE_SECONDS) -> None:
        self.url = find_url(url)
        self.handlers: dict[str, Handler] = {}
        self._key = key
        self._process = os.getpid()
        thread = LoopThread()
        home = HomeTransport(thread, self._connect)
        core = AsyncClient(self.url, lambda: self.key, patience=patience, transport=home)
        super().__init__(AsyncApp(core, home, thread), thread)
        self.client = Client.over(core, thread)

    @property
    def key(self) -> str | None:
        """Looked for when it is needed: a node on this machine writes its key when it first starts."""
        return find_key(self.url, self._key)

    @property
    def embedded(self) -> bool:
        return self.url.startswith(SCHEME)

    @overload
    def job(self, function: Callable[P, Coroutine[Any, Any, R]], /) -> JobFunction[P, R]: ...

    @overload
    def job(self, function: Callable[P, R], /) -> JobFunction[P, R]: ...

    @overload
    def job(
        self, *, name: str | None = None, isolation: Isolation | None = None, **options: Unpack[Options]
    ) -> JobDecorator: ...

    def job(  # type: ignore[misc]  # mypy does not see that Any takes in the unpacked options
        self,
        function: Callable[..., Any] | None = None,
        /,
        *,
        name: str | None = None,
        isolation: Isolation | None = None,
        **options: Any,
    ) -> Any:
        """Makes a job of a function: a coroutine function runs on the worker's event loop, a plain one in a thread, or
        with `isolation="process"` in a process of its own. The job type is `name`, else the function's own name; the
        options are those of a submit, for every job of the function."""

        if self.embedded and self.thread.running:
            raise RuntimeError("the worker in this process has started already: define jobs before the first call")

        def make(function: Callable[..., Any]) -> JobFunction[..., Any]:
            made: JobFunction[..., Any] = JobFunction(
                function,
                name=name or function.__name__,
                isolation=isolation,
                client=self.aio.client,
                thread=self.thread,
                options=cast(Options, options),
            )
            if (before := self.handlers.get(made.name)) is not None and before.origin != made.handler.origin:
                raise ValueError(f"{made.name} is already the job of {before.origin}; give one of them another name")
            self.handlers[made.name] = made.handler
            return made

        return make if function is None else make(function)

    start = blocking(AsyncApp.start)
    submit = blocking_as(Job, AsyncApp.submit)

    def attach(self, job_id: str) -> Job[Any]:
        """The job of that id, handed in whenever and by whom ever."""
        return Job(self.aio.attach(job_id), self.thread)

    def run_worker(self, *, concurrency: int = 20, queues: Sequence[str] = (), name: str | None = None) -> int:
        """Runs this app's jobs in this process until a signal ends it, as `foliot worker` does; the exit code. Without
        `queues` it takes from every one."""
        if self.embedded:
            raise RuntimeError(f"{self.url} has its worker in this process already; start() starts it")
        room: Any = importlib.import_module("foliot.worker")  # a room above this one
        worker = room.Worker(self.url, self.key or "", self.handlers, name=name, queues=queues, concurrency=concurrency)
        code: int = room.run_worker(worker)
        return code

    def close(self) -> None:
        """Closes connections; embedded, stops node and worker. Done at exit, too. The next use starts anew."""
        atexit.unregister(self.close)
        if self.thread.running:
            self.thread.run(self.aio.home.close)
            self.thread.close()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *raised: object) -> None:
        self.close()

    async def __aenter__(self) -> Self:
        await self.aio.start()
        return self

    async def __aexit__(self, *raised: object) -> None:
        await self.aio.close()

    async def _connect(self) -> Transport:
        atexit.register(self.close)
        if self.embedded:
            return await EmbeddedTransport.start(self.url, self.handlers, process=self._process)
        return HttpTransport(self.url)
