"""What a job asks of its worker, as it is read, counted and shown."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from foliot.domain.errors import BadInput
from foliot.domain.needs import (
    MOST,
    PLAIN,
    SLOT,
    UNIT,
    Needs,
    holds,
    how_many,
    in_thousandths,
    parse_amounts,
    parse_needs,
    parse_offer,
    read_needs,
    show_amount,
    show_amounts,
    show_needs,
)


def test_a_job_that_asks_for_nothing_takes_a_slot() -> None:
    assert parse_needs(None, None) == PLAIN == parse_needs({}, {})
    assert Needs(amounts=((SLOT, UNIT),)) == PLAIN
    assert show_needs(PLAIN) == ""
    assert read_needs("") is PLAIN


def test_needs_are_sorted_so_that_equal_ones_are_one_lane() -> None:
    one = parse_needs({"gpu": 1, "cpu": 0.5}, {"zone": "b", "arch": "arm"})
    two = parse_needs({"cpu": 0.5, "gpu": 1.0}, {"arch": "arm", "zone": "b"})
    assert one == two
    assert one.amounts == (("cpu", 500), ("gpu", 1000), (SLOT, 1000))
    assert one.labels == (("arch", "arm"), ("zone", "b"))
    assert show_needs(one) == show_needs(two) != ""


def test_a_job_may_ask_for_another_number_of_slots() -> None:
    assert parse_needs({SLOT: 0, "gpu": 1}, None).amounts == (("gpu", 1000), (SLOT, 0))
    assert parse_needs({SLOT: 1}, None) == PLAIN


@pytest.mark.parametrize(
    ("value", "amount"),
    [
        (1, 1000),
        (0.1, 100),
        (0.07, 70),
        (0.0001, 1),
        (0, 0),
        ("2", 2000),
        ("0.5", 500),
        ("1k", 10**6),
        ("2M", 2 * 10**9),
        ("1G", 10**12),
        ("1T", 10**15),
        ("1Ki", 2**10 * 1000),
        ("256Mi", 256 * 2**20 * 1000),
        ("1.5Gi", 3 * 2**29 * 1000),
        ("1Ti", 2**40 * 1000),
    ],
)
def test_an_amount_is_a_number_or_has_a_unit(value: float | str, amount: int) -> None:
    assert parse_amounts({"it": value}, "resources") == {"it": amount}


def test_what_is_asked_for_is_rounded_up_and_what_is_offered_down() -> None:
    assert parse_amounts({"cpu": 0.0015}, "resources") == {"cpu": 2}
    assert parse_offer({"cpu": 0.0015}, "resources") == {"cpu": 1}


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("cpu", -1, "from 0"),
        ("cpu", -0.001, "from 0"),
        ("cpu", MOST / UNIT * 2, "from 0"),
        ("cpu", float("nan"), "from 0"),
        ("cpu", float("inf"), "from 0"),
        ("cpu", "5000T", "from 0"),
        ("cpu", "-1", "a number"),
        ("cpu", "1 Gi", "a number"),
        ("cpu", "1Pi", "a number"),
        ("cpu", "", "a number"),
        ("no spaces", 1, "name"),
        ("", 1, "name"),
        ("x" * 65, 1, "name"),
    ],
)
def test_absurd_amounts_are_refused_with_the_field_named(name: str, value: float | str, message: str) -> None:
    with pytest.raises(BadInput, match=message) as refused:
        parse_needs({name: value}, None)
    assert [error.field for error in refused.value.errors] == [f"resources.{name}"]


@given(
    amounts=st.dictionaries(st.sampled_from(["cpu", "gpu", "memory", SLOT]), st.integers(0, MOST)),
    labels=st.dictionaries(st.text(max_size=5), st.text(max_size=5), max_size=3),
)
def test_needs_are_read_as_they_were_shown(amounts: dict[str, int], labels: dict[str, str]) -> None:
    needs = Needs(amounts=tuple(sorted(amounts.items())), labels=tuple(sorted(labels.items())))
    assert read_needs(show_needs(needs)) == needs


def test_sums_are_exact() -> None:
    free = parse_offer({"cpu": 0.3}, "resources")
    for part in (0.1, 0.2):
        asked = parse_amounts({"cpu": part}, "resources")
        assert holds(free, tuple(asked.items()))
        free["cpu"] -= asked["cpu"]
    assert free == {"cpu": 0}


@given(
    free=st.dictionaries(st.sampled_from(["cpu", "gpu", SLOT]), st.integers(0, 5000)),
    amounts=st.dictionaries(st.sampled_from(["cpu", "gpu", SLOT]), st.integers(0, 2000)).map(
        lambda amounts: tuple(sorted(amounts.items()))
    ),
)
def test_one_fits_exactly_where_at_least_one_is_counted(
    free: dict[str, int], amounts: tuple[tuple[str, int], ...]
) -> None:
    count = how_many(free, amounts)
    assert holds(free, amounts) is (count is None or count >= 1)
    if count is None:
        assert not any(amount for _, amount in amounts)
    else:
        assert all(amount * count <= free.get(name, 0) for name, amount in amounts)
        assert any(amount * (count + 1) > free.get(name, 0) for name, amount in amounts)


@given(st.dictionaries(st.just(SLOT), st.integers(0, 5000)))
def test_a_plain_job_is_counted_in_slots(free: dict[str, int]) -> None:
    assert how_many(free, PLAIN.amounts) == free.get(SLOT, 0) // UNIT
    assert holds(free, PLAIN.amounts) is (free.get(SLOT, 0) >= UNIT)


@example(8_787_957_305_078)
@example(MOST - 1)
@given(st.integers(0, MOST))
def test_an_amount_that_was_shown_is_the_same_when_it_is_read_again(amount: int) -> None:
    shown = show_amounts([("it", amount)])
    assert parse_amounts(shown, "resources") == parse_offer(shown, "resources") == {"it": amount}
    assert in_thousandths(shown["it"]) == amount


def test_whole_amounts_are_shown_whole() -> None:
    assert isinstance(show_amount(2000), int)
    assert (show_amount(2000), show_amount(1500)) == (2, 1.5)
