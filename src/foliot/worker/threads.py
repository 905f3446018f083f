"""Handlers in threads: our own threads, because one that does not end must be left alone without waiting for it."""

import asyncio
import os
from collections.abc import Callable
from contextvars import copy_context
from queue import SimpleQueue
from threading import Thread

from foliot.sdk.handler import Handler
from foliot.worker import outcome
from foliot.worker.attempt import Attempt
from foliot.worker.capture import CURRENT
from foliot.worker.outcome import Outcome

Done = Callable[[Attempt, Outcome], None]


class ThreadExecution:
    """A handler in a thread. Interrupting it means that `context.cancelled` is true from now on: that is set
    already."""

    def __init__(self, pool: "ThreadPool", attempt: Attempt, handler: Handler) -> None:
        self.attempt = attempt
        self.handler = handler
        self.abandoned = False
        self._pool = pool

    def interrupt(self) -> None:
        pass

    def abandon(self) -> None:
        self.abandoned = True
        self._pool.lose_one()


class ThreadPool:
    """As many threads as attempts run at once; an idle one is used again. All are daemons: a stuck one can not keep
    the worker from ending."""

    def __init__(self, loop: asyncio.AbstractEventLoop, done: Done) -> None:
        self._loop = loop
        self._done = done
        self._work: SimpleQueue[ThreadExecution | None] = SimpleQueue()
        self._threads = 0
        self._busy = 0
        self._process = os.getpid()

    def run(self, attempt: Attempt, handler: Handler) -> ThreadExecution:
        execution = ThreadExecution(self, attempt, handler)
        self._busy += 1
        if self._busy > self._threads:
            self._threads += 1
            Thread(target=self._serve, name=f"foliot-job-{self._threads}", daemon=True).start()
        self._work.put(execution)
        return execution

    def lose_one(self) -> None:
        self._threads -= 1
        self._busy -= 1

    def close(self) -> None:
        for _ in range(self._threads):
            self._work.put(None)

    def _serve(self) -> None:
        while (execution := self._work.get()) is not None:
            ended = copy_context().run(_call, execution)
            if os.getpid() != self._process:
                os._exit(0)  # the handler forked and let the copy return: only the original goes on
            try:
                self._loop.call_soon_threadsafe(self._ended, execution, ended)
            except RuntimeError:  # the loop is closed: nobody waits for it
                return
            if execution.abandoned:
                return

    def _ended(self, execution: ThreadExecution, ended: Outcome) -> None:
        if execution.abandoned:
            # Left alone between its end and this call: its thread may have gone back to work, one more than counted.
            self._done(execution.attempt, ended)
            return
        self._busy -= 1
        self._done(execution.attempt, ended)


def _call(execution: ThreadExecution) -> Outcome:
    attempt = execution.attempt
    CURRENT.set(attempt)
    attempt.begin()
    try:
        return outcome.of_value(execution.handler.call(bytes(attempt.job.payload), attempt.context()))
    except BaseException as error:
        return outcome.of_error(error)
