"""One attempt of a job, made by hand: the function is called at its start, and what came of it counts at its end."""

import logging
import math
from typing import Any

import msgspec

from foliot.clock import Clock
from foliot.domain.duration import SECOND, Micros
from foliot.sdk.context import JobContext
from foliot.sdk.handler import Handler
from foliot.wire import AssignedJob, LogBody, LogLevel, ProgressInfo, Report, to_time
from foliot.worker import outcome
from foliot.worker.attempt_log import clean
from foliot.worker.outcome import Outcome
from foliot.worker.redaction import redactor_of

_log = logging.getLogger("foliot.testing")


class Attempt:
    """It takes `seconds`, and as long as its function waits by its context. What it tells on the way (lines, progress)
    is handed in with its end."""

    def __init__(self, job: AssignedJob, handler: Handler, clock: Clock, seconds: float) -> None:
        self.job = job
        self._redact = redactor_of(job)
        self._handler = handler
        self._clock = clock
        self._seconds = seconds
        self._started = clock.now()
        self._outcome = outcome.SUCCESS
        self._progress: ProgressInfo | None = None
        self.lines: list[LogBody] = []
        self.stopping = False

    def __repr__(self) -> str:
        return f"<Attempt {self.job.attempt} of {self.job.job_type} {self.job.job_id}>"

    # As its function sees it

    def wait_stopping(self, seconds: float | None) -> bool:
        """Takes that long, at once. Nobody stops it meanwhile: its end is decided when its function is through."""
        self._seconds += math.inf if seconds is None else seconds
        return seconds is None

    def line(self, level: LogLevel, message: str) -> None:
        job = self.job
        self.lines.append(
            LogBody(
                job_id=job.job_id,
                attempt=job.attempt,
                token=job.token,
                log_time=to_time(self._clock.now()),
                log_level=level,
                log_message=message if self._redact is None else self._redact(message),
            )
        )

    def note_progress(self, value: float | None, note: str | None) -> None:
        if note is not None and self._redact is not None:
            note = self._redact(note)
        self._progress = ProgressInfo(value=value, note=note)

    # As the one who makes it sees it

    def call(self) -> Any:
        """What the function returns; of a coroutine function, the coroutine."""
        job = self.job
        context = JobContext(
            job_id=job.job_id,
            job_type=job.job_type,
            attempt=job.attempt,
            idempotency_key=job.idempotency_key,
            schedule_time=job.schedule_time,
            upstream=job.upstream,
            attendant=self,
        )
        return self._handler.call(bytes(job.payload), context)

    def succeed(self, value: Any) -> None:
        self._outcome = outcome.of_value(value)

    def fail(self, error: BaseException) -> None:
        job = self.job
        _log.warning("job %s (%s), attempt %d failed", job.job_id, job.job_type, job.attempt, exc_info=error)
        self._outcome = outcome.of_error(error)

    def stop(self) -> None:
        """It is cancelled before its end."""
        self._outcome = Outcome(status="cancelled")

    def end(self) -> Micros:
        """When it ends: out of time at the latest."""
        timeout = self.job.timeout
        if self._seconds > timeout:
            message = f"the attempt was not done within {timeout:g} s"
            self._outcome = Outcome(status="timed_out", error=outcome.retriable(message, code="timed_out").error)
        return self._started + round(min(self._seconds, timeout) * SECOND)

    def reports(self) -> list[Report]:
        """How far it came, where it told that, and how it ended."""
        ended = self._outcome
        if ended.error is not None and self._redact is not None:
            ended = msgspec.structs.replace(ended, error=self._redact.error(ended.error))
        if ended.error is not None and ended.status != "released":
            self.line("ERROR", clean(ended.error.stack or ended.error.message, 16 * 1024))
        reports = [] if self._progress is None else [self._report("processing", progress=self._progress)]
        reports.append(
            self._report(
                ended.status,
                result=ended.result,
                error=ended.error,
                exit_code=ended.exit_code,
                retry_after=ended.retry_after,
            )
        )
        return reports

    def _report(self, status: Any, **fields: Any) -> Report:
        job = self.job
        return Report(
            job_id=job.job_id,
            attempt=job.attempt,
            token=job.token,
            status=status,
            started=to_time(self._started),
            **fields,
        )
