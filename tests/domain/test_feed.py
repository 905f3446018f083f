"""Positions in the record: what they cover, and the words that clients keep of them."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from foliot.domain.feed import ALL_STATUSES, Batch, Entry, Position, in_order, mask_of, read_position
from foliot.domain.ids import JobKey
from foliot.domain.status import STATUSES

NUMBERS = st.integers(0, (1 << 63) - 1)


@st.composite
def positions(draw: st.DrawFn) -> Position:
    skip = draw(st.integers(0, 1000))
    return Position(
        floor=draw(NUMBERS),
        seen=draw(st.dictionaries(NUMBERS, NUMBERS, max_size=5)),
        time=draw(NUMBERS),
        within=draw(NUMBERS) if skip else 0,
        skip=skip,
    )


@given(positions())
def test_a_position_is_what_its_word_says(position: Position) -> None:
    assert read_position(position.text()) == position


@given(positions())
def test_a_word_is_safe_in_addresses_and_headers(position: Position) -> None:
    assert set(position.text()) <= set("0123456789abcdef._-")


def test_the_first_position_has_a_word_too() -> None:
    assert Position().text() == "0_0_"
    assert read_position("0_0_") == Position()


@pytest.mark.parametrize(
    "text",
    [
        "",
        "0",
        "0_0",
        "0_0__",
        "0_0__1.1_",
        "_0_",
        "0__",
        "0_0_1",
        "0_0_1.",
        "0_0_.1",
        "0_0_1.1-",
        "0_0_1.1-1.2",
        "0_0_1.1.1",
        "0_0__1",
        "0_0_1.g",
        "0_0_1.A",
        "0_0_1.-1",
        "0_0_ 1.1",
        "0_0_1.1\n",
        "0_0_1.\u0661",
        "0x1_0_",
        "-1_0_",
        "8000000000000000_0_",
        "0_ffffffffffffffff_",
        "0_0_1.00000000000000001",
        "0_0_" + "-".join(f"{writer:x}.1" for writer in range(4000)),
    ],
)
def test_what_is_no_position_is_refused(text: str) -> None:
    assert read_position(text) is None


@given(st.text(alphabet="0123456789abcdefg._-", max_size=30))
def test_whatever_is_read_says_the_same_again(text: str) -> None:
    position = read_position(text)
    assert position is None or read_position(position.text()) == Position(
        floor=position.floor,
        seen=position.seen,
        time=position.time,
        within=position.within if position.skip else 0,
        skip=position.skip,
    )


def batch(writer: int, number: int, time: int = 0) -> Batch:
    return Batch(writer=writer, number=number, time=time)


def test_of_a_writer_that_was_met_all_up_to_its_number_is_read() -> None:
    position = Position(floor=5, seen={3: 10, 7: 20})
    assert position.covers(batch(3, 10))
    assert not position.covers(batch(3, 11))
    assert position.covers(batch(7, 1))
    assert not position.covers(batch(7, 21))


def test_of_a_writer_that_was_not_met_all_is_read_below_the_floor_and_nothing_else() -> None:
    position = Position(floor=5, seen={3: 10})
    assert position.covers(batch(4, 1))
    assert not position.covers(batch(5, 1))
    assert not position.covers(batch(6, 1))


def test_a_position_moves_on_with_each_batch_and_its_time_never_goes_back() -> None:
    first = Position(floor=2, seen={3: 10}, time=50)
    second = first.after(batch(3, 11, time=40)).after(batch(4, 1, time=60))
    assert second == Position(floor=2, seen={3: 11, 4: 1}, time=60)
    assert first == Position(floor=2, seen={3: 10}, time=50)


def test_a_position_within_a_batch_skips_what_is_read_of_it() -> None:
    position = Position(seen={3: 10})
    inside = position.inside(batch(3, 11), 2)
    assert not inside.covers(batch(3, 11))
    assert inside.skipped(batch(3, 11)) == 2
    assert inside.skipped(batch(4, 1)) == 0
    assert position.skipped(batch(3, 11)) == 0
    after = inside.after(batch(3, 11))
    assert after == Position(seen={3: 11})
    assert after.skipped(batch(3, 12)) == 0


def test_a_batch_of_another_writer_leaves_what_is_read_of_the_one_within() -> None:
    inside = Position(seen={3: 10}).inside(batch(3, 11), 2).after(batch(4, 1))
    assert inside.skipped(batch(3, 11)) == 2
    assert inside.covers(batch(4, 1))


def test_a_mask_has_a_bit_for_each_status() -> None:
    assert mask_of([]) == 0
    assert mask_of(["completed", "failed", "failed"]) == 1 << 6 | 1 << 7
    assert mask_of(STATUSES) == ALL_STATUSES == (1 << len(STATUSES)) - 1
    with pytest.raises(ValueError, match="not in"):
        mask_of(["unheard of"])


@given(st.data())
def test_batches_are_put_in_an_order_in_which_no_job_goes_back(data: st.DataObject) -> None:
    """Commits in one order, numbered by clocks that are apart, are told so that each job and each writer goes on."""
    jobs = dict.fromkeys(range(4), 0)
    numbers: dict[int, int] = {}
    batches = []
    for commit in range(data.draw(st.integers(1, 12))):
        writer = data.draw(st.integers(1, 3))
        number = max(numbers.get(writer, 0) + 1, 10 * commit + data.draw(st.integers(0, 30)))
        numbers[writer] = number
        moved = data.draw(st.lists(st.sampled_from(range(4)), unique=True, max_size=3))
        entries = []
        for job in moved:
            jobs[job] += 1
            entries.append(Entry(JobKey(job), 1, 0, jobs[job], 0, 0))
        batches.append(Batch(writer=writer, number=number, time=0, entries=entries))
    told = in_order(sorted(batches, key=lambda batch: batch.number))
    assert sorted(told, key=batches.index) == batches
    for writer in numbers:
        mine = [batch.number for batch in told if batch.writer == writer]
        assert mine == sorted(mine)
    for job in jobs:
        versions = [entry.version for batch in told for entry in batch.entries if entry.id == job]
        assert versions == sorted(versions)


def test_batches_that_are_in_order_stay_as_they_are() -> None:
    batches = [Batch(writer=1, number=n, time=n, entries=[Entry(JobKey(1), 1, 0, n, 0, 0)]) for n in range(3)]
    assert in_order(batches) is batches
    assert in_order([batches[1], msgspec.structs.replace(batches[0], writer=2)]) == [
        msgspec.structs.replace(batches[0], writer=2),
        batches[1],
    ]


def test_a_job_may_move_twice_in_one_batch() -> None:
    twice = Batch(
        writer=1, number=5, time=5, entries=[Entry(JobKey(1), 1, 0, 2, 0, 0), Entry(JobKey(1), 1, 0, 3, 0, 0)]
    )
    first = Batch(writer=2, number=9, time=9, entries=[Entry(JobKey(1), 1, 0, 1, 0, 0)])
    assert in_order([twice, first]) == [first, twice]
