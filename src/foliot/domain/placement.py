"""Which worker gets how many of which lane: arithmetic on lanes, no job is looked at.

Within a queue the smaller rank goes first, whatever its lane. Between queues the heads take turns. A worker gets only
of lanes it serves, and of no resource more than it has free; where several could take a job, the one that could take
the most of its kind does. A job that fits nobody now is stepped over: those behind it that fit go on, and nothing is
kept back for it.
"""

import heapq
from collections.abc import Mapping, Sequence

import msgspec

from foliot.domain.ids import WorkerKey
from foliot.domain.job import Lane
from foliot.domain.needs import holds, how_many, read_needs
from foliot.domain.worker import Worker

Amounts = tuple[tuple[str, int], ...]


class Demand(msgspec.Struct, frozen=True):
    """A worker and what it has free now: thousandths of each resource."""

    worker: Worker
    free: Mapping[str, int]


class Order(msgspec.Struct, frozen=True):
    """Claim up to `count` from the head of a lane for a worker."""

    lane_id: int
    worker: WorkerKey
    count: int


def fits(demand: Demand, lane: Lane) -> bool:
    """Whether the worker could be given a job of the lane now."""
    return demand.worker.serves(lane) and holds(demand.free, read_needs(lane.needs).amounts)


def most(demands: Sequence[Demand], amounts: Amounts, limit: int) -> int:
    """How many jobs that hold these amounts all of them together have room for; `limit` where such jobs hold
    nothing."""
    counts = [how_many(demand.free, amounts) for demand in demands]
    return sum(limit if count is None else count for count in counts)


def plan(demands: Sequence[Demand], lanes: Mapping[int, Lane], heads: Mapping[int, Sequence[int]]) -> list[Order]:
    """Orders for `demands` given the ranks at each lane's head, ascending. At most one order for a (lane, worker)."""
    takers = {
        lane_id: [demand for demand in demands if fits(demand, lanes[lane_id])] for lane_id in heads if heads[lane_id]
    }
    takers = {lane_id: found for lane_id, found in takers.items() if found}
    if len(takers) == 1:  # the usual case, without looking at each place
        (lane_id, found), *_ = takers.items()
        if len(found) == 1:
            there = len(heads[lane_id])
            count = how_many(found[0].free, read_needs(lanes[lane_id].needs).amounts)
            return [Order(lane_id, found[0].worker.id, there if count is None else min(count, there))]
    counts: dict[tuple[int, WorkerKey], int] = {}
    rooms = {demand.worker.id: dict(demand.free) for demand in demands}
    choices = _choices(takers, lanes)
    queues: dict[tuple[str, str], list[tuple[int, int, int]]] = {}
    for lane_id in choices:
        lane = lanes[lane_id]
        heapq.heappush(queues.setdefault((lane.namespace, lane.queue), []), (heads[lane_id][0], lane_id, 0))
    while queues:
        for queue in list(queues):
            heap = queues[queue]
            _, lane_id, position = heap[0]
            taker = choices[lane_id].take(rooms)
            if taker is not None:
                counts[lane_id, taker] = counts.get((lane_id, taker), 0) + 1
                position += 1
            if taker is not None and position < len(heads[lane_id]):
                heapq.heapreplace(heap, (heads[lane_id][position], lane_id, position))
            else:
                heapq.heappop(heap)
                if not heap:
                    del queues[queue]
    return [Order(lane_id, worker, count) for (lane_id, worker), count in counts.items()]


def _choices(takers: Mapping[int, Sequence[Demand]], lanes: Mapping[int, Lane]) -> dict[int, "Choice"]:
    """The choice of each lane: one for all that need the same of the same workers, so that it is counted once."""
    made: dict[tuple[Amounts, tuple[WorkerKey, ...]], Choice] = {}
    found: dict[int, Choice] = {}
    for lane_id, demands in takers.items():
        amounts = read_needs(lanes[lane_id].needs).amounts
        alike = amounts, tuple([demand.worker.id for demand in demands])
        if alike not in made:
            made[alike] = Choice(amounts, demands)
        found[lane_id] = made[alike]
    return found


class Choice:
    """Who takes the next job of a kind. Rooms only shrink, so what was counted for a worker before is the most that it
    can take now: only the one on top is counted anew."""

    def __init__(self, amounts: Amounts, takers: Sequence[Demand]) -> None:
        self._amounts = amounts
        self._heap = [(-_count(taker.free, amounts), place, taker.worker.id) for place, taker in enumerate(takers)]
        heapq.heapify(self._heap)

    def take(self, rooms: dict[WorkerKey, dict[str, int]]) -> WorkerKey | None:
        """The worker with the most room, its room made smaller; None where the job fits nobody any more."""
        heap = self._heap
        while heap:
            counted, place, key = heap[0]
            room = rooms[key]
            count = _count(room, self._amounts)
            if count == -counted:
                for name, amount in self._amounts:
                    room[name] = room.get(name, 0) - amount
                _settle(heap, count - 1 if count < _NO_END else count, place, key)
                return key
            _settle(heap, count, place, key)
        return None


_NO_END = 1 << 62


def _count(free: Mapping[str, int], amounts: Amounts) -> int:
    count = how_many(free, amounts)
    return _NO_END if count is None else count


def _settle(heap: list[tuple[int, int, WorkerKey]], count: int, place: int, key: WorkerKey) -> None:
    if count > 0:
        heapq.heapreplace(heap, (-count, place, key))
    else:
        heapq.heappop(heap)
