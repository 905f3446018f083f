"""Queues and job types: their rules, how full they are, and holding them."""

from typing import Annotated, Literal

from msgspec import UNSET, Meta, Struct, UnsetType

from foliot.wire.alerts import NotifyBody, NotifyInfo, ObjectiveBody, ObjectiveInfo
from foliot.wire.base import Body, Duration, KeyName

PolicyWord = Literal["fifo", "priority", "fair"]
Weight = Annotated[float, Meta(ge=0.001, le=1000, description="a share, 0.001 to 1000")]


class RateLimitBody(Body, frozen=True, kw_only=True):
    """Never more than `limit` + `burst` starts in any `per`."""

    limit: Annotated[int, Meta(ge=1, le=1_000_000)]
    per: Duration
    burst: Annotated[int, Meta(ge=0, le=1_000_000)] = 0


class QueueBody(Body, frozen=True, kw_only=True):
    """A queue's rules: those given are changed, `null` sets one back to its default."""

    policy: PolicyWord | UnsetType | None = UNSET
    aging: Duration | UnsetType | None = UNSET
    weight: Weight | UnsetType | None = UNSET
    weights: Annotated[dict[KeyName, Weight], Meta(max_length=1000)] | UnsetType | None = UNSET
    max_concurrency: Annotated[int, Meta(ge=1, le=1_000_000)] | UnsetType | None = UNSET
    rate_limit: RateLimitBody | UnsetType | None = UNSET
    notify: NotifyBody | UnsetType | None = UNSET
    objective: ObjectiveBody | UnsetType | None = UNSET


class RateLimitInfo(Struct, frozen=True, kw_only=True):
    """A rate as read: `per` in seconds."""

    limit: int
    per: float
    burst: int


class QueueInfo(Struct, frozen=True, kw_only=True):
    """A queue as read: its rules, `aging` in seconds; how many jobs wait only for a worker or for the queue itself, how
    many run, and for how many seconds the one that was due first waits. `waiting` ends at 100,000."""

    queue: str
    policy: str
    aging: float | None
    weight: float
    weights: dict[str, float]
    max_concurrency: int | None
    rate_limit: RateLimitInfo | None
    paused: bool
    waiting: int
    running: int
    oldest_wait: float | None
    notify: NotifyInfo | None = None
    objective: ObjectiveInfo | None = None
    version: int


class JobTypeInfo(Struct, frozen=True, kw_only=True):
    """A job type of which nothing starts, or may start again."""

    job_type: str
    paused: bool
