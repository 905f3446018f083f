"""Moves of jobs between their places, gathered over a whole call and then written table by table, with what the record
tells of them.

There is one writer: what a call has read in its transaction stays true until it commits, so that rows are checked in
Python and then written in bulk.
"""

import sqlite3
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Final

import msgspec

from foliot.domain.changes import Change, End, Mark, Place, Requeue
from foliot.domain.duration import Micros
from foliot.domain.feed import Happening
from foliot.domain.ids import JobKey, ScheduleKey
from foliot.domain.job import ENDED_STATES, Attempt, Ended, Job, Lease, Ready, Row, State, Ties, Waiting
from foliot.domain.states import place_of
from foliot.domain.status import status_of
from foliot.store.base import NewJob, Saved, Timing
from foliot.store.sqlite import edges
from foliot.store.sqlite.batch import fetch, write
from foliot.store.sqlite.connection import SQL
from foliot.store.sqlite.journal import NUMBERS, write_batch
from foliot.store.sqlite.records import rows_at
from foliot.store.sqlite.rows import Columns, as_columns, job_columns, keys_json

_DELETES: Final = {place: SQL[f"delete_{place.value}"] for place in Place}
_ENDED: Final = {int(state): state.name.lower() for state in State}
_CHILDREN: Final = int(Ties.CHILDREN)
_RUNNING: Final = NUMBERS["running"]
_ENDED_NUMBERS: Final = {int(state): NUMBERS[_ENDED[state]] for state in ENDED_STATES}


