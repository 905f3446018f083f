"""Jobs: keep them, load them, carry out changes, and what is known of their attempts."""

import sqlite3
from collections.abc import Iterable, Sequence
from typing import Final

import msgspec

from foliot.domain import ids
from foliot.domain.changes import Change, Place
from foliot.domain.duration import DAY, Micros
from foliot.domain.ids import JobKey
from foliot.domain.job import Attempt, AttemptStatus, Ended, Lane, Lease, Record
from foliot.domain.status import execution_status
from foliot.store.base import Accepted, Clash, Fenced, Filter, LogLine, NewJob, Page, Saved, Submission
from foliot.store.sqlite import listing
from foliot.store.sqlite.batch import fetch, write
from foliot.store.sqlite.changes import Moves, save
from foliot.store.sqlite.connection import SQL
from foliot.store.sqlite.records import load, rows_at
from foliot.store.sqlite.rows import attempt_of, keys_json, to_json
from foliot.store.sqlite.threads import Threads

REQUEST_KEY_AGE: Final = DAY
_shown_ids = msgspec.json.Decoder(tuple[str, ...])


class SqliteJobs(Threads):
    """`JobStore` on SQLite."""

    async def lane_ids(self, lanes: Sequence[Lane]) -> list[int]:
        unknown = {lane for lane in lanes if lane not in self._lane_numbers}
        if unknown:
            self._meet(await self._write(lambda connection: _make_lanes(connection, unknown)))
        return [self._lane_numbers[lane] for lane in lanes]

    def lane(self, lane_id: int) -> Lane | None:
        return self._lanes.get(lane_id)

    async def insert_jobs(self, submissions: Sequence[Submission], now: Micros) -> list[Accepted | Clash]:
        return await self._write(lambda connection: _Intake(connection, submissions, now).answers())

    async def load(self, keys: Sequence[JobKey]) -> dict[JobKey, Record]:
        return await self._read(lambda connection: load(connection, keys, self._lanes))

    async def find(self, namespace: str, names: Sequence[str]) -> dict[str, JobKey]:
        def work(connection: sqlite3.Connection) -> dict[str, JobKey]:
            return {name: key for name, key, _ in connection.execute(SQL["job_keys"], (namespace, to_json(names)))}

        return await self._read(work)

    async def list_jobs(self, filter: Filter, *, limit: int, before: JobKey | None) -> Page:
        return await self._read(lambda connection: listing.page(connection, filter, limit, before, self._lanes))

    async def save(self, changes: Sequence[Change], now: Micros) -> Saved:
        return await self._write(lambda connection: save(connection, changes))

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


def _make_lanes(connection: sqlite3.Connection, lanes: Iterable[Lane]) -> dict[int, Lane]:
    made = {}
    for lane in sorted(lanes, key=msgspec.structs.astuple):
        columns = (lane.namespace, lane.queue, lane.job_type)
        connection.execute(SQL["make_lane"], columns)
        made[connection.execute(SQL["lane_number"], columns).fetchone()[0]] = lane
    return made


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


class _Intake:
    """One call's submissions, in order: each sees what those before it brought in."""

    def __init__(self, connection: sqlite3.Connection, submissions: Sequence[Submission], now: Micros) -> None:
        self._connection = connection
        self._submissions = submissions
        self._now = now
        self._moves = Moves()
        self._hashes = self._known_names()
        self._present = self._known_ids()

    def answers(self) -> list[Accepted | Clash]:
        answers = [self._answer(submission) for submission in self._submissions]
        self._moves.write(self._connection)
        return answers

    def _known_names(self) -> dict[tuple[str, str], bytes]:
        """The body hashes of the names in this call that are taken."""
        names: dict[str, list[str]] = {}
        for submission in self._submissions:
            given = [new.job.name for new in submission.jobs if new.job.name is not None]
            if given:
                names.setdefault(submission.namespace, []).extend(given)
        return {
            (namespace, name): body_hash
            for namespace, given in names.items()
            for name, _, body_hash in self._connection.execute(SQL["job_keys"], (namespace, to_json(given)))
        }

    def _known_ids(self) -> set[JobKey]:
        keys = [new.job.id for submission in self._submissions for new in submission.jobs]
        return {key for (key,) in fetch(self._connection, "known_jobs", (keys_json(keys),))}

    def _answer(self, submission: Submission) -> Accepted | Clash:
        if submission.request_key is None:
            return self._accept(submission)
        key = (submission.namespace, submission.request_key)
        seen = self._connection.execute(SQL["request_key"], (*key, self._now - REQUEST_KEY_AGE)).fetchone()
        if seen is not None:
            return Accepted(_shown_ids.decode(seen[1]), ()) if seen[0] == submission.request_hash else Clash(None)
        answer = self._accept(submission)
        if isinstance(answer, Accepted):
            columns = (*key, submission.request_hash, to_json(answer.ids), self._now)
            self._connection.execute(SQL["put_request_key"], columns)
        return answer

    def _accept(self, submission: Submission) -> Accepted | Clash:
        namespace, shown = submission.namespace, []
        hashes: dict[tuple[str, str], bytes] = {}
        new_jobs: dict[JobKey, NewJob] = {}
        for new in submission.jobs:
            job = new.job
            shown.append(ids.show(ids.JOB, job.id) if job.name is None else job.name)
            if job.name is not None:
                name = (namespace, job.name)
                taken = hashes.get(name, self._hashes.get(name))
                if taken is not None:
                    if taken != new.body_hash:
                        return Clash(job.name)
                    continue
                hashes[name] = new.body_hash
            if job.id not in self._present:
                new_jobs.setdefault(job.id, new)
        for new in new_jobs.values():
            self._moves.add(namespace, new)
        self._hashes.update(hashes)
        self._present.update(new_jobs)
        return Accepted(shown, list(new_jobs))
