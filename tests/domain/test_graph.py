"""What an edge asks of a parent's end, and what can not be a graph."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from foliot.domain.graph import BROKEN_BY, HOLDS, ON_WORDS, On, find_cycle, holds
from foliot.domain.job import ENDED_STATES, State

TABLE = {
    (On.SUCCESS, State.COMPLETED): True,
    (On.SUCCESS, State.FAILED): False,
    (On.SUCCESS, State.CANCELLED): False,
    (On.FAILURE, State.COMPLETED): False,
    (On.FAILURE, State.FAILED): True,
    (On.FAILURE, State.CANCELLED): True,
    (On.ANY, State.COMPLETED): True,
    (On.ANY, State.FAILED): True,
    (On.ANY, State.CANCELLED): True,
}


def test_an_edge_holds_with_the_ends_that_it_asks_for() -> None:
    assert {(on, state): holds(on, state) for on in On for state in ENDED_STATES} == TABLE
    assert set(HOLDS) == set(On)


def test_every_end_has_a_reason_for_the_children_it_cancels() -> None:
    assert {state: BROKEN_BY[state] for state in ENDED_STATES} == {
        State.COMPLETED: "parent_completed",
        State.FAILED: "parent_failed",
        State.CANCELLED: "parent_cancelled",
    }


def test_ends_have_the_words_of_the_api() -> None:
    assert ON_WORDS == {"success": On.SUCCESS, "failure": On.FAILURE, "any": On.ANY}


@pytest.mark.parametrize(
    "parents",
    [
        {},
        {"a": []},
        {"a": ["elsewhere"], "b": ["elsewhere"]},
        {"d": ["b", "c"], "b": ["a"], "c": ["a"]},
        {"a": ["b", "b"], "b": ["c"], "x": ["b"]},
    ],
    ids=["empty", "alone", "outside", "diamond", "twice"],
)
def test_what_depends_on_nothing_of_its_own_is_a_graph(parents: dict[str, list[str]]) -> None:
    assert find_cycle(parents) is None


@pytest.mark.parametrize(
    ("parents", "cycle"),
    [
        ({"a": ["a"]}, ["a", "a"]),
        ({"a": ["b"], "b": ["a"]}, ["a", "b", "a"]),
        ({"x": ["a"], "a": ["y", "b"], "b": ["c"], "c": ["a"]}, ["a", "b", "c", "a"]),
        ({"a": ["b", "c"], "b": ["d"], "c": ["d", "a"]}, ["a", "c", "a"]),
    ],
    ids=["itself", "two", "behind a start", "second way"],
)
def test_a_circle_is_named_from_where_it_begins_to_where_it_closes(
    parents: dict[str, list[str]], cycle: list[str]
) -> None:
    assert find_cycle(parents) == cycle


def test_a_long_chain_is_walked_to_its_end() -> None:
    chain = {str(number): [str(number + 1)] for number in range(10_000)}
    assert find_cycle(chain) is None
    chain["10000"] = ["5000"]
    cycle = find_cycle(chain)
    assert cycle is not None
    assert (cycle[0], cycle[-1], len(cycle)) == ("5000", "5000", 5002)


NAMES = st.sampled_from("abcdef")


@given(st.dictionaries(NAMES, st.lists(NAMES, max_size=3)))
def test_a_circle_is_found_exactly_where_there_is_one(parents: dict[str, list[str]]) -> None:
    cycle = find_cycle(parents)
    if cycle is not None:
        assert cycle[0] == cycle[-1]
        assert all(parent in parents[name] for name, parent in itertools.pairwise(cycle))
        assert len(set(cycle)) == len(cycle) - 1
        return
    left = {name: set(given) for name, given in parents.items()}
    while left:  # without a circle there is always one that depends on none of the others
        free = [name for name, given in left.items() if not given & set(left)]
        assert free
        for name in free:
            del left[name]
