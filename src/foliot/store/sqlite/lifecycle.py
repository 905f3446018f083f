"""Open and close, node numbers, taking away what is past, counts."""

import asyncio
import sqlite3
from collections import Counter
from collections.abc import AsyncIterator, Mapping

from foliot.clock import Clock
from foliot.domain import ids
from foliot.domain.duration import Micros
from foliot.domain.errors import Unavailable
from foliot.domain.job import State
from foliot.domain.status import STATUSES
from foliot.store.base import NodeInfo, NodeLease
from foliot.store.sqlite.batch import fetch, write
from foliot.store.sqlite.connection import SQL
from foliot.store.sqlite.intake import REQUEST_KEY_AGE
from foliot.store.sqlite.lanes import all_lanes
from foliot.store.sqlite.rows import keys_json
from foliot.store.sqlite.threads import Threads


class SqliteLifecycle(Threads):
    """`LifecycleStore` on SQLite. There is one process, so that there is nobody to send hints to or get them from."""

    kind = "sqlite"

    def __init__(self, path: str, *, clock: Clock | None = None, recording: bool = True) -> None:
        super().__init__(path, clock=clock, recording=recording)
        self._held_numbers: dict[int, Micros] = {}
        self._closed = asyncio.Event()

    async def open(self) -> None:
        if self._lock is not None:
            self._lock.take()
        try:
            await self._writer.start()
            if self._reader is not self._writer:
                await self._reader.start()
            self._meet(await self._read(all_lanes))
        except BaseException:
            await self.close()
            raise

    async def close(self) -> None:
        self._closed.set()
        if self._reader is not self._writer:
            await self._reader.stop()
        await self._writer.stop()
        if self._lock is not None:
            self._lock.release()

    async def now(self) -> Micros:
        return self._clock.now()

    async def applied(self) -> set[int]:
        return await self._read(
            lambda connection: {number for (number,) in connection.execute(SQL["applied_migrations"])}
        )

    async def acquire_node(self, name: str, version: str, now: Micros, until: Micros) -> NodeLease:
        lease = await self._write(lambda connection: _acquire_node(connection, name, version, now, until))
        self._held_numbers[lease.number] = now
        return lease

    async def beat_node(self, number: int, now: Micros, until: Micros, last_id: int) -> bool:
        columns = (number, self._held_numbers.get(number), now, until, last_id)
        return await self._write(lambda connection: bool(connection.execute(SQL["beat_node"], columns).fetchall()))

    async def release_node(self, number: int, last_id: int) -> None:
        columns = (number, self._held_numbers.pop(number, None), last_id)
        await self._write(lambda connection: connection.execute(SQL["release_node"], columns).close())

    async def nodes(self) -> list[NodeInfo]:
        def work(connection: sqlite3.Connection) -> list[NodeInfo]:
            return [
                NodeInfo(number=number, name=name, version=version, since=since, seen=seen, until=until)
                for number, name, version, since, seen, until, _ in connection.execute(SQL["all_nodes"])
            ]

        return await self._read(work)

    async def prepare_days(self, now: Micros) -> None:
        """Nothing to make: there are no partitions."""

    async def forget(self, before: Micros, limit: int) -> int:
        return await self._write(lambda connection: _forget(connection, before, limit, self._clock.now()))

    async def notify(self, hint: str) -> None:
        """Nobody to tell."""

    async def hints(self) -> AsyncIterator[str]:
        nothing: tuple[str, ...] = ()
        for hint in nothing:
            yield hint
        await self._closed.wait()

    async def counts(self, namespace: str) -> Mapping[str, int]:
        def work(connection: sqlite3.Connection) -> Mapping[str, int]:
            return dict.fromkeys(STATUSES, 0) | dict(connection.execute(SQL["counts"], (namespace,)).fetchall())

        return await self._read(work)


def _acquire_node(connection: sqlite3.Connection, name: str, version: str, now: Micros, until: Micros) -> NodeLease:
    known = {number: (ends, floor) for number, *_, ends, floor in connection.execute(SQL["all_nodes"])}
    for number in range(ids.NODES):
        ends, floor = known.get(number, (0, 0))
        if ends <= now:
            # A holder that went without a word may have made ids up to the end of its lease.
            floor = max(floor, ids.first_of(ends))
            connection.execute(SQL["put_node"], (number, name, version, now, now, until, floor))
            return NodeLease(number, floor, until)
    raise Unavailable(
        f"All {ids.NODES} node numbers are taken. Stop nodes that are not needed, or wait for a lease to end."
    )


def _forget(connection: sqlite3.Connection, before: Micros, limit: int, now: Micros) -> int:
    """The lines of a job's log first, so many at most: a job goes only with the last of them."""
    aged = (now - REQUEST_KEY_AGE, limit)
    taken = connection.execute(SQL["forget_request_keys"], aged).rowcount
    taken += connection.execute(SQL["forget_ledger"], (before, limit)).rowcount
    taken += connection.execute(SQL["forget_shares"], (limit,)).rowcount
    past = fetch(connection, "past_jobs", (ids.first_of(before), before, limit))
    taken += connection.execute(SQL["forget_logs"], (keys_json(key for key, *_ in past), limit)).rowcount
    room = limit - taken
    if room <= 0:
        return taken
    past = past[:room]
    keys = keys_json(key for key, *_ in past)
    named = [(namespace, name, key) for key, namespace, name, *_ in past if name is not None]
    write(connection, "forget_job_keys", named)
    unique = [(namespace, unique_key, key) for key, namespace, _, unique_key, *_ in past if unique_key is not None]
    write(connection, "forget_unique_keys", unique)
    for query in ("forget_edges", "forget_attempts", "delete_history", "forget_job"):
        connection.execute(SQL[query], (keys,))
    gone = Counter((lane_id, State(state).name.lower()) for *_, lane_id, state in past)
    write(connection, "count_forgotten", [(*key, -jobs, jobs) for key, jobs in gone.items()])
    return taken + len(past)
