"""Carrying out changes: whoever deletes the row it names owns the move."""

from collections.abc import Iterable, Sequence
from typing import assert_never

import asyncpg

from foliot.domain.changes import Change, End, Mark, Place, Requeue
from foliot.domain.duration import Micros
from foliot.domain.ids import JobKey
from foliot.domain.job import Ready, Waiting
from foliot.store.base import Saved
from foliot.store.postgres.connections import Connection, columns
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
            return _saved(await self._connections.write(SQL["end_leases"], *_lease_ends(ends[Place.LEASES])))

        async def work(connection: Connection) -> Saved:
            saved = Saved(set(), set())
            for place in _ORDER:
                if place in ends:
                    ended = await _end(connection, place, ends[place])
                    saved.done.update(ended.done)
                    saved.freed.update(ended.freed)
                if place in requeues:
                    saved.done.update(await _requeue(connection, place, requeues[place]))
                if place is Place.LEASES and marks:
                    saved.done.update(await _mark(connection, marks))
            return saved

        try:
            return await self._connections.transact(work) if changes else Saved(set(), set())
        finally:
            self._marks.lower_to(requeue.row for group in requeues.values() for requeue in group)


def _key(change: Change) -> int:
    return change.id


def _saved(rows: Iterable[asyncpg.Record]) -> Saved:
    """What an end answers with: jobs, then schedules."""
    done, freed = set(), set()
    for key, schedule in rows:
        if schedule is None:
            done.add(key)
        else:
            freed.add(schedule)
    return Saved(done, freed)


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


async def _end(connection: Connection, place: Place, ends: Sequence[End]) -> Saved:
    if place is Place.LEASES:
        return _saved(await connection.fetch(SQL["end_leases"], *_lease_ends(ends)))
    values = [(end.id, end.version, end.state, end.reason, end.ended, end.error, end.result) for end in ends]
    return _saved(await connection.fetch(SQL[f"end_{place.value}"], *columns(values, 7)))


async def _requeue(connection: Connection, place: Place, requeues: Sequence[Requeue]) -> set[JobKey]:
    values = [(requeue.id, requeue.version, requeue.nonce) for requeue in requeues]
    left = {row[0] for row in await connection.fetch(SQL[f"leave_{place.value}"], *columns(values, 3))}
    moved = [requeue for requeue in requeues if requeue.id in left]
    waiting = [narrow_values(requeue.row) for requeue in moved if isinstance(requeue.row, Waiting)]
    ready = [narrow_values(requeue.row) for requeue in moved if isinstance(requeue.row, Ready)]
    attempts = [attempt_values(requeue.attempt) for requeue in moved if requeue.attempt is not None]
    jobs = [changed_job_values(requeue.job) for requeue in moved if requeue.job is not None]
    for query, rows, width in (
        ("enter_waiting", waiting, 14),
        ("enter_ready", ready, 12),
        ("insert_attempts", attempts, 11),
        ("change_jobs", jobs, 11),
    ):
        if rows:
            await connection.execute(SQL[query], *columns(rows, width))
    if place is Place.HISTORY and left:
        await connection.execute(SQL["reopen_runs"], sorted(left))
    return left


async def _mark(connection: Connection, marks: Sequence[Mark]) -> set[JobKey]:
    values = [(mark.id, mark.nonce, mark.started, mark.progress, mark.cancel_asked, mark.check_at) for mark in marks]
    marked: set[JobKey] = set()
    for start in range(0, len(values), _MARKS):
        rows = await connection.fetch(SQL["mark_leases"], *columns(values[start : start + _MARKS], 6))
        marked.update(row[0] for row in rows)
    return marked
