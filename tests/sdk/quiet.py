"""A context for calling a handler's function by hand."""

from datetime import UTC, datetime

from foliot import JobContext
from foliot.wire import LogLevel


class Nobody:
    """An attendant that never stops anything and hears nothing."""

    stopping = False

    def wait_stopping(self, seconds: float | None) -> bool:
        return False

    def line(self, level: LogLevel, message: str) -> None: ...

    def note_progress(self, value: float | None, note: str | None) -> None: ...


def quiet_context() -> JobContext:
    return JobContext(
        job_id="j",
        job_type="t",
        attempt=1,
        idempotency_key="k",
        schedule_time=datetime(2030, 1, 1, tzinfo=UTC),
        upstream={},
        attendant=Nobody(),
    )
