"""A job with its one row, read as one snapshot."""

import sqlite3
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final

from foliot.domain.changes import Place
from foliot.domain.ids import JobKey
from foliot.domain.job import Attempt, Ended, Job, Lease, Record, Row
from foliot.store.sqlite.batch import fetch
from foliot.store.sqlite.connection import SQL
from foliot.store.sqlite.rows import (
    Columns,
    Lanes,
    attempt_of,
    ended_of,
    job_of,
    keys_json,
    lease_of,
    ready_of,
    waiting_of,
)

_LIVE_ROWS_OF: Final[Mapping[Place, tuple[str, Callable[[Columns], Row]]]] = {
    Place.WAITING: ("waiting_of", waiting_of),
    Place.READY: ("ready_of", ready_of),
    Place.LEASES: ("leases_of", lease_of),
}

INLINE: Final = 4096
"""Payloads of so many characters come with their wide row; longer ones are read by themselves, to keep texts small."""


def rows_at(connection: sqlite3.Connection, place: Place, keys: Iterable[JobKey]) -> dict[JobKey, Row]:
    """The rows of these jobs that are in that place."""
    named = (keys_json(keys),)
    if place is Place.HISTORY:
        return {columns[0]: ended_of(columns) for columns in connection.execute(SQL["history_of"], named)}
    query, build = _LIVE_ROWS_OF[place]
    return {columns[0]: build(columns) for columns in fetch(connection, query, named)}


def rows_of(connection: sqlite3.Connection, keys: Iterable[JobKey]) -> dict[JobKey, Row]:
    """The one row of each of these jobs, wherever it is."""
    rows: dict[JobKey, Row] = {}
    wanted = list(keys)
    for place in Place:
        rows.update(rows_at(connection, place, wanted))
    return rows


def jobs_of(
    connection: sqlite3.Connection, keys: Iterable[JobKey], lanes: Lanes, *, payload: bool = True
) -> dict[JobKey, Job]:
    """The wide rows of these jobs."""
    named = keys_json(keys)
    rows = fetch(connection, "jobs_of", (named, INLINE)) if payload else fetch(connection, "job_heads_of", (named,))
    return {job.id: job for job in build_jobs(connection, rows, lanes)}


def build_jobs(connection: sqlite3.Connection, rows: Sequence[Columns], lanes: Lanes) -> list[Job]:
    """Wide rows, those payloads added that were too long to come with them."""
    long = [columns[0] for columns in rows if columns[-1] is None]
    if not long:
        return [job_of(columns, columns[-1], lanes) for columns in rows]
    payloads: dict[JobKey, Any] = dict(connection.execute(SQL["payloads_of"], (keys_json(long),)).fetchall())
    return [job_of(columns, payloads.get(columns[0]) or columns[-1], lanes) for columns in rows]


def load(connection: sqlite3.Connection, keys: Iterable[JobKey], lanes: Lanes) -> dict[JobKey, Record]:
    """Each of these jobs that there is, in the order given."""
    wanted = list(keys)
    rows = rows_of(connection, wanted)
    jobs = jobs_of(connection, rows, lanes)
    return {key: record_of(connection, jobs[key], rows[key]) for key in wanted if key in rows}


def record_of(connection: sqlite3.Connection, job: Job, row: Row) -> Record:
    return Record(job=job, row=row, last=_last_attempt(connection, row))


def _last_attempt(connection: sqlite3.Connection, row: Row) -> Attempt | None:
    """The latest attempt that is over. A job's first has nothing before it, so that most jobs cost no look-up."""
    if isinstance(row, Ended) and row.last is not None:
        return row.last
    if row.attempt <= (1 if isinstance(row, Lease) else 0):
        return None
    columns = connection.execute(SQL["latest_attempt"], (row.id,)).fetchone()
    return None if columns is None else attempt_of(columns)
