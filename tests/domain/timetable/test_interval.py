"""`every`: arithmetic."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from foliot.domain.errors import BadInput
from foliot.domain.timetable.interval import Every, count_beats, next_beat, parse_every, previous_beat


@given(
    interval=st.integers(1, 50),
    anchor=st.integers(-100, 100),
    runs_at_anchor=st.booleans(),
    first=st.integers(-200, 300),
    length=st.integers(-5, 200),
)
def test_beats_are_those_one_counts_up_to(
    interval: int, anchor: int, runs_at_anchor: bool, first: int, length: int
) -> None:
    every = Every(interval, anchor, runs_at_anchor)
    beats = [anchor + step * interval for step in range(0 if runs_at_anchor else 1, 600)]
    last = first + length
    assert next_beat(every, first) == min(beat for beat in beats if beat >= first)
    assert previous_beat(every, first) == max((beat for beat in beats if beat <= first), default=None)
    assert count_beats(every, first, last) == sum(first <= beat <= last for beat in beats)


def test_the_first_run_is_at_the_start_or_an_interval_after_creation() -> None:
    assert parse_every("5m", start=7, created=1).first == 7
    assert parse_every(60, start=None, created=1).first == 60_000_001


@pytest.mark.parametrize("value", [0, "0s", 0.099999, "99ms", -1, "soon"])
def test_what_is_shorter_than_100_ms_is_refused(value: float | str) -> None:
    with pytest.raises(BadInput, match=r"^every: "):
        parse_every(value, start=None, created=0)
    assert parse_every("100ms", start=None, created=0).interval == 100_000
