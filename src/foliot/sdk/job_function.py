"""A function that is a job: called as ever, or submitted to run on a worker."""

import inspect
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import update_wrapper
from typing import Any, Generic, ParamSpec, TypeVar, Unpack

from foliot.sdk.arguments import Arguments, BadArguments
from foliot.sdk.async_client import AsyncClient
from foliot.sdk.context import JobContext
from foliot.sdk.errors import Fatal, Judged
from foliot.sdk.facade import Facade
from foliot.sdk.handler import Handler, Isolation
from foliot.sdk.job import AsyncJob, Job
from foliot.sdk.loop_thread import LoopThread
from foliot.sdk.options import OPTION_NAMES, Options, check_options, derive, submit_body
from foliot.sdk.retry_rules import RetryRules
from foliot.wire import SubmitBody, Submitted, TemplateBody

P = ParamSpec("P")
R = TypeVar("R")
TEMPLATE_NAMES = OPTION_NAMES & set(TemplateBody.__struct_fields__)
Items = Iterable[Mapping[str, Any] | tuple[Any, ...] | list[Any]]


class AsyncCall(Generic[R]):
    """A job function with its options, ready to be submitted. Names in `beside` are options where they come with the
    arguments of a submit."""

    def __init__(
        self, client: AsyncClient, name: str, arguments: Arguments, options: Options, beside: frozenset[str]
    ) -> None:
        self._client = client
        self._name = name
        self._arguments = arguments
        self._options = options
        self._beside = beside

    @property
    def client(self) -> AsyncClient:
        return self._client

    @property
    def result(self) -> Any:
        """The type that the function is annotated to return."""
        return self._arguments.result

    async def submit(self, *args: Any, **kwargs: Any) -> AsyncJob[R]:
        """Hands in one job and returns once it is stored. TypeError, naming the argument, where they do not fit. A job
        among the arguments stands for its result, and must have completed first."""
        return self._handed_in(await self._client.hand_in(self.body(*args, **kwargs)))

    async def submit_many(self, items: Items) -> list[AsyncJob[R]]:
        """Hands in many: each item a dict of arguments by name, or a tuple or list of them in order. All are checked
        before the first is sent; then up to 10,000 a request, each kept whole or not at all."""
        if "job_id" in self._options:
            raise TypeError("many jobs can not share one job_id; leave it out, or submit them one by one")
        bodies = [self._body(*self._arguments_of(item), self._options) for item in items]
        return [self._handed_in(answer) for answer in await self._client.hand_in_many(bodies)]

    def body(self, *args: Any, **kwargs: Any) -> SubmitBody:
        """The job that `submit` hands in."""
        options = dict(self._options)
        if self._beside and not self._beside.isdisjoint(kwargs):
            options |= {name: kwargs.pop(name) for name in self._beside & kwargs.keys()}
        return self._body(args, kwargs, options)

    def with_options(self, options: Options) -> "AsyncCall[R]":
        """The same with these options, none of them beside the arguments."""
        return AsyncCall(self._client, self._name, self._arguments, options, frozenset())

    def _body(self, args: Sequence[Any], kwargs: Mapping[str, Any], options: Mapping[str, Any]) -> SubmitBody:
        payload, results_of = self._arguments.payload_with_results(args, kwargs)
        derived = derive(options, lambda: self._arguments.values(args, kwargs))
        return submit_body(self._name, payload, derived, results_of)

    def _handed_in(self, answer: Submitted) -> AsyncJob[R]:
        return AsyncJob(self._client, answer.job_id, self.result, duplicate=answer.duplicate)

    def _arguments_of(self, item: Any) -> tuple[Sequence[Any], Mapping[str, Any]]:
        if isinstance(item, Mapping):
            return (), item
        if isinstance(item, tuple | list):
            return item, {}
        raise TypeError(f"{self._name}: each item is a dict or a tuple of arguments, not {item!r}")


