"""The order that each policy makes."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from foliot.domain.duration import DAY, LONGEST, MINUTE
from foliot.domain.rank import AGING, COST, FIFO, cost, fair_ranks, rank

NOW = 1_750_000_000_000_000
PRIORITIES = st.integers(0, 9)
TIMES = st.integers(0, 2**56 - 1)
WEIGHTS = st.floats(0.001, 1000)


@given(first=PRIORITIES, second=PRIORITIES, due=TIMES)
def test_in_fifo_only_the_due_time_counts(first: int, second: int, due: int) -> None:
    assert rank(first, due, FIFO) == rank(second, due, FIFO)
    assert rank(first, due, FIFO) < rank(second, due + 1, FIFO) or due == 2**56 - 1


@given(priority=st.integers(0, 8), due=TIMES, aging=st.integers(1, DAY))
def test_with_aging_so_long_a_wait_is_worth_one_step_of_priority(priority: int, due: int, aging: int) -> None:
    ordering = f"{AGING}{aging}"
    if due + aging < 2**56:
        assert rank(priority, due, ordering) == rank(priority + 1, due + aging, ordering)
    assert rank(priority + 1, due, ordering) < rank(priority, due, ordering)


@given(priorities=st.lists(PRIORITIES, min_size=1, max_size=50), aging=st.integers(1, 10 * MINUTE))
def test_with_aging_what_comes_later_overtakes_only_for_so_long(priorities: list[int], aging: int) -> None:
    """Nothing that is due nine steps later goes before, whatever its priority: nothing starves."""
    ordering = f"{AGING}{aging}"
    old = rank(0, NOW, ordering)
    assert all(rank(priority, NOW + 9 * aging + 1, ordering) > old for priority in priorities)


@given(priority=PRIORITIES, due=st.integers(-(2**63), 2**63 - 1), aging=st.integers(1, LONGEST))
def test_every_rank_fits_in_64_bits(priority: int, due: int, aging: int) -> None:
    for ordering in ("", FIFO, f"{AGING}{aging}"):
        assert 0 <= rank(priority, due, ordering) < 2**63


@pytest.mark.parametrize(("weight", "expected"), [(1.0, COST), (2.0, COST // 2), (0.5, 2 * COST), (1e9, 1)])
def test_a_job_costs_its_key_the_less_the_more_it_weighs(weight: float, expected: int) -> None:
    assert cost(weight) == expected


@given(
    weights=st.lists(WEIGHTS, min_size=2, max_size=6),
    arrivals=st.data(),
    started=st.integers(0, 400),
)
def test_keys_that_have_jobs_share_by_weight(weights: list[float], arrivals: st.DataObject, started: int) -> None:
    """All have a long line, in whatever order it came; those with the smallest ranks start."""
    keys = {f"k{place}": weight for place, weight in enumerate(weights)}
    line = arrivals.draw(st.permutations([key for key in keys for _ in range(20)]))
    costs = {key: cost(weight) for key, weight in keys.items()}
    ranks = fair_ranks(line, {}, 0, costs)
    order = [key for _, _, key in sorted(zip(ranks, range(len(line)), line, strict=True))]
    counts = Counter[str]()
    for key in order[:started]:
        counts[key] += 1
        if max(counts.values()) == 20:
            break
        for one in keys:
            for other in keys:
                apart = counts[one] * costs[one] - counts[other] * costs[other]
                assert apart <= costs[one] + costs[other]


def test_a_key_goes_on_where_its_time_stands_and_the_times_are_moved_on() -> None:
    times = {"a": 5 * COST}
    assert fair_ranks(["a", "b", "a"], times, COST, {}) == [5 * COST, COST, 6 * COST]
    assert times == {"a": 7 * COST, "b": 2 * COST}


def test_who_was_away_begins_at_the_queues_time() -> None:
    times = {"a": COST}
    assert fair_ranks(["a", "new"], times, 9 * COST, {"a": 7}) == [9 * COST, 9 * COST]
    assert times == {"a": 9 * COST + 7, "new": 10 * COST}


@given(line=st.lists(st.sampled_from("abc"), max_size=30), cut=st.integers(0, 30), now=st.integers(0, 9 * COST))
def test_ranks_are_the_same_however_the_line_is_split(line: list[str], cut: int, now: int) -> None:
    whole, parts = {"a": COST}, {"a": COST}
    ranks = fair_ranks(line, whole, now, {"b": 3})
    assert fair_ranks(line[:cut], parts, now, {"b": 3}) + fair_ranks(line[cut:], parts, now, {"b": 3}) == ranks
    assert parts == whole


def test_no_jobs_have_no_ranks() -> None:
    times = {"a": 1}
    assert fair_ranks([], times, 9, {}) == []
    assert times == {"a": 1}
