"""Service level objectives: how fast the budget burns."""

import pytest

from foliot.domain.duration import DAY, HOUR, MINUTE, SECOND, Micros
from foliot.domain.objective import Counts, Objective, burn, burn_rate

OBJECTIVE = Objective(target=0.99, within=SECOND, over=7 * DAY)


def test_a_burn_of_one_uses_up_the_budget_exactly() -> None:
    assert burn_rate(OBJECTIVE, (990, 1000)) == pytest.approx(1.0)
    assert burn_rate(OBJECTIVE, (0, 10)) == pytest.approx(100.0)
    assert burn_rate(OBJECTIVE, (10, 10)) == 0
    assert burn_rate(OBJECTIVE, (0, 0)) == 0


def test_a_fast_burn_is_seen_by_the_short_windows() -> None:
    found = burn(OBJECTIVE, lambda length: (80, 100) if length <= HOUR else (100_000, 100_020))
    assert found.window == HOUR
    assert found.rate == pytest.approx(20.0)
    assert 0.9 < found.left < 1


def test_a_slower_burn_is_seen_by_the_long_windows() -> None:
    assert burn(OBJECTIVE, lambda _length: (930, 1000)).window == 6 * HOUR


def test_what_is_over_already_is_no_trouble_any_more() -> None:
    def counts(length: Micros) -> Counts:
        return (10, 10) if length <= 30 * MINUTE else (500, 1000)

    found = burn(OBJECTIVE, counts)
    assert found.window is None
    assert found.left < 0
