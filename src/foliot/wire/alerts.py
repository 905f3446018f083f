"""Alerts: rules, the incidents they open, and the channels by which people are told."""

from typing import Annotated, Literal

from msgspec import UNSET, Meta, Struct, UnsetType, field

from foliot.wire.base import Body, Duration, JobType, QueueName, ScheduleId, Tag, Time

AlertWord = Literal[
    "failed",
    "exhausted",
    "late",
    "overrun",
    "missed",
    "queue_age",
    "no_worker",
    "worker_lost",
    "node_lost",
    "store",
    "slo",
    "webhook_disabled",
]
NotifyWord = Literal["failed", "exhausted", "late", "slo"]
AlertName = Annotated[
    str, Meta(pattern=r"^(?!\.{1,2}\Z)[A-Za-z0-9._-]{1,64}\Z", description="1–64 of A–Z a–z 0–9 . _ -")
]
Channels = Annotated[
    list[AlertName], Meta(min_length=1, max_length=8, description="names of channels, as in POST /channels")
]
ChannelUrl = Annotated[
    str,
    Meta(
        min_length=5,
        max_length=2000,
        pattern=r"^[^\x00-\x20\x7f]+\Z",
        description="an Apprise URL without blanks, such as slack://TokenA/TokenB/TokenC or mailto://user:password@example.com",
    ),
]


class MatchBody(Body, frozen=True, kw_only=True, omit_defaults=True):
    """Which jobs a rule is about; those left out match all."""

    queue: QueueName | None = None
    job_type: JobType | None = None
    schedule_id: ScheduleId | None = None
    tag: Tag | None = None


class RuleFields(Body, frozen=True, kw_only=True):
    """What a rule says, apart from its name; in a change those given are changed, `null` is the default."""

    on: AlertWord | Annotated[list[AlertWord], Meta(min_length=1, max_length=12)] | UnsetType = UNSET
    match: MatchBody | UnsetType | None = UNSET
    after: Duration | UnsetType | None = UNSET
    channels: Channels | UnsetType = UNSET
    throttle: Duration | UnsetType | None = UNSET


class RuleBody(RuleFields, frozen=True, kw_only=True):
    """When to tell whom. `after` is how late, how long or how old, for `late`, `overrun`, `queue_age` and `no_worker`;
    while something goes on, another notice is sent at most once per `throttle`."""

    name: AlertName
    on: AlertWord | Annotated[list[AlertWord], Meta(min_length=1, max_length=12)]
    channels: Channels


class RuleInfo(Struct, frozen=True, kw_only=True):
    """A rule as read: `after` and `throttle` in seconds."""

    name: str
    on: list[str]
    match: MatchBody
    after: float | None
    channels: list[str]
    throttle: float
    created_time: Time
    version: int


class ChannelUpdateBody(Body, frozen=True, kw_only=True):
    """Where notices of a channel go from now on."""

    url: ChannelUrl


class ChannelBody(ChannelUpdateBody, frozen=True, kw_only=True):
    """A place to tell people at. The address is written, and never shown again."""

    name: AlertName


class ChannelInfo(Struct, frozen=True, kw_only=True):
    """A channel as read; of its `url` only what comes before the `://`."""

    name: str
    url: str
    created_time: Time
    version: int


class ChannelTested(Struct, frozen=True, kw_only=True):
    """Whether a test notice went out, and if not, why."""

    sent: bool
    error: str | None = None


class NotifyBody(Body, frozen=True, kw_only=True, omit_defaults=True):
    """Whom to tell of what becomes of a job; `late_after` goes with `late`. Nothing in `on`: nobody is told."""

    on: Annotated[list[NotifyWord], Meta(max_length=4)]
    late_after: Duration | None = None
    channels: Annotated[list[AlertName], Meta(max_length=8)] = []


class ObjectiveBody(Body, frozen=True, kw_only=True):
    """A queue's service level objective: the share `target` of its jobs starts `within` of when they were due, counted
    `over` a time."""

    target: Annotated[float, Meta(ge=0.5, le=0.99999, description="a share, such as 0.99")]
    within: Duration
    over: Duration = "7d"


class ObjectiveInfo(Struct, frozen=True, kw_only=True):
    """An objective as read: times in seconds."""

    target: float
    within: float
    over: float


class NotifyInfo(Struct, frozen=True, kw_only=True):
    """Whom to tell of what, as read: `late_after` in seconds."""

    on: list[str]
    late_after: float | None
    channels: list[str]


class NoticeInfo(Struct, frozen=True, kw_only=True):
    """What was told: `opened`, `ongoing` or `recovered`, and to which channels it did and did not go out."""

    notice: str
    time: Time
    count: int
    sent: list[str]
    failed: dict[str, str]


class IncidentInfo(Struct, frozen=True, kw_only=True):
    """Something that is or was wrong: by which rule, about what (`subject`, such as a queue and a job type), how often
    it was seen, and what was told about it."""

    incident_id: str
    rule: str
    kind: str
    subject: str
    status: Literal["open", "resolved"]
    detail: str
    count: int
    opened_time: Time
    last_seen: Time
    resolved_time: Time | None
    jobs: list[str]
    channels: list[str]
    acknowledged_by: str | None
    acknowledged_time: Time | None
    silenced_until: Time | None
    notices: list[NoticeInfo]
    trouble_telling: dict[str, str]
    version: int


class SilenceBody(Body, frozen=True, kw_only=True):
    """For how long nothing is told about an incident."""

    duration: Duration = field(name="for")
