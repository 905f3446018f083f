"""What queues let a claim have, and what it is charged. A claim of plain lanes costs one look at them, no more."""

import sqlite3
from collections.abc import Iterable, Sequence

import msgspec

from foliot.domain.duration import Micros
from foliot.domain.ids import JobKey
from foliot.domain.placement import Order
from foliot.domain.queue import QueueRules, Room
from foliot.domain.rank import FAIR
from foliot.domain.rate import after_starts
from foliot.store.sqlite.batch import fetch, write
from foliot.store.sqlite.connection import SQL
from foliot.store.sqlite.rows import Columns, keys_json, rules_of


class _Lane(msgspec.Struct, frozen=True):
    """A lane that is not plain: nothing may start of it (`shut`), its queue has rules, or it has an ordering."""

    id: int
    ordering: str
    queue_id: int
    ordered: int
    shut: bool
    rules: QueueRules

    @property
    def moves_time(self) -> bool:
        """Whether ranks in it are by the times of the fair keys as they are kept now."""
        return self.ordering == f"{FAIR}{self.ordered}"


class Admission:
    """One claim's way past the queues: `admitted` before it, `charge` after it. `now` is the store's own time."""

    def __init__(self, now: Micros) -> None:
        self._now = now
        self._lanes: dict[int, _Lane] = {}
        self._rooms: dict[int, Room] = {}

    def admitted(self, connection: sqlite3.Connection, orders: Sequence[Order]) -> list[Order]:
        """The orders that may be carried out, cut to what the limits allow, the first ones first."""
        found = fetch(connection, "special_lanes", (keys_json({order.lane_id for order in orders}),))
        if not found:
            return list(orders)
        self._lanes = {columns[0]: _lane_of(columns) for columns in found}
        self._rooms = self._rooms_for(connection, orders)
        left = {queue_id: room.starts(self._now) for queue_id, room in self._rooms.items()}
        admitted = []
        for order in orders:
            lane = self._lanes.get(order.lane_id)
            if lane is None or (not lane.shut and not lane.rules.limited):
                admitted.append(order)
            elif order.limited and not lane.shut:
                count = min(order.count, left[lane.queue_id] or 0)
                left[lane.queue_id] = (left[lane.queue_id] or 0) - count
                admitted.append(msgspec.structs.replace(order, count=count))
        return [order for order in admitted if order.count]

    def _rooms_for(self, connection: sqlite3.Connection, orders: Sequence[Order]) -> dict[int, Room]:
        limited = {order.lane_id for order in orders if order.limited}
        queue_ids = {lane.queue_id for lane in self._lanes.values() if lane.id in limited and lane.rules.limited}
        return rooms(connection, queue_ids) if queue_ids else {}

    def charge(self, connection: sqlite3.Connection, popped: Sequence[tuple[JobKey, int, int]]) -> None:
        """Note what was claimed, as (id, lane, rank), on the queues that keep count of it."""
        if not self._lanes:
            return
        starts: dict[int, int] = {}
        times: dict[int, int] = {}
        counted: list[JobKey] = []
        for key, lane_id, rank in popped:
            lane = self._lanes.get(lane_id)
            if lane is None:
                continue
            starts[lane.queue_id] = starts.get(lane.queue_id, 0) + 1
            if lane.moves_time:
                times[lane.queue_id] = max(times.get(lane.queue_id, rank), rank)
            if lane.rules.max_concurrency is not None:
                counted.append(key)
        charges = [
            (queue_id, self._next_beat(queue_id, count), times.get(queue_id)) for queue_id, count in starts.items()
        ]
        write(connection, "charge_queue", [entry for entry in charges if entry[1:] != (None, None)])
        if counted:
            connection.execute(SQL["count_leases"], (keys_json(counted),))

    def _next_beat(self, queue_id: int, count: int) -> int | None:
        room = self._rooms.get(queue_id)
        rate = None if room is None else room.rules.rate_limit
        return None if room is None or rate is None else after_starts(rate, room.next_beat, self._now, count)


def rooms(connection: sqlite3.Connection, queue_ids: Iterable[int]) -> dict[int, Room]:
    found = {}
    for queue_id, text, next_beat, running in fetch(connection, "rooms_of", (keys_json(queue_ids),)):
        rules = rules_of(text)
        counts = rules.max_concurrency is not None
        found[queue_id] = Room(rules=rules, running=running if counts else None, next_beat=next_beat)
    return found


def _lane_of(columns: Columns) -> _Lane:
    lane_id, ordering, queue_id, ordered, shut, rules = columns
    return _Lane(lane_id, ordering, queue_id, ordered, bool(shut), rules_of(rules))
