"""Business days: weekends, holidays of a country and region (from the `holidays` package), dates of one's own.

A calendar closes whole days of a zone. A run that falls on a closed day is left out (`skip`), or moved to the same time
of the next or the previous day that is open. Runs that meet are one.
"""

import re
from collections.abc import Iterator, Mapping
from datetime import date
from functools import lru_cache
from typing import Any, Literal, get_args

import holidays
import msgspec
from holidays.registry import COUNTRIES

from foliot.domain.errors import BadInput
from foliot.domain.timetable.cron import DailyTimes
from foliot.domain.timetable.wall_time import HORIZON_DAYS, Walls, count_one_by_one
from foliot.domain.timetable.zone import DAY_SECONDS, Day, Wall, date_of, day_of

OnHoliday = Literal["skip", "next", "previous"]
ON_HOLIDAY: tuple[OnHoliday, ...] = get_args(OnHoliday)
WEEKDAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
MOST_DATES = 1000
_WEEKEND = (5, 6)
_LONGEST_CLOSURE = 366  # days; what is closed longer has no open day to move to
_LANGUAGE = "en_US"


class Calendar(msgspec.Struct, frozen=True, kw_only=True, cache_hash=True):
    """`weekend` holds days of the week, 0 is Monday; None is the country's own, with the weekend days on which it
    works. `closed` are further dates."""

    country: str | None = None
    subdivision: str | None = None
    weekend: tuple[int, ...] | None = None
    closed: tuple[date, ...] = ()


def parse_calendar(value: Mapping[str, Any]) -> Calendar:
    """A calendar from its fields in the API."""
    for name in value:
        if name not in ("country", "subdivision", "weekend", "except"):
            raise BadInput.at(f"calendar.{name}", "is not known; use country, subdivision, weekend, except")
    country, subdivision = value.get("country"), value.get("subdivision")
    _check_country(country, subdivision)
    weekend = _parse_weekend(value.get("weekend"))
    return Calendar(
        country=country,
        subdivision=subdivision,
        weekend=_WEEKEND if weekend is None and country is None else weekend,
        closed=_parse_dates(value.get("except")),
    )


@lru_cache(maxsize=2048)
def closed_days(calendar: Calendar, year: int) -> Mapping[Day, str]:
    """The closed days of a year and why each is closed."""
    found: dict[Day, str] = {}
    weekend, working = calendar.weekend, set[date]()
    if calendar.country is not None:
        country = holidays.country_holidays(
            calendar.country, subdiv=calendar.subdivision, years=year, expand=False, language=_LANGUAGE
        )
        if weekend is None:
            weekend, working = tuple(country.weekend), country.weekend_workdays
        found.update((day_of(when), f"a holiday ({name})") for when, name in country.items())
    for day in range(day_of(date(year, 1, 1)), day_of(date(year + 1, 1, 1))):
        when = date_of(day)
        if when.weekday() in (weekend or ()) and when not in working:
            found.setdefault(day, "a weekend day")
    found.update((day_of(when), "an excepted date") for when in calendar.closed if when.year == year)
    return found


def is_closed(calendar: Calendar, day: Day) -> bool:
    return day in closed_days(calendar, date_of(day).year)


def why_closed(calendar: Calendar, day: Day) -> str:
    return closed_days(calendar, date_of(day).year)[day]


def moved_to(calendar: Calendar, on_holiday: OnHoliday, day: Day) -> Day | None:
    """The day on which the runs of `day` take place; None where they are left out."""
    if not is_closed(calendar, day):
        return day
    if on_holiday == "skip":
        return None
    step = 1 if on_holiday == "next" else -1
    for other in range(day + step, day + step * _LONGEST_CLOSURE, step):
        if not is_closed(calendar, other):
            return other
    return None


def days_behind(calendar: Calendar, on_holiday: OnHoliday, day: Day) -> Iterator[Day]:
    """The days whose runs take place on `day`, an open one: itself, and the closed ones that are moved to it."""
    yield day
    if on_holiday != "skip":
        step = -1 if on_holiday == "next" else 1
        for other in range(day + step, day + step * _LONGEST_CLOSURE, step):
            if not is_closed(calendar, other):
                break
            yield other


def daily_on_open_days(times: DailyTimes, calendar: Calendar, on_holiday: OnHoliday) -> DailyTimes:
    """Times that are the same every day stay so: only the days change."""

    def runs_on(day: Day) -> bool:
        return not is_closed(calendar, day) and any(
            times.runs_on(other) for other in days_behind(calendar, on_holiday, day)
        )

    return times.on(runs_on)


