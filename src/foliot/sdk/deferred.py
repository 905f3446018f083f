"""Calls that are to be made later inside this process, and the line that they wait in.

Nothing here is stored: a deferred call ends with its process. `deferred_calls` makes the calls at their time; under a
virtual clock `foliot.testing` does.
"""

import asyncio
import heapq
import itertools
import logging
import math
from collections.abc import Callable, Generator, Mapping
from concurrent.futures import CancelledError
from contextlib import suppress
from contextvars import Context, copy_context
from datetime import timedelta
from threading import Event, Lock
from typing import Any, Generic, Protocol, TypeVar, cast

R = TypeVar("R")

SECOND = 1_000_000
_FEW = 64  # cancelled entries that are never worth a clean-up

_WAITING, _BEGUN, _RETURNED, _RAISED, _CANCELLED = range(5)

_log = logging.getLogger("foliot.deferred")


class Deferred(Generic[R]):
    """A call that was put off: ask it, wait for it, take it back. In a coroutine, `await` it."""

    __slots__ = (
        "_arguments",
        "_context",
        "_function",
        "_line",
        "_listeners",
        "_loop",
        "_outcome",
        "_state",
        "in_line",
    )

    def __init__(
        self, line: "DeferredLine", function: Callable[..., Any], arguments: tuple[tuple[Any, ...], Mapping[str, Any]]
    ) -> None:
        self._line = line
        self._function = function
        self._arguments = arguments
        self._context: Context | None = copy_context()
        self._loop = loop_here()
        self._state = _WAITING
        self._outcome: Any = None
        self._listeners: list[Callable[[], None]] | None = None
        self.in_line = True  # else it was handed over to be made

    def __repr__(self) -> str:
        words = {_WAITING: "waiting", _BEGUN: "running", _CANCELLED: "cancelled"}
        return f"<Deferred {_name(self._function)} {words.get(self._state, 'done')}>"

    def done(self) -> bool:
        """Whether it has returned, raised, or been cancelled."""
        return self._state > _BEGUN

    def cancelled(self) -> bool:
        return self._state == _CANCELLED

    def cancel(self) -> bool:
        """Takes the call back; False where it has begun already. Takes no longer the more calls wait."""
        with self._line.lock:
            if self._state != _WAITING:
                return self._state == _CANCELLED
            self._state = _BEGUN
            if self.in_line:
                self._line.leave_out()
        self._end(_CANCELLED, None)
        return True

    def result(self, timeout: float | None = None) -> R:
        """What the function returned, once it has; what it raised is raised here, and CancelledError (that of
        `concurrent.futures`) where it was taken back. TimeoutError after `timeout` seconds, which ends the waiting and
        not the call."""
        if not self.done():
            if loop_here() is not None:
                raise RuntimeError(
                    "result() waits, and an event loop is running here, which would stand still meanwhile: "
                    "await the call itself, as in: await app.call_later(…)"
                )
            ended = Event()
            self.when_done(ended.set)
            if not ended.wait(timeout):
                raise TimeoutError(f"{_name(self._function)} was not done within {timeout:g} s")
        return self._result()

    def __await__(self) -> Generator[Any, None, R]:
        """The same in a coroutine. One that is cancelled while it waits leaves the call as it is."""
        if not self.done():
            loop = asyncio.get_running_loop()
            ended: asyncio.Future[None] = loop.create_future()

            def wake() -> None:
                if not ended.done():
                    ended.set_result(None)

            def tell() -> None:
                with suppress(RuntimeError):  # the loop is closed: nobody waits any more
                    loop.call_soon_threadsafe(wake)

            self.when_done(tell)
            yield from ended
        return self._result()

    def when_done(self, listener: Callable[[], None]) -> None:
        """Calls `listener` once it is over, on whichever thread that is known first; at once where it is already."""
        with self._line.lock:
            if not self.done():
                if self._listeners is None:
                    self._listeners = []
                self._listeners.append(listener)
                return
        listener()

    # For those who make the calls

    def begin(self) -> bool:
        """Whether the call is to be made: it was not taken back. Nobody can take it back from now on."""
        with self._line.lock:
            if self._state != _WAITING:
                return False
            self._state = _BEGUN
            return True

    @property
    def waits(self) -> bool:
        return self._state == _WAITING

    def call(self) -> Any:
        """The call itself, in the context in which it was put off. Of a coroutine function the coroutine comes back,
        to be run on `home`."""
        args, kwargs = self._arguments
        assert self._context is not None
        return self._context.run(self._function, *args, **kwargs)

    @property
    def home(self) -> asyncio.AbstractEventLoop | None:
        """The event loop on which it was put off, if there was one."""
        return self._loop

    def succeed(self, value: Any) -> None:
        self._end(_RETURNED, value)

    def fail(self, error: BaseException) -> None:
        _log.error("a deferred call of %s failed", _name(self._function), exc_info=error)
        self._end(_RAISED, error)

    def drop(self) -> None:
        """It will not be made."""
        self._end(_CANCELLED, None)

    def forget(self, line: "DeferredLine") -> None:
        """In a fork: the call is the parent's, and so are those who wait for it."""
        self._line, self._listeners = line, None
        self._end(_CANCELLED, None)

    def _end(self, state: int, outcome: Any) -> None:
        with self._line.lock:
            if self.done():
                return
            self._state, self._outcome = state, outcome
            listeners, self._listeners = self._listeners, None
            self._arguments = (), {}  # a handle that is kept keeps nothing else alive
            self._context = self._loop = None
        for listener in listeners or ():
            listener()

    def _result(self) -> R:
        if self._state == _RETURNED:
            return cast(R, self._outcome)
        if self._state == _RAISED:
            raise self._outcome
        raise CancelledError(f"the deferred call of {_name(self._function)} was taken back")


