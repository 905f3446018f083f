"""The app object: which functions are jobs, and where they are handed in."""

import asyncio
import atexit
import importlib
import os
from collections.abc import Callable, Coroutine, Mapping, Sequence
from datetime import timedelta
from typing import Any, ParamSpec, Protocol, Self, TypeVar, Unpack, cast, overload

import msgspec
from msgspec import Raw

from foliot.sdk.apply import apply_at_start
from foliot.sdk.async_client import AsyncClient
from foliot.sdk.client import Client
from foliot.sdk.declaration import ScheduleFields, declare
from foliot.sdk.deferred import Deferred, Deferring
from foliot.sdk.deferred_calls import DeferredCalls
from foliot.sdk.embedded import SCHEME, EmbeddedTransport
from foliot.sdk.facade import Facade, blocking
from foliot.sdk.graph import Graph
from foliot.sdk.handler import Handler, Isolation
from foliot.sdk.home_transport import HomeTransport
from foliot.sdk.job import AsyncJob, Job
from foliot.sdk.job_function import JobFunction
from foliot.sdk.location import find_key, find_url
from foliot.sdk.loop_thread import LoopThread
from foliot.sdk.options import Options, submit_body
from foliot.sdk.plain_jobs import PlainJobs
from foliot.sdk.requester import PATIENCE_SECONDS
from foliot.sdk.retry_rules import Kinds, RetryRules, RetryWhen
from foliot.sdk.transport import HttpTransport, Transport
from foliot.wire import ScheduleBody

P = ParamSpec("P")
R = TypeVar("R")


class JobDecorator(Protocol):
    """What `@app.job(…)` gives: makes a job of the function below it."""

    @overload
    def __call__(self, function: Callable[P, Coroutine[Any, Any, R]], /) -> JobFunction[P, R]: ...

    @overload
    def __call__(self, function: Callable[P, R], /) -> JobFunction[P, R]: ...


class ScheduleDecorator(Protocol):
    """What `@app.schedule(…)` gives: declares that the job below it, or the function, which becomes one, runs by it."""

    @overload
    def __call__(self, function: JobFunction[P, R], /) -> JobFunction[P, R]: ...

    @overload
    def __call__(self, function: Callable[P, Coroutine[Any, Any, R]], /) -> JobFunction[P, R]: ...

    @overload
    def __call__(self, function: Callable[P, R], /) -> JobFunction[P, R]: ...


class AsyncApp:
    """The awaitable side of an app."""

    def __init__(self, client: AsyncClient, home: HomeTransport, thread: LoopThread, jobs: PlainJobs) -> None:
        self.client = client
        self.home = home
        self.deferred: Deferring = DeferredCalls(thread)
        self._thread = thread
        self._jobs = jobs

    @overload
    async def submit(self, job: str, /, payload: object = None, **options: Unpack[Options]) -> AsyncJob[Any]: ...

    @overload
    async def submit(self, job: Callable[..., Any], /, *args: Any, **kwargs: Any) -> AsyncJob[Any]: ...

    async def submit(self, job: str | Callable[..., Any], /, *args: Any, **kwargs: Any) -> AsyncJob[Any]:
        """Hands in a job: of a type whose function lives elsewhere, with a payload of whatever JSON can carry, or of a
        function, with its arguments. One that is not a job yet becomes one by its qualified name, where the app is
        embedded. Options may stand beside either."""
        if not isinstance(job, str):
            here = self.client.url.startswith(SCHEME)
            return await self._jobs.of(job, here=here).aio.submit(*args, **kwargs)
        return await self._submit(job, *args, **kwargs)

    async def _submit(self, job_type: str, payload: object = None, **options: Unpack[Options]) -> AsyncJob[Any]:
        text = Raw(msgspec.json.encode({} if payload is None else payload))
        answer = await self.client.hand_in(submit_body(job_type, text, options))
        return AsyncJob(self.client, answer.job_id, duplicate=answer.duplicate)

    @overload
    def call_later(
        self,
        delay: float | timedelta,
        function: Callable[P, Coroutine[Any, Any, R]],
        /,
        *args: P.args,
        **kwargs: P.kwargs,
    ) -> Deferred[R]: ...

    @overload
    def call_later(
        self, delay: float | timedelta, function: Callable[P, R], /, *args: P.args, **kwargs: P.kwargs
    ) -> Deferred[R]: ...

    def call_later(
        self, delay: float | timedelta, function: Callable[..., Any], /, *args: Any, **kwargs: Any
    ) -> Deferred[Any]:
        """Calls a function in `delay` seconds, in this process, storing nothing; from any thread, in microseconds. A
        plain function is called on one of a few threads, a coroutine function on the event loop that runs here, or on
        the app's own."""
        return self.deferred.add(delay, function, *args, **kwargs)

    def attach(self, job_id: str) -> AsyncJob[Any]:
        """The job of that id, handed in whenever and by whom ever."""
        return AsyncJob(self.client, job_id)

    async def start(self) -> None:
        """Opens the way to the node; embedded, starts node and worker. The first call does it too."""
        await self.home.start()

    async def close(self, *, wait: bool = False) -> None:
        """Closes connections; embedded, stops node and worker. Deferred calls whose time has not come are dropped, or
        with `wait` waited for. The next use starts anew."""
        await asyncio.to_thread(self.deferred.close, wait=wait)
        await self.home.close()
        await asyncio.to_thread(self._thread.close)


