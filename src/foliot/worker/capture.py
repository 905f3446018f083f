"""What a handler prints or logs becomes its attempt's log: the attempt is found by a context variable.

Nothing here costs anything until something is written. Processes of their own have pipes instead (`processes`).
"""

import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from threading import Lock
from typing import Any, TextIO, cast

from foliot.telemetry import logs
from foliot.wire import LogLevel
from foliot.worker.attempt import Attempt

CURRENT: ContextVar[Attempt | None] = ContextVar("foliot_attempt", default=None)


def _about() -> tuple[dict[str, object], logs.Redact | None] | None:
    """What the program's own log says of a line that is logged inside an attempt."""
    attempt = CURRENT.get()
    if attempt is None:
        return None
    return {"job_id": attempt.job.job_id, "attempt": attempt.job.attempt}, attempt.redact


logs.add_context(_about)


def level_of(number: int) -> LogLevel:
    if number >= logging.ERROR:
        return "ERROR"
    if number >= logging.WARNING:
        return "WARNING"
    return "INFO" if number >= logging.INFO else "DEBUG"


class LogCapture(logging.Handler):
    """Root handler: a record logged inside an attempt goes to its log."""

    def emit(self, record: logging.LogRecord) -> None:
        attempt = CURRENT.get()
        if attempt is not None:
            attempt.line(level_of(record.levelno), self.format(record))


class StreamCapture:
    """Stands before sys.stdout or sys.stderr: text written inside an attempt goes to its log, all other passes."""

    def __init__(self, stream: TextIO, level: LogLevel) -> None:
        self.stream = stream
        self._level = level

    def write(self, text: str) -> int:
        attempt = CURRENT.get()
        if attempt is None:
            return self.stream.write(text)
        attempt.log.write(self._level, text)
        return len(text)

    def writelines(self, lines: Iterator[str]) -> None:
        for line in lines:
            self.write(line)

    def flush(self) -> None:
        if CURRENT.get() is None:
            self.stream.flush()

    def __getattr__(self, name: str) -> Any:
        return getattr(self.stream, name)


_lock = Lock()
_users = 0
_handler = LogCapture()


@contextmanager
def captured() -> Iterator[None]:
    """While this is open, in any number of workers of the process, handlers' output is caught."""
    global _users
    with _lock:
        _users += 1
        if _users == 1:
            logging.getLogger().addHandler(_handler)
            sys.stdout = cast(TextIO, StreamCapture(sys.stdout, "INFO"))
            sys.stderr = cast(TextIO, StreamCapture(sys.stderr, "WARNING"))
    try:
        yield
    finally:
        with _lock:
            _users -= 1
            if _users == 0:
                logging.getLogger().removeHandler(_handler)
                # Somebody may have put his own stream before ours in the meantime: then it is his to take away.
                if isinstance(sys.stdout, StreamCapture):
                    sys.stdout = sys.stdout.stream
                if isinstance(sys.stderr, StreamCapture):
                    sys.stderr = sys.stderr.stream
