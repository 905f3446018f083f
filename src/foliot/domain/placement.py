"""Which worker gets how many of which lane: arithmetic on lanes, no job is looked at.

Within a queue the smaller rank goes first, whatever its lane. Between queues `Turns` decide, by weight, for each pool
of workers that serve the same. A queue gets no more than its limits leave it. A worker gets only of lanes it serves,
and of no resource more than it has free; where several could take a job, the one that could take the most of its kind
does. A job that fits nobody now is stepped over: those behind it that fit go on, and nothing is kept back for it.
"""

import heapq
from collections import Counter, deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice

import msgspec

from foliot.domain.ids import WorkerKey
from foliot.domain.job import Lane, QueueName
from foliot.domain.needs import holds, how_many, read_needs
from foliot.domain.worker import Worker

Amounts = tuple[tuple[str, int], ...]
Pool = tuple[str, tuple[str, ...], tuple[str, ...]]  # workers of one namespace that name the same queues and job types


class Demand(msgspec.Struct, frozen=True):
    """A worker and what it has free now: thousandths of each resource."""

    worker: Worker
    free: Mapping[str, int]


class Order(msgspec.Struct, frozen=True):
    """Claim up to `count` from the head of a lane for a worker. `limited` tells that the lane's queue has limits, so
    that the claim is charged to it."""

    lane_id: int
    worker: WorkerKey
    count: int
    limited: bool = False


def fits(demand: Demand, lane: Lane) -> bool:
    """Whether the worker could be given a job of the lane now."""
    return demand.worker.serves(lane) and holds(demand.free, read_needs(lane.needs).amounts)


def most(demands: Sequence[Demand], amounts: Amounts, limit: int) -> int:
    """How many jobs that hold these amounts all of them together have room for; `limit` where such jobs hold
    nothing."""
    counts = [how_many(demand.free, amounts) for demand in demands]
    return sum(limit if count is None else count for count in counts)


class Turns:
    """Whose turn it is between queues: each start moves its queue's time on by 1 / weight, and the queue whose time is
    the least goes next. Kept from plan to plan, so that weights hold also where there is room for one job at a time. A
    queue that comes back goes on from the time of the others: what it did not use is not saved up. Each pool has times
    of its own: what runs where a queue can not run is not held against it, nor does it use up anybody's lead."""

    def __init__(self, weight: Callable[[QueueName], float] = lambda _queue: 1.0) -> None:
        self._weight = weight
        self._times: dict[tuple[Pool, QueueName], float] = {}
        self._time: dict[Pool, float] = {}

    def begin(self, pool: Pool, queue: QueueName) -> float:
        """The time at which a queue's turn comes."""
        return max(self._times.get((pool, queue), 0.0), self._time.get(pool, 0.0))

    def start(self, pool: Pool, queue: QueueName) -> float:
        """One of its jobs is started; when its next turn comes."""
        self._time[pool] = self.begin(pool, queue)
        self._times[pool, queue] = self._time[pool] + 1 / self._weight(queue)
        return self._times[pool, queue]


def plan(
    demands: Sequence[Demand],
    lanes: Mapping[int, Lane],
    heads: Mapping[int, Sequence[int]],
    *,
    rooms: Mapping[QueueName, int] | None = None,
    turns: Turns | None = None,
    cut: int | None = None,
) -> list[Order]:
    """Orders for `demands` given the ranks at each lane's head, ascending. At most one order for a (lane, worker).
    `rooms` are the queues with limits, each with how many may start; their orders are `limited`. A head as long as
    `cut` may go on: once it is used up nothing more of its queue is ordered, since what comes next is not known."""
    rooms = rooms or {}
    takers = {
        lane_id: [demand for demand in demands if fits(demand, lanes[lane_id])] for lane_id in heads if heads[lane_id]
    }
    takers = {lane_id: found for lane_id, found in takers.items() if found}
    if len(takers) == 1:  # the usual case, without looking at each place
        (lane_id, found), *_ = takers.items()
        if len(found) == 1:
            there = min(len(heads[lane_id]), rooms.get(lanes[lane_id].line, _NO_END))
            count = how_many(found[0].free, read_needs(lanes[lane_id].needs).amounts)
            count = there if count is None else min(count, there)
            return [Order(lane_id, found[0].worker.id, count, lanes[lane_id].line in rooms)] if count else []
    counts: dict[tuple[int, WorkerKey], int] = {}
    for lane_id, worker in _starts(takers, demands, lanes, heads, dict(rooms), turns or Turns(), cut):
        counts[lane_id, worker] = counts.get((lane_id, worker), 0) + 1
    return [Order(lane_id, worker, count, lanes[lane_id].line in rooms) for (lane_id, worker), count in counts.items()]


