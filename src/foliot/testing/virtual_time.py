"""The time that a test moves, and the app that lives in it."""

import asyncio
import inspect
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from functools import partial
from typing import Any, Self, TypeVar

from foliot.domain.access import ADMIN
from foliot.domain.duration import SECOND, Micros
from foliot.sdk.app import Foliot
from foliot.sdk.job_function import JobFunction
from foliot.sdk.loop_thread import LoopThread, Steps
from foliot.sdk.transport import Answer, Headers
from foliot.testing.clock import VirtualClock, check_reach
from foliot.testing.world import Work, World
from foliot.wire import LIST_LIMIT, FilterBody, JobInfo, RunInfo, to_micros, to_time

T = TypeVar("T")
Length = timedelta | float | None
Units = dict[str, float]
Step = Callable[[Work | None], Coroutine[Any, Any, Work | None]]

FAILURES = (Exception, SystemExit, asyncio.CancelledError)
"""What fails an attempt. All else, such as an interrupt or `pytest.fail`, ends the test."""


def virtual(app: Foliot, *, start: datetime) -> "VirtualTime":
    """An app under a clock that begins at `start` and is moved by the test: `with virtual(app, start=…) as time`.

    The app's schedules are created at the beginning. What it submits and puts off stays in memory, and is gone at the
    end; its own node or address is not touched meanwhile.
    """
    return VirtualTime(app, start)


