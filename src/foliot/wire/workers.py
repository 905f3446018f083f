"""Workers: registered, and the exchange in which they hand in what ended and get what fits."""

from collections.abc import Sequence
from typing import Annotated, Any, Literal

from msgspec import UNSET, Meta, Raw, Struct, UnsetType, field

from foliot.wire.base import Body, Duration, JobType, QueueName, Time
from foliot.wire.jobs import ErrorInfo, Labels, ProgressInfo, Resources


class RegisterBody(Body, frozen=True, kw_only=True):
    """A worker and what it can do. Without `queues` or `job_types` it takes every one. `resources` is all that it has:
    of a resource that is not named there is none, but for `slot`, of which each call says how many are free."""

    name: Annotated[str, Meta(min_length=1, max_length=128, pattern=r"^[^\x00-\x1f]*\Z")]
    queues: Annotated[list[QueueName], Meta(max_length=1000)] = []
    job_types: Annotated[list[JobType], Meta(max_length=10_000)] = []
    resources: Resources = {}
    labels: Labels = {}


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
    """Hands in what ended, asks for what fits, and is the heartbeat. `free` empty wants nothing. Where calls overlap
    each amount is asked for by one of them at a time."""

    reports: list[Report] = []
    logs: list[LogBody] = []
    free: Resources = {}
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
    resources: dict[str, float] = field(default_factory=lambda: {"slot": 1.0})  # what it holds while it runs
    secret_fields: Sequence[str] | UnsetType = UNSET  # of its payload: not to be shown in logs, errors and progress
    queue: str | UnsetType = UNSET  # left out where it is `default`
    trace: str | UnsetType = UNSET  # W3C's `traceparent` of what submitted it
    trace_links: Sequence[str] | UnsetType = UNSET  # the same of the runs of the jobs that it depends on


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