class OnOpenDays:
    """Other wall times, moved as a calendar wants it."""

    def __init__(self, walls: Walls, calendar: Calendar, on_holiday: OnHoliday) -> None:
        self._walls, self._calendar, self._on_holiday = walls, calendar, on_holiday

    def next(self, wall: Wall) -> Wall | None:
        day = wall // DAY_SECONDS
        for target in self._targets(day):
            earliest = wall % DAY_SECONDS if target == day else 0
            found = [
                time
                for source in days_behind(self._calendar, self._on_holiday, target)
                if (time := self._first_on(source, earliest)) is not None
            ]
            if found:
                return target * DAY_SECONDS + min(found)
        return None

    def previous(self, wall: Wall) -> Wall | None:
        day = wall // DAY_SECONDS
        for target in self._targets_back(day):
            latest = wall % DAY_SECONDS if target == day else DAY_SECONDS - 1
            found = [
                time
                for source in days_behind(self._calendar, self._on_holiday, target)
                if (time := self._last_on(source, latest)) is not None
            ]
            if found:
                return target * DAY_SECONDS + max(found)
        return None

    def count(self, first: Wall, beyond: Wall, limit: int) -> int:
        return count_one_by_one(self, first, beyond, limit)

    def _targets(self, day: Day) -> Iterator[Day]:
        """The open days from `day` on that have a run, in order: moving keeps the order of days."""
        source, last = day, None
        while self._on_holiday == "next" and day - source < _LONGEST_CLOSURE and is_closed(self._calendar, source - 1):
            source -= 1
        while (wall := self._walls.next(source * DAY_SECONDS)) is not None:
            source = wall // DAY_SECONDS
            if source > day + HORIZON_DAYS:
                return
            target = moved_to(self._calendar, self._on_holiday, source)
            if target is not None and target >= day and target != last:
                yield target
                last = target
            source += 1

    def _targets_back(self, day: Day) -> Iterator[Day]:
        source, last = day, None
        while (
            self._on_holiday == "previous" and source - day < _LONGEST_CLOSURE and is_closed(self._calendar, source + 1)
        ):
            source += 1
        while (wall := self._walls.previous(source * DAY_SECONDS + DAY_SECONDS - 1)) is not None:
            source = wall // DAY_SECONDS
            target = moved_to(self._calendar, self._on_holiday, source)
            if target is not None and target <= day and target != last:
                yield target
                last = target
            source -= 1

    def _first_on(self, day: Day, earliest: int) -> int | None:
        wall = self._walls.next(day * DAY_SECONDS + earliest)
        return wall % DAY_SECONDS if wall is not None and wall // DAY_SECONDS == day else None

    def _last_on(self, day: Day, latest: int) -> int | None:
        wall = self._walls.previous(day * DAY_SECONDS + latest)
        return wall % DAY_SECONDS if wall is not None and wall // DAY_SECONDS == day else None


@lru_cache
def country_names() -> Mapping[str, str]:
    """The name of each country by its ISO codes of two and of three letters."""
    return {code: re.sub(r"(?<=[a-z])(?=[A-Z])", " ", name) for name, *codes in COUNTRIES.values() for code in codes}


def subdivision_name(country: str, subdivision: str) -> str:
    """What a country calls a part of itself, or the code where no name is known."""
    names = holidays.country_holidays(country).subdivisions_aliases
    return next((name for name, code in names.items() if code == subdivision), subdivision)


def _check_country(country: object, subdivision: object) -> None:
    if country is None:
        if subdivision is not None:
            raise BadInput.at("calendar.subdivision", "needs a country beside it")
        return
    if not isinstance(country, str) or country not in country_names():
        raise BadInput.at("calendar.country", f"{country!r} is not known; use an ISO 3166 code such as ES or US")
    known = holidays.country_holidays(country)
    allowed = sorted({*known.subdivisions, *known.subdivisions_aliases})
    if subdivision is not None and subdivision not in allowed:
        listed = f"use one of {', '.join(sorted(known.subdivisions))}" if allowed else f"{country} has none"
        raise BadInput.at("calendar.subdivision", f"{subdivision!r} is not known; {listed}")


def _parse_weekend(value: object) -> tuple[int, ...] | None:
    if value is None:
        return None
    if not isinstance(value, list | tuple) or not all(day in WEEKDAYS for day in value):
        raise BadInput.at("calendar.weekend", f"is a list of days out of {', '.join(WEEKDAYS)}")
    if len(days := {WEEKDAYS.index(day) for day in value}) == len(WEEKDAYS):
        raise BadInput.at("calendar.weekend", "closes every day; leave at least one open")
    return tuple(sorted(days))


def _parse_dates(value: object) -> tuple[date, ...]:
    if value is None:
        return ()
    if not isinstance(value, list | tuple) or len(value) > MOST_DATES:
        raise BadInput.at("calendar.except", f"is a list of up to {MOST_DATES} dates")
    dates = set()
    for text in value:
        try:
            dates.add(msgspec.convert(text, date))
        except msgspec.ValidationError:
            raise BadInput.at("calendar.except", f"{text!r} is not a date; use the form 2027-12-24") from None
    return tuple(sorted(dates))
