"""Cron expressions: what they mean, against cronsim's own walk through a time without a zone."""

from collections.abc import Iterator
from datetime import UTC, datetime
from itertools import islice

import pytest
from cronsim import CronSim
from hypothesis import given, settings
from hypothesis import strategies as st

from foliot.domain.errors import BadInput
from foliot.domain.timetable.cron import NAMES, Cron, cron_walls, parse_cron
from foliot.domain.timetable.wall_time import count_one_by_one
from tests.domain.timetable.timetables import at

EXPRESSIONS = [
    "* * * * *",
    "*/7 3-5 * * *",
    "0 9 LW * *",
    "30 9 L 2,4 *",
    "0 0 13 * FRI",
    "0 12 * * 5L",
    "15 6 * * MON#2,WED#5",
    "0 0 29 2 *",
    "5,10 0,23 1-7 jan-mar sun",
    "*/20 */20 */6 * * *",
    "30 59 23 31 12 *",
]


def wall(text: str) -> int:
    return at(text) // 1_000_000


def cronsim(expression: str, from_: int, *, reverse: bool = False) -> Iterator[int]:
    start = datetime.fromtimestamp(from_, UTC).replace(tzinfo=None)
    for when in CronSim(expression, start, reverse=reverse):
        yield int(when.replace(tzinfo=UTC).timestamp())


@pytest.mark.parametrize("expression", EXPRESSIONS)
@settings(max_examples=40, deadline=None)
@given(start=st.integers(wall("2020-01-01"), wall("2037-12-31")))
def test_the_next_and_the_previous_are_those_of_cronsim(expression: str, start: int) -> None:
    walls = cron_walls(parse_cron(expression))
    later = list(islice(cronsim(expression, start - 1), 5))
    earlier = list(islice(cronsim(expression, start + 1, reverse=True), 5))
    found, wanted = [walls.next(start)], [walls.previous(start)]
    for _ in range(4):
        found.append(walls.next((found[-1] or 0) + 1))
        wanted.append(walls.previous((wanted[-1] or 0) - 1))
    assert (found, wanted) == (later, earlier)


@pytest.mark.parametrize("expression", EXPRESSIONS)
@given(first=st.integers(wall("2026-12-01"), wall("2028-03-01")), length=st.integers(0, 90_000))
def test_counting_by_days_is_counting_one_by_one(expression: str, first: int, length: int) -> None:
    walls = cron_walls(parse_cron(expression))
    expected = count_one_by_one(walls, first, first + length, 100_000)
    assert walls.count(first, first + length, 1) == expected


@pytest.mark.parametrize(
    ("expression", "real"),
    [
        ("*/5 9 * * *", True),
        ("0 * * * *", True),
        ("0 */2 * * *", True),
        ("0,*/20 2 * * *", True),
        ("0 0-23 * * *", False),
        ("0 2 * * *", False),
        ("* 30 2 * * *", False),
        ("0 * 2 * * *", True),
    ],
)
def test_a_star_for_minute_or_hour_follows_real_time(expression: str, real: bool) -> None:
    assert parse_cron(expression).follows_real_time is real


def test_names_stand_for_expressions() -> None:
    assert [parse_cron(name).expression for name in NAMES] == list(NAMES.values())
    assert parse_cron(" @Hourly ") == Cron("0 * * * *")
    assert parse_cron("0  9\t* * *") == Cron("0 9 * * *")


def test_a_cron_that_comes_after_more_than_fifty_years_never_comes() -> None:
    walls = cron_walls(parse_cron("0 0 */31 2 MON#5"))  # the first of a month is never its fifth Monday
    assert walls.next(wall("2027-01-01")) is None
    assert walls.previous(wall("2027-01-01")) is None


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        ("", "has 0 fields"),
        ("* * * *", "has 4 fields"),
        ("* * * * * * *", "has 7 fields"),
        ("60 * * * *", "bad minute"),
        ("* 24 * * *", "bad hour"),
        ("* * * * FRI-MON", "bad day-of-week"),
        ("*/0 * * * *", "bad minute"),
        ("0 0 32 * *", "bad day-of-month"),
        ("0 0 31 2 *", "can never fire"),
        ("0 0 31 4,6,9,11 *", "can never fire"),
        ("@reboot", "not a known name; use one of @hourly"),
        ("1," * 200 + "1 * * * *", "longer than 256"),
    ],
)
def test_what_is_no_cron_is_refused(expression: str, message: str) -> None:
    with pytest.raises(BadInput, match=r"^cron: ") as caught:
        parse_cron(expression)
    assert message in caught.value.detail


@given(text=st.text(st.sampled_from("0159*/-,#LW @ANFRIMOJ"), max_size=24) | st.text(max_size=24))
def test_any_text_is_a_cron_or_bad_input(text: str) -> None:
    try:
        cron = parse_cron(text)
    except BadInput:
        return
    assert parse_cron(cron.expression) == cron
