"""Service level objectives: "99 % start within 1 s, over 7 days". The share that may start later is the budget; how
fast it is used up, against a use that would last exactly as long as the objective's time, is the burn rate. Pure.

An objective is in trouble while a short and a long window both burn fast: the long one tells that it matters, the short
one that it still goes on. A burn of 14.4 for an hour takes two days' share of a month's budget, one of 6 for six hours
five percent of it.
"""

from collections.abc import Callable

import msgspec

from foliot.domain.duration import DAY, HOUR, MINUTE, Micros

Counts = tuple[int, int]  # how many started in time, and how many in all
WINDOWS: tuple[tuple[Micros, Micros, float], ...] = (
    (5 * MINUTE, HOUR, 14.4),
    (30 * MINUTE, 6 * HOUR, 6.0),
)
SHORTEST, LONGEST = HOUR, 30 * DAY


class Objective(msgspec.Struct, frozen=True, kw_only=True):
    """The share `target` of the jobs starts `within` of when they were due, counted `over` a time."""

    target: float
    within: Micros
    over: Micros


class Burn(msgspec.Struct, frozen=True, kw_only=True):
    """How an objective stands: `left` is the part of the budget that is left (below zero: more than all is used),
    `rate` the fastest that both windows of a pair burn, `window` its long one where that is too fast."""

    left: float
    rate: float
    window: Micros | None = None


def burn_rate(objective: Objective, counts: Counts) -> float:
    """1.0 uses the budget up exactly within the objective's time; nothing started, nothing burnt."""
    good, total = counts
    return 0.0 if not total else (total - good) / total / (1 - objective.target)


def burn(objective: Objective, counts_over: Callable[[Micros], Counts]) -> Burn:
    """`counts_over` tells what started in the last so many microseconds."""
    whole = burn_rate(objective, counts_over(objective.over))
    fastest, in_trouble = 0.0, None
    for short, long, limit in WINDOWS:
        rate = min(burn_rate(objective, counts_over(short)), burn_rate(objective, counts_over(long)))
        fastest = max(fastest, rate)
        if rate >= limit and in_trouble is None:
            in_trouble = long
    return Burn(left=1 - whole, rate=fastest, window=in_trouble)
