"""Job lists: newest first, merged from the places that can hold what was asked for.

A page looks at a bounded number of rows. Filters other than the place are applied to what was read, so that a rare
match costs pages and never a long statement.
"""

import sqlite3
from collections.abc import Callable, Sequence
from typing import Final

from foliot.domain.ids import JobKey
from foliot.domain.job import Job, Record, Row, State
from foliot.domain.status import STATUSES, status_of
from foliot.store.base import Filter, Page
from foliot.store.sqlite.batch import fetch
from foliot.store.sqlite.records import jobs_of, record_of, rows_of
from foliot.store.sqlite.rows import Columns, Lanes, ended_of, lease_of, ready_of, waiting_of

SCAN: Final = 2000
"""How many rows a page looks at, at most."""

_ABOVE_ALL: Final = (1 << 63) - 1
_SMALLEST_READ, _LARGEST_READ = 50, 500

Source = tuple[str, tuple[int, ...], Callable[[Columns], Row]]


def page(connection: sqlite3.Connection, asked: Filter, limit: int, before: JobKey | None, lanes: Lanes) -> Page:
    below = JobKey(_ABOVE_ALL) if before is None else before
    left = SCAN
    found: list[Record] = []
    while left > 0:
        count = min(max(limit - len(found) + 1, _SMALLEST_READ), _LARGEST_READ, left)
        rows = _newest(connection, asked, below, count)
        jobs = jobs_of(connection, (row.id for row in rows), lanes, payload=False)
        for row in rows:
            if len(found) == limit:
                return Page(found, below)
            if _matches(asked, row, jobs[row.id]):
                found.append(record_of(connection, jobs[row.id], row))
            below = row.id
        if len(rows) < count:
            return Page(found, None)
        left -= count
    return Page(found, below)


def _newest(connection: sqlite3.Connection, asked: Filter, below: JobKey, count: int) -> Sequence[Row]:
    """The newest rows below an id, fewer than `count` only where there are no more."""
    if asked.schedule_id is not None:
        found = fetch(connection, "list_of_schedule", (below, count, asked.schedule_id))
        rows = rows_of(connection, (key for (key,) in found))
        return sorted(rows.values(), key=lambda row: -row.id)
    read = [
        (columns, build)
        for query, parameters, build in _sources(frozenset(asked.statuses or STATUSES))
        for columns in fetch(connection, query, (below, count, *parameters))
    ]
    read.sort(key=lambda entry: -entry[0][0])
    return [build(columns) for columns, build in read[:count]]


def _sources(statuses: frozenset[str]) -> list[Source]:
    """The places where jobs of these statuses can be; history by state unless the completed are among them."""
    sources: list[Source] = []
    if statuses & {"scheduled", "blocked", "retrying", "paused"}:
        sources.append(("list_waiting", (), waiting_of))
    elif "queued" in statuses:
        sources.append(("list_for_key", (), waiting_of))
    if "queued" in statuses:
        sources.append(("list_ready", (), ready_of))
    if "running" in statuses:
        sources.append(("list_leases", (), lease_of))
    if "completed" in statuses:
        sources.append(("list_history", (), ended_of))
    else:
        sources.extend(
            ("list_not_completed", (int(state),), ended_of)
            for state in (State.FAILED, State.CANCELLED)
            if state.name.lower() in statuses
        )
    return sources


def _matches(asked: Filter, row: Row, job: Job) -> bool:
    return (
        job.lane.namespace == asked.namespace
        and (not asked.statuses or status_of(row) in asked.statuses)
        and (asked.job_type is None or job.lane.job_type == asked.job_type)
        and (asked.queue is None or job.lane.queue == asked.queue)
        and (not asked.queues or job.lane.queue in asked.queues)
        and (not asked.job_types or job.lane.job_type in asked.job_types)
        and (asked.owner is None or job.owner == asked.owner)
        and (asked.schedule_id is None or job.schedule_id == asked.schedule_id)
        and (asked.due_after is None or job.due >= asked.due_after)
        and (asked.due_before is None or job.due < asked.due_before)
        and (not asked.tags or set(asked.tags) <= set(job.tags))
    )
