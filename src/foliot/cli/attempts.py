"""A job's attempts, one line each."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from foliot.cli.show import plain, status_text
from foliot.cli.times import show_relative, show_span

if TYPE_CHECKING:
    from datetime import datetime

    from foliot.wire import ErrorInfo, Execution

COLUMNS = ("ATTEMPT", "STATUS", "WORKER", "CLAIMED", "LATE", "RAN", "ERROR")


def rows(attempts: "Sequence[Execution]", now: "datetime") -> list[tuple[Any, ...]]:
    return [_row(each, now) for each in attempts]


def _row(attempt: "Execution", now: "datetime") -> tuple[Any, ...]:
    start = attempt.start_time or attempt.claimed_time
    return (
        str(attempt.attempt),
        status_text(attempt.status),
        attempt.worker_id or "",
        show_relative(attempt.claimed_time, now),
        show_span(max((start - attempt.due_time).total_seconds(), 0)),
        ran_text(start, attempt.end_time, now),
        one_line(attempt.error),
    )


def ran_text(start: "datetime | None", end: "datetime | None", now: "datetime") -> str:
    return show_span(max(((end or now) - start).total_seconds(), 0)) if start else ""


def one_line(error: "ErrorInfo | str | None") -> str:
    """An error in a row of a table."""
    return " ".join((error_text(error, full=False) or "").split())


def error_text(error: "ErrorInfo | str | None", *, full: bool) -> str | None:
    if error is None:
        return None
    if isinstance(error, str):
        return plain(error)
    head = ": ".join(part for part in (error.type, error.message) if part)
    return plain(f"{head}\n{error.stack}" if full and error.stack else head)
