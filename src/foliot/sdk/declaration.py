"""A schedule that is declared in code, with `@app.schedule`: made of what is written there, checked at once."""

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, TypedDict

import msgspec

from foliot.domain.duration import parse_duration
from foliot.domain.errors import BadInput
from foliot.sdk.job_function import JobFunction
from foliot.sdk.options import ConcurrencyLike, DurationLike, NotifyLike, ResourcesLike, RetryLike
from foliot.wire import (
    CalendarBody,
    CatchUpWord,
    OnHolidayWord,
    OverlapWord,
    PlanBody,
    ScheduleBody,
    encode,
    to_micros,
)


class ScheduleFields(TypedDict, total=False):
    """`schedule_id` is the job type unless given; `args` and `kwargs` are what each run calls the function with. When:
    exactly one of `cron`, `every` and `rrule`, and the fields that go with it in the API. How: a job's options, before
    those of `@app.job`. None is the default."""

    schedule_id: str | None
    args: Sequence[Any]
    kwargs: Mapping[str, Any]

    cron: str | None
    every: DurationLike | None
    rrule: str | None
    timezone: str | None
    start_time: datetime | None
    end_time: datetime | None
    max_runs: int | None
    jitter: DurationLike | None
    overlap: OverlapWord | None
    max_concurrency: int | None
    catch_up: CatchUpWord | None
    catch_up_window: DurationLike | None
    calendar: CalendarBody | Mapping[str, Any] | None
    on_holiday: OnHolidayWord | None
    paused: bool | None

    priority: int | str | None
    queue: str | None
    tags: Sequence[str] | None
    timeout: DurationLike | None
    retry: RetryLike | None
    owner: str | None
    resources: ResourcesLike | None
    requires: Mapping[str, str] | None
    concurrency: ConcurrencyLike | Callable[..., ConcurrencyLike | None] | None
    unique_key: str | Callable[..., str | None] | None
    fair_key: str | Callable[..., str | None] | None
    secret_fields: Sequence[str] | None
    notify: NotifyLike | None


FIELD_NAMES = frozenset(ScheduleFields.__annotations__)
_PLAN = frozenset(PlanBody.__struct_fields__)
_OWN = frozenset(("schedule_id", "args", "kwargs"))


def declare(function: JobFunction[..., Any], fields: ScheduleFields) -> ScheduleBody:
    """The schedule that runs the function; TypeError or ValueError, naming schedule and field, where one can not be
    meant. An end that has passed is no mistake: a program must not break on the day that its schedule is over."""
    name = fields.get("schedule_id") or function.name
    for field in fields:
        if field not in FIELD_NAMES:
            raise TypeError(f"{name}: there is no field {field!r}; the fields are {', '.join(sorted(FIELD_NAMES))}")
    given = {field: value for field, value in fields.items() if value is not None}
    options = {field: value for field, value in fields.items() if field not in _PLAN | _OWN}
    try:
        template = function.template(fields.get("args", ()), fields.get("kwargs", {}), options)
        plan = {field: _read(field, value) for field, value in given.items() if field in _PLAN}
        body = msgspec.json.decode(encode(ScheduleBody(schedule_id=name, job=template, **plan)), type=ScheduleBody)
        _check_times(body)
    except msgspec.ValidationError as error:
        raise ValueError(f"{name}: {_explain(str(error))}") from None
    except BadInput as error:
        raise ValueError(f"{name}: {error.detail}") from None
    return body


def _read(field: str, value: Any) -> Any:
    match field:
        case "start_time" | "end_time":
            if not isinstance(value, datetime) or value.tzinfo is None:
                raise BadInput.at(field, f"must be a datetime with a time zone; it is {value!r}")
        case "every" | "jitter" | "catch_up_window":
            return value.total_seconds() if isinstance(value, timedelta) else value
        case "calendar":
            try:
                return msgspec.convert(value, CalendarBody)
            except msgspec.ValidationError as error:
                raise BadInput.at("calendar", _explain(str(error))) from None
    return value


def _check_times(body: ScheduleBody) -> None:
    """As the node does it, but for a schedule made in 1970: what is right stays right."""
    from foliot.domain.timetable.fields import parse_timetable  # takes long to load, and only schedules need it

    if body.catch_up_window is not None:
        parse_duration(body.catch_up_window, "catch_up_window")
    parse_timetable(
        created=0,
        cron=body.cron,
        every=body.every,
        rrule=body.rrule,
        timezone=body.timezone,
        start_time=None if body.start_time is None else to_micros(body.start_time),
        end_time=None if body.end_time is None else to_micros(body.end_time),
        max_runs=body.max_runs,
        jitter=body.jitter,
        calendar=None if body.calendar is None else msgspec.to_builtins(body.calendar),
        on_holiday=body.on_holiday,
    )


def _explain(message: str) -> str:
    """msgspec's message with the field's name in front."""
    what, at, path = message.rpartition(" - at `$")
    return f"{path.strip('.`')}: {what.replace('`', '')}" if at else message.replace("`", "")
