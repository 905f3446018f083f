"""Rules of RFC 5545, against dateutil unrolled from the very start."""

from datetime import UTC, datetime
from itertools import takewhile

import pytest
from dateutil.rrule import rrulestr
from hypothesis import given, settings
from hypothesis import strategies as st

from foliot.domain.errors import BadInput
from foliot.domain.timetable.recurrence import LARGEST_COUNT, Recurrence, parse_rrule, rule_walls
from tests.domain.timetable.timetables import NOW, at

RULES = [
    "FREQ=YEARLY",
    "FREQ=YEARLY;INTERVAL=3;BYMONTH=1,6;BYDAY=2MO,-1FR",
    "FREQ=YEARLY;BYYEARDAY=1,100,-1",
    "FREQ=YEARLY;BYWEEKNO=1,20;BYDAY=MO",
    "FREQ=MONTHLY",
    "FREQ=MONTHLY;INTERVAL=5",
    "FREQ=MONTHLY;BYDAY=MO,TU,WE,TH,FR;BYSETPOS=-1",
    "FREQ=MONTHLY;BYMONTHDAY=-1,15;BYHOUR=9,17;BYMINUTE=0",
    "FREQ=WEEKLY;INTERVAL=2;WKST=SU;BYDAY=TU,SU",
    "FREQ=WEEKLY;INTERVAL=2;WKST=MO;BYDAY=TU,SU",
    "FREQ=DAILY;INTERVAL=10",
    "FREQ=DAILY;BYMONTH=1;BYDAY=MO",
    "FREQ=HOURLY;INTERVAL=7",
    "FREQ=HOURLY;INTERVAL=5;BYDAY=MO,FR;BYMONTH=2,3",
    "FREQ=HOURLY;BYHOUR=9,10;BYMINUTE=15,45;BYMONTHDAY=1,-1",
    "FREQ=MINUTELY;INTERVAL=95;BYHOUR=3,4",
    "FREQ=MINUTELY;INTERVAL=1440;BYYEARDAY=60",
    "FREQ=DAILY;COUNT=7",
    "FREQ=HOURLY;INTERVAL=5;BYDAY=WE;COUNT=9",
]
STARTS = ["2024-01-31T10:20:30", "2024-02-29T00:00:00", "2025-07-01T23:59:59"]
END = datetime(2029, 1, 1, tzinfo=UTC).replace(tzinfo=None)


def wall(text: str) -> int:
    return at(text) // 1_000_000


