"""From wall times to instants: the two rules for the days on which the clock is changed.

Real time: a due time is every instant at which the wall shows a wanted time. One that the wall leaves out has no
instant, one that it shows twice has two; nothing is moved and nothing suppressed.

Fixed time: a due time is the first instant at which the wall has reached a wanted time. One that the wall leaves out
is reached at the first instant after the gap, one that it shows twice is reached the first time, and wanted times that
are reached in one instant are one due time.
"""

from typing import Protocol

from foliot.domain.errors import BadInput
from foliot.domain.timetable.zone import DAY_SECONDS, Stretch, Wall, stretches_back_from, stretches_from

HORIZON_DAYS = 50 * 366  # a trigger that has nothing within so many days never fires


def never_fires(field: str) -> BadInput:
    return BadInput.at(field, "can never fire; name a time that comes at least once in 50 years")


class Walls(Protocol):
    """A set of wall times, ordered."""

    def next(self, wall: Wall) -> Wall | None:
        """The first at or after `wall`; None where none comes within the horizon."""
        ...

    def previous(self, wall: Wall) -> Wall | None:
        """The last at or before `wall`; None where there is none within the horizon."""
        ...

    def count(self, first: Wall, beyond: Wall, limit: int) -> int:
        """How many lie from `first` until before `beyond`. What can only be counted one by one is counted up to
        `limit`."""
        ...


def next_instant(walls: Walls, zone_name: str, first: int, *, fixed: bool) -> int | None:
    """The first due instant at or after `first`."""
    asked, wall = None, None
    for stretch in stretches_from(zone_name, first):
        low = _lowest(stretch, max(first, stretch.start), fixed)
        if asked is None or low < asked or (wall is not None and wall < low):
            asked, wall = low, walls.next(low)
        if wall is None:
            return None
        if wall < stretch.end + stretch.offset:
            return max(wall - stretch.offset, stretch.start)
    return None


def previous_instant(walls: Walls, zone_name: str, last: int, *, fixed: bool) -> int | None:
    """The last due instant at or before `last`."""
    for stretch in stretches_back_from(zone_name, last):
        low = _lowest(stretch, stretch.start, fixed)
        high = min(last, stretch.end - 1) + stretch.offset
        if low <= high:
            wall = walls.previous(high)
            if wall is None:
                return None
            if wall >= low:
                return max(wall - stretch.offset, stretch.start)
    return None


def count_instants(walls: Walls, zone_name: str, first: int, last: int, limit: int, *, fixed: bool) -> int:
    """How many due instants lie from `first` to `last`, both included; `limit` as in `Walls.count`."""
    total = 0
    for stretch in stretches_from(zone_name, first):
        if stretch.start > last:
            break
        begin = max(first, stretch.start)
        low = _lowest(stretch, begin, fixed)
        beyond = min(last + 1, stretch.end) + stretch.offset
        shown = begin + stretch.offset
        if low < shown:  # all that the gap left out is one due time, and the same as that of its end
            total += min(1, walls.count(low, shown + 1, 1))
            low = shown + 1
        if low < beyond:
            total += walls.count(low, beyond, max(0, limit - total))
    return total


def first_instant(zone_name: str, wall: Wall) -> int:
    """The first instant at which the wall has reached `wall`."""
    for stretch in stretches_from(zone_name, wall - 2 * DAY_SECONDS):
        if wall < stretch.end + stretch.offset:
            return max(wall - stretch.offset, stretch.start)
    return wall  # past all that is ever due: no zone is needed to know it


def _lowest(stretch: Stretch, begin: int, fixed: bool) -> Wall:
    """The lowest wall time that is still to come at `begin`, an instant of the stretch."""
    if not fixed:
        return begin + stretch.offset
    if begin == stretch.start:
        return stretch.peak
    return max(begin + stretch.offset, stretch.peak)


def count_one_by_one(walls: Walls, first: Wall, beyond: Wall, limit: int) -> int:
    """`Walls.count` for what has no arithmetic of its own."""
    total, wall = 0, walls.next(first)
    while wall is not None and wall < beyond and total < limit:
        total, wall = total + 1, walls.next(wall + 1)
    return total
