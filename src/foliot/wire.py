"""The HTTP contract as types, shared by api, sdk and worker. Field names and words are those of the API reference.

Bodies refuse unknown fields by name, so that a typing mistake never becomes a silent default; answers are read
leniently, so that an older client understands a newer node. `UNSET` is "not given", `None` is "back to the default".
"""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any, Literal

import msgspec
from msgspec import UNSET, Meta, Raw, Struct, UnsetType, field

BASE_PATH = "/api/v1"
PAYLOAD_LIMIT = 256 * 1024
RESULT_LIMIT = 1024 * 1024
BATCH_LIMIT = 10_000
BODY_LIMIT = 32 * 1024 * 1024
LIST_LIMIT = 1000
LOG_LINE_LIMIT = 16 * 1024
PREVIEW_LIMIT = 1000

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


_EARLIEST = (datetime.min.replace(tzinfo=UTC) - _EPOCH) // _MICROSECOND
_LATEST = (datetime.max.replace(tzinfo=UTC) - _EPOCH) // _MICROSECOND


def to_micros(time: datetime) -> int:
    """Microseconds since 1970. An offset may put a time of the year 1 or 9999 outside of what UTC can show; it is
    moved to the edge, so that whatever was taken in can be shown again."""
    return min(max((time - _EPOCH) // _MICROSECOND, _EARLIEST), _LATEST)


def to_time(micros: int) -> datetime:
    return _EPOCH + timedelta(microseconds=micros)


JobId = Annotated[
    str, Meta(pattern=r"^(?!\.{1,2}\Z)[A-Za-z0-9._:@-]{1,128}\Z", description="1–128 of A–Z a–z 0–9 . _ : @ -")
]
ScheduleId = Annotated[
    str, Meta(pattern=r"^(?!\.{1,2}\Z)[A-Za-z0-9._:@-]{1,96}\Z", description="1–96 of A–Z a–z 0–9 . _ : @ -")
]
JobType = Annotated[str, Meta(pattern=r"^[A-Za-z0-9._:-]{1,128}\Z", description="1–128 of A–Z a–z 0–9 . _ : -")]
QueueName = Annotated[str, Meta(pattern=r"^[A-Za-z0-9._-]{1,64}\Z", description="1–64 of A–Z a–z 0–9 . _ -")]
Tag = Annotated[str, Meta(min_length=1, max_length=128, pattern=r"^[^\x00-\x1f]*\Z")]
Owner = Annotated[str, Meta(min_length=1, max_length=128, pattern=r"^[^\x00-\x1f]*\Z")]
Time = Annotated[datetime, Meta(tz=True, description="RFC 3339 with an offset")]
Duration = Annotated[float | str, Meta(description='seconds, or "250ms", "30s", "5m", "2h", "1d"')]
Priority = Annotated[int | str, Meta(description='"high" (8), "medium" (5), "low" (2), or 0–9; 9 runs first')]


class Body(Struct, forbid_unknown_fields=True, kw_only=True, frozen=True):
    """Base of everything that is sent in."""


class RetryBody(Body, frozen=True, kw_only=True):
    """When a failed attempt is tried again."""

    max_attempts: Annotated[int, Meta(ge=1, le=1000)] = 3
    backoff: Literal["exponential", "linear", "fixed"] = "exponential"
    initial: Duration = "1s"
    max: Duration = "1h"
    jitter: Annotated[float, Meta(ge=0, le=1)] = 0.2
    delays: Annotated[list[Duration], Meta(max_length=1000)] = []
    on_lost: Literal["retry", "fail"] = "retry"
    max_lost: Annotated[int, Meta(ge=1, le=1000)] = 3


class UpdateBody(Body, frozen=True, kw_only=True):
    """What may be changed of a job while it waits; `null` sets a field back to its default."""

    job_type: JobType | UnsetType = UNSET
    payload: Raw | UnsetType = UNSET
    schedule_time: Time | UnsetType | None = UNSET
    delay: Duration | UnsetType | None = UNSET
    priority: Priority | UnsetType | None = UNSET
    queue: QueueName | UnsetType | None = UNSET
    retry: RetryBody | UnsetType | None = UNSET
    timeout: Duration | UnsetType | None = UNSET
    deadline: Time | UnsetType | None = UNSET
    tags: Annotated[list[Tag], Meta(max_length=64)] | UnsetType | None = UNSET
    owner: Owner | UnsetType | None = UNSET


class SubmitBody(UpdateBody, frozen=True, kw_only=True):
    """A job to run. Only `job_type` is required."""

    job_type: JobType
    job_id: JobId | UnsetType | None = UNSET


LATER_FIELDS = ("depends_on", "concurrency", "resources", "requires", "fair_key", "unique_key", "notify")


class BatchBody(Body, frozen=True, kw_only=True):
    """Up to 10,000 jobs, kept all or not at all."""

    jobs: Annotated[list[SubmitBody], Meta(min_length=1, max_length=BATCH_LIMIT)]


class RetryJobBody(Body, frozen=True, kw_only=True):
    """Run an ended job again, optionally with another payload."""

    payload: Raw | UnsetType = UNSET


class FilterBody(Body, frozen=True, kw_only=True):
    """Which jobs, as in the list."""

    status: str | list[str] | None = None
    job_type: JobType | None = None
    queue: QueueName | None = None
    owner: Owner | None = None
    tag: Tag | list[Tag] | None = None
    schedule_id: JobId | None = None
    start_time: Time | None = None
    end_time: Time | None = None
    due_after: Time | None = None
    due_before: Time | None = None


class ManyBody(Body, frozen=True, kw_only=True):
    """Many jobs at once; `dry_run` only counts."""

    filter: FilterBody
    dry_run: bool = False


class Submitted(Struct, frozen=True, kw_only=True):
    status: Literal["submitted"] = "submitted"
    job_id: str


class BatchSubmitted(Struct, frozen=True, kw_only=True):
    status: Literal["submitted"] = "submitted"
    job_ids: Sequence[str]


class Changed(Struct, frozen=True, kw_only=True):
    """What a change made of a job."""

    status: str
    job_id: str


class ManyChanged(Struct, frozen=True, kw_only=True):
    matched: int
    changed: int


class ErrorInfo(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Why an attempt failed."""

    type: str | None = None
    message: str = ""
    code: str | None = None
    stack: str | None = None


class ProgressInfo(Struct, frozen=True, kw_only=True, omit_defaults=True):
    value: float | None = None
    note: str | None = None


class RetryInfo(Struct, frozen=True, kw_only=True):
    """A job's retry policy as read: durations in seconds."""

    max_attempts: int
    backoff: str
    initial: float
    max: float
    jitter: float
    delays: list[float]
    on_lost: str
    max_lost: int


class JobInfo(Struct, frozen=True, kw_only=True):
    """A job as read. In a list `payload` and `last_error` are left out."""

    job_id: str
    job_type: str
    status: str
    reason: str | None = None
    queue: str = "default"
    priority: int | str = "medium"
    schedule_time: Time
    start_time: Time | None = None
    end_time: Time | None = None
    created_time: Time
    last_updated: Time
    attempt: int = 0
    retries: int = 0
    worker_id: str | None = None
    cancel_requested: bool = False
    progress: ProgressInfo | None = None
    retry: RetryInfo | None = None
    timeout: float = 3600
    deadline: Time | None = None
    tags: list[str] = []
    owner: str = ""
    schedule_id: str | None = None
    version: int = 1
    payload: Raw | UnsetType = UNSET
    last_error: ErrorInfo | str | UnsetType | None = UNSET


class Execution(Struct, frozen=True, kw_only=True):
    """One attempt of a job."""

    attempt: int
    status: str
    worker_id: str | None
    due_time: Time
    claimed_time: Time
    start_time: Time | None
    end_time: Time | None
    error: ErrorInfo | str | None
    exit_code: int | None


class LogInfo(Struct, frozen=True, kw_only=True):
    """One line of a job's log."""

    log_id: str
    job_id: str
    attempt: int
    log_time: Time
    log_level: str
    log_message: str


Weekday = Literal["mon", "tue", "wed", "thu", "fri", "sat", "sun"]
Count = Annotated[int, Meta(ge=1, lt=2**31)]


class CalendarBody(Body, frozen=True, kw_only=True, omit_defaults=True):
    """Which days are closed: a country's holidays and weekend, and further dates."""

    country: Annotated[str, Meta(description="an ISO 3166 code, such as ES")] | None = None
    subdivision: Annotated[str, Meta(description="a part of the country, such as MD")] | None = None
    weekend: list[Weekday] | None = None
    closed: Annotated[list[str], Meta(description="further closed dates, such as 2027-12-24")] | None = field(
        default=None, name="except"
    )


class PreviewBody(Body, frozen=True, kw_only=True, omit_defaults=True):
    """A whole schedule, of which the due times are asked for: the `count` first ones from `start_time` on, or from now
    where none is given. Exactly one of `cron`, `every` and `rrule`; what has no part in the due times is checked in
    form only, and `job` not at all."""

    schedule_id: ScheduleId | None = None
    job: dict[str, Any] | None = None
    cron: Annotated[str, Meta(description="5 fields, or 6 with seconds first, or @daily and its kin")] | None = None
    every: Duration | None = None
    rrule: Annotated[str, Meta(description="RFC 5545, such as FREQ=MONTHLY;BYDAY=-1FR")] | None = None
    timezone: Annotated[str, Meta(description="an IANA time zone, such as Europe/Madrid; UTC unless given")] | None = (
        None
    )
    start_time: Time | None = None
    end_time: Time | None = None
    max_runs: Count | None = None
    jitter: Duration | None = None
    overlap: Literal["skip", "queue", "replace", "allow"] | None = None
    max_concurrency: Count | None = None
    catch_up: Literal["none", "latest", "all"] | None = None
    catch_up_window: Duration | None = None
    calendar: CalendarBody | None = None
    on_holiday: Literal["skip", "next", "previous"] | None = None
    paused: bool | None = None
    count: Annotated[int, Meta(ge=1, le=PREVIEW_LIMIT)] = 10


class PreviewTime(Struct, frozen=True, kw_only=True):
    """One due time: in UTC, on the wall with its offset, and the DST or holiday rule that applied."""

    time: Time
    local: str
    note: str | None


class RegisterBody(Body, frozen=True, kw_only=True):
    """A worker and what it can do. Without `queues` or `job_types` it takes every one."""

    name: Annotated[str, Meta(min_length=1, max_length=128, pattern=r"^[^\x00-\x1f]*\Z")]
    queues: Annotated[list[QueueName], Meta(max_length=1000)] = []
    job_types: Annotated[list[JobType], Meta(max_length=10_000)] = []
    resources: dict[str, float] = {}
    labels: dict[str, str] = {}


class Registered(Struct, frozen=True, kw_only=True):
    worker_id: str
    lease_seconds: float
    heartbeat_seconds: float


ReportStatus = Literal[
    "processing", "success", "retriable_failure", "fatal_failure", "timed_out", "cancelled", "released"
]
LogLevel = Literal["DEBUG", "INFO", "WARNING", "ERROR"]
LOG_LEVELS: dict[str, int] = {"DEBUG": 10, "INFO": 20, "WARNING": 30, "ERROR": 40}


class Report(Body, frozen=True, kw_only=True, omit_defaults=True):
    """What became of an attempt, or how far it is (`processing`)."""

    job_id: str
    attempt: int
    token: str
    status: ReportStatus
    started: Time | None = None
    result: Raw | UnsetType = UNSET
    error: ErrorInfo | str | None = None
    exit_code: Annotated[int, Meta(ge=-(2**31), lt=2**31)] | None = None
    progress: ProgressInfo | None = None
    retry_after: Duration | None = None


class LogBody(Body, frozen=True, kw_only=True):
    """A line of a running attempt's log."""

    job_id: str
    attempt: int
    token: str
    log_time: Time
    log_level: LogLevel = "INFO"
    log_message: str


class ExchangeBody(Body, frozen=True, kw_only=True, omit_defaults=True):
    """Hands in what ended, asks for what fits, and is the heartbeat. `free` empty wants nothing."""

    reports: list[Report] = []
    logs: list[LogBody] = []
    free: dict[str, float] = {}
    wait: Annotated[float, Meta(ge=0, le=300)] = 0
    holds: list[str] | None = None


class AssignedJob(Struct, frozen=True, kw_only=True):
    """A job for a worker to run, with the token that fences it."""

    job_id: str
    job_type: str
    attempt: int
    token: str
    payload: Raw
    timeout: float
    schedule_time: Time
    idempotency_key: str
    upstream: dict[str, Any] = {}


class Stop(Struct, frozen=True, kw_only=True):
    """A running attempt that is to end."""

    job_id: str
    attempt: int
    token: str


class Rejected(Struct, frozen=True, kw_only=True):
    """A report or log line that changed nothing."""

    job_id: str
    attempt: int
    reason: str


class ExchangeAnswer(Struct, frozen=True, kw_only=True):
    jobs: Sequence[AssignedJob] = []
    stop: Sequence[Stop] = []
    rejected: Sequence[Rejected] = []
    drain: bool = False


class WorkerInfo(Struct, frozen=True, kw_only=True):
    """Who is there, with what, doing what."""

    worker_id: str
    name: str
    status: Literal["alive", "draining", "lost"]
    queues: list[str]
    job_types: list[str]
    resources: dict[str, float]
    labels: dict[str, str]
    since: Time
    last_seen: Time
    lease_until: Time
    running: list[str]


class NodeView(Struct, frozen=True, kw_only=True):
    node_id: str
    name: str
    version: str
    since: Time
    last_seen: Time
    alive: bool


class Stats(Struct, frozen=True, kw_only=True):
    """About how many jobs stand where, how many workers are there, and this node's rates over the last ten seconds."""

    jobs: dict[str, int]
    workers: int
    slots: float
    running: int
    submitted_per_second: float
    started_per_second: float
    ended_per_second: float


class Problem(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """RFC 9457."""

    type: str
    title: str
    status: int
    detail: str
    request_id: str = ""
    errors: list["ProblemField"] = []


class ProblemField(Struct, frozen=True, kw_only=True):
    field: str
    message: str


encode = msgspec.json.Encoder().encode