def _starts(
    takers: Mapping[int, Sequence[Demand]],
    demands: Sequence[Demand],
    lanes: Mapping[int, Lane],
    heads: Mapping[int, Sequence[int]],
    rooms: dict[QueueName, int],
    turns: Turns,
    cut: int | None,
) -> Iterator[tuple[int, WorkerKey]]:
    """One start after the other: of which lane, by whom. Pools go round by round, as many starts as they have workers,
    so that what several can take is spread over them."""
    free = {demand.worker.id: dict(demand.free) for demand in demands}
    positions = dict.fromkeys(takers, 0)
    pools = Counter(_pool(demand) for demand in demands)
    going: deque[tuple[int, Iterator[tuple[int, WorkerKey]]]] = deque()
    for pool, members in pools.items():
        mine = takers if len(pools) == 1 else _within(pool, takers)
        going.append((members, _starts_in(pool, mine, free, lanes, heads, positions, rooms, turns, cut)))
    while going:
        members, starts = going.popleft()
        found = list(islice(starts, members))
        yield from found
        if len(found) == members:
            going.append((members, starts))


def _starts_in(
    pool: Pool,
    takers: Mapping[int, Sequence[Demand]],
    free: dict[WorkerKey, dict[str, int]],
    lanes: Mapping[int, Lane],
    heads: Mapping[int, Sequence[int]],
    positions: dict[int, int],
    rooms: dict[QueueName, int],
    turns: Turns,
    cut: int | None,
) -> Iterator[tuple[int, WorkerKey]]:
    """The starts of one pool. Between two of them others may have taken of the same lanes and rooms."""
    choices = _choices(takers, lanes)
    queues: dict[QueueName, list[tuple[int, int, int]]] = {}
    for lane_id in choices:
        heapq.heappush(queues.setdefault(lanes[lane_id].line, []), (heads[lane_id][0], lane_id, 0))
    line = [(turns.begin(pool, queue), place, queue) for place, queue in enumerate(queues)]
    heapq.heapify(line)
    while line:
        _, place, queue = line[0]
        heap = queues[queue]
        if not heap or rooms.get(queue, 1) <= 0:
            heapq.heappop(line)
            continue
        _, lane_id, position = heap[0]
        if position != positions[lane_id]:
            _go_on(heap, heads[lane_id], lane_id, positions[lane_id], cut)
            continue
        taker = choices[lane_id].take(free)
        if taker is None:
            heapq.heappop(heap)  # nobody has room for this lane any more; the queue's turn is not used up
            continue
        positions[lane_id] += 1
        _go_on(heap, heads[lane_id], lane_id, positions[lane_id], cut)
        if queue in rooms:
            rooms[queue] -= 1
        heapq.heapreplace(line, (turns.start(pool, queue), place, queue))
        yield lane_id, taker


def _go_on(
    heap: list[tuple[int, int, int]], ranks: Sequence[int], lane_id: int, position: int, cut: int | None
) -> None:
    """The lane on top stands at this position of its head now."""
    if position < len(ranks):
        heapq.heapreplace(heap, (ranks[position], lane_id, position))
    elif len(ranks) == cut:
        heap.clear()
    else:
        heapq.heappop(heap)


def _pool(demand: Demand) -> Pool:
    return demand.worker.namespace, demand.worker.queues, demand.worker.job_types


def _within(pool: Pool, takers: Mapping[int, Sequence[Demand]]) -> dict[int, list[Demand]]:
    found = {lane_id: [demand for demand in some if _pool(demand) == pool] for lane_id, some in takers.items()}
    return {lane_id: some for lane_id, some in found.items() if some}


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
