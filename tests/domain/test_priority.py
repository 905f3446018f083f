"""Priorities and the rank that they give."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from foliot.domain.errors import BadInput
from foliot.domain.priority import DEFAULT, parse_priority, show_priority
from foliot.domain.rank import rank

PRIORITIES = st.integers(0, 9)
TIMES = st.integers(0, 2**56 - 1)


@pytest.mark.parametrize(("word", "number"), [("high", 8), ("medium", 5), ("low", 2)])
def test_three_priorities_have_names(word: str, number: int) -> None:
    assert parse_priority(word) == number
    assert show_priority(number) == word


@given(priority=PRIORITIES)
def test_a_shown_priority_reads_back(priority: int) -> None:
    assert parse_priority(priority) == priority
    assert parse_priority(show_priority(priority)) == priority


def test_the_default_is_medium() -> None:
    assert show_priority(DEFAULT) == "medium"


@pytest.mark.parametrize("value", [-1, 10, "", "High", "5", "urgent"])
def test_another_priority_is_refused_with_the_ones_that_there_are(value: int | str) -> None:
    with pytest.raises(BadInput, match='use "high", "medium", "low", or 0 to 9') as caught:
        parse_priority(value)
    assert [error.field for error in caught.value.errors] == ["priority"]


@given(first=st.tuples(PRIORITIES, TIMES), second=st.tuples(PRIORITIES, TIMES))
def test_the_higher_priority_goes_first_then_the_earlier_due_time(
    first: tuple[int, int], second: tuple[int, int]
) -> None:
    expected = (-first[0], first[1]) < (-second[0], second[1])
    assert (rank(*first) < rank(*second)) is expected


@given(priority=PRIORITIES, due=st.integers(-(2**70), 2**70))
def test_a_rank_fits_a_signed_64_bit_column_and_stays_in_its_priority(priority: int, due: int) -> None:
    assert 0 <= rank(priority, due) < 2**63
    assert rank(priority, 0) <= rank(priority, due) <= rank(priority, 2**56 - 1)
