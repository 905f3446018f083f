"""An event loop on a thread of its own: where blocking calls are carried out, and where an embedded node lives."""

import asyncio
import os
import threading
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from typing import Any, Generic, TypeVar

T = TypeVar("T")

# What a fork has from its parent and must not use. Kept, because the kernel's list of watched sockets is shared:
# clearing up here would make the parent deaf.
left_behind: list[object] = []


class LoopThread:
    """Starts with its first use. The thread ends with the process: a program that never closes can still end."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._process = os.getpid()

    def run(self, start: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """Carries out a coroutine and waits for it. Refused where an event loop runs already: it would stand still."""
        if loop_runs_here():
            raise RuntimeError(
                "this call waits, and an event loop is running here, which would stand still meanwhile: "
                "use the same name under .aio and await it, as in: await function.aio.submit(…)"
            )
        future = asyncio.run_coroutine_threadsafe(start(), self.loop)
        try:
            return future.result()
        except BaseException:
            future.cancel()  # an interrupt ends the wait here; the work is to end too
            raise

    def iterate(self, start: Callable[[], AsyncIterator[T]]) -> Iterator[T]:
        """The items of an asynchronous iterator, one wait each."""
        steps = Steps(start())
        try:
            while True:
                try:
                    yield self.run(steps.next)
                except StopAsyncIteration:
                    return
        finally:
            self.run(steps.close)

    async def hop(self, start: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """Carries out a coroutine over there from whichever event loop this is."""
        if asyncio.get_running_loop() is self._loop:
            return await start()
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(start(), self.loop))

    @property
    def loop(self) -> asyncio.AbstractEventLoop:
        if self._loop is not None and self._process == os.getpid():
            return self._loop
        with self._lock:
            if self._process != os.getpid():  # a fork has the object but not the thread
                left_behind.append(self._loop)
                self._loop = None
            if self._loop is None:
                self._process = os.getpid()
                self._loop = asyncio.new_event_loop()
                self._thread = threading.Thread(target=self._loop.run_forever, name="foliot", daemon=True)
                self._thread.start()
            return self._loop

    @property
    def running(self) -> bool:
        return self._loop is not None and self._process == os.getpid()

    def close(self) -> None:
        """Ends what is under way and the thread. The next use starts a new one."""
        with self._lock:
            loop, thread = self._loop, self._thread
            self._loop = self._thread = None
        if loop is None or thread is None or self._process != os.getpid():
            return
        asyncio.run_coroutine_threadsafe(_cancel_all(), loop).result()
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


class Steps(Generic[T]):
    """An asynchronous iterator that is taken step by step from elsewhere. A step that was given up (an interrupt) takes
    a moment to end over there; the next one, or the close, waits for that. The close ends it itself: an interrupt may
    come before the one who waits could."""

    def __init__(self, iterator: AsyncIterator[T]) -> None:
        self._iterator = iterator
        self._lock = asyncio.Lock()
        self._step: asyncio.Task[Any] | None = None

    async def next(self) -> T:
        async with self._lock:
            self._step = asyncio.current_task()
            try:
                return await anext(self._iterator)
            finally:
                self._step = None

    async def close(self) -> None:
        if self._step is not None and not self._step.cancelling():  # once: it may be clearing up
            self._step.cancel()
        async with self._lock:
            if (close := getattr(self._iterator, "aclose", None)) is not None:
                await close()


async def _cancel_all() -> None:
    others = asyncio.all_tasks() - {asyncio.current_task()}
    for task in others:
        task.cancel()
    await asyncio.gather(*others, return_exceptions=True)
    await asyncio.get_running_loop().shutdown_asyncgens()


def loop_runs_here() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True
