"""Low-water marks: per lane, the place in its order before which every ready row is known to be gone.

Popped rows stay in the index until they are vacuumed, and no vacuum removes them while a snapshot is held open
anywhere, so that a claim would step over more of them each time. A mark lets it begin behind them. It may be wrong only
by missing a row, and not for long: it is lowered by whatever this process writes, by what other nodes tell with their
hints, and every `FULL_LOOK` a query begins at the bottom again.
"""

from collections.abc import Iterable, Mapping
from typing import Final

from foliot.clock import monotonic
from foliot.domain.duration import SECOND, Micros
from foliot.domain.ids import JobKey
from foliot.domain.job import Ready
from foliot.domain.rank import Turn

FULL_LOOK: Final[Micros] = SECOND
BOTTOM: Final[Turn] = (0, JobKey(0))
TOP: Final[Turn] = ((1 << 63) - 1, JobKey(0))


class Look:
    """One query's view of the marks: where each lane begins, and what it may then tell about them."""

    def __init__(self, marks: "Marks", lane_ids: Iterable[int], now: Micros) -> None:
        self._marks = marks
        self._started = marks.lowerings
        self._now = now
        self.begin: dict[int, Turn] = {lane_id: marks.begin(lane_id, now) for lane_id in lane_ids}

    def columns(self) -> tuple[list[int], list[int], list[int]]:
        """Lanes, ranks and ids, as the queries take them."""
        return columns_of(self.begin)

    def found(self, lane_id: int, first: Turn) -> None:
        """All rows of the lane before `first` are gone, or were not there when the query ran."""
        full = self._now if self.begin[lane_id] == BOTTOM else None
        self._marks.raise_to(lane_id, first, full=full, since=self._started)


class Marks:
    def __init__(self) -> None:
        self._marks: dict[int, Turn] = {}
        self._looked: dict[int, Micros] = {}
        self._lowered: dict[int, int] = {}  # lane → the number of the lowering that touched it last
        self._all_lowered = -1
        self._told: dict[int, Turn] = {}
        self.lowerings = 0

    def look(self, lane_ids: Iterable[int]) -> Look:
        return Look(self, lane_ids, monotonic())

    def begin(self, lane_id: int, now: Micros) -> Turn:
        """The place from which to look; the bottom where the last full look is too long ago."""
        return self._marks.get(lane_id, BOTTOM) if now - self._looked.get(lane_id, -FULL_LOOK) < FULL_LOOK else BOTTOM

    def columns(self) -> tuple[list[int], list[int], list[int]]:
        """The lanes with a mark that counts now, and their marks."""
        now = monotonic()
        return columns_of({lane_id: mark for lane_id in self._marks if (mark := self.begin(lane_id, now)) > BOTTOM})

    def raise_to(self, lane_id: int, first: Turn, *, full: Micros | None, since: int) -> None:
        """A query that began at lowering `since` saw nothing before `first`; what came later it did not see."""
        if max(self._lowered.get(lane_id, -1), self._all_lowered) >= since:
            return
        if full is not None:
            self._looked[lane_id] = full
            self._marks[lane_id] = first
        elif first > self._marks.get(lane_id, BOTTOM):
            self._marks[lane_id] = first

    def lower_to(self, rows: Iterable[object]) -> None:
        """These rows were written, or may have been; those that are ready count."""
        self.lower((row.lane_id, (row.rank, row.id)) for row in rows if isinstance(row, Ready))

    def lower(self, places: Iterable[tuple[int, Turn]], *, told: bool = False) -> None:
        """Rows may be at these places of their lanes. `told` by another node, it need not be told on."""
        for lane_id, place in places:
            self._lowered[lane_id] = self.lowerings
            if place < self._marks.get(lane_id, BOTTOM):
                self._marks[lane_id] = place
            if not told and place < self._told.get(lane_id, TOP):
                self._told[lane_id] = place
        self.lowerings += 1

    def reset(self) -> None:
        """Anything may have been written: look in full."""
        self._looked.clear()
        self._all_lowered = self.lowerings
        self.lowerings += 1

    def take_told(self) -> dict[int, Turn]:
        """The lowest places written by this process since the last call, for the other nodes."""
        told, self._told = self._told, {}
        return told


def columns_of(marks: Mapping[int, Turn]) -> tuple[list[int], list[int], list[int]]:
    return list(marks), [rank for rank, _ in marks.values()], [key for _, key in marks.values()]
