"""Queues: their rules, how full they are, and the order of their jobs.

A queue's row is locked by whoever changes its rules, puts its jobs in order or claims under its limits. Who sets limits
or holds something also waits for the claims under way, which look at a queue without locking it.
"""

from collections.abc import Sequence
from typing import Any, Final

import msgspec

from foliot.domain.duration import Micros
from foliot.domain.queue import DEFAULT_RULES, Queue, QueueBook, QueueRules, Room, changes_order
from foliot.domain.rank import FAIR, Turn, cost, fair_ranks, rank
from foliot.domain.rate import carried_over
from foliot.store.base import Crowd, Ordered
from foliot.store.postgres.connections import Connection, columns
from foliot.store.postgres.marks import Look
from foliot.store.postgres.part import SQL, Part, lane_names
from foliot.store.postgres.rows import Values, queue_of, rules_of, rules_text

COUNTED: Final = 100_000  # ready jobs of a queue that are counted for people
_LANE, _RANK = 5, 2  # where a ready row has them, as `enter_ready` takes it
_DUE, _PRIORITY = 1, 11


class Queues(Part):
    async def queues(
        self, namespace: str, *, names: Sequence[str] | None = None, limit: int = 50, after: str = ""
    ) -> list[Queue]:
        chosen = None if names is None else sorted(set(names))
        rows = await self._connections.read(SQL["queues"], namespace, after, chosen, limit)
        return [queue_of(tuple(row)) for row in rows]

    async def special_queues(self) -> QueueBook:
        held_types = await self._connections.read(SQL["all_held_types"])
        rows = await self._connections.read(SQL["special_queues"])
        return QueueBook([queue_of(tuple(row)) for row in rows], [(row[0], row[1]) for row in held_types])

    async def put_queue(self, queue: Queue, *, expected: int | None, now: Micros) -> Queue | None:
        async def work(connection: Connection) -> Queue | None:
            await connection.execute(SQL["fence_off_claims"])
            return await _put(connection, queue, expected, now)

        # What changes nothing holds nobody up.
        (known,) = await self.queues(queue.namespace, names=[queue.name]) or (None,)
        if known is None and expected:
            return None
        if known is not None and (expected not in (None, known.version) or _says(known) == _says(queue)):
            return known if expected in (None, known.version) else None
        return await self._connections.transact(work)

    async def hold_type(self, namespace: str, job_type: str, *, held: bool) -> None:
        async def work(connection: Connection) -> None:
            await connection.execute(SQL["fence_off_claims"])
            await connection.execute(SQL["hold_type"], namespace, job_type)

        if held:
            await self._connections.transact(work)
        else:
            await self._connections.write(SQL["let_type_go"], namespace, job_type)

    async def held_types(self, namespace: str) -> list[str]:
        return [row[0] for row in await self._connections.read(SQL["held_types"], namespace)]

    async def crowds(self, queue_ids: Sequence[int]) -> dict[int, Crowd]:
        rows = await self._connections.read(SQL["crowds"], sorted(set(queue_ids)), COUNTED)
        return {row[0]: Crowd(waiting=row[1], running=row[2], oldest=row[3]) for row in rows}

    async def rooms(self, queue_ids: Sequence[int]) -> dict[int, Room]:
        rows = await self._connections.read(SQL["rooms"], sorted(set(queue_ids)))
        return {
            queue_id: Room(rules=rules_of(rules), running=running, next_beat=next_beat)
            for queue_id, rules, running, next_beat, _ in rows
        }

    async def put_in_order(self, lane_id: int, limit: int) -> Ordered:
        await self._meet_lanes([lane_id])
        lane = self._lanes.get(lane_id)
        if lane is None:
            return Ordered(0)
        look = self._marks.look([lane_id])

        async def work(connection: Connection) -> Reordering:
            reordering = Reordering(lane_id, look)
            rows = await connection.fetch(SQL["lock_queue_of_lane"], lane_id)
            *values, fair_time = rows[0]
            queue = queue_of(values)
            if queue.ordering != lane.ordering:
                await reordering.take(connection, limit, fair=queue.ordering.startswith(FAIR))
            if reordering.rows:
                names = lane_names([msgspec.structs.replace(lane, ordering=queue.ordering)])
                await connection.execute(SQL["insert_lanes"], *names)
                reordering.lanes = [tuple(row) for row in await connection.fetch(SQL["lanes_by_name"], *names)]
                await reordering.put_back(connection, queue, fair_time)
            return reordering

        try:
            done = await self._connections.transact(work)
        except BaseException:
            self._marks.reset()
            raise
        for values in done.lanes:
            self._meet(*values)
        self._marks.lower(done.places)
        if done.reached is not None:
            look.found(lane_id, done.reached)
        return Ordered(len(done.rows), {target for target, _ in done.places})

    async def refund(self, namespace: str, queue: str, fair_key: str, count: int) -> None:
        async def work(connection: Connection) -> None:
            for row in await connection.fetch(SQL["lock_queue"], namespace, queue):
                *values, _ = row
                known = queue_of(values)
                if known.rules.policy == "fair":
                    back = count * cost(known.rules.weights.get(fair_key, 1.0))
                    await connection.execute(SQL["refund"], known.queue_id, fair_key, back)

        await self._connections.transact(work)


