"""Business days, against a brute walk through the days and the holidays themselves."""

from collections.abc import Mapping
from datetime import date, timedelta
from typing import Any

import holidays
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from foliot.domain.errors import BadInput
from foliot.domain.timetable.calendar import (
    OnHoliday,
    OnOpenDays,
    closed_days,
    country_names,
    daily_on_open_days,
    days_behind,
    is_closed,
    moved_to,
    parse_calendar,
    subdivision_name,
    why_closed,
)
from foliot.domain.timetable.cron import cron_walls, parse_cron
from foliot.domain.timetable.recurrence import Recurrence, rule_walls
from foliot.domain.timetable.zone import day_of

DAY = 86_400
MADRID = {"country": "ES", "subdivision": "MD", "weekend": ["sat", "sun"], "except": ["2027-12-24"]}
CALENDARS: list[Mapping[str, Any]] = [
    MADRID,
    {"country": "CN"},
    {"country": "IL", "subdivision": None},
    {"weekend": []},
    {},
    {"weekend": ["fri", "mon"], "except": ["2027-03-02", "2027-03-03", "2027-03-04"]},
]
FIRST, LAST = date(2026, 12, 1), date(2028, 3, 1)


def is_open(calendar: Mapping[str, Any], day: date) -> bool:
    """Said once more, in other words than the code's."""
    weekend = calendar.get("weekend")
    if "country" in calendar:
        country = holidays.country_holidays(calendar["country"], subdiv=calendar.get("subdivision"))
        if day in country:
            return False
        if weekend is None and not country.is_working_day(day):
            return False
    elif weekend is None:
        weekend = ["sat", "sun"]
    return f"{day:%a}".lower() not in (weekend or []) and day.isoformat() not in calendar.get("except", [])


@pytest.mark.parametrize("calendar", CALENDARS, ids=str)
def test_a_day_is_open_or_closed(calendar: Mapping[str, Any]) -> None:
    parsed = parse_calendar(calendar)
    day = FIRST
    while day < LAST:
        assert is_closed(parsed, day_of(day)) is not is_open(calendar, day), day
        day += timedelta(days=1)


@pytest.mark.parametrize("on_holiday", ["skip", "next", "previous"])
@pytest.mark.parametrize("calendar", CALENDARS, ids=str)
def test_runs_are_moved_from_closed_days_and_meet(calendar: Mapping[str, Any], on_holiday: OnHoliday) -> None:
    """A cron and a rule that mean the same, each moved in its own way, and both by hand."""
    parsed = parse_calendar(calendar)
    expression, rule = "15 9,17 1,2,28 * SAT", "FREQ=DAILY;BYHOUR=9,17;BYMINUTE=15;BYSECOND=0"
    dates = [FIRST + timedelta(days=step) for step in range((LAST - FIRST).days)]
    step = {"skip": 0, "next": 1, "previous": -1}[on_holiday]
    expected = set()
    for day in (day for day in dates if day.day in (1, 2, 28) or day.weekday() == 5):
        target = day
        while step and not is_open(calendar, target):
            target += timedelta(days=step)
        if is_open(calendar, target):
            expected |= {day_of(target) * DAY + hour * 3600 + 900 for hour in (9, 17)}
    plain = cron_walls(parse_cron(expression))
    begin, end = day_of(FIRST + timedelta(days=20)) * DAY, day_of(LAST - timedelta(days=20)) * DAY
    wanted = sorted(wall for wall in expected if begin <= wall < end)
    for walls in (daily_on_open_days(plain, parsed, on_holiday), OnOpenDays(plain, parsed, on_holiday)):
        assert _forward(walls, begin, end) == wanted
        assert _backward(walls, begin, end) == wanted
        assert walls.count(begin, end, 100_000) == len(wanted)
    daily = OnOpenDays(rule_walls(Recurrence(rule, begin - 40 * DAY)), parsed, on_holiday)
    every_open_day = [
        day_of(day) * DAY + hour * 3600 + 900 for day in dates if is_open(calendar, day) for hour in (9, 17)
    ]
    assert _forward(daily, begin, end) == [wall for wall in every_open_day if begin <= wall < end]


def _forward(walls: Any, begin: int, end: int) -> list[int]:
    found, wall = [], walls.next(begin)
    while wall is not None and wall < end:
        found.append(wall)
        wall = walls.next(wall + 1)
    return found


