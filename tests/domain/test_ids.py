"""Ids: ordered, unique across nodes and set-back clocks, and shown in a form that reads back."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from foliot.domain.ids import (
    EPOCH_MS,
    JOB,
    NODES,
    SHARDS,
    WORKER,
    IdMaker,
    first_of,
    parse,
    parse_token,
    show,
    show_token,
    time_of,
)
from tests.domain.rows import NOW

KEYS = st.integers(0, 2**63 - 1)
TIMES = st.integers(EPOCH_MS * 1000, (EPOCH_MS + 2**40 - 10_000) * 1000)
CALLS = st.lists(
    st.tuples(st.sampled_from([0, 1, 2, 2047, 2048, 2500]), st.integers(-10_000_000, 10_000_000)), max_size=5
)


@given(node=st.integers(0, NODES - 1), shard=st.integers(0, SHARDS - 1), calls=CALLS)
def test_ids_of_a_node_grow_strictly_however_its_clock_jumps(
    node: int, shard: int, calls: list[tuple[int, int]]
) -> None:
    maker = IdMaker(node=node, shard=shard)
    made = [key for count, jump in calls for key in maker.take(count, NOW + jump)]
    assert len(made) == sum(count for count, _ in calls)
    assert all(first < second for first, second in itertools.pairwise(made))
    assert all(0 <= key < 2**63 for key in made)
    assert maker.last == (made[-1] if made else 0)


@given(nodes=st.sets(st.tuples(st.integers(0, NODES - 1), st.integers(0, SHARDS - 1)), min_size=2, max_size=3))
def test_nodes_and_shards_never_make_the_same_id(nodes: set[tuple[int, int]]) -> None:
    made = [IdMaker(node=node, shard=shard).take(2100, NOW) for node, shard in nodes]
    assert len(set().union(*made)) == 2100 * len(nodes)


@given(before=st.integers(1, 5000), back=st.integers(0, 10**12), node=st.integers(0, NODES - 1))
def test_a_maker_with_a_floor_starts_above_it_even_on_a_clock_set_back(before: int, back: int, node: int) -> None:
    first = IdMaker(node=NODES - 1, shard=SHARDS - 1)
    first.take(before, NOW)
    second = IdMaker(node=node, floor=first.last)
    assert second.last == first.last
    assert second.one(NOW - back) > first.last


def test_a_clock_before_our_epoch_still_makes_ids() -> None:
    assert IdMaker(node=0).take(2, 0) == [0, 1]


@pytest.mark.parametrize(("node", "shard"), [(-1, 0), (NODES, 0), (0, -1), (0, SHARDS)])
def test_a_number_out_of_range_is_refused(node: int, shard: int) -> None:
    with pytest.raises(ValueError, match="not within 0 to"):
        IdMaker(node=node, shard=shard)


@given(time=TIMES, node=st.integers(0, NODES - 1))
def test_an_id_carries_the_millisecond_of_its_making(time: int, node: int) -> None:
    key = IdMaker(node=node).one(time)
    assert time_of(key) == time // 1000 * 1000
    assert first_of(time) <= key < first_of(time + 1000)


@given(time=TIMES)
def test_first_of_is_the_smallest_id_of_its_millisecond(time: int) -> None:
    assert time_of(first_of(time)) == time // 1000 * 1000
    assert first_of(time) == 0 or time_of(first_of(time) - 1) < time_of(first_of(time))


def test_times_before_the_epoch_bound_nothing_away() -> None:
    assert first_of(0) == first_of(EPOCH_MS * 1000) == 0


def test_a_burst_borrows_from_the_coming_milliseconds() -> None:
    made = IdMaker(node=3).take(2048 * 3, NOW)
    assert {time_of(key) - time_of(made[0]) for key in made} == {0, 1000, 2000}


@given(first=KEYS, second=KEYS)
def test_a_shown_id_reads_back_and_sorts_as_the_number(first: int, second: int) -> None:
    assert parse(JOB, show(JOB, first)) == first
    assert (show(JOB, first) < show(JOB, second)) is (first < second)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "j_",
        show(WORKER, 5),
        show(JOB, 5)[:-1],
        show(JOB, 5) + "0",
        "j_000000000000000A",
        "j_ffffffffffffffff",
        "j_+00000000000000a",
        "j_0000_00000000005",
        "j_00000000000000\u0665\u0665",
    ],
)
def test_what_is_not_ours_is_no_id(text: str) -> None:
    assert parse(JOB, text) is None


@given(key=KEYS, nonce=KEYS)
def test_a_token_reads_back(key: int, nonce: int) -> None:
    assert parse_token(show_token(key, nonce)) == (key, nonce)


@pytest.mark.parametrize(
    "token", ["", "x" * 32, show_token(1, 2)[:-1], show_token(1, 2) + "0", "g" + show_token(1, 2)[1:]]
)
def test_a_damaged_token_is_none(token: str) -> None:
    assert parse_token(token) is None