class Foliot(Facade[AsyncApp]):
    """An app: `Foliot("http://127.0.0.1:7070")` speaks to a node, `Foliot("sqlite:///jobs.db")` is one, with a worker,
    in this process. Nothing is opened before it is needed."""

    def __init__(self, url: str | None = None, key: str | None = None, *, patience: float = PATIENCE_SECONDS) -> None:
        self.url = find_url(url)
        self.handlers: dict[str, Handler] = {}
        self._declared: dict[str, tuple[ScheduleBody, JobFunction[..., Any]]] = {}
        self._key = key
        self._process = os.getpid()
        thread = LoopThread()
        home = HomeTransport(thread, self._connect)
        core = AsyncClient(self.url, lambda: self.key, patience=patience, transport=home)
        self._jobs = PlainJobs(self.handlers, core, thread)
        super().__init__(AsyncApp(core, home, thread, self._jobs), thread)
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
        self,
        *,
        name: str | None = None,
        isolation: Isolation | None = None,
        retry_for: Kinds | None = None,
        fatal_for: Kinds | None = None,
        retry_when: RetryWhen | None = None,
        **options: Unpack[Options],
    ) -> JobDecorator: ...

    def job(  # type: ignore[misc]  # mypy does not see that Any takes in the unpacked options
        self,
        function: Callable[..., Any] | None = None,
        /,
        *,
        name: str | None = None,
        isolation: Isolation | None = None,
        retry_for: Kinds | None = None,
        fatal_for: Kinds | None = None,
        retry_when: RetryWhen | None = None,
        **options: Any,
    ) -> Any:
        """Makes a job of a function: a coroutine function runs on the worker's event loop, a plain one in a thread, or
        with `isolation="process"` in a process of its own. The job type is `name`, else the function's own name; the
        options are those of a submit, for every job of the function.

        Exceptions of `fatal_for` (classes, or error codes) are not tried again, nor any but those of `retry_for` where
        it is given; of the others `retry_when(error, attempt)` says after how many seconds, or False; see
        `RetryRules`."""

        self._check_not_started("jobs")

        def make(function: Callable[..., Any]) -> JobFunction[..., Any]:
            if isinstance(function, JobFunction):
                raise TypeError(f"{function.name} is a job already; write @app.schedule above @app.job")
            made: JobFunction[..., Any] = JobFunction(
                function,
                name=name or function.__name__,
                isolation=isolation,
                client=self.aio.client,
                thread=self.thread,
                options=cast(Options, options),
                rules=RetryRules(
                    name or function.__name__, retry_for=retry_for, fatal_for=fatal_for, retry_when=retry_when
                ),
            )
            if (before := self.handlers.get(made.name)) is not None and before.origin != made.handler.origin:
                raise ValueError(f"{made.name} is already the job of {before.origin}; give one of them another name")
            self.handlers[made.name] = made.handler
            return made

        return make if function is None else make(function)

    def schedule(self, **fields: Unpack[ScheduleFields]) -> ScheduleDecorator:
        """Declares that a job runs by a schedule: `@app.schedule(cron="0 9 * * MON-FRI", timezone="Europe/Madrid")`
        above `@app.job`, or above a plain function, which becomes a job. Several schedules of one function need each
        their own `schedule_id`. A worker of this app, or the app itself where it is embedded, makes or changes them on
        the node when it starts; none is ever deleted."""
        self._check_not_started("schedules")

        def declare_for(function: Callable[..., Any]) -> JobFunction[..., Any]:
            made: JobFunction[..., Any] = function if isinstance(function, JobFunction) else self.job(function)
            if self.handlers.get(made.name) is not made.handler:
                raise ValueError(f"{made.name} is a job of another app; a schedule is declared by the app of its job")
            body = declare(made, fields)
            name = body.schedule_id or ""
            if (before := self._declared.get(name)) is not None and (
                before[1] is made or before[1].handler.origin != made.handler.origin
            ):
                raise ValueError(f"there are two schedules {name}; give one of them another schedule_id")
            self._declared[name] = body, made
            return made

        return cast(ScheduleDecorator, declare_for)

    @property
    def schedules(self) -> list[ScheduleBody]:
        """Those that are declared in code."""
        return [body for body, _ in self._declared.values()]

    start = blocking(AsyncApp.start)

    @overload
    def submit(self, job: str, /, payload: object = None, **options: Unpack[Options]) -> Job[Any]: ...

    @overload
    def submit(self, job: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Job[Any]: ...

    def submit(self, job: Any, /, *args: Any, **kwargs: Any) -> Job[Any]:
        """Hands in a job and returns once it is stored; see `AsyncApp.submit`."""
        return Job(self.thread.run(lambda: self.aio.submit(job, *args, **kwargs)), self.thread)

    def graph(self, graph_id: str | None = None) -> Graph:
        """Jobs that depend on each other, handed in at once: `with app.graph() as graph`, or `async with`; see
        `Graph`."""
        return Graph(graph_id, client=self.aio.client, thread=self.thread, jobs=self._jobs, here=self.embedded)

    @overload
    def call_later(
        self,
        delay: float | timedelta,
        function: Callable[P, Coroutine[Any, Any, R]],
        /,
        *args: P.args,
        **kwargs: P.kwargs,
    ) -> Deferred[R]: ...

    @overload
    def call_later(
        self, delay: float | timedelta, function: Callable[P, R], /, *args: P.args, **kwargs: P.kwargs
    ) -> Deferred[R]: ...

    def call_later(
        self, delay: float | timedelta, function: Callable[..., Any], /, *args: Any, **kwargs: Any
    ) -> Deferred[Any]:
        """Calls a function in `delay` seconds, in this process; see `AsyncApp.call_later`."""
        return self.aio.call_later(delay, function, *args, **kwargs)

    def attach(self, job_id: str) -> Job[Any]:
        """The job of that id, handed in whenever and by whom ever."""
        return Job(self.aio.attach(job_id), self.thread)

    def run_worker(
        self,
        *,
        concurrency: int = 20,
        queues: Sequence[str] = (),
        name: str | None = None,
        resources: Mapping[str, float | str] | None = None,
        labels: Mapping[str, str] | None = None,
    ) -> int:
        """Runs this app's jobs in this process until a signal ends it, as `foliot worker` does; the exit code. Without
        `queues` it takes from every one. `resources` (`{"cpu": 4, "memory": "8Gi"}`) and `labels` are what it offers
        besides `concurrency` slots."""
        if self.embedded:
            raise RuntimeError(f"{self.url} has its worker in this process already; start() starts it")
        room: Any = importlib.import_module("foliot.worker")  # a room above this one
        worker = room.Worker(
            self.url,
            self.key or "",
            self.handlers,
            name=name,
            queues=queues,
            concurrency=concurrency,
            resources=resources,
            labels=labels,
        )
        code: int = room.run_worker(worker, self.schedules)
        return code

    def close(self, *, wait: bool = False) -> None:
        """Closes connections; embedded, stops node and worker. Deferred calls whose time has not come are dropped, or
        with `wait` waited for. Done at exit, too. The next use starts anew."""
        self.aio.deferred.close(wait=wait)
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
            transport = await EmbeddedTransport.start(self.url, self.handlers, process=self._process)
            await apply_at_start(AsyncClient(self.url, transport=transport), self.schedules)
            return transport
        return HttpTransport(self.url)

    def _check_not_started(self, what: str) -> None:
        if self.embedded and self.thread.running:
            raise RuntimeError(f"the worker in this process has started already: define {what} before the first call")
