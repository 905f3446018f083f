"""What is due: bounds, order, and counts that cost nothing."""

from itertools import islice, pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from foliot.domain.duration import DAY, HOUR, MINUTE
from foliot.domain.timetable.due_times import (
    due_times,
    jitter_of,
    next_after,
    nominal_walls,
    previous_at_or_before,
    tally,
    timetable_walls,
)
from tests.domain.timetable.timetables import NOW, at, shown, table

TABLES: list[dict[str, Any]] = [
    {"cron": "*/40 8-18 * * 1-5", "timezone": "Europe/Madrid"},
    {"cron": "15 2,3 * * *", "timezone": "America/Santiago"},
    {"cron": "0 9 L * *", "calendar": {"country": "ES"}, "on_holiday": "previous", "timezone": "Europe/Madrid"},
    {"every": "7h", "start_time": NOW},
    {"every": "45m", "calendar": {"country": "ES"}, "timezone": "Europe/Madrid"},
    {"rrule": "FREQ=HOURLY;INTERVAL=5;BYDAY=MO,SU", "start_time": NOW, "timezone": "Europe/Madrid"},
    {"rrule": "FREQ=DAILY;BYHOUR=2", "calendar": {}, "on_holiday": "next", "start_time": NOW},
]


@pytest.mark.parametrize("fields", TABLES, ids=str)
@settings(max_examples=40, deadline=None)
@given(after=st.integers(NOW, at("2027-12-01")), length=st.integers(0, 20 * DAY))
def test_next_previous_range_and_tally_agree(fields: dict[str, Any], after: int, length: int) -> None:
    timetable = table(**fields)
    found = list(due_times(timetable, after, after + length))
    assert all(one < other for one, other in pairwise(found))
    for one, other in pairwise(found):
        assert previous_at_or_before(timetable, other - 1) == one
        assert previous_at_or_before(timetable, one) == one
    counted = tally(timetable, after, after + length)
    ends = (found[0], found[-1]) if found else (None, None)
    assert (counted.count, counted.exact, counted.first, counted.last) == (len(found), True, *ends)


def test_bounds_are_included() -> None:
    timetable = table(cron="@daily", start_time=at("2027-01-03"), end_time=at("2027-01-05"))
    assert shown(list(due_times(timetable, 0))) == ["2027-01-03 00:00", "2027-01-04 00:00", "2027-01-05 00:00"]
    assert previous_at_or_before(timetable, at("2030-01-01")) == at("2027-01-05")
    assert previous_at_or_before(timetable, at("2027-01-03") - 1) is None
    assert tally(timetable, 0, at("2030-01-01")).count == 3


def test_runs_end_with_max_runs() -> None:
    timetable = table(cron="@daily", max_runs=5)
    assert len(list(due_times(timetable, NOW))) == 5
    assert len(list(due_times(timetable, NOW, runs=3))) == 2
    assert next_after(timetable, NOW, runs=5) is None


def test_a_start_between_two_seconds_begins_with_the_next_due_time() -> None:
    assert next_after(table(cron="* * * * * *", start_time=NOW + 1), 0) == NOW + 1_000_000
    assert next_after(table(every="100ms", start_time=NOW + 1), 0) == NOW + 1


def test_a_rule_ends_with_until() -> None:
    timetable = table(rrule="FREQ=DAILY;UNTIL=20270103T000000Z", start_time=NOW, end_time=at("2028-01-01"))
    assert len(list(due_times(timetable, 0))) == 3
    assert previous_at_or_before(timetable, at("2027-06-01")) == at("2027-01-03")


def test_a_schedule_away_for_ten_years_is_counted_exactly() -> None:
    begin, end = NOW, at("2037-01-01")
    assert tally(table(cron="* * * * * *", timezone="Europe/Madrid"), begin, end).count == (end - begin) // 1_000_000
    assert tally(table(every="100ms"), begin, end).count == (end - begin) // 100_000
    closed = table(every="100ms", calendar={"weekend": ["sun"]})
    assert tally(closed, begin, end).count == 10 * ((end - begin) // 1_000_000 - 522 * 86_400)


def test_what_is_counted_one_by_one_ends_at_a_limit() -> None:
    rule = table(rrule="FREQ=MINUTELY", start_time=NOW)
    assert tally(rule, NOW, NOW + 10 * MINUTE, limit=10) == tally(rule, NOW, NOW + 10 * MINUTE)
    counted = tally(rule, NOW, NOW + DAY, limit=10)
    assert (counted.count, counted.exact, counted.last) == (10, False, NOW + DAY)
    assert tally(rule, NOW, at("2030-01-01")).count == 10_000


def test_due_times_come_one_at_a_time() -> None:
    assert shown(list(islice(due_times(table(every="1h"), NOW), 2))) == ["2027-01-01 01:00", "2027-01-01 02:00"]


def test_nothing_is_due_after_the_last_year() -> None:
    assert next_after(table(cron="@daily"), at("3051-01-01")) is None
    assert next_after(table(cron="@daily"), at("3050-12-31")) is None
    assert next_after(table(every="1d", calendar={}), at("3051-01-01")) is None
    assert previous_at_or_before(table(cron="@daily"), -1) is None
    assert previous_at_or_before(table(every="1d", calendar={}), NOW) is None
    assert tally(table(cron="@daily"), at("3050-12-30") - 1, at("3051-06-01")).count == 2
    assert tally(table(every="1d", calendar={"weekend": []}), at("3050-12-30") - 1, at("3051-06-01")).count == 2


def test_nothing_is_due_before_1970() -> None:
    assert previous_at_or_before(table(cron="@daily", timezone="Europe/Madrid"), 30 * MINUTE) is None
    closed = {"except": ["1970-01-01", "1970-01-02"]}
    assert previous_at_or_before(table(every="1d", start_time=0, calendar=closed), at("1970-01-04")) is None


def test_jitter_is_the_same_every_time_and_within_its_bounds() -> None:
    timetable = table(cron="@hourly", jitter="10m")
    moved = [jitter_of(timetable, "nightly", NOW + step * HOUR) for step in range(500)]
    assert moved == [jitter_of(timetable, "nightly", NOW + step * HOUR) for step in range(500)]
    assert 0 <= min(moved) < MINUTE
    assert 9 * MINUTE < max(moved) <= 10 * MINUTE
    assert moved[0] != jitter_of(timetable, "hourly", NOW)
    assert jitter_of(table(cron="@hourly"), "nightly", NOW) == 0


def test_every_has_no_wall_times() -> None:
    with pytest.raises(TypeError):
        nominal_walls(table(every=60))
    assert timetable_walls(table(cron="@daily")) is nominal_walls(table(cron="@daily"))


def test_asked_from_within_the_hour_that_comes_twice_the_last_run_was_in_its_first_pass() -> None:
    timetable = table(cron="30 2 * * *", timezone="Europe/Madrid")
    second_pass = at("2026-10-25T01:10:00Z")  # 02:10 for the second time
    assert previous_at_or_before(timetable, second_pass) == at("2026-10-25T00:30:00Z")


def test_in_an_hour_that_is_shown_again_the_last_due_time_is_that_of_its_first_showing() -> None:
    daily = table(cron="30 2 * * *", timezone="Europe/Madrid")
    again = at("2026-10-25T01:10:00Z")  # 02:10 for the second time
    assert previous_at_or_before(daily, again) == at("2026-10-25T00:30:00Z")
