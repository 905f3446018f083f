"""Runs attempts: starts each as its handler wants it, ends those that are out of time or not wanted, and hands in
what became of them. Whatever a handler does, its attempt ends here exactly once."""

import asyncio
import logging
import os
from collections import deque
from collections.abc import Iterable, Mapping
from typing import assert_never

from foliot.sdk.handler import Handler
from foliot.wire import AssignedJob, ErrorInfo
from foliot.worker import outcome
from foliot.worker.attempt import Attempt, Ending
from foliot.worker.capture import CURRENT
from foliot.worker.outbox import Outbox
from foliot.worker.outcome import Outcome
from foliot.worker.processes import ProcessPool
from foliot.worker.room import Room
from foliot.worker.threads import ThreadPool

_log = logging.getLogger("foliot.worker")

_generation = 0  # how many forks lie behind this process: tells a copy without asking the system for each job


def _forked() -> None:
    global _generation
    _generation += 1


os.register_at_fork(after_in_child=_forked)


class TaskExecution:
    """A coroutine on the worker's loop."""

    __slots__ = ("task",)

    def __init__(self, task: asyncio.Task[None]) -> None:
        self.task = task

    def interrupt(self) -> None:
        self.task.cancel()

    def abandon(self) -> None:
        self.task.cancel()


