"""Carrying out changes: whoever deletes the row it names owns the move."""

from collections.abc import Iterable, Sequence
from typing import Any, assert_never

import asyncpg
import msgspec

from foliot.domain.changes import Change, End, Mark, Place, Requeue
from foliot.domain.duration import Micros
from foliot.domain.ids import JobKey, ScheduleKey
from foliot.domain.job import Ready, Ties, Waiting
from foliot.domain.rank import Turn
from foliot.store.base import Saved, Timing
from foliot.store.postgres.connections import Connection, columns
from foliot.store.postgres.intake import put_unique_keys
from foliot.store.postgres.journal import Journal, Left
from foliot.store.postgres.parents import Parents, note_releases
from foliot.store.postgres.part import SQL, Part
from foliot.store.postgres.rows import attempt_values, changed_job_values, narrow_values

_MARKS = 100  # in one statement
_ORDER = (Place.WAITING, Place.READY, Place.LEASES, Place.HISTORY)  # in which rows are locked


class Changes(Part):
    async def save(self, changes: Sequence[Change], now: Micros) -> Saved:
        ends: dict[Place, list[End]] = {}
        requeues: dict[Place, list[Requeue]] = {}
        marks: list[Mark] = []
        for change in sorted(changes, key=_key):
            match change:
                case End():
                    ends.setdefault(change.source, []).append(change)
                case Requeue():
                    requeues.setdefault(change.source, []).append(change)
                case Mark():
                    marks.append(change)
                case _:
                    assert_never(change)
        if not requeues and not marks and ends.keys() == {Place.LEASES}:
            moves = Moves(now)
            moves.note_lease_ends(await self._record(SQL["end_leases"], *_lease_ends(ends[Place.LEASES]), now))
            return moves.saved()

        async def work(connection: Connection) -> Moves:
            moves = Moves(now)
            for place in _ORDER:
                if place in ends:
                    await moves.end(connection, place, ends[place])
                if place in requeues:
                    await moves.requeue(connection, place, requeues[place])
                if place is Place.LEASES and marks:
                    moves.done.update(await _mark(connection, marks))
            await moves.record(connection)
            return moves

        if not changes:
            return Saved(set(), set())
        try:
            moves = await self._transact(work)
        except BaseException:
            if Place.HISTORY in requeues:  # parents of theirs may have been replaced
                self._marks.reset()
            raise
        finally:
            self._marks.lower_to(requeue.row for group in requeues.values() for requeue in group)
        self._marks.lower(moves.places)
        return moves.saved()


