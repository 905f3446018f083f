"""Jobs: keep them, load them, carry out changes, and what is known of their attempts."""

import sqlite3
from collections.abc import Sequence

import msgspec

from foliot.domain.changes import Change, Place
from foliot.domain.duration import Micros
from foliot.domain.ids import JobKey
from foliot.domain.job import Attempt, AttemptStatus, Ended, Lane, Lease, Record
from foliot.domain.status import execution_status
from foliot.store.base import Fenced, Filter, LogLine, Page, Saved, Submission
from foliot.store.sqlite import listing
from foliot.store.sqlite.batch import fetch, write
from foliot.store.sqlite.changes import save
from foliot.store.sqlite.connection import SQL
from foliot.store.sqlite.intake import Answer, Intake
from foliot.store.sqlite.lanes import make_lanes
from foliot.store.sqlite.records import load, rows_at
from foliot.store.sqlite.rows import attempt_of, keys_json, to_json
from foliot.store.sqlite.threads import Threads


class SqliteJobs(Threads):
    """`JobStore` on SQLite."""

    async def lane_ids(self, lanes: Sequence[Lane]) -> list[int]:
        unknown = {lane for lane in lanes if lane not in self._lane_numbers}
        if unknown:
            self._meet(await self._write(lambda connection: make_lanes(connection, unknown)))
        return [self._lane_numbers[lane] for lane in lanes]

    def lane(self, lane_id: int) -> Lane | None:
        return self._lanes.get(lane_id)

    async def insert_jobs(self, submissions: Sequence[Submission], now: Micros) -> list[Answer]:
        return await self._write(lambda connection: Intake(connection, submissions, self._moves(now)).answers())

    async def load(self, keys: Sequence[JobKey]) -> dict[JobKey, Record]:
        return await self._read(lambda connection: load(connection, keys, self._lanes))

    async def find(self, namespace: str, names: Sequence[str]) -> dict[str, JobKey]:
        def work(connection: sqlite3.Connection) -> dict[str, JobKey]:
            return {name: key for name, key, _ in connection.execute(SQL["job_keys"], (namespace, to_json(names)))}

        return await self._read(work)

    async def list_jobs(self, filter: Filter, *, limit: int, before: JobKey | None) -> Page:
        return await self._read(lambda connection: listing.page(connection, filter, limit, before, self._lanes))

    async def save(self, changes: Sequence[Change], now: Micros) -> Saved:
        return await self._write(lambda connection: save(connection, changes, self._moves(now)))

    async def outcomes(self, attempts: Sequence[tuple[JobKey, int]]) -> dict[tuple[JobKey, int], AttemptStatus]:
        def work(connection: sqlite3.Connection) -> dict[tuple[JobKey, int], AttemptStatus]:
            named, asked = (keys_json(key for key, _ in attempts),), set(attempts)
            return {
                (key, nonce): AttemptStatus(status)
                for query in ("final_outcomes", "past_outcomes")
                for key, nonce, status in fetch(connection, query, named)
                if (key, nonce) in asked
            }

        return await self._read(work)

    async def executions(self, key: JobKey) -> list[Attempt]:
        return await self._read(lambda connection: _executions(connection, key))

    async def result(self, key: JobKey) -> str | None:
        def work(connection: sqlite3.Connection) -> str | None:
            found: tuple[str | None] | None = connection.execute(SQL["result_of"], (key,)).fetchone()
            return None if found is None else found[0]

        return await self._read(work)

    async def append_logs(self, lines: Sequence[Fenced]) -> set[int]:
        return await self._write(lambda connection: _append_logs(connection, lines))

    async def logs(self, key: JobKey, *, after: int, level: int, limit: int) -> list[LogLine]:
        def work(connection: sqlite3.Connection) -> list[LogLine]:
            return [
                LogLine(log_id=log_id, id=id_, attempt=attempt, time=time, level=level_, message=message)
                for log_id, id_, attempt, time, level_, message in connection.execute(
                    SQL["logs_of"], (key, after, level, limit)
                )
            ]

        return await self._read(work)


def _executions(connection: sqlite3.Connection, key: JobKey) -> list[Attempt]:
    attempts = [attempt_of(columns) for columns in connection.execute(SQL["attempts_of"], (key,))]
    for row in rows_at(connection, Place.LEASES, [key]).values():
        assert isinstance(row, Lease)
        attempts.append(
            Attempt(
                id=key,
                attempt=row.attempt,
                status=execution_status(row),
                worker=row.worker,
                nonce=row.nonce,
                due=row.due,
                claimed=row.claimed,
                started=row.started,
                ended=None,
                admitted=row.since,
            )
        )
    for row in rows_at(connection, Place.HISTORY, [key]).values():
        assert isinstance(row, Ended)
        if row.last is not None:
            attempts.append(row.last)
    return attempts


def _append_logs(connection: sqlite3.Connection, lines: Sequence[Fenced]) -> set[int]:
    held = set(fetch(connection, "held", (keys_json({fenced.line.id for fenced in lines}),)))
    kept, refused = [], set()
    for fenced in lines:
        if (fenced.line.id, fenced.nonce) in held:
            kept.append(msgspec.structs.astuple(fenced.line))
        else:
            refused.add(fenced.line.log_id)
    write(connection, "insert_log", kept)
    return refused
