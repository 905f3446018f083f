"""Jobs that depend on jobs: ends of parents carried on to their children, and what children are told."""

import sqlite3
from collections.abc import Iterable, Sequence

from foliot.domain import events, ids, states
from foliot.domain.changes import End, Place, Requeue
from foliot.domain.duration import Micros
from foliot.domain.graph import BROKEN_BY, Edge, On, holds
from foliot.domain.ids import JobKey
from foliot.domain.job import Ready, State, Waiting
from foliot.domain.retry import DEFAULT as ANY_RETRY
from foliot.store.base import Due, Released, Upstream
from foliot.store.sqlite.batch import fetch, write
from foliot.store.sqlite.changes import Moves
from foliot.store.sqlite.connection import SQL
from foliot.store.sqlite.records import rows_at
from foliot.store.sqlite.rows import keys_json
from foliot.store.sqlite.threads import Threads


class SqliteGraph(Threads):
    """`GraphStore` on SQLite."""

    async def release(self, limit: int, now: Micros) -> Released:
        def work(connection: sqlite3.Connection) -> Released:
            (waiting,) = connection.execute(SQL["any_release"]).fetchone()
            return _Release(connection, self._moves(now)).carry_on(limit) if waiting else Released()

        return await self._write(work)

    async def edges(self, keys: Sequence[JobKey], limit: int) -> list[Edge]:
        def work(connection: sqlite3.Connection) -> list[Edge]:
            found = fetch(connection, "edges_of", (keys_json(keys), limit))
            return [Edge(parent, child, On(on), bool(done)) for parent, child, on, done in found]

        return await self._read(work)

    async def upstream(self, keys: Sequence[JobKey], longest: int) -> dict[JobKey, list[Upstream]]:
        return await self._read(lambda connection: _upstream(connection, keys, longest))


def _upstream(connection: sqlite3.Connection, keys: Iterable[JobKey], longest: int) -> dict[JobKey, list[Upstream]]:
    told: dict[JobKey, list[Upstream]] = {}
    for child, parent, name, state, result, too_long in connection.execute(
        SQL["upstream_of"], (keys_json(keys), longest)
    ):
        shown = ids.show(ids.JOB, parent) if name is None else name
        told.setdefault(child, []).append(
            Upstream(id=parent, name=shown, state=State(state), result=result, too_long=bool(too_long))
        )
    return told


class _Release:
    """One call's share of what ended parents mean to their children."""

    def __init__(self, connection: sqlite3.Connection, moves: Moves) -> None:
        self._connection = connection
        self._now = moves.now
        self._moves = moves
        self._counts: list[tuple[JobKey, int]] = []
        self._lanes: set[int] = set()
        self._due: list[Due] = []
        self._cancelled: set[JobKey] = set()

    def carry_on(self, limit: int) -> Released:
        ends: dict[JobKey, list[tuple[On, State]]] = {}
        told: list[tuple[JobKey, JobKey]] = []
        for parent, child, on, state in fetch(self._connection, "open_edges", (limit,)):
            ends.setdefault(child, []).append((On(on), State(state)))
            told.append((parent, child))
        for row in rows_at(self._connection, Place.WAITING, ends).values():
            assert isinstance(row, Waiting)
            if row.parents:
                self._tell(row, ends[row.id])
        write(self._connection, "count_parents", self._counts)
        write(self._connection, "finish_edge", told)
        self._connection.execute(SQL["finish_releases"], (limit,))
        self._moves.write(self._connection)
        (more,) = self._connection.execute(SQL["any_release"]).fetchone()
        return Released(
            lanes=self._lanes,
            due=self._due,
            limits=self._moves.limits,
            cancelled=self._cancelled,
            freed=self._moves.freed,
            more=bool(more),
        )

    def _tell(self, row: Waiting, ends: Sequence[tuple[On, State]]) -> None:
        """What becomes of a child whose parents, these of them, have ended."""
        broken = next((state for on, state in ends if not holds(on, state)), None)
        if broken is not None:
            self._end(row, events.ParentEndedOtherwise(reason=BROKEN_BY[broken]))
        elif row.parents > len(ends):
            self._counts.append((row.id, row.parents - len(ends)))
        else:
            self._go_on(row)

    def _end(self, row: Waiting, event: events.ParentEndedOtherwise) -> None:
        end = states.transition(row, event, self._now, retry=ANY_RETRY)
        assert isinstance(end, End)
        self._moves.take(row)
        self._moves.end(row, end)
        self._cancelled.add(row.id)

    def _go_on(self, row: Waiting) -> None:
        change = states.transition(row, events.ParentsDone(), self._now, retry=ANY_RETRY)
        assert isinstance(change, Requeue)
        self._moves.take(row)
        self._moves.put(change.row)
        match change.row:
            case Ready(lane_id=lane_id):
                self._lanes.add(lane_id)
            case Waiting(hold=False, for_key=False):
                self._due.append(Due(change.row.due, row.id))
