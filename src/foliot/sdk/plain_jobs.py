"""Functions that are handed in as they are: each becomes a job type of its qualified name when it is first used."""

import inspect
from collections.abc import Callable
from typing import Any

from foliot.sdk.async_client import AsyncClient
from foliot.sdk.handler import Handler
from foliot.sdk.job_function import JobFunction
from foliot.sdk.loop_thread import LoopThread


class PlainJobs:
    """`handlers` are those of the app; what is made here is added to them."""

    def __init__(self, handlers: dict[str, Handler], client: AsyncClient, thread: LoopThread) -> None:
        self._handlers = handlers
        self._client = client
        self._thread = thread
        self._made: dict[Callable[..., Any], JobFunction[..., Any]] = {}

    def of(self, function: Callable[..., Any], *, here: bool) -> JobFunction[..., Any]:
        """The job of a function. `here` tells whether the worker is in this process: another one would not know it."""
        if isinstance(function, JobFunction):
            if self._handlers.get(function.name) is not function.handler:
                raise ValueError(f"{function.name} is a job of another app; hand it in there")
            return function
        made = self._made.get(function)
        if made is None:
            made = self._made[function] = self._make(function, here)
        return made

    def _make(self, function: Callable[..., Any], here: bool) -> JobFunction[..., Any]:
        name = getattr(function, "__qualname__", repr(function))
        if not here:
            raise TypeError(f"{name} is not a job, and the workers of this app are elsewhere: put @app.job above it")
        if not inspect.isfunction(function) or "<" in name:
            raise TypeError(
                f"{name} can not be found by its name, as a stored job must: give a function at the top of a module, "
                "or use call_later, which stores nothing"
            )
        made: JobFunction[..., Any] = JobFunction(
            function,
            name=f"{function.__module__}.{name}",
            isolation=None,
            client=self._client,
            thread=self._thread,
            options={},
        )
        self._handlers.setdefault(made.name, made.handler)
        return made
