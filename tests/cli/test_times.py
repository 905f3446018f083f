"""Times as people type and read them."""

from datetime import UTC, datetime, timedelta, timezone

import click
import pytest

from foliot.cli.times import DURATION, TIME, read_clock, show_exact, show_moment, show_relative, show_span
from foliot.domain.duration import SECOND, parse_duration

NOON = datetime(2027, 3, 1, 12, tzinfo=UTC)


def test_a_time_with_an_offset_is_that_moment() -> None:
    assert TIME.convert("2027-03-01T13:00:00+01:00", None, None) == NOON


def test_a_time_without_an_offset_is_local() -> None:
    local = NOON.astimezone().replace(tzinfo=None)
    assert TIME.convert(local.isoformat(), None, None) == NOON


@pytest.mark.parametrize(("text", "span"), [("+10m", timedelta(minutes=10)), ("-2h", timedelta(hours=-2))])
def test_a_signed_duration_counts_from_now(text: str, span: timedelta) -> None:
    before = read_clock()
    time = TIME.convert(text, None, None)
    assert before + span <= time <= read_clock() + span


@pytest.mark.parametrize("text", ["tomorrow", "+10 minutes", "2027-13-01", ""])
def test_what_is_no_time_is_refused(text: str) -> None:
    with pytest.raises(click.BadParameter, match=r"no (time|duration)"):
        TIME.convert(text, None, None)


def test_a_duration_is_seconds_or_a_short_string() -> None:
    assert DURATION.convert("1.5", None, None) == 1.5
    assert DURATION.convert("5m", None, None) == "5m"
    for wrong in ("5 minutes", "-1", "nan"):
        with pytest.raises(click.BadParameter, match="no duration"):
            DURATION.convert(wrong, None, None)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0ms"),
        (0.25, "250ms"),
        (0.9996, "1.0s"),
        (9.94, "9.9s"),
        (9.96, "10s"),
        (59.6, "1m"),
        (61, "1m 1s"),
        (3600, "1h"),
        (86399.7, "1d"),
        (93600, "1d 2h"),
    ],
)
def test_a_span_is_shown_in_one_or_two_units(seconds: float, text: str) -> None:
    assert show_span(seconds) == text


@pytest.mark.parametrize("text", ["1d", "36h", "90m", "1s", "90s", "1.5s", "250ms", "0.5ms", "86400.5s"])
def test_an_exact_duration_is_shown_as_it_would_be_typed(text: str) -> None:
    assert show_exact(parse_duration(text, "x") / SECOND) == text


def test_a_moment_is_shown_local_and_relative() -> None:
    time = NOON.astimezone(timezone(timedelta(hours=5)))
    assert show_relative(time, NOON - timedelta(minutes=5)) == "in 5m"
    assert show_relative(time, NOON + timedelta(hours=2)) == "2h ago"
    assert show_moment(time, NOON) == f"{NOON.astimezone():%Y-%m-%d %H:%M:%S} (0ms ago)"
