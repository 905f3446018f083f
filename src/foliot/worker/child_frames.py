"""What a worker and the processes it starts for handlers say to each other: JSON, a line each."""

from datetime import datetime
from typing import Any

import msgspec
from msgspec import Raw

from foliot.wire import LogLevel
from foliot.worker.outcome import Outcome


class Work(msgspec.Struct, frozen=True, kw_only=True):
    """A job for the process. `main` is the file of the worker's own program, where the handler was defined there."""

    name: str
    origin: str
    pass_context: bool
    path: list[str]
    main: str | None
    payload: Raw
    job_id: str
    job_type: str
    attempt: int
    idempotency_key: str
    schedule_time: datetime
    upstream: dict[str, Any]
    resources: dict[str, float]
    timeout: float
    trace: str | None = None  # the span in which it runs, W3C's `traceparent`, where the worker traces
    otlp_endpoint: str = ""  # and where to


class Begun(msgspec.Struct, frozen=True, tag="begun"):
    """The handler is loaded and called now."""

    at: int


class Said(msgspec.Struct, frozen=True, tag="said"):
    level: LogLevel
    message: str


class Progressed(msgspec.Struct, frozen=True, tag="progressed"):
    value: float | None
    note: str | None


class Finished(msgspec.Struct, frozen=True, tag="finished"):
    outcome: Outcome


Frame = Begun | Said | Progressed | Finished