def _backward(walls: Any, begin: int, end: int) -> list[int]:
    found, wall = [], walls.previous(end - 1)
    while wall is not None and wall >= begin:
        found.append(wall)
        wall = walls.previous(wall - 1)
    return found[::-1]


@settings(max_examples=50)
@given(day=st.integers(day_of(FIRST), day_of(LAST)), on_holiday=st.sampled_from(["next", "previous"]))
def test_the_days_behind_an_open_day_are_those_moved_to_it(day: int, on_holiday: OnHoliday) -> None:
    calendar = parse_calendar(MADRID)
    target = moved_to(calendar, on_holiday, day)
    assert target is not None
    assert not is_closed(calendar, target)
    assert day in list(days_behind(calendar, on_holiday, target))


def test_a_run_is_left_out_where_all_is_closed_for_a_year() -> None:
    dates = [(date(2027, 1, 1) + timedelta(days=step)).isoformat() for step in range(999)]
    closed = parse_calendar({"weekend": [], "except": dates})
    middle = day_of(date(2028, 6, 1))
    assert moved_to(closed, "next", middle) is None
    assert moved_to(closed, "previous", middle) is None
    rule = rule_walls(Recurrence("FREQ=DAILY", day_of(date(2027, 2, 1)) * DAY))
    assert OnOpenDays(rule, closed, "next").next(middle * DAY) == day_of(date(2029, 9, 26)) * DAY
    assert OnOpenDays(rule, closed, "previous").previous(middle * DAY) == day_of(date(2026, 12, 31)) * DAY
    assert OnOpenDays(rule, closed, "skip").previous(middle * DAY) is None


def test_what_is_always_closed_has_no_next() -> None:
    saturdays = rule_walls(Recurrence("FREQ=WEEKLY;BYDAY=SA", 0))
    assert OnOpenDays(saturdays, parse_calendar({}), "skip").next(0) is None
    counted = OnOpenDays(rule_walls(Recurrence("FREQ=DAILY;COUNT=2", 0)), parse_calendar({}), "next")
    assert (counted.next(DAY), counted.next(2 * DAY)) == (DAY, None)


def test_a_closed_day_says_why() -> None:
    calendar = parse_calendar(MADRID)
    reasons = [why_closed(calendar, day_of(day)) for day in (date(2027, 3, 26), date(2027, 3, 27), date(2027, 12, 24))]
    assert reasons == ["a holiday (Good Friday)", "a weekend day", "an excepted date"]
    assert day_of(date(2027, 3, 24)) not in closed_days(calendar, 2027)


def test_countries_and_their_parts_have_names() -> None:
    assert country_names()["US"] == country_names()["USA"] == "United States"
    assert subdivision_name("ES", "MD") == "Madrid"
    assert subdivision_name("ES", "??") == "??"


@pytest.mark.parametrize(
    ("calendar", "field", "message"),
    [
        ({"land": "ES"}, "calendar.land", "use country, subdivision, weekend, except"),
        ({"country": "XX"}, "calendar.country", "ISO 3166"),
        ({"country": "HolidayBase"}, "calendar.country", "ISO 3166"),
        ({"country": 34}, "calendar.country", "ISO 3166"),
        ({"country": ["ES"]}, "calendar.country", "ISO 3166"),
        ({"subdivision": "MD"}, "calendar.subdivision", "needs a country"),
        ({"country": "ES", "subdivision": "ZZ"}, "calendar.subdivision", "use one of AN, AR"),
        ({"country": "VA", "subdivision": "X"}, "calendar.subdivision", "VA has none"),
        ({"weekend": "sat"}, "calendar.weekend", "mon, tue, wed"),
        ({"weekend": ["Sat"]}, "calendar.weekend", "mon, tue, wed"),
        ({"weekend": ["mon", "tue", "wed", "thu", "fri", "sat", "sun"]}, "calendar.weekend", "closes every day"),
        ({"except": "2027-12-24"}, "calendar.except", "a list of up to 1000 dates"),
        ({"except": ["2027-12-24"] * 1001}, "calendar.except", "a list of up to 1000 dates"),
        ({"except": ["24.12.2027"]}, "calendar.except", "use the form 2027-12-24"),
        ({"except": [20271224]}, "calendar.except", "use the form 2027-12-24"),
    ],
)
def test_what_is_no_calendar_is_refused(calendar: dict[str, Any], field: str, message: str) -> None:
    with pytest.raises(BadInput) as caught:
        parse_calendar(calendar)
    (error,) = caught.value.errors
    assert error.field == field
    assert message in error.message