class Moves:
    """What a call takes from where and puts where at `now`; `write` carries it out, table by table."""

    def __init__(self, now: Micros, *, recording: bool) -> None:
        self.now = now
        self._recording = recording
        self._statuses: dict[JobKey, str] = {}  # of what was taken
        self._entries: list[Columns] = []  # of the record, as the fields of `Entry`
        self._happenings: list[Happening] = []
        self._taken: dict[Place, list[JobKey]] = {place: [] for place in Place}
        self._waiting: list[Columns] = []
        self._ready: list[Columns] = []
        self._leases: list[Columns] = []
        self._history: list[Columns] = []
        self._attempts: list[Columns] = []
        self._new_jobs: list[Columns] = []
        self._new_watched_jobs: list[Columns] = []
        self._job_keys: list[Columns] = []
        self._changed_jobs: list[Columns] = []
        self._ended: list[JobKey] = []  # out of waiting or ready
        self._closed: list[JobKey] = []  # out of leases, runs among them
        self._given_back: list[JobKey] = []  # out of leases, not ended
        self._redriven: list[JobKey] = []
        self._reopened: list[tuple[JobKey, JobKey]] = []  # parents and children
        self._unique_keys: list[tuple[str, str, JobKey]] = []
        self.freed: set[ScheduleKey] = set()  # the schedules that have a run less, once this is written
        self.limits: set[int] = set()  # the concurrency keys that may have a token or a waiter more
        self.queues: set[int] = set()  # the queues that count fewer leases, once this is written
        self.releases: dict[JobKey, int] = {}  # ended jobs that have children, and how they ended
        self.timings: list[Timing] = []  # of the attempts that ended their job
        self._left: list[tuple[int, str]] = []
        self._came: list[tuple[int, str]] = []
        self._tally: Counter[tuple[int, str]] = Counter()

    def take(self, row: Row) -> None:
        if isinstance(row, Lease):
            place, status = Place.LEASES, "running"
            self._given_back.append(row.id)
        elif isinstance(row, Ready):
            place, status = Place.READY, "queued"
        else:
            place, status = place_of(row), status_of(row)
        if isinstance(row, Lease | Ready) and row.limit_id is not None:
            self.limits.add(row.limit_id)
        self._taken[place].append(row.id)
        self._left.append((row.lane_id, status))
        self._statuses[row.id] = status

    def lease(self, leases: Sequence[Lease]) -> None:
        """Ready rows become these leases."""
        self._taken[Place.READY] += [lease.id for lease in leases]
        self._leases += map(as_columns, leases)
        for lane_id, jobs in Counter([lease.lane_id for lease in leases]).items():
            self._tally[lane_id, "queued"] -= jobs
            self._tally[lane_id, "running"] += jobs
        if self._recording:
            self._entries += [
                (
                    lease.id,
                    lease.lane_id,
                    _RUNNING,
                    lease.version,
                    lease.attempt,
                    lease.counted,
                    lease.worker,
                    lease.claimed,
                    None,
                )
                for lease in leases
            ]

    def put(self, row: Waiting | Ready) -> None:
        if isinstance(row, Ready):
            rows, status = self._ready, "queued"
        else:
            rows, status = self._waiting, status_of(row)
            if row.for_key and row.limit_id is not None:
                self.limits.add(row.limit_id)
        rows.append(as_columns(row))
        self._came.append((row.lane_id, status))
        if self._recording and self._statuses.get(row.id) != status:
            number = NUMBERS[status]
            self._entries.append((row.id, row.lane_id, number, row.version, row.attempt, row.counted, None, None, None))

    def end(self, row: Waiting | Ready, end: End) -> None:
        """Put the row of history: what `end` says, the rest from the row that it replaces; no attempt was under way."""
        self._history.append(
            (
                row.id,
                row.lane_id,
                int(end.state),
                end.reason,
                row.attempt,
                row.counted,
                row.lost,
                row.version + 1,
                row.due,
                end.ended,
                end.exit_code,
                end.error,
                end.result,
            )
        )
        self._ended.append(row.id)
        if row.ties & _CHILDREN:
            self.releases[row.id] = int(end.state)
        status = _ENDED[end.state]
        self._came.append((row.lane_id, status))
        if self._recording:
            counts = (row.version + 1, row.attempt, row.counted)
            self._entries.append((row.id, row.lane_id, NUMBERS[status], *counts, None, None, end.reason))

    def end_leases(self, connection: sqlite3.Connection, ends: Sequence[End]) -> list[JobKey]:
        """Write the rows of history of those ends whose lease is as they say, and take these leases; their ids."""
        if not ends:
            return []
        named = (keys_json(end.id for end in ends),)
        leases = {columns[0]: columns for columns in fetch(connection, "leases_to_end", named)}
        taken = [end for end in ends if end.id in leases and _is_held(leases[end.id], end)]
        rows = [_end_columns(end) for end in taken]
        write(connection, "end_leases", rows)
        self._close((*leases[row[0]], *row) for row in rows)
        self._taken[Place.LEASES] += [end.id for end in taken]
        return [end.id for end in taken]

    def _close(self, ended: Iterable[Columns]) -> None:
        """Note what comes with the ends of leases, given as `leases_to_end` and `_end_columns` have them."""
        timings, entries, closed = self.timings, self._entries, []
        for (
            key,
            version,
            _,
            lane_id,
            attempt,
            counted,
            worker,
            due,
            since,
            claimed,
            noted,
            schedule,
            limit_id,
            ties,
            queue_id,
            _,
            state,
            reason,
            time,
            _,
            started,
            *_,
        ) in ended:
            if started is None:
                started = noted
            timings.append(Timing(lane_id, state, due, since, claimed, started, time, key))
            closed.append((lane_id, state))
            if self._recording:
                began = claimed if started is None else started
                number = _ENDED_NUMBERS[state]
                entries.append((key, lane_id, number, version + 1, attempt, counted, worker, began, reason))
            if schedule is not None:
                self.freed.add(schedule)
                self._closed.append(key)
            if limit_id is not None:
                self.limits.add(limit_id)
            if ties & _CHILDREN:
                self.releases[key] = state
            if queue_id is not None:
                self.queues.add(queue_id)
        for (lane_id, state), jobs in Counter(closed).items():
            self._tally[lane_id, _ENDED[state]] += jobs
            self._tally[lane_id, "running"] -= jobs

    def happen(self, happenings: Sequence[Happening]) -> None:
        """Let these be recorded with the moves."""
        if self._recording:
            self._happenings += happenings

    def add(self, namespace: str, new: NewJob) -> None:
        job = new.job
        if job.notify is None and job.trace is None:
            self._new_jobs.append(job_columns(job))
        else:
            self._new_watched_jobs.append((*job_columns(job), job.notify, job.trace))
        self.put(new.row)
        if new.job.name is not None:
            self._job_keys.append((namespace, new.job.name, new.job.id, new.body_hash))
        if new.job.unique_key is not None:
            self._unique_keys.append((namespace, new.job.unique_key, new.job.id))

    def change_job(self, job: Job) -> None:
        self._changed_jobs.append((*job_columns(job), job.notify, job.trace))
        if job.unique_key is not None:
            self._unique_keys.append((job.lane.namespace, job.unique_key, job.id))

    def add_attempt(self, attempt: Attempt) -> None:
        self._attempts.append(as_columns(attempt))

    def redrive(self, key: JobKey, reopened: Sequence[JobKey]) -> None:
        """It is out of history again: where it is a schedule's run, that is under way; it waits for these parents once
        more, and its own children, as far as they do not know of its end yet, wait for the next one."""
        self._redriven.append(key)
        self._reopened += [(parent, key) for parent in reopened]

    def write(self, connection: sqlite3.Connection) -> None:
        self._close_runs(connection)
        if self._given_back:
            found = fetch(connection, "queues_of_leases", (keys_json(self._given_back),))
            self.queues.update(queue_id for (queue_id,) in found)
        for place, keys in self._taken.items():
            if keys:
                connection.execute(_DELETES[place], (keys_json(keys),))
        for query, rows in (
            ("insert_job", self._new_jobs),
            ("insert_watched_job", self._new_watched_jobs),
            ("insert_job_key", self._job_keys),
            ("replace_job", self._changed_jobs),
            ("insert_waiting", self._waiting),
            ("insert_ready", self._ready),
            ("insert_lease", self._leases),
            ("insert_history", self._history),
            ("insert_attempt", self._attempts),
            ("put_unique_key", self._unique_keys),
        ):
            write(connection, query, rows)
        if self._redriven:
            self._redrive(connection)
        write(connection, "put_release", list(self.releases.items()))
        self._tally.update(self._came)
        self._tally.subtract(self._left)
        write(connection, "count", [(*key, change) for key, change in self._tally.items() if change])
        write_batch(connection, self.now, self._entries, self._happenings)

    def _redrive(self, connection: sqlite3.Connection) -> None:
        connection.execute(SQL["reopen_runs"], (keys_json(self._redriven),))
        edges.redrive(connection, self._redriven)
        if self._reopened:
            self.releases.update(edges.reopen(connection, self._reopened))

    def _close_runs(self, connection: sqlite3.Connection) -> None:
        """Ends of leases have named their schedules; most jobs have none, and cost no step of their own."""
        if self._ended:
            found = fetch(connection, "schedules_of_runs", (keys_json(self._ended),))
            self.freed.update(schedule for (schedule,) in found)
        if self.freed:
            connection.execute(SQL["close_runs"], (keys_json(self._closed + self._ended),))