class DeferredLine:
    """Who is due when: by time, then in the order of adding. Usable from every thread.

    `now` tells the time in microseconds. `on_news` is called, with the lock held, when the next moment has come closer
    (True), or when a call was taken back (False).
    """

    def __init__(self, now: Callable[[], int], on_news: Callable[[bool], None] = lambda earlier: None) -> None:
        self.lock = Lock()
        self.closed = False  # set with the lock held: nothing is added from then on
        self._now = now
        self._on_news = on_news
        self._heap: list[tuple[int, int, Deferred[Any]]] = []
        self._numbers = itertools.count()
        self._taken_back = 0

    def __len__(self) -> int:
        return len(self._heap) - self._taken_back

    def add(self, delay: float | timedelta, function: Callable[..., Any], *args: Any, **kwargs: Any) -> Deferred[Any]:
        """Puts off a call by `delay` seconds; RuntimeError where the line is closed."""
        seconds = delay.total_seconds() if isinstance(delay, timedelta) else delay
        if not 0 <= seconds < math.inf:
            raise ValueError(f"delay is {seconds!r}; it must be a number of seconds, zero or more")
        if not callable(function):
            raise TypeError(f"{function!r} can not be called; give a function and its arguments: call_later(3, f, x)")
        moment = self._now() + round(seconds * SECOND)
        deferred: Deferred[Any] = Deferred(self, function, (args, kwargs))
        with self.lock:
            if self.closed:
                raise RuntimeError("the app is being closed: no call can be put off any more")
            heapq.heappush(self._heap, (moment, next(self._numbers), deferred))
            if self._heap[0][2] is deferred:
                self._on_news(True)
        return deferred

    def leave_out(self) -> None:
        """One of those in line was taken back. Its entry stays where it is, to be stepped over, until there are more
        such entries than others. The lock must be held."""
        self._taken_back += 1
        if self._taken_back > _FEW and 2 * self._taken_back > len(self._heap):
            self._heap = [entry for entry in self._heap if entry[2].waits]
            heapq.heapify(self._heap)
            self._taken_back = 0
        self._on_news(False)

    def next_moment(self) -> int | None:
        """When the next one is due. The lock must be held."""
        self._step_over()
        return self._heap[0][0] if self._heap else None

    def pop_due(self) -> Deferred[Any] | None:
        """The first one that is due. The lock must be held."""
        self._step_over()
        if self._heap and self._heap[0][0] <= self._now():
            _, _, deferred = heapq.heappop(self._heap)
            deferred.in_line = False
            return deferred
        return None

    def pop_all(self) -> list[Deferred[Any]]:
        """Everything, due or not, in its order. The lock must be held."""
        entries, self._heap, self._taken_back = sorted(self._heap), [], 0
        left = [deferred for _, _, deferred in entries if deferred.waits]
        for deferred in left:
            deferred.in_line = False
        return left

    def _step_over(self) -> None:
        while self._heap and not self._heap[0][2].waits:
            heapq.heappop(self._heap)
            self._taken_back -= 1


class Deferring(Protocol):
    """Where an app puts off calls."""

    def __len__(self) -> int: ...

    def add(
        self, delay: float | timedelta, function: Callable[..., Any], *args: Any, **kwargs: Any
    ) -> Deferred[Any]: ...

    def close(self, *, wait: bool = False) -> int: ...


def loop_here() -> asyncio.AbstractEventLoop | None:
    """The event loop that runs on this thread, if one does."""
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None


def _name(function: object) -> str:
    return getattr(function, "__qualname__", None) or repr(function)
