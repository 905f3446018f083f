"""What a handler is told about the attempt it runs, and what it can tell."""

import math
from collections.abc import Mapping
from datetime import datetime
from typing import Any, Protocol

from foliot.wire import LogLevel

PLAIN_RESOURCES: Mapping[str, float] = {"slot": 1}


class Attendant(Protocol):
    """Who runs the attempt, seen from inside it. Every method may be called from any thread."""

    @property
    def stopping(self) -> bool:
        """Whether the attempt is to end: cancelled, out of time, or its worker is leaving."""
        ...

    def wait_stopping(self, seconds: float | None) -> bool: ...

    def line(self, level: LogLevel, message: str) -> None: ...

    def note_progress(self, value: float | None, note: str | None) -> None: ...


class JobLog:
    """Writes lines to the job's own log, whatever the levels of `logging` are."""

    __slots__ = ("_attendant",)

    def __init__(self, attendant: Attendant) -> None:
        self._attendant = attendant

    def debug(self, message: object, *arguments: object) -> None:
        self._attendant.line("DEBUG", _format(message, arguments))

    def info(self, message: object, *arguments: object) -> None:
        self._attendant.line("INFO", _format(message, arguments))

    def warning(self, message: object, *arguments: object) -> None:
        self._attendant.line("WARNING", _format(message, arguments))

    def error(self, message: object, *arguments: object) -> None:
        self._attendant.line("ERROR", _format(message, arguments))


def _format(message: object, arguments: tuple[object, ...]) -> str:
    return str(message) % arguments if arguments else str(message)


class JobContext:
    """One attempt of a job. `idempotency_key` is the same over all attempts, for side effects that must happen once.
    `resources` is what it holds of its worker while it runs, `timeout` how many seconds it may take."""

    __slots__ = (
        "_attendant",
        "attempt",
        "idempotency_key",
        "job_id",
        "job_type",
        "resources",
        "schedule_time",
        "timeout",
        "upstream",
    )

    def __init__(
        self,
        *,
        job_id: str,
        job_type: str,
        attempt: int,
        idempotency_key: str,
        schedule_time: datetime,
        upstream: Mapping[str, Any],
        resources: Mapping[str, float] = PLAIN_RESOURCES,
        timeout: float = math.inf,
        attendant: Attendant,
    ) -> None:
        self.job_id = job_id
        self.job_type = job_type
        self.attempt = attempt
        self.idempotency_key = idempotency_key
        self.schedule_time = schedule_time
        self.upstream = upstream
        self.resources = resources
        self.timeout = timeout
        self._attendant = attendant

    @property
    def log(self) -> JobLog:
        return JobLog(self._attendant)

    @property
    def cancelled(self) -> bool:
        """Whether to stop: a handler in a thread looks at this now and then, since nobody can stop a thread from
        outside."""
        return self._attendant.stopping

    def wait_cancelled(self, seconds: float | None = None) -> bool:
        """Sleep in a thread or process up to `seconds`; true as soon as the attempt is to end."""
        return self._attendant.wait_stopping(seconds)

    def progress(self, value: float | None = None, note: str | None = None) -> None:
        """Tell how far it is, `value` from 0 to 1. Only the newest is kept; calling it often costs little."""
        self._attendant.note_progress(value, note)
