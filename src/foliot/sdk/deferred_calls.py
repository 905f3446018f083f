"""Makes deferred calls at their time: one thread that sleeps until the next moment, and a few that make the calls.

    add ─▶ line ─▶ timer ─▶ queue ─▶ threads: plain functions
                                        └──▶ event loop: coroutine functions

Nothing is polled: the timer is woken by a condition, when the next moment has come or has come closer. A slow call
holds up others only once every thread has one. All threads are daemons and start with the first call that is added.
"""

import asyncio
import atexit
import inspect
import logging
import os
import weakref
from collections.abc import Callable
from datetime import timedelta
from queue import SimpleQueue
from threading import Condition, Lock, Thread, current_thread
from typing import Any

from foliot import clock
from foliot.sdk.deferred import SECOND, Deferred, DeferredLine, loop_here
from foliot.sdk.loop_thread import LoopThread

THREADS = 8
LAST_WORDS_SECONDS = 30.0  # how long a close waits for calls that are being made
LONGEST_SLEEP_SECONDS = 3600.0  # a sleep does not count the time in which the machine slept, the clock does

_log = logging.getLogger("foliot.deferred")
_all: "weakref.WeakSet[DeferredCalls]" = weakref.WeakSet()


class DeferredCalls:
    """An app's deferred calls: usable from every thread, again after `close`, and apart from its parent's in a fork.
    Coroutines run on the event loop that their call was added on, else on that of `thread`."""

    def __init__(self, thread: LoopThread, *, threads: int = THREADS, now: Callable[[], int] = clock.monotonic) -> None:
        self._thread = thread
        self._most = threads
        self._now = now
        self._lock = Lock()
        self._crew: Crew | None = None
        _all.add(self)

    def __len__(self) -> int:
        """How many wait for their time."""
        crew = self._crew
        return 0 if crew is None else len(crew.line)

    def add(self, delay: float | timedelta, function: Callable[..., Any], *args: Any, **kwargs: Any) -> Deferred[Any]:
        """Makes the call in `delay` seconds. RuntimeError while it is being closed."""
        crew = self._crew or self._start()
        return crew.line.add(delay, function, *args, **kwargs)

    def look(self) -> None:
        """The clock was set: see what is due now."""
        if (crew := self._crew) is not None:
            crew.look()

    def close(self, *, wait: bool = False) -> int:
        """Ends it: calls that are being made are waited for, up to half a minute; those whose time has not come are
        waited for too with `wait`, else dropped, and the log tells how many. That number is returned."""
        crew = self._crew
        if crew is None or crew.line.closed:
            return 0
        dropped = crew.close(wait=wait)
        with self._lock:
            if self._crew is crew:
                self._crew = None
                atexit.unregister(self.close)
        return dropped

    def forked(self) -> None:
        """A fork has no threads, and the calls are its parent's to make."""
        crew, self._crew, self._lock = self._crew, None, Lock()
        if crew is not None:
            atexit.unregister(self.close)
            crew.forget()

    def _start(self) -> "Crew":
        with self._lock:
            if self._crew is None:
                self._crew = Crew(self._thread, self._most, self._now)
                atexit.register(self.close)
            return self._crew


