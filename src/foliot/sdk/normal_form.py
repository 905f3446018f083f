"""Schedules in a form in which they can be compared, whoever wrote them: durations in seconds, times in UTC, what is
left out at its default. The job's fields stand beside the others as `job.queue` and so on."""

from collections.abc import Mapping
from datetime import datetime
from functools import cache
from typing import Any

import msgspec
from msgspec import Raw

from foliot.domain.duration import parse_duration, show_duration
from foliot.domain.needs import SLOT, UNIT, parse_amounts
from foliot.domain.priority import parse_priority, show_priority
from foliot.domain.secret_fields import mask
from foliot.wire import CalendarBody, PlanBody, RetryBody, ScheduleBody, ScheduleInfo, encode, to_micros, to_time

Form = dict[str, Any]

_sorted = msgspec.json.Encoder(order="sorted").encode
_PLAN_DEFAULTS: Form = {
    field.name: field.default
    for field in msgspec.structs.fields(ScheduleInfo)
    if field.name in PlanBody.__struct_fields__
}
_JOB_DEFAULTS: Form = {
    "payload": {},
    "priority": "medium",
    "queue": "default",
    "retry": {},
    "timeout": 3600,
    "tags": [],
    "resources": {},
    "requires": {},
    "concurrency": None,
    "unique_key": None,
    "fair_key": None,
    "secret_fields": [],
    "notify": None,
}


def normal_declared(body: ScheduleBody) -> Form:
    """Raises the domain's BadInput, naming the field, for a value that is none."""
    return _normal(body, _fields(encode(body.job)))


def normal_existing(info: ScheduleInfo) -> Form:
    return _normal(info, _fields(info.job))


@cache
def usual() -> Mapping[str, Any]:
    """What every field is where nothing is said."""
    return _PLAN_DEFAULTS | _normal_job({})


def alike(one: object, other: object) -> bool:
    """Equal as JSON, where true is not 1."""
    return _sorted(one) == _sorted(other)


def _normal(source: PlanBody | ScheduleInfo, job: Mapping[str, Any]) -> Form:
    form = _normal_job(job)
    for name in PlanBody.__struct_fields__:
        value = getattr(source, name)
        form[name] = _PLAN_DEFAULTS[name] if value is None else _normal_value(name, value)
    if form["calendar"] is not None and form["on_holiday"] is None:
        form["on_holiday"] = "skip"
    return form


def _normal_value(name: str, value: Any) -> Any:
    match name:
        case "every" | "jitter" | "catch_up_window":
            return show_duration(parse_duration(value, name))
        case "cron":
            return " ".join(value.split())
        case "calendar":
            return _normal_calendar(value)
    return to_time(to_micros(value)) if isinstance(value, datetime) else value


def _normal_calendar(value: CalendarBody | Raw) -> Form:
    from foliot.domain.timetable.calendar import WEEKDAYS, parse_calendar  # takes long to load, and few need it

    calendar = parse_calendar(_fields(value if isinstance(value, Raw) else encode(value)))
    form: Form = {
        "country": calendar.country,
        "subdivision": calendar.subdivision,
        "weekend": None if calendar.weekend is None else [WEEKDAYS[day] for day in sorted(calendar.weekend)],
        "except": [day.isoformat() for day in sorted(calendar.closed)] or None,
    }
    return {name: value for name, value in form.items() if value is not None}


def hides_values(body: ScheduleBody) -> bool:
    """Whether a declaration has values that can not be compared, since no read shows those that are kept."""
    given = _fields(encode(body.job))
    return not alike(given.get("payload", {}), _normal_job(given)["job.payload"])


def _normal_job(given: Mapping[str, Any]) -> Form:
    """Fields that this version does not know are compared as they are."""
    form = {**_JOB_DEFAULTS, **{name: value for name, value in given.items() if value is not None}}
    if form["secret_fields"]:
        form["payload"] = msgspec.json.decode(mask(encode(form["payload"]).decode(), form["secret_fields"]))
    form["priority"] = show_priority(parse_priority(form["priority"]))
    form["timeout"] = show_duration(parse_duration(form["timeout"], "job.timeout"))
    amounts = {SLOT: UNIT} | parse_amounts(form["resources"], "job.resources")
    form["resources"] = {name: amount / UNIT for name, amount in amounts.items()}
    retry = form["retry"] = {**_fields(encode(RetryBody())), **form["retry"]}
    for name in ("initial", "max"):
        retry[name] = show_duration(parse_duration(retry[name], f"job.retry.{name}"))
    retry["delays"] = [show_duration(parse_duration(each, "job.retry.delays")) for each in retry["delays"]]
    if form["notify"] is not None and form["notify"].get("late_after") is not None:
        form["notify"] = {
            **form["notify"],
            "late_after": show_duration(parse_duration(form["notify"]["late_after"], "job.notify.late_after")),
        }
    return {f"job.{name}": value for name, value in form.items()}


def _fields(text: bytes | Raw) -> dict[str, Any]:
    return msgspec.json.decode(text, type=dict[str, Any])
