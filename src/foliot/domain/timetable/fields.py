"""A timetable from the fields of the API: what is wrong is named by its field, with what would be right."""

from collections.abc import Mapping
from typing import Any, cast

import msgspec

from foliot.domain.duration import Micros, parse_duration
from foliot.domain.errors import BadInput
from foliot.domain.timetable.calendar import ON_HOLIDAY, OnHoliday, parse_calendar
from foliot.domain.timetable.cron import parse_cron
from foliot.domain.timetable.due_times import next_after
from foliot.domain.timetable.interval import Every, parse_every
from foliot.domain.timetable.recurrence import Recurrence, parse_rrule
from foliot.domain.timetable.timetable import Timetable, Trigger
from foliot.domain.timetable.wall_time import never_fires
from foliot.domain.timetable.zone import parse_zone

EARLIEST_START: Micros = 0
BEYOND_START: Micros = 32_503_680_000_000_000  # the year 3000


def parse_timetable(
    *,
    created: Micros,
    cron: str | None = None,
    every: float | str | None = None,
    rrule: str | None = None,
    timezone: str | None = None,
    start_time: Micros | None = None,
    end_time: Micros | None = None,
    max_runs: int | None = None,
    jitter: float | str | None = None,
    calendar: Mapping[str, Any] | None = None,
    on_holiday: str | None = None,
) -> Timetable:
    """The timetable of a schedule made at `created`. One that has no due time from its start, or else from its
    creation, is refused."""
    given = [name for name, value in (("cron", cron), ("every", every), ("rrule", rrule)) if value is not None]
    if len(given) != 1:
        field = given[1] if given else "cron"
        raise BadInput.at(field, f"exactly one of cron, every and rrule is needed; here are {len(given)}")
    zone = parse_zone("UTC" if timezone is None else timezone)
    _check_bounds(start_time, end_time, max_runs)
    trigger: Trigger
    if cron is not None:
        trigger = parse_cron(cron)
    elif every is not None:
        trigger = parse_every(every, start=start_time, created=created)
    else:
        trigger = parse_rrule(cast(str, rrule), start=start_time, created=created, timezone=zone)
    timetable = Timetable(
        trigger=trigger,
        timezone=zone,
        start=start_time,
        end=end_time,
        max_runs=max_runs,
        jitter=0 if jitter is None else parse_duration(jitter, "jitter"),
        calendar=None if calendar is None else parse_calendar(calendar),
        on_holiday=_parse_on_holiday(on_holiday, calendar is not None, trigger),
    )
    _check_fires(timetable, given[0], created if start_time is None else start_time - 1)
    return timetable


def _check_bounds(start: Micros | None, end: Micros | None, max_runs: int | None) -> None:
    if start is not None and not EARLIEST_START <= start < BEYOND_START:
        raise BadInput.at("start_time", "lies outside of the years 1970 to 2999")
    if start is not None and end is not None and end < start:
        raise BadInput.at("end_time", "lies before start_time; give a later one")
    if max_runs is not None and max_runs < 1:
        raise BadInput.at("max_runs", "is a whole number, 1 or more")


def _parse_on_holiday(value: str | None, has_calendar: bool, trigger: Trigger) -> OnHoliday:
    if value is None:
        return "skip"
    if value not in ON_HOLIDAY:
        raise BadInput.at("on_holiday", f"is one of {', '.join(ON_HOLIDAY)}")
    if not has_calendar:
        raise BadInput.at("on_holiday", "needs a calendar beside it")
    if value != "skip" and isinstance(trigger, Every):
        raise BadInput.at("on_holiday", "with every is skip: real time can not be moved; use a cron to move runs")
    return value


def _check_fires(timetable: Timetable, field: str, after: Micros) -> None:
    """Take away what bounds it, one after the other: the last to help is the field to change."""
    if next_after(timetable, after) is not None:
        return
    trigger = timetable.trigger
    timetable = msgspec.structs.replace(timetable, end=None)
    if next_after(timetable, after) is not None:
        raise BadInput.at("end_time", "lies before the first run; give a later one")
    timetable = msgspec.structs.replace(timetable, calendar=None)
    if next_after(timetable, after) is not None:
        raise BadInput.at("calendar", "closes every day of this schedule; open a day, or move runs with on_holiday")
    if isinstance(trigger, Recurrence) and trigger.until is not None:
        raise BadInput.at("rrule", "UNTIL lies before the first run; give a later one")
    raise never_fires(field)
