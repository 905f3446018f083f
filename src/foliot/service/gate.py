"""What stands between a lane with ready jobs and a claim: the rules of its queue.

A node keeps a book of the queues that have rules of their own. It may be old for a moment: the store decides by what is
true, and a claim from an old book gets less than it asked for. Lanes from which nothing can be claimed now are put
aside and flagged again when that may have changed: at the moment at which a rate lets the next one start, when a place
in a full queue becomes free, when somebody changes the rules.
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Literal

from foliot.clock import Clock
from foliot.domain.duration import SECOND, Micros
from foliot.domain.job import Lane, QueueName, Ready, Record
from foliot.domain.queue import QueueBook
from foliot.domain.rank import rank
from foliot.service.wake import Wake
from foliot.store.base import Store

IN_ORDER_CHUNK = 1000
AGAIN = SECOND // 20  # others were faster, or hold the rows: soon, but not at once


class Gate:
    def __init__(self, store: Store, clock: Clock, wake: Wake) -> None:
        self._store = store
        self._clock = clock
        self._wake = wake
        self.book = QueueBook()
        self.on_disorder: list[Callable[[], None]] = []
        self.on_moment: list[Callable[[], None]] = []
        self._disordered: set[int] = set()
        self._aside: dict[QueueName, set[int]] = {}
        self._moments: dict[QueueName, Micros] = {}
        self._queue_ids: dict[int, QueueName] = {}
        self._freed: Counter[int] = Counter()  # how often a queue got a place, so that none is overlooked during a look
        wake.on_place.append(lambda queue_ids, _tell: self._place_free(queue_ids))

    async def refresh(self) -> None:
        """Learn the rules anew."""
        self.book = await self._store.special_queues()

    def open(self, lane_id: int, lane: Lane) -> bool:
        """Whether jobs of the lane may be given out at all. Those that do not stand as their queue's policy asks are
        put in order first."""
        return not self.book.held(lane) if self.book.in_order(lane) else self._disorder(lane_id)

    def in_order(self, lane_ids: Collection[int]) -> list[int]:
        """Those lanes that need not be put in order, as far as is known; the others will be."""
        lanes = ((lane_id, self._store.lane(lane_id)) for lane_id in lane_ids)
        return [
            lane_id for lane_id, lane in lanes if lane is None or self.book.in_order(lane) or self._disorder(lane_id)
        ]

    def _disorder(self, lane_id: int) -> Literal[False]:
        self._disordered.add(lane_id)
        for listener in self.on_disorder:
            listener()
        return False

    async def put_in_order(self) -> int:
        """Put in order what has become ready in queues of another policy than `priority`, and all where a policy was
        changed; how many jobs were moved."""
        moved = 0
        while self._disordered:
            lane_id = self._disordered.pop()
            ordered = await self._store.put_in_order(lane_id, IN_ORDER_CHUNK)
            moved += ordered.moved
            if ordered.moved == IN_ORDER_CHUNK:
                self._disordered.add(lane_id)
            if ordered.lanes:
                self._wake.ready(ordered.lanes)
            else:
                await self._look_again(lane_id)
        return moved

    async def _look_again(self, lane_id: int) -> None:
        """Nothing was moved: others did it, or the lane is in order by rules that were not known here yet."""
        await self.refresh()
        lane = self._store.lane(lane_id)
        if lane is None or self.book.in_order(lane):
            self._wake.ready([lane_id], tell=False)

    async def rooms(self, lanes: Mapping[int, Lane]) -> dict[QueueName, int]:
        """How many may start now in each queue that has limits. Where that is none, its lanes are put aside."""
        limited = {
            lane.line: queue for lane in lanes.values() if (queue := self.book.queue(lane)) and queue.rules.limited
        }
        if not limited:
            return {}
        seen = self._freed.copy()
        rooms = await self._store.rooms([queue.queue_id for queue in limited.values()])
        now = self._clock.now()
        found: dict[QueueName, int] = {}
        for name, queue in limited.items():
            self._queue_ids[queue.queue_id] = name
            room = rooms.get(queue.queue_id)
            starts = None if room is None else room.starts(now)
            if room is None or starts is None:
                continue
            found[name] = starts
            if not starts and seen[queue.queue_id] == self._freed[queue.queue_id]:
                self.put_aside(name, [each for each in lanes if lanes[each].line == name], until=room.wait_until(now))
        return found

    def put_aside(self, name: QueueName, lane_ids: Iterable[int], *, until: Micros | None) -> None:
        """Leave these lanes alone until a place in their queue becomes free, and no longer than `until`."""
        self._aside.setdefault(name, set()).update(lane_ids)
        if until is not None:
            self._moments[name] = until
            for listener in self.on_moment:
                listener()

    def is_aside(self, lane_id: int, lane: Lane) -> bool:
        return lane_id in self._aside.get(lane.line, ())

    def try_again(self, lanes: Mapping[int, Lane]) -> None:
        """Of these, which have limits, less was claimed than there seemed to be."""
        for lane_id, lane in lanes.items():
            self.put_aside(lane.line, [lane_id], until=self._clock.now() + AGAIN)

    @property
    def next_moment(self) -> Micros | None:
        """When a rate lets the next one start."""
        return min(self._moments.values(), default=None)

    def let_in(self) -> bool:
        """Flag what was put aside until now or before; whether there was any."""
        now = self._clock.now()
        due = [name for name, moment in self._moments.items() if moment <= now]
        for name in due:
            self._flag(name)
        return bool(due)

    async def refund(self, left: Sequence[Record]) -> None:
        """Jobs that were ready went away without a start: in a fair queue their key's time goes back."""
        counts: dict[tuple[str, str, str], int] = {}
        for record in left:
            queue = self.book.queue(record.job.lane)
            row = record.row
            if queue is None or queue.rules.policy != "fair" or not isinstance(row, Ready):
                continue
            if row.rank != rank(row.priority, row.due):  # else it did not stand in order yet
                key = record.job.owner if record.job.fair_key is None else record.job.fair_key
                counts[*record.job.lane.line, key] = counts.get((*record.job.lane.line, key), 0) + 1
        for (namespace, name, key), count in counts.items():
            await self._store.refund(namespace, name, key, count)

    def _place_free(self, queue_ids: Collection[int]) -> None:
        self._freed.update(queue_ids)
        for queue_id in queue_ids:
            if (name := self._queue_ids.get(queue_id)) is not None:
                self._flag(name)

    def _flag(self, name: QueueName) -> None:
        self._moments.pop(name, None)
        lanes = self._aside.pop(name, None)
        if lanes:
            self._wake.ready(lanes, tell=False)
