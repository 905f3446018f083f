"""Where to look for the jobs of a lane that were due first, without a look at all that wait.

In a job's own lane ranks are made of priority and due time (see `domain.rank`): of each priority those due first stand
at the beginning of its stretch of ranks. In a lane with an ordering the first by rank are looked at, whatever their due
times.
"""

from collections.abc import Iterable
from typing import Final

from foliot.domain.duration import Micros
from foliot.domain.ids import JobKey
from foliot.domain.rank import rank
from foliot.store.base import Waiter

IN_ORDER: Final = 100  # of a lane with an ordering that are looked at, or as many as are asked for
BEYOND: Final = (1 << 63) - 1  # above every rank

_PRIORITIES: Final = range(9, -1, -1)

Found = tuple[int, JobKey, Micros]  # the job's own lane, id, due


def stretches(before: Micros) -> list[tuple[int, int]]:
    """Of each priority the ranks, from one up to below another, of what was due before that."""
    return [(rank(priority, 0), rank(priority, before)) for priority in _PRIORITIES]


def first_due(found: Iterable[Found], before: Micros, limit: int) -> list[Waiter]:
    """Of each lane those due first, lane by lane."""
    lanes: dict[int, list[tuple[Micros, JobKey]]] = {}
    for lane_id, key, due in found:
        if due < before:
            lanes.setdefault(lane_id, []).append((due, key))
    return [
        Waiter(lane_id=lane_id, id=key, due=due)
        for lane_id in sorted(lanes)
        for due, key in sorted(lanes[lane_id])[:limit]
    ]
