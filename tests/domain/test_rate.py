"""How many may start in a time, whatever comes when."""

import itertools
from bisect import bisect_right

from hypothesis import given
from hypothesis import strategies as st

from foliot.domain.duration import HOUR, MINUTE, SECOND
from foliot.domain.rate import NANOS, RateLimit, after_starts, carried_over, may_start, next_start

NOW = 1_750_000_000 * SECOND

RATES = st.builds(
    RateLimit,
    limit=st.integers(1, 50),
    per=st.one_of(st.integers(1, 200), st.integers(1, HOUR)),
    burst=st.integers(0, 20),
)
BEATS = st.integers(0, 2 * NOW * NANOS)


@given(rate=RATES, gaps=st.lists(st.integers(0, 300), max_size=60), greed=st.lists(st.integers(0, 9), min_size=1))
def test_in_no_stretch_of_time_there_are_more_starts_than_limit_and_burst(
    rate: RateLimit, gaps: list[int], greed: list[int]
) -> None:
    """Each time as many start as may, or as wish to; the gaps between are in hundredths of the time, or none."""
    now, next_beat, starts = NOW, 0, list[int]()
    for turn, gap in enumerate(gaps):
        now += gap * rate.per // 100
        count = min(may_start(rate, next_beat, now), greed[turn % len(greed)] or 1000)
        next_beat = after_starts(rate, next_beat, now, count)
        starts += [now] * count
    for place, first in enumerate(starts):
        assert bisect_right(starts, first + rate.per) - place <= rate.limit + rate.burst


@given(rate=RATES, next_beat=BEATS)
def test_one_may_start_at_its_moment_and_not_a_microsecond_earlier(rate: RateLimit, next_beat: int) -> None:
    moment = next_start(rate, next_beat)
    assert may_start(rate, next_beat, moment) >= 1
    assert may_start(rate, next_beat, moment - 1) == 0


@given(rate=RATES, next_beat=BEATS, now=st.integers(0, 2 * NOW))
def test_what_may_start_may_also_start_one_by_one(rate: RateLimit, next_beat: int, now: int) -> None:
    allowed = may_start(rate, next_beat, now)
    for left in range(allowed, 0, -1):
        assert may_start(rate, next_beat, now) == left
        next_beat = after_starts(rate, next_beat, now, 1)
    assert may_start(rate, next_beat, now) == 0


@given(rate=RATES)
def test_after_any_pause_no_more_than_the_burst_and_one_come_at_once(rate: RateLimit) -> None:
    assert may_start(rate, 0, NOW) == rate.burst + 1
    next_beat = after_starts(rate, 0, NOW, rate.burst + 1)
    assert may_start(rate, next_beat, NOW + 1000 * HOUR) == rate.burst + 1


def test_a_steady_rate_lets_one_start_with_each_beat() -> None:
    rate = RateLimit(limit=4, per=MINUTE)
    next_beat, starts, now = 0, list[int](), NOW
    while len(starts) < 9:
        next_beat = after_starts(rate, next_beat, now, 1)
        starts.append(now)
        now = next_start(rate, next_beat)
    assert all(15 * SECOND <= later - first <= 15 * SECOND + 1 for first, later in itertools.pairwise(starts))


@given(other=RATES, next_beat=BEATS)
def test_a_new_rate_makes_nobody_wait_longer_than_it_would_itself(other: RateLimit, next_beat: int) -> None:
    carried = carried_over(other, next_beat, NOW)
    assert carried <= next_beat
    own = after_starts(other, 0, NOW, may_start(other, 0, NOW))
    assert next_start(other, carried) <= next_start(other, own)
    assert may_start(other, carried, NOW) == may_start(other, next_beat, NOW)
    assert carried_over(other, carried, NOW) == carried


def test_without_a_rate_nothing_is_carried_over() -> None:
    assert carried_over(None, NOW * NANOS, NOW) == 0