class VirtualTime:
    """The time of a test. Where the test is a coroutine, `advance`, `advance_to` and `away` are to be awaited, under
    `time.aio`; all else is the same."""

    def __init__(self, app: Foliot, start: datetime) -> None:
        self._app = app
        self._thread = LoopThread()  # not the app's own: that one ends where the app is closed
        self._clock = VirtualClock(_moment(start, "start"))
        self._world = World(app.handlers, self._clock)
        self._deferred = app.aio.deferred
        self._advancing = False
        self.aio = AsyncVirtualTime(self._go_aside, self._later, self._skip)

    @property
    def now(self) -> datetime:
        """The virtual time, in UTC."""
        return to_time(self._clock.now())

    def advance(self, length: Length = None, **units: float) -> None:
        """Lets time pass: `advance(30)` seconds, `advance(timedelta(…))`, `advance(days=90, hours=1)`. All that is due
        on the way, the end included, is done at its moment; `advance(0)` does what is due now."""
        self._go(self._later(length, units))

    def advance_to(self, time: datetime) -> None:
        """The same, up to a moment."""
        self._go(_moment(time, "time"))

    def away(self, length: Length = None, **units: float) -> None:
        """So much time passes while no node is there: nothing is started, nothing is taken in. Then it is back, and
        catches up as each schedule has it."""
        self._go(self._skip(self._later(length, units)))

    def takes(self, job: JobFunction[..., Any] | str, length: Length = None, **units: float) -> None:
        """From now on every attempt of this job takes so long: its function is called at the start, and what came of
        it counts at the end, unless the attempt was cancelled or out of time before."""
        self._world.takes[job if isinstance(job, str) else job.name] = _micros(length, units) / SECOND

    def jobs(self, job_type: str | None = None, **which: Any) -> list[JobInfo]:
        """The jobs, by due time: those of `job_type`, and of whatever else a `FilterBody` can say (`status`, `queue`,
        `tag`, `schedule_id`, …)."""
        return self._ask(partial(self._jobs, FilterBody(job_type=job_type, **which)))

    def runs(self, schedule_id: str) -> list[RunInfo]:
        """The ledger of a schedule: what became of each due time, oldest first."""
        return self._ask(partial(self._runs, schedule_id))

    def open(self) -> Self:
        home = self._app.aio.home
        if home.stand_in is not None:
            raise RuntimeError("this app is under a virtual clock already")
        try:
            self._ask(partial(self._world.open, self._app.schedules))
        except BaseException:
            self._thread.close()
            raise
        home.stand_in = self
        self._app.aio.deferred = self._world.deferred
        return self

    def close(self) -> None:
        """Gives the app back."""
        if self._app.aio.home.stand_in is self:
            self._app.aio.home.stand_in = None
            self._app.aio.deferred = self._deferred
            self._ask(self._world.close)
            self._thread.close()

    def __enter__(self) -> Self:
        return self.open()

    def __exit__(self, *raised: object) -> None:
        self.close()

    async def call(self, method: str, path: str, body: bytes | None, headers: Headers) -> Answer:
        """The app's way to its node, while this is open."""
        return await self._thread.hop(lambda: self._world.transport.call(method, path, body, headers))

    async def stream(self, path: str, headers: Headers) -> AsyncIterator[bytes]:
        """The same for an answer that does not end."""
        steps = await self._thread.hop(partial(self._streamed, path, headers))
        try:
            while True:
                try:
                    piece = await self._thread.hop(steps.next)
                except StopAsyncIteration:
                    return
                yield piece
        finally:
            await self._thread.hop(steps.close)

    async def _streamed(self, path: str, headers: Headers) -> Steps[bytes]:
        return Steps(self._world.transport.stream(path, headers))

    def _go(self, target: Micros) -> None:
        with self._towards(target) as step:
            work: Work | None = None
            while (work := self._thread.run(partial(step, work))) is not None:
                try:
                    value = work.call()
                    if inspect.iscoroutine(value):
                        value = self._thread.run(partial(_awaited, value))
                except FAILURES as error:
                    work.fail(error)
                else:
                    work.succeed(value)

    async def _go_aside(self, target: Micros) -> None:
        """The same for a test that has an event loop: coroutines run on it, plain functions in a thread."""
        with self._towards(target) as step:
            work: Work | None = None
            while (work := await self._thread.hop(partial(step, work))) is not None:
                try:
                    value = await asyncio.to_thread(work.call)
                    if inspect.iscoroutine(value):
                        value = await value
                except FAILURES as error:
                    work.fail(error)
                else:
                    work.succeed(value)

    @contextmanager
    def _towards(self, target: Micros) -> Iterator[Step]:
        if self._advancing:
            raise RuntimeError("the time is being advanced already: only the test moves it, not a job")
        if target < self._clock.now():
            raise ValueError(f"it is {self.now} already, and time only goes forward")
        check_reach(target)
        self._advancing = True
        try:
            yield partial(self._world.step, target)
        finally:
            self._advancing = False

    def _later(self, length: Length, units: Units) -> Micros:
        return self._clock.now() + _micros(length, units)

    def _skip(self, target: Micros) -> Micros:
        with self._towards(target):
            self._clock.set(target)
        return target

    def _ask(self, start: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """At once, also where an event loop runs: nothing over there waits for anything here."""
        return asyncio.run_coroutine_threadsafe(start(), self._thread.loop).result()

    async def _jobs(self, which: FilterBody) -> list[JobInfo]:
        query = self._world.services.query
        found: list[JobInfo] = []
        cursor: str | None = None
        while True:
            page, cursor = await query.jobs(which, limit=LIST_LIMIT, cursor=cursor, caller=ADMIN)
            found += page
            if cursor is None:
                found.reverse()
                return sorted(found, key=lambda job: job.schedule_time)

    async def _runs(self, schedule_id: str) -> list[RunInfo]:
        schedules = self._world.services.schedules
        found: list[RunInfo] = []
        cursor: str | None = None
        while True:
            page, cursor = await schedules.runs(schedule_id, limit=LIST_LIMIT, cursor=cursor, caller=ADMIN)
            found += page
            if cursor is None:
                return found[::-1]


class AsyncVirtualTime:
    """What a test that is a coroutine awaits, under the names that `VirtualTime` has them."""

    def __init__(
        self,
        go: Callable[[Micros], Coroutine[Any, Any, None]],
        later: Callable[[Length, Units], Micros],
        skip: Callable[[Micros], Micros],
    ) -> None:
        self._go = go
        self._later = later
        self._skip = skip

    async def advance(self, length: Length = None, **units: float) -> None:
        await self._go(self._later(length, units))

    async def advance_to(self, time: datetime) -> None:
        await self._go(_moment(time, "time"))

    async def away(self, length: Length = None, **units: float) -> None:
        await self._go(self._skip(self._later(length, units)))


async def _awaited(coroutine: Coroutine[Any, Any, T]) -> T:
    return await coroutine


def _micros(length: Length, units: Units) -> Micros:
    """A length of time: seconds, a timedelta, or the units of one."""
    if (length is None) == (not units):
        raise TypeError("how long? give seconds, a timedelta, or units such as days=90, hours=1")
    if length is None:
        length = timedelta(**units)
    whole = length if isinstance(length, timedelta) else timedelta(seconds=length)
    if whole < timedelta():
        raise ValueError(f"{whole} is below zero, and time only goes forward")
    return whole // timedelta(microseconds=1)


def _moment(time: datetime, name: str) -> Micros:
    if time.tzinfo is None:
        raise ValueError(f"{name} must be a datetime with a time zone, as in datetime(2027, 1, 1, tzinfo=UTC)")
    return to_micros(time)
