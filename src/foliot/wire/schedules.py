"""Schedules: made, changed, read, and when one would run."""

from typing import Annotated, Any, Literal

from msgspec import UNSET, Meta, Raw, Struct, UnsetType, field

from foliot.wire.base import PREVIEW_LIMIT, Body, Duration, JobType, ScheduleId, Time
from foliot.wire.jobs import JobFields

BACKFILL_LIMIT = 100_000

Weekday = Literal["mon", "tue", "wed", "thu", "fri", "sat", "sun"]
OverlapWord = Literal["skip", "queue", "replace", "allow"]
CatchUpWord = Literal["none", "latest", "all"]
OnHolidayWord = Literal["skip", "next", "previous"]
Count = Annotated[int, Meta(ge=1, lt=2**31)]
Concurrency = Annotated[int, Meta(ge=1, le=1000, description="runs at once, 1 to 1000")]
CronText = Annotated[str, Meta(description="5 fields, or 6 with seconds first, or @daily and its kin")]
RruleText = Annotated[str, Meta(description="RFC 5545, such as FREQ=MONTHLY;BYDAY=-1FR")]
ZoneName = Annotated[str, Meta(description="an IANA time zone, such as Europe/Madrid; UTC unless given")]


class CalendarBody(Body, frozen=True, kw_only=True, omit_defaults=True):
    """Which days are closed: a country's holidays and weekend, and further dates."""

    country: Annotated[str, Meta(description="an ISO 3166 code, such as ES")] | None = None
    subdivision: Annotated[str, Meta(description="a part of the country, such as MD")] | None = None
    weekend: list[Weekday] | None = None
    closed: Annotated[list[str], Meta(description="further closed dates, such as 2027-12-24")] | None = field(
        default=None, name="except"
    )


class TemplateBody(JobFields, frozen=True, kw_only=True, omit_defaults=True):
    """The job that each run is: as submitted, without an id and times. Only `job_type` is required."""

    job_type: JobType


class PlanBody(Body, frozen=True, kw_only=True, omit_defaults=True):
    """When runs are due, and what happens when they meet each other or were missed. Exactly one of `cron`, `every` and
    `rrule`."""

    cron: CronText | None = None
    every: Duration | None = None
    rrule: RruleText | None = None
    timezone: ZoneName | None = None
    start_time: Time | None = None
    end_time: Time | None = None
    max_runs: Count | None = None
    jitter: Duration | None = None
    overlap: OverlapWord | None = None
    max_concurrency: Concurrency | None = None
    catch_up: CatchUpWord | None = None
    catch_up_window: Duration | None = None
    calendar: CalendarBody | None = None
    on_holiday: OnHolidayWord | None = None
    paused: bool | None = None


class PreviewBody(PlanBody, frozen=True, kw_only=True, omit_defaults=True):
    """A whole schedule, of which the due times are asked for: the `count` first ones from `start_time` on, or from now
    where none is given. What has no part in the due times is checked in form only, and `job` not at all."""

    schedule_id: ScheduleId | None = None
    job: dict[str, Any] | None = None
    count: Annotated[int, Meta(ge=1, le=PREVIEW_LIMIT)] = 10


class PreviewTime(Struct, frozen=True, kw_only=True):
    """One due time: in UTC, on the wall with its offset, and the DST or holiday rule that applied."""

    time: Time
    local: str
    note: str | None


class ScheduleBody(PlanBody, frozen=True, kw_only=True, omit_defaults=True):
    """A job to run again and again."""

    schedule_id: ScheduleId | None = None
    job: TemplateBody


class ScheduleUpdateBody(Body, frozen=True, kw_only=True):
    """What may be changed of a schedule: the fields given; `null` sets one back to its default. A trigger takes the
    place of the one before, of whichever kind; `job` is replaced as a whole."""

    job: TemplateBody | UnsetType = UNSET
    cron: CronText | UnsetType | None = UNSET
    every: Duration | UnsetType | None = UNSET
    rrule: RruleText | UnsetType | None = UNSET
    timezone: ZoneName | UnsetType | None = UNSET
    start_time: Time | UnsetType | None = UNSET
    end_time: Time | UnsetType | None = UNSET
    max_runs: Count | UnsetType | None = UNSET
    jitter: Duration | UnsetType | None = UNSET
    overlap: OverlapWord | UnsetType | None = UNSET
    max_concurrency: Concurrency | UnsetType | None = UNSET
    catch_up: CatchUpWord | UnsetType | None = UNSET
    catch_up_window: Duration | UnsetType | None = UNSET
    calendar: CalendarBody | UnsetType | None = UNSET
    on_holiday: OnHolidayWord | UnsetType | None = UNSET
    paused: bool | UnsetType | None = UNSET


class BackfillBody(Body, frozen=True, kw_only=True):
    """Past due times to run now, both ends included: up to 100,000 of them, `max_concurrency` at once (the schedule's
    unless given)."""

    since: Annotated[Time, Meta(description="from here on, included")] = field(name="from")
    until: Annotated[Time, Meta(description="up to here, included; not in the future")] = field(name="to")
    max_concurrency: Concurrency | None = None


class ScheduleChanged(Struct, frozen=True, kw_only=True):
    """What a call made of a schedule, and when it runs next."""

    status: Literal["created", "updated", "paused", "active", "deleted"]
    schedule_id: str
    next_run: Time | None


class Triggered(Struct, frozen=True, kw_only=True):
    job_id: str


class Backfilled(Struct, frozen=True, kw_only=True):
    """How many due times will be run; those that have their job already are left alone."""

    runs: int


class ScheduleInfo(Struct, frozen=True, kw_only=True):
    """A schedule as read. `status` is `active`, `paused`, or `ended` when nothing is due any more; `description` says
    in words when it runs; durations are seconds."""

    schedule_id: str
    status: Literal["active", "paused", "ended"]
    description: str
    next_run: Time | None
    runs: int
    job: Raw
    cron: str | None = None
    every: float | None = None
    rrule: str | None = None
    timezone: str = "UTC"
    start_time: Time | None = None
    end_time: Time | None = None
    max_runs: int | None = None
    jitter: float = 0
    overlap: str = "skip"
    max_concurrency: int = 1
    catch_up: str = "latest"
    catch_up_window: float = 3600
    calendar: CalendarBody | None = None
    on_holiday: str | None = None
    paused: bool = False
    owner: str = ""
    created_time: Time
    last_updated: Time
    version: int = 1


class RunInfo(Struct, frozen=True, kw_only=True):
    """What became of a due time. `verdict` is null while it waits for room; `count` due times from `due_time` to
    `until` that share a verdict are one row (at least so many where `exact` is false)."""

    due_time: Time
    verdict: Literal["ran", "skipped", "caught_up", "backfilled", "missed", "expired"] | None
    reason: str | None
    job_id: str | None
    until: Time | None = None
    count: int = 1
    exact: bool = True


class ForecastMinute(Struct, frozen=True, kw_only=True):
    """What is due within one minute: jobs that wait for their time, and runs of schedules."""

    time: Time
    jobs: int
    runs: int


class Forecast(Struct, frozen=True, kw_only=True):
    """What is due in the next 24 hours, minute by minute (those with nothing due are left out), against what the living
    workers can take: `slots` in all, and so many jobs a minute at the pace of late (null while nothing ran)."""

    minutes: list[ForecastMinute]
    jobs: int
    runs: int
    slots: float
    capacity_per_minute: float | None