@pytest.mark.parametrize("start", STARTS)
@pytest.mark.parametrize("rule", RULES)
def test_a_rule_looked_up_anywhere_is_the_rule_unrolled_from_its_start(rule: str, start: str) -> None:
    begin = datetime.fromisoformat(start)
    expected = [
        int(when.replace(tzinfo=UTC).timestamp()) for when in takewhile(END.__gt__, rrulestr(rule, dtstart=begin))
    ]
    walls = rule_walls(Recurrence(rule, wall(start)))
    places = [0, 1, len(expected) // 2, len(expected) - 2]
    for place in {place for place in places if 0 <= place < len(expected) - 1}:
        here, there = expected[place], expected[place + 1]
        assert walls.next(here) == here
        assert walls.next(here + 1) == there
        assert walls.previous(there - 1) == here
        assert walls.previous(here) == here
        assert walls.count(here, there, 10) == 1
    assert walls.previous(wall(start) - 1) is None
    assert walls.next(wall("2020-01-01")) == expected[0]
    assert walls.count(wall("2020-01-01"), wall("2029-01-01"), 100) == min(len(expected), 100)


@settings(max_examples=8, deadline=None)
@given(when=st.integers(wall("2024-01-01"), wall("2036-01-01")))
@pytest.mark.parametrize(
    "rule", ["FREQ=SECONDLY;INTERVAL=7", "FREQ=SECONDLY;BYHOUR=9;BYMINUTE=0;BYSECOND=0,30;BYDAY=MO"]
)
def test_a_rule_by_seconds_is_as_quick_after_years(rule: str, when: int) -> None:
    walls = rule_walls(Recurrence(rule, wall("2024-01-01")))
    following, preceding = walls.next(when), walls.previous(when)
    assert following is not None
    assert walls.previous(following) == following
    assert preceding is None or walls.next(preceding + 1) == walls.next(when + 1 if preceding == when else when)


def test_a_counted_rule_ends() -> None:
    walls = rule_walls(Recurrence("FREQ=DAILY;COUNT=3", wall("2027-01-01")))
    assert walls.previous(wall("2030-01-01")) == wall("2027-01-03")
    assert walls.next(wall("2027-01-03") + 1) is None


def test_a_rule_that_matches_nothing_has_nothing_in_either_direction() -> None:
    assert rule_walls(Recurrence("FREQ=YEARLY;COUNT=3;BYMONTH=13", 0)).next(0) is None
    walls = rule_walls(Recurrence("FREQ=YEARLY;BYMONTH=13", 0))
    assert (walls.next(0), walls.previous(wall("2027-01-01")), walls.count(0, wall("2027-01-01"), 9)) == (None, None, 0)


def test_a_rule_without_a_start_begins_after_its_creation() -> None:
    rule = parse_rrule("FREQ=DAILY", start=None, created=NOW + 1, timezone="Europe/Madrid")
    assert rule.anchor == wall("2027-01-01T01:00:01")
    assert parse_rrule("FREQ=DAILY", start=NOW + 1, created=0, timezone="UTC").anchor == wall("2027-01-01T00:00:01")
    assert parse_rrule("FREQ=DAILY", start=NOW, created=0, timezone="UTC").anchor == wall("2027-01-01")


@pytest.mark.parametrize(
    ("until", "instant"),
    [
        ("20270110T083000Z", at("2027-01-10T08:30")),
        ("20270110T083000", at("2027-01-10T07:30")),
        ("20270110", at("2027-01-10T23:00") - 1),
        ("20270328T023000", at("2027-03-28T01:00")),
        ("99991231", at("9999-12-31T23:59:59") + 999_999),
    ],
)
def test_until_is_utc_or_a_wall_time_or_a_whole_day(until: str, instant: int) -> None:
    rule = parse_rrule(f"FREQ=DAILY;UNTIL={until}", start=NOW, created=0, timezone="Europe/Madrid")
    assert rule.until == instant
    assert rule.rule == "FREQ=DAILY"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "give one rule like"),
        ("DTSTART:20270101T000000Z\nRRULE:FREQ=DAILY", "its start is start_time"),
        ("FREQ=DAILY;FREQ=WEEKLY", "comes once"),
        ("FREQ=DAILY;COUNT=", "NAME=value"),
        ("COUNT=3", "FREQ is one of"),
        ("FREQ=OFTEN", "FREQ is one of"),
        ("FREQ=DAILY;COUNT=0", "COUNT is a whole number from 1"),
        (f"FREQ=DAILY;COUNT={LARGEST_COUNT + 1}", "COUNT is a whole number from 1"),
        ("FREQ=DAILY;INTERVAL=0", "INTERVAL is a whole number"),
        ("FREQ=DAILY;INTERVAL=-1", "INTERVAL is a whole number"),
        ("FREQ=DAILY;INTERVAL=\u0662", "INTERVAL is a whole number"),
        ("FREQ=DAILY;COUNT=3;UNTIL=20280101", "both UNTIL and COUNT"),
        ("FREQ=DAILY;UNTIL=tomorrow", "UNTIL is a time like"),
        ("FREQ=DAILY;BYEASTER=1", "not of RFC 5545"),
        ("FREQ=DAILY;BYMOON=1", "BYMOON"),
        ("FREQ=DAILY;BYDAY=1MO", "goes with FREQ=MONTHLY"),
        ("FREQ=DAILY;BYDAY=XX", "BYDAY"),
        ("FREQ=DAILY;BYHOUR=25", "hour must be in 0..23"),
        ("FREQ=HOURLY;BYMINUTE=75", "minute must be in 0..59"),
        ("FREQ=HOURLY;BYSETPOS=2", "BYSETPOS goes with FREQ=DAILY"),
        ("FREQ=HOURLY;INTERVAL=2;BYHOUR=1", "empty"),
        ("FREQ=DAILY;BYMONTH=2;BYMONTHDAY=30", "can never fire"),
        ("FREQ=SECONDLY;BYHOUR=9;BYMONTH=13", "can never fire"),
        ("FREQ=DAILY;BYMONTHDAY=" + "1," * 300 + "1", "longer than 512"),
    ],
)
def test_what_is_no_rule_is_refused(text: str, message: str) -> None:
    with pytest.raises(BadInput, match=r"^rrule: ") as caught:
        parse_rrule(text, start=NOW, created=0, timezone="UTC")
    assert message in caught.value.detail


def test_a_rule_that_comes_again_only_after_the_horizon_has_no_next() -> None:
    walls = rule_walls(parse_rrule("FREQ=YEARLY;INTERVAL=60", start=NOW, created=0, timezone="UTC"))
    assert walls.next(wall("2027-01-01")) == wall("2027-01-01")
    assert walls.next(wall("2027-01-02")) is None
    assert walls.previous(wall("2086-12-31")) == wall("2027-01-01")