class Moves:
    """What one transaction did at `now`, statement by statement."""

    def __init__(self, now: Micros) -> None:
        self._now = now
        self._journal = Journal()
        self.done: set[JobKey] = set()
        self.freed: set[ScheduleKey] = set()
        self.limits: set[int] = set()
        self.queues: set[int] = set()
        self.parents_ended = False
        self.timings: list[Timing] = []
        self.places: list[tuple[int, Turn]] = []  # of ready rows that were replaced besides

    def saved(self) -> Saved:
        return Saved(self.done, self.freed, self.limits, self.parents_ended, self.queues, tuple(self.timings))

    async def record(self, connection: Connection) -> None:
        """What the statements did not record by themselves."""
        await self._journal.write(connection, self._now)

    def note_ends(self, rows: Iterable[Any]) -> None:
        """What an end answers with: jobs, then schedules."""
        for key, schedule, limit_id, has_children, queue_id in rows:
            if schedule is not None:
                self.freed.add(schedule)
                continue
            self.done.add(key)
            if limit_id is not None:
                self.limits.add(limit_id)
            if has_children:
                self.parents_ended = True
            if queue_id is not None:
                self.queues.add(queue_id)

    def note_lease_ends(self, rows: Iterable[asyncpg.Record]) -> None:
        """As `note_ends`, with the times of the attempts."""
        others = []
        for key, schedule, limit_id, has_children, queue_id, lane, state, due, since, claimed, started, ended in rows:
            if schedule is None:
                self.timings.append(Timing(lane, state, due, since, claimed, started, ended, key))
            if has_children or schedule is not None or limit_id is not None or queue_id is not None:
                others.append((key, schedule, limit_id, has_children, queue_id))
            else:
                self.done.add(key)
        self.note_ends(others)

    async def end(self, connection: Connection, place: Place, ends: Sequence[End]) -> None:
        if place is Place.LEASES:
            values = (*_lease_ends(ends), self._now, *connection.stamp())
            self.note_lease_ends(await connection.fetch(SQL["end_leases"], *values))
            return
        left = [(end.id, end.version, end.state, end.reason, end.ended, end.error, end.result) for end in ends]
        while left:
            stamped = (*columns(left, 7), self._now, *connection.stamp())
            self.note_ends(await connection.fetch(SQL[f"end_{place.value}"], *stamped))
            there = await self._still_ready(connection, place, [(each[0], each[1]) for each in left])
            left = [each for each in left if each[0] in there]

    async def requeue(self, connection: Connection, place: Place, requeues: Sequence[Requeue]) -> None:
        values = [(requeue.id, requeue.version, requeue.nonce) for requeue in requeues]
        left: dict[JobKey, int] = {}
        stood: dict[JobKey, Left] = {}
        while values:
            for key, limit_id, ties, queue_id, lane_id, status in await connection.fetch(
                SQL[f"leave_{place.value}"], *columns(values, 3)
            ):
                left[key] = ties
                stood[key] = (lane_id, status)
                if limit_id is not None:
                    self.limits.add(limit_id)
                if queue_id is not None:
                    self.queues.add(queue_id)
            self.done.update(left)
            there = await self._still_ready(connection, place, [(each[0], each[1]) for each in values])
            values = [each for each in values if each[0] in there]
        moved = [requeue for requeue in requeues if requeue.id in left]
        then = [_with_ties(requeue.row, left[requeue.id]) for requeue in moved]
        for row in then:
            self._journal.enter(row, stood[row.id])
        self.limits.update(
            row.limit_id for row in then if isinstance(row, Waiting) and row.for_key and row.limit_id is not None
        )
        for query, arguments, width in (
            ("enter_waiting", [narrow_values(row) for row in then if isinstance(row, Waiting)], 17),
            ("enter_ready", [narrow_values(row) for row in then if isinstance(row, Ready)], 14),
            ("insert_attempts", [attempt_values(r.attempt) for r in moved if r.attempt is not None], 12),
            ("change_jobs", [changed_job_values(r.job) for r in moved if r.job is not None], 16),
        ):
            if arguments:
                await connection.execute(SQL[query], *columns(arguments, width))
        changed = [r.job for r in moved if r.job is not None and r.job.unique_key is not None]
        await put_unique_keys(connection, [(job.lane.namespace, job.unique_key or "", job.id) for job in changed])
        if place is Place.HISTORY and moved:
            await connection.execute(SQL["reopen_runs"], sorted(left))
            await self._reopen(connection, moved)

    async def _still_ready(
        self, connection: Connection, place: Place, rows: Sequence[tuple[JobKey, int | None]]
    ) -> set[JobKey]:
        """Those of these ready rows (id, version) that somebody replaced, as they were, while we waited for them. He is
        done, and the row that is there now is seen by the next statement; another one may replace that, so they are
        looked for until none is left."""
        others = [] if place is not Place.READY else [row for row in rows if row[0] not in self.done]
        if not others:
            return set()
        return {row[0] for row in await connection.fetch(SQL["still_ready"], *columns(others, 2))}

    async def _reopen(self, connection: Connection, requeues: Sequence[Requeue]) -> None:
        """Of the edges to jobs that run once more, those from the parents named count again, and no others. Their own
        children, as far as they were not told of the end, wait for the next one."""
        children = sorted(r.id for r in requeues if r.reopened or r.row.ties & Ties.PARENTS)
        if children:
            await connection.execute(SQL["close_edges"], children)
        opened = sorted((parent, r.id) for r in requeues for parent in r.reopened)
        if opened:
            await connection.execute(SQL["open_edges"], *columns(opened, 2))
        untold = await connection.fetch(SQL["take_back_releases"], sorted(r.id for r in requeues))
        parents = Parents()
        await parents.note(connection, {row[0] for row in untold} | {parent for parent, _ in opened})
        await note_releases(connection, parents.ended)
        self.parents_ended |= bool(parents.ended)
        self.places += parents.places


def _with_ties(row: Waiting | Ready, ties: int) -> Waiting | Ready:
    """With what was noted on the row that it replaces since that was looked at."""
    return row if row.ties | ties == row.ties else msgspec.structs.replace(row, ties=row.ties | ties)


def _key(change: Change) -> int:
    return change.id


def _lease_ends(ends: Sequence[End]) -> list[list[object]]:
    return columns(
        [
            (
                end.id,
                end.version,
                end.nonce,
                end.state,
                end.reason,
                end.ended,
                end.attempt_status,
                end.started,
                end.error,
                end.exit_code,
                end.result,
            )
            for end in ends
        ],
        11,
    )


async def _mark(connection: Connection, marks: Sequence[Mark]) -> set[JobKey]:
    values = [(mark.id, mark.nonce, mark.started, mark.progress, mark.cancel_asked, mark.check_at) for mark in marks]
    marked: set[JobKey] = set()
    for start in range(0, len(values), _MARKS):
        rows = await connection.fetch(SQL["mark_leases"], *columns(values[start : start + _MARKS], 6))
        marked.update(row[0] for row in rows)
    return marked
