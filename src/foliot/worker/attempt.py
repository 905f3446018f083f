"""One attempt of a job as the worker has it."""

import asyncio
from collections.abc import Callable
from threading import Event
from typing import Literal, Protocol

import msgspec

from foliot import clock
from foliot.sdk.context import JobContext
from foliot.sdk.handler import Handler
from foliot.telemetry import tracing
from foliot.wire import AssignedJob, LogLevel, ProgressInfo, Report, to_micros, to_time
from foliot.worker.attempt_log import AttemptLog, clean
from foliot.worker.outcome import Outcome
from foliot.worker.redaction import redactor_of
from foliot.worker.room import amounts_of

NOTE_LIMIT = 1024
DEFAULT_QUEUE = "default"

# Why an attempt is to end before its handler is done: asked by a user, out of time, the worker leaves, the lease is
# gone.
Ending = Literal["cancel", "time", "leave", "fence"]


class Execution(Protocol):
    """A handler at work, whatever keeps it apart."""

    def interrupt(self) -> None:
        """Ask it to end; what comes of it arrives as its outcome."""
        ...

    def abandon(self) -> None:
        """It did not end in time: use force where there is any, and forget it."""
        ...


class Attempt:
    """What is known of an attempt from its arrival to the acknowledgement of its end. Lines, progress and `stopping`
    may be used from any thread; all else belongs to the loop."""

    __slots__ = (
        "_changed",
        "_log",
        "_loop",
        "_stop_event",
        "amounts",
        "asked_to_stop",
        "ended",
        "ending",
        "execution",
        "handler",
        "has_room",
        "job",
        "lines_under_way",
        "progress",
        "redact",
        "span",
        "started",
        "timer",
    )

    def __init__(
        self,
        job: AssignedJob,
        handler: Handler | None,
        loop: asyncio.AbstractEventLoop,
        changed: Callable[["Attempt"], None],
    ) -> None:
        self.job = job
        self.handler = handler
        self.amounts = amounts_of(job)
        self.redact = redactor_of(job)
        self.has_room = False  # whether the amounts are taken from what the worker offers
        self._loop = loop
        self._changed = changed
        self._log: AttemptLog | None = None
        self._stop_event: Event | None = None
        self.asked_to_stop = False  # the handler looked and was told to stop
        self.ended = False
        self.ending: Ending | None = None
        self.execution: Execution | None = None
        self.lines_under_way = 0
        self.progress: ProgressInfo | None = None
        self.span: tracing.RunSpan | None = None
        self.started: int | None = None
        self.timer: asyncio.TimerHandle | None = None

    def context(self) -> JobContext:
        job = self.job
        return JobContext(
            job_id=job.job_id,
            job_type=job.job_type,
            attempt=job.attempt,
            idempotency_key=job.idempotency_key,
            schedule_time=job.schedule_time,
            upstream=job.upstream,
            resources=job.resources,
            timeout=job.timeout,
            attendant=self,
        )

    def begin(self) -> None:
        """Now, and here: where there is tracing, the attempt's span is current from now on for whoever calls."""
        self.started = clock.wall()
        tracer = tracing.active()
        if tracer is not None:
            job = self.job
            self.span = tracer.run(
                job_id=job.job_id,
                job_type=job.job_type,
                queue=job.queue or DEFAULT_QUEUE,
                attempt=job.attempt,
                key=job.idempotency_key,
                trace=job.trace or None,
                parents=job.trace_links or (),
                due=to_micros(job.schedule_time),
                now=self.started,
            )

    @property
    def log(self) -> AttemptLog:
        """Made with the first line: most attempts write none."""
        if self._log is None:
            self._log = AttemptLog(self._tell, self.redact)
        return self._log

    @property
    def written_log(self) -> AttemptLog | None:
        return self._log

    @property
    def stopping(self) -> bool:
        if self.ending is not None:
            self.asked_to_stop = True
            return True
        return False

    def wait_stopping(self, seconds: float | None) -> bool:
        if self._stop_event is None:
            self._stop_event = Event()
        # The order against `interrupted` does not matter: it sets `ending` first and then the event.
        return self.stopping or (self._stop_event.wait(seconds) and self.stopping)

    def interrupted(self, why: Ending) -> None:
        self.ending = why
        if self._stop_event is not None:
            self._stop_event.set()

    def line(self, level: LogLevel, message: str) -> None:
        self.log.line(level, message)

    def note(self, level: LogLevel, message: str) -> None:
        """A line of the worker's own, which no handler's lines can push out."""
        self.log.note(level, message)

    def note_progress(self, value: float | None, note: str | None) -> None:
        if note is not None and self.redact is not None:
            note = self.redact(note)
        self.progress = ProgressInfo(
            value=None if value is None else float(value), note=None if note is None else clean(note, NOTE_LIMIT)
        )
        self._tell()

    def redacted(self, outcome: Outcome) -> Outcome:
        """What may be told of it. A result is the handler's own to answer for."""
        if self.redact is None or outcome.error is None:
            return outcome
        return msgspec.structs.replace(outcome, error=self.redact.error(outcome.error))

    def report(self, outcome: Outcome) -> Report:
        job = self.job
        return Report(
            job_id=job.job_id,
            attempt=job.attempt,
            token=job.token,
            status=outcome.status,
            started=None if self.started is None else to_time(self.started),
            result=outcome.result,
            error=outcome.error,
            exit_code=outcome.exit_code,
            retry_after=outcome.retry_after,
        )

    def progress_report(self, progress: ProgressInfo) -> Report:
        job = self.job
        return Report(
            job_id=job.job_id,
            attempt=job.attempt,
            token=job.token,
            status="processing",
            started=None if self.started is None else to_time(self.started),
            progress=progress,
        )

    def _tell(self) -> None:
        try:
            self._loop.call_soon_threadsafe(self._changed, self)
        except RuntimeError:  # the loop is closed: a thread that was left alone still writes
            return
