"""Webhooks: who is told of which events, and what became of each message."""

from typing import Annotated, Literal

from msgspec import UNSET, Meta, Struct, UnsetType

from foliot.wire.base import Body, Duration, JobType, QueueName, ScheduleId, Tag, Time

Url = Annotated[str, Meta(min_length=1, max_length=2048, description="http:// or https://, 1–2048 characters")]
EventWord = Annotated[
    str,
    Meta(
        pattern=r"^(foliot\.)?(\*|[a-z_]{1,32}\.(\*|[a-z_]{1,32}))\Z",
        description='an event such as "job.failed", "job.*" for all of jobs, or "*" for all',
    ),
]
EventWords = Annotated[list[EventWord], Meta(min_length=1, max_length=50)]
DeliveryState = Literal["pending", "delivered", "failed"]


class WebhookMatch(Body, frozen=True, kw_only=True):
    """Which jobs' events; all that is given must hold."""

    queue: QueueName | None = None
    job_type: JobType | None = None
    schedule_id: ScheduleId | None = None
    tag: Tag | None = None


class WebhookBody(Body, frozen=True, kw_only=True):
    """Where to send which events. `give_up_after` is how long it may fail before it is switched off."""

    url: Url
    events: EventWords
    match: WebhookMatch = WebhookMatch()
    give_up_after: Duration = "3d"


class WebhookChange(Body, frozen=True, kw_only=True):
    """What is given is changed, `match` as a whole."""

    url: Url | UnsetType = UNSET
    events: EventWords | UnsetType = UNSET
    match: WebhookMatch | UnsetType = UNSET
    give_up_after: Duration | UnsetType = UNSET


class RedeliverBody(Body, frozen=True, kw_only=True):
    """Those that failed of events from then on; all that are kept where it is not given."""

    since: Time | None = None


class WebhookInfo(Struct, frozen=True, kw_only=True):
    """A webhook as read: all but its secret. It is off for one of: `switched_off` (by a user), `failing` (for too
    long), `gone` (its receiver answered 410)."""

    webhook_id: str
    url: str
    events: list[str]
    match: WebhookMatch
    give_up_after: float
    enabled: bool
    off_reason: str | None
    failing_since: Time | None
    created_time: Time
    created_by: str
    version: int


class NewWebhook(WebhookInfo, frozen=True, kw_only=True):
    """With the secret that its messages are signed with, which is shown this once."""

    secret: str


class DeliveryInfo(Struct, frozen=True, kw_only=True):
    """One event on its way to a webhook. `delivery_id` is what its receiver sees as `webhook-id`."""

    delivery_id: str
    event_id: str
    event_type: str
    state: str
    attempts: int
    next_try: Time | None
    last_status: int | None
    last_error: str | None
    created_time: Time
    last_updated: Time


class Redelivered(Struct, frozen=True, kw_only=True):
    """How many are sent again."""

    redelivered: int
