"""How long jobs took from one step to the next, counted so that what many nodes saw can be added up.

A `Histogram` counts durations by size: thirteen buckets a decade (about four for each doubling), from 100 µs to more
than ten days, only those kept that hold something. The bounds are round numbers of seconds, minutes and hours, so that
the limits people set (250 ms, 1 s, 90 s, 5 min, 1 h) are bounds, and how many were within is then exact.

The steps of a run: it is due, *admitted* (from then on only a worker is missing), *claimed* by a worker, *started* by
its handler, *ended*. `Phases` has one histogram for each step, and `late` for the whole way from due to started; where
the worker does not tell a start, to claimed.
"""

from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterable, Sequence
from operator import sub
from typing import Final, Literal, Protocol, Self

import msgspec

from foliot.domain.duration import Micros

Phase = Literal["admit", "claim", "start", "run", "late"]

_DECADE = (100, 120, 150, 180, 200, 250, 300, 360, 400, 500, 600, 720, 900)
BOUNDS: Final[tuple[Micros, ...]] = tuple(step * 10**power for power in range(10) for step in _DECADE)
"""The bucket of a place holds what is at most its bound and above the one before; one more holds what is above all."""

# Most durations are short, and looking a place up takes half the time of searching it.
_GRAIN = 10  # all bounds are multiples of it
_SHORTEST = 100_000
_FEW = 8  # so many are quicker added one by one
_SHORT = bytes(bisect_left(BOUNDS, place * _GRAIN) for place in range(_SHORTEST // _GRAIN + 1))


class Histogram(msgspec.Struct, array_like=True):
    """Durations in microseconds. `counts` by the bucket's place in `BOUNDS`."""

    counts: dict[int, int] = {}
    total: int = 0
    sum: Micros = 0
    highest: Micros = 0

    def add(self, duration: Micros) -> None:
        """Below zero counts as zero: two machines' clocks never agree to the microsecond."""
        duration = max(0, duration)
        place = _SHORT[-(-duration // _GRAIN)] if duration <= _SHORTEST else bisect_left(BOUNDS, duration)
        self.counts[place] = self.counts.get(place, 0) + 1
        self.total += 1
        self.sum += duration
        self.highest = max(self.highest, duration)

    def add_many(self, durations: Sequence[Micros]) -> None:
        """As `add` with each, in less time where they are many."""
        if not durations:
            return
        if min(durations) < 0:
            durations = [max(0, duration) for duration in durations]
        self._count(
            Counter(
                [_SHORT[-(-each // _GRAIN)] if each <= _SHORTEST else bisect_left(BOUNDS, each) for each in durations]
            )
        )
        self.total += len(durations)
        self.sum += sum(durations)
        self.highest = max(self.highest, max(durations))

    def merge(self, other: "Histogram") -> None:
        """Count what the other has counted as well."""
        self._count(other.counts)
        self.total += other.total
        self.sum += other.sum
        self.highest = max(self.highest, other.highest)

    def quantile(self, share: float) -> Micros | None:
        """A duration that at least this share did not exceed: never too low, and too high by at most a quarter. None
        where nothing was counted."""
        left = share * self.total
        for place in sorted(self.counts):
            left -= self.counts[place]
            if left <= 0:
                return min(BOUNDS[place], self.highest) if place < len(BOUNDS) else self.highest
        return self.highest if self.total else None

    def within(self, limit: Micros) -> tuple[int, int]:
        """How many surely took no longer than that, and how many there were. Exact where the limit is one of
        `BOUNDS`; else it goes by the next lower one, so that none counts as good that may not have been."""
        if self.highest <= limit:
            return self.total, self.total
        whole = bisect_right(BOUNDS, limit)
        return sum(count for place, count in self.counts.items() if place < whole), self.total

    def at_most(self, bounds: Sequence[Micros]) -> list[int]:
        """How many were within each of these bounds, which are some of `BOUNDS`, ascending."""
        places = [bisect_left(BOUNDS, bound) for bound in bounds]
        found: list[int] = []
        below, next_ = 0, iter(sorted(self.counts.items()))
        place, count = next(next_, (len(BOUNDS) + 1, 0))
        for last in places:
            while place <= last:
                below += count
                place, count = next(next_, (len(BOUNDS) + 1, 0))
            found.append(below)
        return found

    def _count(self, counts: dict[int, int]) -> None:
        for place, count in counts.items():
            self.counts[place] = self.counts.get(place, 0) + count


class Run(Protocol):
    """The times of an attempt that ended its job."""

    @property
    def state(self) -> int: ...
    @property
    def due(self) -> Micros: ...
    @property
    def admitted(self) -> Micros: ...
    @property
    def claimed(self) -> Micros: ...
    @property
    def started(self) -> Micros | None: ...
    @property
    def ended(self) -> Micros: ...


class Phases(msgspec.Struct, array_like=True):
    """All steps of some runs, and how many ended in which state (of `State`)."""

    admit: Histogram = msgspec.field(default_factory=Histogram)
    claim: Histogram = msgspec.field(default_factory=Histogram)
    start: Histogram = msgspec.field(default_factory=Histogram)
    run: Histogram = msgspec.field(default_factory=Histogram)
    late: Histogram = msgspec.field(default_factory=Histogram)
    states: dict[int, int] = {}

    def add_many(self, runs: Sequence[Run]) -> None:
        """A run of which no start is known is one from its claim on."""
        if len(runs) < _FEW:
            for run in runs:
                self._add(run)
            return
        due = [run.due for run in runs]
        admitted = [run.admitted for run in runs]
        claimed = [run.claimed for run in runs]
        told = [run for run in runs if run.started is not None]
        begun = [run.claimed if run.started is None else run.started for run in runs]
        self.admit.add_many(list(map(sub, admitted, due)))
        self.claim.add_many(list(map(sub, claimed, admitted)))
        self.start.add_many([(run.started or 0) - run.claimed for run in told])
        self.run.add_many(list(map(sub, [run.ended for run in runs], begun)))
        self.late.add_many(list(map(sub, begun, due)))
        self._count(Counter([run.state for run in runs]))

    def merge(self, other: "Phases") -> None:
        self.admit.merge(other.admit)
        self.claim.merge(other.claim)
        self.start.merge(other.start)
        self.run.merge(other.run)
        self.late.merge(other.late)
        self._count(other.states)

    def _add(self, run: Run) -> None:
        due, admitted, claimed, started = run.due, run.admitted, run.claimed, run.started
        if started is None:
            started = claimed
        else:
            self.start.add(started - claimed)
        self.admit.add(admitted - due)
        self.claim.add(claimed - admitted)
        self.run.add(run.ended - started)
        self.late.add(started - due)
        self.states[run.state] = self.states.get(run.state, 0) + 1

    @classmethod
    def sum(cls, parts: Iterable["Phases"]) -> Self:
        whole = cls()
        for part in parts:
            whole.merge(part)
        return whole

    def text(self) -> str:
        """As JSON text, which `read_phases` reads."""
        return msgspec.json.encode(self).decode()

    def _count(self, states: dict[int, int]) -> None:
        for state, count in states.items():
            self.states[state] = self.states.get(state, 0) + count


read_phases = msgspec.json.Decoder(Phases).decode
