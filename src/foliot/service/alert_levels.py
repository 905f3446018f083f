"""How queues keep their objectives, from what all nodes counted minute by minute."""

from collections.abc import Iterable

from foliot.domain.duration import MINUTE, Micros
from foliot.domain.lateness import read_phases
from foliot.domain.objective import Burn, Counts, Objective, burn
from foliot.store.base import LatenessRow, Store

OPEN_MINUTES = 3 * MINUTE  # so long a minute's row may still be written anew
SLICE = 24 * 60 * MINUTE  # of rows that are read at once


class Levels:
    """How many jobs of a queue started in time, minute by minute; what is past is read once."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._minutes: dict[tuple[str, str], dict[Micros, Counts]] = {}
        self._read: dict[tuple[str, str], tuple[Objective, Micros]] = {}

    async def burn(self, line: tuple[str, str], objective: Objective, now: Micros) -> Burn:
        await self._refresh(line, objective, now)
        minutes = self._minutes[line]

        def counts_over(length: Micros) -> Counts:
            recent = [counts for minute, counts in minutes.items() if minute >= now - length]
            return sum(good for good, _ in recent), sum(total for _, total in recent)

        return burn(objective, counts_over)

    async def _refresh(self, line: tuple[str, str], objective: Objective, now: Micros) -> None:
        namespace, queue = line
        known, read = self._read.get(line, (None, 0))
        if known != objective:
            self._minutes[line], read = {}, 0
        start = max(now - objective.over, read - OPEN_MINUTES) // MINUTE * MINUTE
        minutes = {m: c for m, c in self._minutes[line].items() if now - objective.over <= m < start}
        while start <= now:
            rows = await self._store.lateness(namespace, start, min(start + SLICE, now + MINUTE))
            _count(minutes, (row for row in rows if row.queue == queue), objective.within)
            start += SLICE
        self._minutes[line], self._read[line] = minutes, (objective, now)


def _count(minutes: dict[Micros, Counts], rows: Iterable[LatenessRow], limit: Micros) -> None:
    for row in rows:
        good, total = read_phases(row.counts).late.within(limit)
        known = minutes.get(row.minute, (0, 0))
        minutes[row.minute] = known[0] + good, known[1] + total
