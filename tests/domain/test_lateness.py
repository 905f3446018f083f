"""Durations are counted by size, added up, and asked for shares; never to the advantage of who was late."""

import math
from itertools import pairwise

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from foliot.domain.duration import DAY, HOUR, MINUTE, SECOND
from foliot.domain.job import State
from foliot.domain.lateness import BOUNDS, Histogram, Phases, read_phases

MS = SECOND // 1000
DURATIONS = st.lists(st.integers(-1000, 20 * DAY) | st.integers(0, 200 * MS) | st.sampled_from(BOUNDS))


class Times(msgspec.Struct, frozen=True, kw_only=True):
    state: int = State.COMPLETED
    due: int = 0
    admitted: int = 10
    claimed: int = 110
    started: int | None = 1110
    ended: int = 11_110


def counted(durations: list[int]) -> Histogram:
    histogram = Histogram()
    histogram.add_many(durations)
    return histogram


def test_bounds_are_a_quarter_apart_and_reach_ten_days() -> None:
    assert BOUNDS[0] == 100
    assert BOUNDS[-1] >= 10 * DAY
    assert max(above / below for below, above in pairwise(BOUNDS)) <= 1.25
    assert list(BOUNDS) == sorted(set(BOUNDS))


def test_what_people_set_as_a_limit_is_a_bound() -> None:
    limits = [MS, 5 * MS, 25 * MS, 250 * MS, SECOND, 15 * SECOND, 30 * SECOND, MINUTE, 90 * SECOND, 5 * MINUTE]
    assert {*limits, 15 * MINUTE, 30 * MINUTE, HOUR, 2 * HOUR} <= set(BOUNDS)


def test_nothing_has_no_quantile_and_nothing_is_within() -> None:
    assert Histogram().quantile(0.5) is None
    assert Histogram().within(SECOND) == (0, 0)
    assert Histogram().at_most([SECOND]) == [0]


def test_one_is_its_own_every_quantile() -> None:
    histogram = Histogram()
    histogram.add(1234)
    assert [histogram.quantile(share) for share in (0.0, 0.5, 0.999, 1.0)] == [1234] * 4


def test_what_is_longer_than_all_bounds_is_counted() -> None:
    histogram = counted([BOUNDS[-1] + 1, BOUNDS[-1] + 5])
    assert histogram.quantile(0.5) == BOUNDS[-1] + 5
    assert histogram.within(BOUNDS[-1]) == (0, 2)
    assert histogram.at_most([SECOND, BOUNDS[-1]]) == [0, 0]


def test_a_clock_that_is_behind_counts_as_no_time() -> None:
    histogram = counted([-5, 5])
    assert (histogram.sum, histogram.highest, histogram.within(100)) == (5, 5, (2, 2))


def test_a_limit_between_bounds_goes_by_the_lower_one() -> None:
    histogram = counted([1000, 1100, 1150, 9000])
    assert histogram.within(1199) == (1, 4)
    assert histogram.within(1200) == (3, 4)
    assert histogram.within(9000) == (4, 4)


def test_a_share_that_rounding_leaves_over_is_the_highest() -> None:
    assert counted([1000] * 3).quantile(1.0000001) == 1000


@given(DURATIONS, st.floats(0.001, 1))
def test_a_quantile_is_never_too_low_and_little_too_high(durations: list[int], share: float) -> None:
    quantile = counted(durations).quantile(share)
    if not durations:
        assert quantile is None
        return
    exact = sorted(max(0, each) for each in durations)[math.ceil(share * len(durations)) - 1]
    assert quantile is not None
    assert exact <= quantile <= max(exact * 1.25, 100)


@given(DURATIONS, st.integers(0, 20 * DAY) | st.sampled_from(BOUNDS))
def test_none_is_within_that_was_not(durations: list[int], limit: int) -> None:
    good, total = counted(durations).within(limit)
    exact = sum(each <= limit for each in durations)
    assert total == len(durations)
    assert good == exact if limit in BOUNDS else good <= exact


@given(DURATIONS, st.sets(st.sampled_from(BOUNDS)).map(sorted))
def test_how_many_were_within_each_of_some_bounds(durations: list[int], bounds: list[int]) -> None:
    assert counted(durations).at_most(bounds) == [sum(each <= bound for each in durations) for bound in bounds]


@given(DURATIONS, DURATIONS)
def test_two_added_up_are_one_of_both(some: list[int], others: list[int]) -> None:
    both = counted(some)
    both.merge(counted(others))
    assert both == counted(some + others)
    for each in others:
        both.add(each)
    assert both == counted(some + others + others)


def test_few_are_counted_as_many_are() -> None:
    runs = [Times(started=None if place % 3 else 900, ended=10 ** (place % 7)) for place in range(30)]
    many, few = Phases(), Phases()
    many.add_many(runs)
    for run in runs:
        few.add_many([run])
    assert few == many


def test_each_step_has_its_time() -> None:
    phases = Phases()
    phases.add_many([Times(), Times(state=State.FAILED)])
    steps = {name: getattr(phases, name) for name in ("admit", "claim", "start", "run", "late")}
    assert {name: each.highest for name, each in steps.items()} == {
        "admit": 10,
        "claim": 100,
        "start": 1000,
        "run": 10_000,
        "late": 1110,
    }
    assert {each.total for each in steps.values()} == {2}
    assert phases.states == {State.COMPLETED: 1, State.FAILED: 1}


def test_without_a_told_start_a_run_begins_with_its_claim() -> None:
    phases = Phases()
    phases.add_many([Times(started=None)])
    assert phases.start.total == 0
    assert (phases.late.highest, phases.run.highest) == (110, 11_000)


def test_many_are_added_up_and_read_back_from_their_text() -> None:
    parts = []
    for ended in (2000, 90_000_000):
        part = Phases()
        part.add_many([Times(ended=ended)])
        parts.append(part)
    whole = Phases.sum(parts)
    assert whole.run.total == 2
    assert whole.states == {State.COMPLETED: 2}
    assert read_phases(whole.text()) == whole
    assert parts[0].run.total == 1