def save(connection: sqlite3.Connection, changes: Sequence[Change], moves: Moves) -> Saved:
    ends: list[End] = []
    marks: list[Mark] = []
    others: dict[Place, list[Requeue | End]] = {place: [] for place in Place}
    for change in changes:
        if isinstance(change, Mark):
            marks.append(change)
        elif isinstance(change, End) and change.source is Place.LEASES:
            ends.append(change)
        else:
            others[change.source].append(change)
    done = set(moves.end_leases(connection, ends))
    for place, replacing in others.items():
        rows = rows_at(connection, place, [change.id for change in replacing]) if replacing else {}
        for change in replacing:
            row = rows.pop(change.id, None)
            if row is not None and _is_current(row, change):
                _replace(moves, row, change)
                done.add(change.id)
    done.update(_mark(connection, marks))
    moves.write(connection)
    return Saved(done, moves.freed, moves.limits, bool(moves.releases), moves.queues, tuple(moves.timings))


def _mark(connection: sqlite3.Connection, marks: Sequence[Mark]) -> list[JobKey]:
    if not marks:
        return []
    held = set(fetch(connection, "held", (keys_json(mark.id for mark in marks),)))
    valid = [mark for mark in marks if (mark.id, mark.nonce) in held]
    write(connection, "mark_leases", [msgspec.structs.astuple(mark) for mark in valid])
    return [mark.id for mark in valid]


def _is_held(lease: Columns, end: End) -> bool:
    """Whether a lease, given as `leases_to_end` has it, is the one that an end is of."""
    return end.version in (None, lease[1]) and end.nonce in (None, lease[2])


def _end_columns(end: End) -> Columns:
    return (
        end.id,
        int(end.state),
        end.reason,
        end.ended,
        None if end.attempt_status is None else int(end.attempt_status),
        end.started,
        end.exit_code,
        end.error,
        end.result,
    )


def _is_current(row: Row, change: Requeue | End) -> bool:
    if change.version is not None and row.version != change.version:
        return False
    return change.nonce is None or (isinstance(row, Lease) and row.nonce == change.nonce)


def _replace(moves: Moves, row: Row, change: Requeue | End) -> None:
    moves.take(row)
    match change:
        case End():
            assert isinstance(row, Waiting | Ready), "what has ended does not end again, and leases end in bulk"
            moves.end(row, change)
        case Requeue():
            # A child that came after the row was loaded is noted in the row that is there.
            ties = 0 if isinstance(row, Ended) else row.ties
            moves.put(change.row if not ties else msgspec.structs.replace(change.row, ties=change.row.ties | ties))
            if change.source is Place.HISTORY:
                moves.redrive(change.id, change.reopened)
            if change.attempt is not None:
                moves.add_attempt(change.attempt)
            if change.job is not None:
                moves.change_job(change.job)
