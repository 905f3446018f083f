"""Noting on jobs that others depend on them, in the transaction that writes the edges.

A live parent is locked and marked in its own row, so that its end comes after our commit and knows of the edge. One
that has ended is noted for `release`, which then finds the edge. Between the two looks a job may move on, so they are
repeated until each is found in one place, or in none.
"""

from collections.abc import Iterable, Mapping

from foliot.domain.ids import JobKey
from foliot.domain.rank import Turn
from foliot.store.postgres.connections import Connection, columns
from foliot.store.postgres.part import SQL


class Parents:
    """What was found of some jobs: `live` ones are locked; `ended` have their state; the others are not there. `places`
    are those of ready ones in their lanes: a claim may have stepped over them meanwhile."""

    def __init__(self) -> None:
        self.live: set[JobKey] = set()
        self.ended: dict[JobKey, int] = {}
        self.places: list[tuple[int, Turn]] = []

    def __contains__(self, key: JobKey) -> bool:
        return key in self.live or key in self.ended

    async def note(self, connection: Connection, keys: Iterable[JobKey]) -> None:
        unknown = sorted({key for key in keys if key not in self})
        while unknown:
            for key, lane_id, rank in await connection.fetch(SQL["note_children"], unknown):
                self.live.add(key)
                if rank is not None:
                    self.places.append((lane_id, (rank, key)))
            missed = [key for key in unknown if key not in self.live]
            unknown = []
            if missed:
                for key, state in await connection.fetch(SQL["ended_states"], missed):
                    if state is None:
                        unknown.append(key)
                    else:
                        self.ended[key] = state


async def note_releases(connection: Connection, ended: Mapping[JobKey, int]) -> None:
    """Let `release` carry these ends on."""
    if ended:
        await connection.execute(SQL["insert_releases"], *columns(sorted(ended.items()), 2))
