"""Which worker gets how many of which lane: arithmetic on lanes, no job is looked at.

Within a queue the smaller rank goes first, whatever its lane. Between queues the heads take turns. A worker gets at
most what it has free, and only of lanes it serves; where several could take a job, the one with the most room does.
"""

import heapq
from collections.abc import Mapping, Sequence

import msgspec

from foliot.domain.ids import WorkerKey
from foliot.domain.job import Lane
from foliot.domain.worker import Worker


class Demand(msgspec.Struct, frozen=True):
    """A worker and how many jobs it can take now."""

    worker: Worker
    free: int


class Order(msgspec.Struct, frozen=True):
    """Claim up to `count` from the head of a lane for a worker."""

    lane_id: int
    worker: WorkerKey
    count: int


def plan(demands: Sequence[Demand], lanes: Mapping[int, Lane], heads: Mapping[int, Sequence[int]]) -> list[Order]:
    """Orders for `demands` given the ranks at each lane's head, ascending. At most one order for a (lane, worker)."""
    room = {d.worker.id: d.free for d in demands if d.free > 0}
    workers = {d.worker.id: d.worker for d in demands}
    takers = {
        lane_id: [key for key in room if workers[key].serves(lanes[lane_id])] for lane_id in heads if heads[lane_id]
    }
    if len(takers) == 1:  # the usual case, without looking at each place
        (lane_id, keys), *_ = takers.items()
        if len(keys) == 1:
            return [Order(lane_id, keys[0], min(room[keys[0]], len(heads[lane_id])))]
    counts: dict[tuple[int, WorkerKey], int] = {}
    queues: dict[tuple[str, str], list[tuple[int, int, int]]] = {}
    for lane_id, keys in takers.items():
        if keys:
            lane = lanes[lane_id]
            heapq.heappush(queues.setdefault((lane.namespace, lane.queue), []), (heads[lane_id][0], lane_id, 0))
    while queues and room:
        for queue in list(queues):
            heap = queues[queue]
            _, lane_id, position = heapq.heappop(heap)
            taker = max((key for key in takers[lane_id] if key in room), key=room.__getitem__, default=None)
            if taker is not None:
                counts[lane_id, taker] = counts.get((lane_id, taker), 0) + 1
                room[taker] -= 1
                if not room[taker]:
                    del room[taker]
                if position + 1 < len(heads[lane_id]):
                    heapq.heappush(heap, (heads[lane_id][position + 1], lane_id, position + 1))
            if not heap:
                del queues[queue]
    return [Order(lane_id, worker, count) for (lane_id, worker), count in counts.items()]