class Call(Facade[AsyncCall[R]]):
    """The same, waiting. `call.aio` is the awaitable one."""

    def submit(self, *args: Any, **kwargs: Any) -> Job[R]:
        """Hands in one job and returns once it is stored; see `AsyncCall.submit`."""
        return Job(self.thread.run(lambda: self.aio.submit(*args, **kwargs)), self.thread)

    def submit_many(self, items: Items) -> list[Job[R]]:
        """Hands in many; see `AsyncCall.submit_many`."""
        return [Job(job, self.thread) for job in self.thread.run(lambda: self.aio.submit_many(items))]


class JobFunction(Call[R], Generic[P, R]):
    """What `@app.job` makes of a function."""

    __name__: str

    def __init__(
        self,
        function: Callable[P, Any],
        *,
        name: str,
        isolation: Isolation | None,
        client: AsyncClient,
        thread: LoopThread,
        options: Options,
        rules: RetryRules | None = None,
    ) -> None:
        is_async = inspect.iscoroutinefunction(function)
        if is_async and isolation not in (None, "async"):
            raise TypeError(f"{name} is a coroutine function: it runs on the worker's event loop, not in a {isolation}")
        if not is_async and isolation == "async":
            raise TypeError(f"{name} is a plain function and would hold up the event loop; use a thread or a process")
        self.name = name
        self._function = function
        self._arguments = Arguments(function, name)
        self._options = options
        self._rules = rules
        check_options(name, options, self._arguments.names)
        beside = OPTION_NAMES - self._arguments.names
        super().__init__(AsyncCall(client, name, self._arguments, options, beside), thread)
        self.handler = Handler(
            name=name,
            function=self._run_async if is_async else self._run,
            isolation=isolation or ("async" if is_async else "thread"),
            origin=_origin(function),
        )
        self.handlers = {name: self.handler}  # by which a worker's process finds it
        update_wrapper(self, function)

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> Any:
        return self._function(*args, **kwargs)

    def options(self, **options: Unpack[Options]) -> Call[R]:
        """The same job with other options. Its `submit` takes only the function's arguments: no name can clash."""
        merged: Options = {**self._options, **options}
        check_options(self.name, merged, self._arguments.names)
        return Call(self.aio.with_options(merged), self.thread)

    def template(self, args: Sequence[Any], kwargs: Mapping[str, Any], options: Mapping[str, Any]) -> TemplateBody:
        """The job that each run of a schedule is. TypeError, naming the argument, where they do not fit."""
        merged = {name: value for name, value in {**self._options, **options}.items() if value is not None}
        if wrong := merged.keys() - TEMPLATE_NAMES:
            raise TypeError(
                f"{self.name}: a run's id and times are its schedule's; leave out {', '.join(sorted(wrong))}"
            )
        derived = derive(merged, lambda: self._arguments.values(args, kwargs))
        body = submit_body(self.name, self._arguments.payload(args, kwargs), derived)
        return TemplateBody(**{name: getattr(body, name) for name in TemplateBody.__struct_fields__})

    def _run(self, payload: bytes, context: JobContext) -> Any:
        args, kwargs = self._read(payload, context)
        try:
            return self._function(*args, **kwargs)
        except Exception as error:
            if judged := self._judged(error, context):
                raise judged from error
            raise

    async def _run_async(self, payload: bytes, context: JobContext) -> Any:
        args, kwargs = self._read(payload, context)
        try:
            return await self._function(*args, **kwargs)
        except Exception as error:
            if judged := self._judged(error, context):
                raise judged from error
            raise

    def _judged(self, error: Exception, context: JobContext) -> Judged | None:
        return None if self._rules is None else self._rules.judge(error, context.attempt)

    def _read(self, payload: bytes, context: JobContext) -> tuple[list[Any], dict[str, Any]]:
        try:
            return self._arguments.call(payload, context)
        except BadArguments as error:
            raise Fatal(str(error), code="bad_arguments") from None


def _origin(function: Callable[..., Any]) -> str:
    """Where another process finds the job function: a script that was run is known there by its own name."""
    module = function.__module__
    if module == "__main__" and (spec := getattr(sys.modules["__main__"], "__spec__", None)) is not None:
        module = spec.name
    return f"{module}:{function.__qualname__}"