class Crew:
    """The threads of one app, from the first call to `close`."""

    def __init__(self, thread: LoopThread, most: int, now: Callable[[], int]) -> None:
        self.line = DeferredLine(now, self._news)
        self._thread = thread
        self._most = most
        self._now = now
        self._changed = Condition(self.line.lock)
        self._work: SimpleQueue[Deferred[Any] | None] = SimpleQueue()
        self._workers: list[Thread] = []
        self._under_way: set[Deferred[Any]] = set()  # handed over and not done
        self._timer = Thread(target=self._keep_time, name="foliot-timer", daemon=True)
        self._timer.start()

    def look(self) -> None:
        with self._changed:
            self._changed.notify_all()

    def close(self, *, wait: bool) -> int:
        own = int(current_thread() in self._workers)  # a call that closes the app does not wait for itself
        with self._changed:
            if self.line.closed:
                return 0
            if loop_here() is not None and (len(self._under_way) > own or (wait and len(self.line))):
                raise RuntimeError(
                    "close() waits for calls that are being made, and an event loop is running here, which would stand "
                    "still meanwhile: use await app.aio.close()"
                )
            self.line.closed = True
            while wait and self.line.next_moment() is not None:
                self._changed.wait()
            dropped = self.line.pop_all()
            self._changed.notify_all()
            patience = None if wait else LAST_WORDS_SECONDS
            self._changed.wait_for(lambda: len(self._under_way) <= own, patience)
            left = len(self._under_way) - own
        self._timer.join()
        for _ in self._workers:
            self._work.put(None)
        for deferred in dropped:
            deferred.drop()
        if dropped:
            _log.warning("deferred calls dropped, since the app was closed before their time: %d", len(dropped))
        if left > 0:
            _log.warning("deferred calls left alone, since they did not end in %g s: %d", LAST_WORDS_SECONDS, left)
        return len(dropped)

    def forget(self) -> None:
        """After a fork, where any thread may have held the lock."""
        fresh = DeferredLine(self._now)
        for deferred in [*self.line.pop_all(), *self._under_way]:
            deferred.forget(fresh)

    def _news(self, earlier: bool) -> None:
        """The timer sleeps no longer than to the next moment: of a later one it need not hear. `close` must."""
        if earlier or self.line.closed:
            self._changed.notify_all()

    def _keep_time(self) -> None:
        while True:
            with self._changed:
                while (deferred := self.line.pop_due()) is None:
                    moment = self.line.next_moment()
                    if moment is not None:
                        left = max(0, moment - self._now()) / SECOND
                        self._changed.wait(min(left, LONGEST_SLEEP_SECONDS))
                    elif not self.line.closed:
                        self._changed.wait()
                    else:
                        return
                self._hand_over(deferred)

    def _hand_over(self, deferred: Deferred[Any]) -> None:
        self._under_way.add(deferred)
        if len(self._under_way) > len(self._workers) and len(self._workers) < self._most:
            worker = Thread(target=self._serve, name=f"foliot-deferred-{len(self._workers) + 1}", daemon=True)
            self._workers.append(worker)
            worker.start()
        self._work.put(deferred)
        if self.line.closed:
            self._changed.notify_all()

    def _serve(self) -> None:
        while (deferred := self._work.get()) is not None:
            if not deferred.begin():
                self._made(deferred)
                continue
            home = deferred.home
            try:
                value = deferred.call()
            except BaseException as error:
                deferred.fail(error)
                self._made(deferred)
            else:
                if inspect.iscoroutine(value):
                    self._send(deferred, value, home)
                else:
                    deferred.succeed(value)
                    self._made(deferred)

    def _send(self, deferred: Deferred[Any], coroutine: Any, home: asyncio.AbstractEventLoop | None) -> None:
        async def run() -> None:
            try:
                value = await coroutine
            except asyncio.CancelledError:  # its event loop is being closed
                deferred.drop()
            except BaseException as error:
                deferred.fail(error)
            else:
                deferred.succeed(value)
            self._made(deferred)

        task = run()
        try:
            asyncio.run_coroutine_threadsafe(task, self._thread.loop if home is None else home)
        except RuntimeError as error:  # its event loop is closed
            task.close()
            coroutine.close()
            deferred.fail(error)
            self._made(deferred)

    def _made(self, deferred: Deferred[Any]) -> None:
        with self._changed:
            self._under_way.discard(deferred)
            if self.line.closed:
                self._changed.notify_all()


def _after_fork() -> None:
    for calls in list(_all):
        calls.forked()


os.register_at_fork(after_in_child=_after_fork)