class Runner:
    """What runs at once never holds more than `offer`, thousandths of each resource; what comes beyond that waits here.
    `stop_grace` is how long an attempt that is asked to end may take."""

    def __init__(
        self, handlers: Mapping[str, Handler], outbox: Outbox, *, offer: Mapping[str, int], stop_grace: float
    ) -> None:
        self._handlers = handlers
        self._outbox = outbox
        self._room = Room(offer)
        self._stop_grace = stop_grace
        self._loop = asyncio.get_running_loop()
        self._generation = _generation
        self._threads = ThreadPool(self._loop, self.finish)
        self._processes = ProcessPool(self._loop, self.finish)
        self._waiting: deque[Attempt] = deque()
        self._fresh: list[Attempt] = []
        self._left_alone: set[asyncio.Task[None]] = set()
        self._idle = asyncio.Event()
        self._idle.set()
        self.attempts: dict[str, Attempt] = {}
        self.accepting = True

    @property
    def free(self) -> dict[str, int]:
        """What nobody here holds or waits for."""
        return self._room.left(attempt.amounts for attempt in self._waiting) if self.accepting else {}

    def begin(self, jobs: Iterable[AssignedJob]) -> None:
        """Run jobs that the node has given. One that is here already was sent again after a lost answer."""
        for job in jobs:
            token = job.token
            if token in self.attempts or token in self._outbox.tokens:
                continue
            attempt = Attempt(job, self._handlers.get(job.job_type), self._loop, self._outbox.changed)
            self._idle.clear()
            self.attempts[token] = attempt
            if not self.accepting:
                self.finish(attempt, Outcome(status="released"))
            elif self._room.holds(attempt.amounts):
                self._start(attempt)
            elif self._room.could_hold(attempt.amounts):
                self._waiting.append(attempt)
            else:
                message = f"this worker does not offer what the job holds: {job.resources}"
                self.finish(attempt, outcome.retriable(message, code="resources"))

    def take_no_more(self) -> None:
        """Give back what has not been started, and whatever comes from now on."""
        self.accepting = False
        for attempt in list(self._waiting):
            self.stop(attempt, "leave")

    def arm(self) -> None:
        """Set the clocks of attempts that were started and are not done yet. Apart from `begin`, since most jobs end
        within their first step and need none."""
        if self._fresh:
            for attempt in self._fresh:
                if not attempt.ended and attempt.timer is None:
                    attempt.timer = self._loop.call_later(attempt.job.timeout, self.stop, attempt, "time")
            self._fresh.clear()

    def cancel(self, token: str) -> None:
        """The node asks to end it."""
        attempt = self.attempts.get(token)
        if attempt is not None:
            self.stop(attempt, "cancel")

    def stop(self, attempt: Attempt, why: Ending) -> None:
        """Ask it to end; after the grace it counts as ended."""
        if attempt.ended or attempt.ending == "fence" or (attempt.ending is not None and why != "fence"):
            return
        first = attempt.ending is None
        attempt.interrupted(why)
        execution = attempt.execution
        if execution is None or (attempt.started is None and isinstance(execution, TaskExecution)):
            # Not begun. A task that is cancelled before its first step never comes to its own end.
            if execution is None:
                self._waiting.remove(attempt)
            else:
                execution.interrupt()
            self.finish(attempt, outcome.SUCCESS if why == "fence" else Outcome(status="released"))
            return
        if first:
            if attempt.timer is not None:
                attempt.timer.cancel()
            attempt.timer = self._loop.call_later(self._stop_grace, self._give_up, attempt)
            execution.interrupt()

    def stop_all(self, why: Ending) -> None:
        for attempt in list(self.attempts.values()):
            self.stop(attempt, why)

    def give_up_all(self) -> None:
        """Without waiting for the grace."""
        for attempt in list(self.attempts.values()):
            self._give_up(attempt)

    def fence(self, job_id: str, number: int) -> None:
        """The node does not know this attempt as ours any more."""
        for attempt in list(self.attempts.values()):
            if attempt.job.job_id == job_id and attempt.job.attempt == number:
                self.stop(attempt, "fence")

    def fence_all(self) -> None:
        """The lease is gone: others may run these jobs now. None of them counts for a slot any more."""
        self.stop_all("fence")
        for attempt in list(self.attempts.values()):
            self._end(attempt)

    def running(self, task: asyncio.Task[object]) -> Attempt | None:
        """The attempt whose handler is this task."""
        for attempt in list(self.attempts.values()):
            if isinstance(attempt.execution, TaskExecution) and attempt.execution.task is task:
                return attempt
        return None

    async def wait_idle(self) -> None:
        await self._idle.wait()

    async def close(self) -> None:
        if self._left_alone:
            await asyncio.wait(self._left_alone, timeout=0.1)
        self._threads.close()
        await self._processes.close()
        for handler in self._handlers.values():
            if handler.close is not None:
                await handler.close()

    def _start(self, attempt: Attempt) -> None:
        self._room.take(attempt.amounts)
        attempt.has_room = True
        handler = attempt.handler
        if handler is None:
            offered = ", ".join(sorted(self._handlers)) or "none"
            message = f"this worker has no handler for {attempt.job.job_type!r}; it has {offered}"
            self.finish(attempt, outcome.fatal("unknown_job_type", message))
            return
        match handler.isolation:
            case "async":
                attempt.execution = TaskExecution(self._loop.create_task(self._run(attempt, handler)))
            case "thread":
                attempt.execution = self._threads.run(attempt, handler)
            case "process":
                attempt.execution = self._processes.run(attempt, handler)
            case _:
                assert_never(handler.isolation)
        self._fresh.append(attempt)

    async def _run(self, attempt: Attempt, handler: Handler) -> None:
        CURRENT.set(attempt)
        attempt.begin()
        try:
            ended = outcome.of_value(await handler.call(bytes(attempt.job.payload), attempt.context()))
        except GeneratorExit:
            raise
        except BaseException as error:
            ended = outcome.of_error(error)
        if _generation != self._generation:
            os._exit(0)  # the handler forked and let the copy return: only the original goes on
        self.finish(attempt, ended)

    def finish(self, attempt: Attempt, ended: Outcome) -> None:
        """The attempt is over. Only the first call counts: an attempt that was given up may still come to its own
        end."""
        if attempt.ended:
            return
        if attempt.ending is not None:
            ended = _as_ended(attempt, attempt.ending, ended)
        ended = attempt.redacted(ended)
        if attempt.span is not None and attempt.ending != "fence":
            attempt.span.end(ended.status, None if ended.error is None else ended.error.code)
        if attempt.ending != "fence":
            if ended.error is not None and ended.status != "released":
                attempt.note("ERROR", _shown(ended.error))
            log = attempt.written_log
            if log is not None:
                log.close()
        report = None if attempt.ending == "fence" else attempt.report(ended)
        self._end(attempt)
        if report is not None:
            self._outbox.end(attempt, report)

    def _end(self, attempt: Attempt) -> None:
        attempt.ended = True
        if attempt.span is not None:
            attempt.span.end("fenced")  # where it has not ended already
        if attempt.timer is not None and attempt.ending != "fence":
            attempt.timer.cancel()
        self._outbox.forget(attempt)
        self.attempts.pop(attempt.job.token, None)
        if attempt.has_room:
            attempt.has_room = False
            self._room.give_back(attempt.amounts)
            if self._waiting:
                self._start_waiting()
        if not self.attempts:
            self._idle.set()

    def _start_waiting(self) -> None:
        """Those that fit by now, in the order in which they came; one that does not is stepped over, and has its turn
        since what it waits for is not asked for."""
        while (next_one := next((one for one in self._waiting if self._room.holds(one.amounts)), None)) is not None:
            self._waiting.remove(next_one)
            self._start(next_one)

    def _give_up(self, attempt: Attempt) -> None:
        """It was asked to end and did not."""
        execution = attempt.execution
        if execution is None or (attempt.ended and attempt.ending != "fence"):
            return
        execution.abandon()
        if isinstance(execution, TaskExecution) and not execution.task.done():
            self._left_alone.add(execution.task)
            execution.task.add_done_callback(self._left_alone.discard)
        if attempt.ended:
            return
        job = attempt.job
        message = f"the handler did not end within {self._stop_grace:g} s of being asked to and was left alone"
        _log.warning("job %s (%s), attempt %d: %s", job.job_id, job.job_type, job.attempt, message)
        attempt.note("WARNING", message)
        self.finish(attempt, outcome.retriable(message))


def _shown(error: ErrorInfo) -> str:
    """An error as a line of the log: a stack ends with the message, unless it is that of another error behind it."""
    if error.stack is None or error.message in error.stack:
        return error.stack or error.message
    return f"{error.message}\n{error.stack}"


def _as_ended(attempt: Attempt, why: Ending, ended: Outcome) -> Outcome:
    """What is reported of an attempt that was asked to end. A handler that was done all the same before it noticed
    has its success, unless its time was over."""
    seen = attempt.asked_to_stop or (attempt.handler is not None and attempt.handler.isolation != "thread")
    match why:
        case "time":
            message = f"the attempt was not done within {attempt.job.timeout:g} s"
            return Outcome(status="timed_out", error=outcome.retriable(message, code="timed_out").error)
        case "cancel":
            if ended.status == "success" and not seen:
                return ended
            return Outcome(status="cancelled")
        case "leave":
            return ended if ended.status == "success" and not seen else Outcome(status="released")
        case "fence":
            return ended
        case _:
            assert_never(why)
