"""What a claim owes its queues: it takes no more than their limits allow, and tells them what it took."""

from collections.abc import Mapping, Sequence

import msgspec

from foliot.domain.duration import Micros
from foliot.domain.job import Lane
from foliot.domain.placement import Order
from foliot.domain.queue import Room
from foliot.domain.rank import FAIR
from foliot.domain.rate import after_starts
from foliot.store.postgres.connections import Connection
from foliot.store.postgres.part import SQL
from foliot.store.postgres.rows import rules_of


class Charges:
    """One claim's. `lanes` and `queue_ids` tell of the lanes that it asks for."""

    def __init__(self, orders: Sequence[Order], lanes: Mapping[int, Lane], queue_ids: Mapping[int, int]) -> None:
        self._orders = orders
        self._queue_ids = queue_ids
        self._fair: dict[int, int] = {}  # lanes in fair order, and the version of the queue that ordered them
        self._limited: set[int] = set()  # queues
        self._rooms: dict[int, tuple[Room, Micros]] = {}
        self.time: Micros | None = None  # by which rates are charged, where any queue has limits
        for order in orders:
            lane = lanes.get(order.lane_id)
            if lane is None:
                continue
            if order.limited:
                self._limited.add(queue_ids[order.lane_id])
            if lane.ordering.startswith(FAIR):
                self._fair[order.lane_id] = int(lane.ordering.removeprefix(FAIR))

    def __bool__(self) -> bool:
        """Whether the claim is more than a statement of its own."""
        return bool(self._limited or self._fair)

    async def trim(self, connection: Connection) -> list[Order]:
        """The orders, those of queues with limits cut down to what is allowed now, the first ones first. Locks all
        queues that are told something afterwards: before the first row of `ready`, and in one order."""
        if not self._limited:
            return list(self._orders)
        await connection.execute(SQL["join_claims"])
        fair = {self._queue_ids[lane_id] for lane_id in self._fair}
        await connection.execute(SQL["lock_queues"], sorted(self._limited | fair))
        # Another statement: what others claimed before we had the locks is seen by a later one only. The clock as well
        # is read after the wait, so that charges follow each other in time.
        for queue_id, rules, running, next_beat, now in await connection.fetch(SQL["rooms"], sorted(self._limited)):
            self._rooms[queue_id] = Room(rules=rules_of(rules), running=running, next_beat=next_beat), now
            self.time = now
        left = {queue_id: room.starts(now) for queue_id, (room, now) in self._rooms.items()}
        trimmed = []
        for order in self._orders:
            queue_id = self._queue_ids.get(order.lane_id, 0)
            room = left.get(queue_id) if order.limited else None
            if room is None:
                trimmed.append(order)
                continue
            count = min(room, order.count)
            left[queue_id] = room - count
            if count:
                trimmed.append(msgspec.structs.replace(order, count=count))
        return trimmed

    async def pay(self, connection: Connection, claimed: Sequence[tuple[int, int]]) -> None:
        """Tell the queues of what was claimed: the lane and the rank of each job."""
        starts: dict[int, int] = {}
        reached: dict[tuple[int, int], int] = {}  # queue and version → the highest rank
        for lane_id, rank in claimed:
            queue_id = self._queue_ids[lane_id]
            starts[queue_id] = starts.get(queue_id, 0) + 1
            if lane_id in self._fair:
                order = queue_id, self._fair[lane_id]
                reached[order] = max(rank, reached.get(order, 0))
        beats = []
        for queue_id, (room, now) in sorted(self._rooms.items()):
            rate = room.rules.rate_limit
            if rate is not None and queue_id in starts:
                beats.append((queue_id, after_starts(rate, room.next_beat, now, starts[queue_id])))
        if beats:
            await connection.executemany(SQL["charge_rate"], beats)
        if reached:
            moves = [(queue_id, rank, ordered) for (queue_id, ordered), rank in sorted(reached.items())]
            await connection.executemany(SQL["move_fair_time"], moves)
