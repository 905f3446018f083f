"""A timetable in words, for people who do not read cron."""

import re
from typing import assert_never

from foliot.domain.duration import DAY, HOUR, MINUTE, SECOND, Micros
from foliot.domain.timetable.calendar import Calendar, country_names, subdivision_name
from foliot.domain.timetable.cron import Cron, explain_cron
from foliot.domain.timetable.interval import Every
from foliot.domain.timetable.preview import local_time
from foliot.domain.timetable.recurrence import Recurrence
from foliot.domain.timetable.timetable import Timetable

_WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_WEEKEND = (5, 6)
_UNITS = ((DAY, "day"), (HOUR, "hour"), (MINUTE, "minute"), (SECOND, "second"))
_RULE_UNITS = {
    "YEARLY": "year",
    "MONTHLY": "month",
    "WEEKLY": "week",
    "DAILY": "day",
    "HOURLY": "hour",
    "MINUTELY": "minute",
    "SECONDLY": "second",
}
_RULE_DAYS = dict(zip(("MO", "TU", "WE", "TH", "FR", "SA", "SU"), _WEEKDAYS, strict=True))
_ORDINALS = ("first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth")
_STEP = re.compile(rf"every ({'|'.join(_ORDINALS)}|\d+th) (\w+)( of every (?:minute|hour))?(?! from \d+ )")
_NUMBERED = re.compile(rf"every ({'|'.join(_ORDINALS)}) (?=second|minute|hour|day|month)")


def describe(timetable: Timetable) -> str:
    """Such as: at 09:00 on the last weekday of the month, Europe/Madrid time, not on holidays of Spain (Madrid)."""
    return ", ".join(
        [_trigger(timetable), *_zone(timetable), *_calendar(timetable), *_bounds(timetable), *_jitter(timetable)]
    )


def _trigger(timetable: Timetable) -> str:
    match timetable.trigger:
        case Cron():
            return _cron(timetable.trigger)
        case Every():
            return f"every {_length(timetable.trigger.interval, one='')}"
        case Recurrence():
            return _rule(timetable.trigger)
        case _:
            assert_never(timetable.trigger)


def _cron(cron: Cron) -> str:
    """cronsim's explanation, its ordinals and its steps put into plainer words."""
    words = explain_cron(cron)
    words = words[0].lower() + words[1:]
    words = _STEP.sub(_plain_step, words)
    words = _NUMBERED.sub(lambda found: f"every {_ORDINALS.index(found[1]) + 1}th ", words)
    words = re.sub(r"\b(\d+)th\b", lambda found: _ordinal(int(found[1])), words)
    words = re.sub(r" on (\w+day) through (\w+day)", r", \1 to \2", words)
    words = words.replace(" through ", " to ").replace("of every month", "of the month")
    return words.replace("day of month", "day of the month")


def _plain_step(found: re.Match[str]) -> str:
    word, unit = found[1], found[2]
    step = _ORDINALS.index(word) + 1 if word in _ORDINALS else int(word.removesuffix("th"))
    return f"every {step} {unit}s" if unit in ("second", "minute") and 60 % step == 0 else found[0]


def _ordinal(number: int) -> str:
    ending = "th" if 10 < number % 100 < 20 else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number}{ending}"


def _rule(recurrence: Recurrence) -> str:
    """The parts that most rules have in words, the others by their names. What a rule leaves open of the time of day
    is its start's."""
    parts = dict(pair.split("=") for pair in recurrence.rule.split(";"))
    unit, interval = _RULE_UNITS[parts.pop("FREQ")], int(parts.pop("INTERVAL", 1))
    words = f"every {unit}" if interval == 1 else f"every {interval} {unit}s"
    count = parts.pop("COUNT", None)
    anchor = recurrence.anchor
    defaults = {"BYHOUR": anchor // 3600 % 24, "BYMINUTE": anchor // 60 % 60, "BYSECOND": anchor % 60}
    time = [parts.get(name, str(default)) for name, default in defaults.items()]
    if unit in ("day", "week", "month", "year") and all(value.isdigit() for value in time):
        words += f" at {':'.join(value.zfill(2) for value in (time if int(time[2]) else time[:2]))}"
        parts = {name: value for name, value in parts.items() if name not in defaults}
    if "BYDAY" in parts:
        words += f" on {_and([_rule_day(day) for day in parts.pop('BYDAY').split(',')])}"
    if "BYMONTHDAY" in parts:
        days = [_place(int(day)) for day in parts.pop("BYMONTHDAY").split(",")]
        words += f" on the {_and(days)} day of the month"
    if parts:
        words += f" where {_and([f'{name} is {value}' for name, value in parts.items()])}"
    return words if count is None else f"{words}, {count} times"


def _rule_day(day: str) -> str:
    name, place = _RULE_DAYS[day[-2:]], day[:-2]
    return f"the {_place(int(place))} {name}" if place else name


def _place(number: int) -> str:
    if number > 0:
        return _ordinal(number)
    return "last" if number == -1 else f"{_ordinal(-number)} last"


def _and(words: list[str]) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"


def _length(length: Micros, *, one: str = "1 ") -> str:
    """A duration in its largest unit that keeps it whole."""
    for size, unit in _UNITS:
        if length % size == 0:
            number = length // size
            return f"{one}{unit}" if number == 1 else f"{number} {unit}s"
    return f"{length / 1000:g} milliseconds" if length < SECOND else f"{length / SECOND:g} seconds"


def _zone(timetable: Timetable) -> list[str]:
    if isinstance(timetable.trigger, Every) and timetable.calendar is None:
        return []
    return ["UTC" if timetable.timezone == "UTC" else f"{timetable.timezone} time"]


def _calendar(timetable: Timetable) -> list[str]:
    if timetable.calendar is None or not (closings := _closings(timetable.calendar)):
        return []
    if timetable.on_holiday == "skip":
        return [f"not on {_and(closings)}"]
    return [f"moved to the {timetable.on_holiday} business day from {_and(closings)}"]


def _closings(calendar: Calendar) -> list[str]:
    closings = []
    if calendar.weekend in (None, _WEEKEND):
        closings.append("weekends")
    else:
        closings += [f"{_WEEKDAYS[day]}s" for day in calendar.weekend or ()]
    if calendar.country is not None:
        part = calendar.subdivision and f" ({subdivision_name(calendar.country, calendar.subdivision)})"
        closings.append(f"holidays of {country_names()[calendar.country]}{part or ''}")
    if calendar.closed:
        closings.append("1 further date" if len(calendar.closed) == 1 else f"{len(calendar.closed)} further dates")
    return closings


def _bounds(timetable: Timetable) -> list[str]:
    bounds = []
    if timetable.start is not None:
        bounds.append(f"from {local_time(timetable.timezone, timetable.start)}")
    ends = [timetable.end, timetable.trigger.until if isinstance(timetable.trigger, Recurrence) else None]
    if given := [end for end in ends if end is not None]:
        bounds.append(f"until {local_time(timetable.timezone, min(given))}")
    if timetable.max_runs is not None:
        bounds.append("1 run" if timetable.max_runs == 1 else f"at most {timetable.max_runs} runs")
    return bounds


def _jitter(timetable: Timetable) -> list[str]:
    return [f"each up to {_length(timetable.jitter)} later"] if timetable.jitter else []
