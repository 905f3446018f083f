"""Jobs: submitted, changed, read."""

from collections.abc import Sequence
from typing import Annotated, Literal

from msgspec import UNSET, Meta, Raw, Struct, UnsetType

from foliot.wire.base import BATCH_LIMIT, Body, Duration, JobId, JobType, Owner, Priority, QueueName, Tag, Time


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


class JobFields(Body, frozen=True, kw_only=True):
    """What a job is and how it is run, apart from its id and times."""

    job_type: JobType | UnsetType = UNSET
    payload: Raw | UnsetType = UNSET
    priority: Priority | UnsetType | None = UNSET
    queue: QueueName | UnsetType | None = UNSET
    retry: RetryBody | UnsetType | None = UNSET
    timeout: Duration | UnsetType | None = UNSET
    tags: Annotated[list[Tag], Meta(max_length=64)] | UnsetType | None = UNSET
    owner: Owner | UnsetType | None = UNSET


class UpdateBody(JobFields, frozen=True, kw_only=True):
    """What may be changed of a job while it waits; `null` sets a field back to its default."""

    schedule_time: Time | UnsetType | None = UNSET
    delay: Duration | UnsetType | None = UNSET
    deadline: Time | UnsetType | None = UNSET


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
