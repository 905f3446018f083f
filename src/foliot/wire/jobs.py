"""Jobs: submitted, changed, read."""

from collections.abc import Sequence
from typing import Annotated, Literal

from msgspec import UNSET, Meta, Raw, Struct, UnsetType, field

from foliot.wire.alerts import NotifyBody, NotifyInfo
from foliot.wire.base import (
    BATCH_LIMIT,
    Body,
    Duration,
    JobId,
    JobType,
    KeyName,
    Owner,
    Priority,
    QueueName,
    Tag,
    Time,
)


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


class ConcurrencyBody(Body, frozen=True, kw_only=True):
    """At most `limit` jobs of a key at once, cluster-wide; the newest limit given applies."""

    key: KeyName
    limit: Annotated[int, Meta(ge=1, le=1_000_000)]


class DependsOn(Body, frozen=True, kw_only=True):
    """A job that must have ended first, and how."""

    job_id: JobId
    on: Literal["success", "failure", "any"] = "success"


Resources = Annotated[
    dict[str, float | str],
    Meta(max_length=16, description='amounts held while it runs, such as {"cpu": 0.5, "memory": "256Mi", "gpu": 1}'),
]
Labels = Annotated[dict[str, str], Meta(max_length=16, description='worker labels, such as {"zone": "eu"}')]


SecretFields = Annotated[
    list[Annotated[str, Meta(max_length=200, pattern=r"^[^.\x00-\x1f]+(?:\.[^.\x00-\x1f]+)*\Z")]],
    Meta(max_length=32, description='parts of the payload that no read shows, such as "password" or "db.password"'),
]


class JobFields(Body, frozen=True, kw_only=True):
    """What a job is and how it is run, apart from its id and times."""

    job_type: JobType | UnsetType = UNSET
    payload: Raw | UnsetType = UNSET
    priority: Priority | UnsetType | None = UNSET
    queue: QueueName | UnsetType | None = UNSET
    retry: RetryBody | UnsetType | None = UNSET
    timeout: Duration | UnsetType | None = UNSET
    resources: Resources | UnsetType | None = UNSET
    requires: Labels | UnsetType | None = UNSET
    concurrency: ConcurrencyBody | UnsetType | None = UNSET
    unique_key: KeyName | UnsetType | None = UNSET
    fair_key: KeyName | UnsetType | None = UNSET
    secret_fields: SecretFields | UnsetType | None = UNSET
    tags: Annotated[list[Tag], Meta(max_length=64)] | UnsetType | None = UNSET
    owner: Owner | UnsetType | None = UNSET
    notify: NotifyBody | UnsetType | None = UNSET


class UpdateBody(JobFields, frozen=True, kw_only=True):
    """What may be changed of a job while it waits; `null` sets a field back to its default."""

    schedule_time: Time | UnsetType | None = UNSET
    delay: Duration | UnsetType | None = UNSET
    deadline: Time | UnsetType | None = UNSET


class SubmitBody(UpdateBody, frozen=True, kw_only=True):
    """A job to run. Only `job_type` is required."""

    job_type: JobType
    job_id: JobId | UnsetType | None = UNSET
    depends_on: Annotated[list[JobId | DependsOn], Meta(max_length=10_000)] | UnsetType | None = UNSET


class BatchBody(Body, frozen=True, kw_only=True):
    """Up to 10,000 jobs, kept all or not at all."""

    jobs: Annotated[list[SubmitBody], Meta(min_length=1, max_length=BATCH_LIMIT)]


class RetryJobBody(Body, frozen=True, kw_only=True):
    """Run an ended job again, optionally with another payload, and with those of its dependents that were cancelled
    because of it."""

    payload: Raw | UnsetType = UNSET
    dependents: bool = False


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


class RetryManyBody(ManyBody, frozen=True, kw_only=True):
    """Many ended jobs to run again, optionally all with another payload."""

    payload: Raw | UnsetType = UNSET


class Submitted(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Taken in; a `duplicate` is an earlier job with the same `unique_key` that still waits."""

    status: Literal["submitted"] = field(default_factory=lambda: "submitted")  # shown though it is the default
    job_id: str
    duplicate: bool = False


class BatchSubmitted(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Taken in, in the order given; `duplicates` are the places of those that are earlier jobs with the same
    `unique_key`."""

    status: Literal["submitted"] = field(default_factory=lambda: "submitted")
    job_ids: Sequence[str]
    duplicates: Sequence[int] = ()


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


class ConcurrencyInfo(Struct, frozen=True, kw_only=True):
    """A job's concurrency key and the limit that applies to it now."""

    key: str
    limit: int


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
    resources: dict[str, float] = field(default_factory=lambda: {"slot": 1.0})
    requires: dict[str, str] = {}
    concurrency: ConcurrencyInfo | None = None
    unique_key: str | None = None
    fair_key: str | None = None
    secret_fields: list[str] = []
    depends_on: list[DependsOn] = []
    tags: list[str] = []
    owner: str = ""
    schedule_id: str | None = None
    notify: NotifyInfo | None = None
    version: int = 1
    payload: Raw | UnsetType = UNSET
    last_error: ErrorInfo | str | UnsetType | None = UNSET


class Execution(Struct, frozen=True, kw_only=True):
    """One attempt of a job. It was due, admitted (from then on only a worker was missing), claimed, started, ended."""

    attempt: int
    status: str
    worker_id: str | None
    due_time: Time
    admitted_time: Time | None = None
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


class GraphNode(Struct, frozen=True, kw_only=True):
    job_id: str
    job_type: str
    status: str


class GraphEdge(Struct, frozen=True, kw_only=True):
    """`to` starts once `from` has ended as `on` says."""

    parent: str = field(name="from")
    child: str = field(name="to")
    on: Literal["success", "failure", "any"]


class GraphInfo(Struct, frozen=True, kw_only=True):
    """A job with all that it depends on and all that depends on it, up and down; `complete` is false where there are
    more than fit."""

    nodes: list[GraphNode]
    edges: list[GraphEdge]
    complete: bool = True


class LimitBody(Body, frozen=True, kw_only=True):
    """How many jobs of a concurrency key may run at once."""

    limit: Annotated[int, Meta(ge=1, le=1_000_000)]


class LimitInfo(Struct, frozen=True, kw_only=True):
    """A concurrency key: its limit, and how many jobs (which, up to 100) hold a token or wait for one. A job holds one
    from when only a worker is missing until its attempt has ended."""

    key: str
    limit: int
    held: int
    waiting: int
    holders: list[str] = []
    waiters: list[str] = []


class ReasonInfo(Struct, frozen=True, kw_only=True):
    """One thing that holds a job back: a word, a sentence, who is behind it, until when."""

    reason: str
    detail: str
    by: list[str] = []
    until: Time | None = None


class WhyInfo(Struct, frozen=True, kw_only=True):
    """Why a job does not run yet: every reason that holds it back now, and its start where that can be told. For one
    that runs or has ended, the `summary` tells that."""

    summary: str
    reasons: list[ReasonInfo]
    expected_start: Time | None