class Reordering:
    """Ready jobs of one lane on their way to another."""

    def __init__(self, lane_id: int, look: Look) -> None:
        self._lane_id = lane_id
        self._begin = look.begin[lane_id]
        self._fair_keys: list[str] = []
        self.rows: list[list[Any]] = []
        self.lanes: list[Values] = []
        self.places: list[tuple[int, Turn]] = []  # where they stand now
        self.reached: Turn | None = None  # the last one's place in the lane that they left

    async def take(self, connection: Connection, limit: int, *, fair: bool) -> None:
        for row in await connection.fetch(SQL["take_ready"], self._lane_id, *self._begin, limit, fair):
            *values, fair_key = row
            self.rows.append(values)
            self._fair_keys.append(fair_key)
            self.reached = (values[_RANK], values[0])

    async def put_back(self, connection: Connection, queue: Queue, fair_time: int) -> None:
        target = next(values[0] for values in self.lanes if values[5] == queue.ordering)
        if queue.rules.policy == "fair":
            ranks = await self._fair_ranks(connection, queue, fair_time)
        else:
            ranks = [rank(row[_PRIORITY], row[_DUE], queue.ordering) for row in self.rows]
        for row, new_rank in zip(self.rows, ranks, strict=True):
            row[_RANK], row[_LANE] = new_rank, target
        self.places = [(target, (row[_RANK], row[0])) for row in self.rows]
        await connection.execute(SQL["enter_ready"], *columns(self.rows, 14))

    async def _fair_ranks(self, connection: Connection, queue: Queue, fair_time: int) -> list[int]:
        keys = sorted(set(self._fair_keys))
        found = await connection.fetch(SQL["shares"], queue.queue_id, keys)
        times: dict[str, int] = {row[0]: row[1] for row in found}
        costs = {key: cost(weight) for key, weight in queue.rules.weights.items()}
        ranks = fair_ranks(self._fair_keys, times, fair_time, costs)
        await connection.execute(SQL["put_shares"], queue.queue_id, keys, [times[key] for key in keys])
        return ranks


def _says(queue: Queue) -> tuple[QueueRules, bool]:
    """What a user sets of it."""
    return queue.rules, queue.paused


def _settings(queue: Queue) -> Values:
    """As `make_queue` and `change_queue` take them: what was set, and what claims look at."""
    rules = queue.rules
    special = queue.paused or rules != DEFAULT_RULES
    return queue.paused, rules_text(rules), special, rules.limited, rules.max_concurrency


async def _put(connection: Connection, queue: Queue, expected: int | None, now: Micros) -> Queue | None:
    while not (rows := await connection.fetch(SQL["lock_queue"], queue.namespace, queue.name)):
        if expected:
            return None
        made = await connection.fetch(SQL["make_queue"], queue.namespace, queue.name, *_settings(queue))
        if made:
            return queue_of(tuple(made[0]))
    *values, next_beat = rows[0]
    before = queue_of(values)
    if expected not in (None, before.version):
        return None
    if _says(queue) == _says(before):
        return before
    version = before.version + 1
    reordered = changes_order(before.rules, queue.rules)
    after = msgspec.structs.replace(
        before,
        version=version,
        ordered=version if reordered else before.ordered,
        paused=queue.paused,
        rules=queue.rules,
    )
    rate = queue.rules.rate_limit
    beat = next_beat if rate == before.rules.rate_limit else carried_over(rate, next_beat, now)
    number = before.queue_id
    await connection.execute(SQL["change_queue"], number, version, after.ordered, *_settings(after), beat)
    if reordered:
        await connection.execute(SQL["forget_order"], number)
    match before.rules.max_concurrency, after.rules.max_concurrency:
        case None, int():
            await connection.execute(SQL["count_leases"], number)
        case int(), None:
            await connection.execute(SQL["count_leases_no_more"], number)
    return after
