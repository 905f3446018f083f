"""Queues: their rules, what is held, how full they are, and the order of their ready jobs."""

import sqlite3
from collections.abc import Sequence
from typing import Final

import msgspec

from foliot.domain.duration import Micros
from foliot.domain.job import Lane
from foliot.domain.queue import DEFAULT_RULES, Queue, QueueBook, Room, changes_order
from foliot.domain.rank import FAIR, cost, fair_ranks, rank
from foliot.domain.rate import carried_over
from foliot.store.base import Crowd, Ordered
from foliot.store.sqlite.admission import rooms
from foliot.store.sqlite.batch import fetch, write
from foliot.store.sqlite.connection import SQL
from foliot.store.sqlite.lanes import make_lanes
from foliot.store.sqlite.rows import Columns, keys_json, queue_of, rules_text, to_json
from foliot.store.sqlite.threads import Threads

MOST_COUNTED: Final = 100_000


class SqliteQueues(Threads):
    """`QueueStore` on SQLite. There is one writer: nothing needs to be locked."""

    async def queues(
        self, namespace: str, *, names: Sequence[str] | None = None, limit: int = 50, after: str = ""
    ) -> list[Queue]:
        def work(connection: sqlite3.Connection) -> list[Queue]:
            if names is None:
                found = fetch(connection, "queues_after", (namespace, after, limit))
            else:
                found = fetch(connection, "queues_among", (namespace, to_json(names)))
            return [queue_of(columns) for columns in found]

        return await self._read(work)

    async def special_queues(self) -> QueueBook:
        def work(connection: sqlite3.Connection) -> QueueBook:
            queues = [queue_of(columns) for columns in fetch(connection, "special_queues", ())]
            return QueueBook(queues, connection.execute(SQL["all_held_types"]).fetchall())

        return await self._read(work)

    async def put_queue(self, queue: Queue, *, expected: int | None, now: Micros) -> Queue | None:
        return await self._write(lambda connection: _put_queue(connection, queue, expected, now))

    async def hold_type(self, namespace: str, job_type: str, *, held: bool) -> None:
        query = SQL["hold_type" if held else "release_type"]
        await self._write(lambda connection: connection.execute(query, (namespace, job_type)).close())

    async def held_types(self, namespace: str) -> list[str]:
        return await self._read(
            lambda connection: [job_type for (job_type,) in connection.execute(SQL["held_types"], (namespace,))]
        )

    async def crowds(self, queue_ids: Sequence[int]) -> dict[int, Crowd]:
        def work(connection: sqlite3.Connection) -> dict[int, Crowd]:
            found = fetch(connection, "queue_crowds", (keys_json(queue_ids), MOST_COUNTED))
            return {
                queue_id: Crowd(waiting=waiting, running=running, oldest=oldest)
                for queue_id, running, (waiting, oldest) in found
            }

        return await self._read(work)

    async def rooms(self, queue_ids: Sequence[int]) -> dict[int, Room]:
        return await self._read(lambda connection: rooms(connection, queue_ids))

    async def put_in_order(self, lane_id: int, limit: int) -> Ordered:
        moved, lanes = await self._write(lambda connection: _put_in_order(connection, lane_id, limit))
        self._meet(lanes)
        return Ordered(moved, lanes.keys())

    async def refund(self, namespace: str, queue: str, fair_key: str, count: int) -> None:
        await self._write(lambda connection: _refund(connection, namespace, queue, fair_key, count))


def _put_queue(connection: sqlite3.Connection, wanted: Queue, expected: int | None, now: Micros) -> Queue | None:
    name = (wanted.namespace, wanted.name)
    columns = connection.execute(SQL["queue_named"], name).fetchone()
    if expected not in (None, 0 if columns is None else columns[3]):
        return None
    if columns is None:
        connection.execute(SQL["make_queue"], name)
        columns = connection.execute(SQL["queue_named"], name).fetchone()
        version = 1
    else:
        version = columns[3] + 1
    before, next_beat = queue_of(columns), columns[7]
    if (before.rules, before.paused) == (wanted.rules, wanted.paused):
        return before
    reordered = changes_order(before.rules, wanted.rules)
    after = msgspec.structs.replace(
        before,
        version=version,
        ordered=version if reordered else before.ordered,
        paused=wanted.paused,
        rules=wanted.rules,
    )
    if before.rules.rate_limit != after.rules.rate_limit:
        next_beat = carried_over(after.rules.rate_limit, next_beat, now)
    special = after.paused or after.rules != DEFAULT_RULES
    connection.execute(
        SQL["put_queue"],
        (after.queue_id, version, after.ordered, after.paused, special, next_beat, rules_text(after.rules)),
    )
    if before.rules.max_concurrency != after.rules.max_concurrency:
        counted = None if after.rules.max_concurrency is None else after.queue_id
        connection.execute(SQL["count_all_leases"], (after.queue_id, counted))
    if reordered:
        connection.execute(SQL["forget_all_shares"], (after.queue_id,))
    return after


def _put_in_order(connection: sqlite3.Connection, lane_id: int, limit: int) -> tuple[int, dict[int, Lane]]:
    columns = connection.execute(SQL["queue_of_lane"], (lane_id,)).fetchone()
    if columns is None:
        return 0, {}
    queue, fair_time, lane = queue_of(columns), columns[7], Lane(*columns[8:13])
    if lane.ordering == queue.ordering:
        return 0, {}
    if queue.rules.policy == "fair":
        ranked = _ranked_fairly(connection, queue, fair_time, fetch(connection, "first_keys_of_lane", (lane_id, limit)))
    else:
        found = fetch(connection, "first_of_lane", (lane_id, limit))
        ranked = [(key, rank(priority, due, queue.ordering)) for key, priority, due in found]
    if not ranked:
        return 0, {}
    ordered = msgspec.structs.replace(lane, ordering=queue.ordering)
    lanes = make_lanes(connection, [ordered])
    (target,) = lanes
    write(connection, "rank_ready", [(key, target, place) for key, place in ranked])
    return len(ranked), lanes


def _ranked_fairly(
    connection: sqlite3.Connection, queue: Queue, now: int, found: Sequence[Columns]
) -> list[tuple[int, int]]:
    """Ready jobs, given as (id, fair key), with their ranks; the times of their keys are moved on."""
    keys = [key for _, key in found]
    times: dict[str, int] = dict(fetch(connection, "shares_of", (queue.queue_id, to_json(set(keys)))))
    costs = {key: cost(weight) for key, weight in queue.rules.weights.items()}
    ranks = fair_ranks(keys, times, now, costs)
    write(connection, "put_share", [(queue.queue_id, key, time) for key, time in times.items()])
    return [(job, place) for (job, _), place in zip(found, ranks, strict=True)]


def _refund(connection: sqlite3.Connection, namespace: str, name: str, fair_key: str, count: int) -> None:
    columns = connection.execute(SQL["queue_named"], (namespace, name)).fetchone()
    if columns is None:
        return
    queue = queue_of(columns)
    if queue.ordering.startswith(FAIR):
        each = cost(queue.rules.weights.get(fair_key, 1.0))
        connection.execute(SQL["refund_share"], (queue.queue_id, fair_key, count * each))
