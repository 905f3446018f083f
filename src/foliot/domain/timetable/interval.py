"""`every`: an even beat of real time, counted from its anchor. All of it is one division."""

import msgspec

from foliot.domain.duration import Micros, parse_duration
from foliot.domain.errors import BadInput

SHORTEST: Micros = 100_000


class Every(msgspec.Struct, frozen=True, tag="every"):
    """`anchor` is the first run, or where none was asked for the time from which the first interval is counted."""

    interval: Micros
    anchor: Micros
    runs_at_anchor: bool

    @property
    def first(self) -> Micros:
        return self.anchor if self.runs_at_anchor else self.anchor + self.interval


def parse_every(value: float | str, *, start: Micros | None, created: Micros) -> Every:
    interval = parse_duration(value, "every")
    if interval < SHORTEST:
        raise BadInput.at("every", "shorter than 100 ms; use 0.1 or more")
    return Every(interval, created if start is None else start, start is not None)


def next_beat(every: Every, first: Micros) -> Micros:
    """The first beat at or after `first`."""
    steps = max(0, -((every.first - first) // every.interval))
    return every.first + steps * every.interval


def previous_beat(every: Every, last: Micros) -> Micros | None:
    """The last beat at or before `last`."""
    steps = (last - every.first) // every.interval
    return every.first + steps * every.interval if steps >= 0 else None


def count_beats(every: Every, first: Micros, last: Micros) -> int:
    """How many beats lie from `first` to `last`, both included."""
    end = previous_beat(every, last)
    begin = next_beat(every, first)
    return 0 if end is None or end < begin else (end - begin) // every.interval + 1
