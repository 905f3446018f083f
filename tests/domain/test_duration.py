"""Durations as the API takes and shows them."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from foliot.domain.duration import (
    DAY,
    HOUR,
    LONGEST,
    MINUTE,
    SECOND,
    parse_duration,
    show_duration,
    write_duration,
)
from foliot.domain.errors import BadInput


@pytest.mark.parametrize(
    ("value", "micros"),
    [
        (0, 0),
        (30, 30 * SECOND),
        (0.25, 250_000),
        ("7us", 7),
        ("250ms", 250_000),
        ("30s", 30 * SECOND),
        ("5m", 5 * MINUTE),
        ("2h", 2 * HOUR),
        ("1d", DAY),
        ("1.5h", 90 * MINUTE),
        ("36500d", LONGEST),
        (100 * 365 * 86400, LONGEST),
    ],
)
def test_a_duration_is_seconds_or_a_short_string(value: float | str, micros: int) -> None:
    assert parse_duration(value, "timeout") == micros


@pytest.mark.parametrize(
    "value",
    [
        *(-1, -0.001, math.nan, math.inf, -math.inf),
        *("", "5", "s", "5 s", "-5s", "5S", "1h30m", "1e3s", "5s\n", ".5s", "5.s", "\u0665s", "1234567890123s"),
        *("36501d", 3_153_600_001, 1e300, 10**400, "999999999999d"),
    ],
)
def test_what_is_no_duration_is_refused_by_the_name_of_its_field(value: float | str) -> None:
    with pytest.raises(BadInput) as caught:
        parse_duration(value, "retry.initial")
    (error,) = caught.value.errors
    assert error.field == "retry.initial"
    assert caught.value.detail == f"retry.initial: {error.message}"


@given(micros=st.integers(0, LONGEST))
def test_a_shown_duration_reads_back(micros: int) -> None:
    shown = show_duration(micros)
    assert parse_duration(shown, "timeout") == micros


def test_whole_seconds_are_shown_whole() -> None:
    assert repr(show_duration(90 * SECOND)) == "90"
    assert repr(show_duration(SECOND // 2)) == "0.5"


@pytest.mark.parametrize("text", ["1us", "250ms", "90s", "5m", "36h", "2d"])
def test_a_duration_is_written_as_it_may_be_given(text: str) -> None:
    assert write_duration(parse_duration(text, "x")) == text
