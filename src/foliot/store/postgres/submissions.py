"""Keeping new jobs. Most are plain (no names, no parents), which is one statement, or a COPY where they are many (half
again as fast from a hundred rows on, in spite of its round trips); the others go through `intake`."""

from collections.abc import Sequence

from asyncpg.exceptions import UniqueViolationError

from foliot.domain.duration import Micros
from foliot.domain.ids import JobKey
from foliot.domain.job import Ready, Waiting
from foliot.store.base import Accepted, NewJob, Submission
from foliot.store.postgres.connections import Connection
from foliot.store.postgres.intake import Answer, Intake, job_columns, shown_ids
from foliot.store.postgres.journal import Journal
from foliot.store.postgres.part import SQL, Part
from foliot.store.postgres.rows import (
    JOB_COLUMNS,
    READY_COLUMNS,
    WAITING_COLUMNS,
    job_record,
    narrow_values,
)

COPIED = 64  # jobs in a call from which on they are copied


class Submissions(Part):
    async def insert_jobs(self, submissions: Sequence[Submission], now: Micros) -> list[Answer]:
        jobs = [new for submission in submissions for new in submission.jobs]
        plain = not any(s.request_key for s in submissions) and all(map(_is_plain, jobs))
        try:
            if plain:
                return _answers(submissions, await self._insert_plain(jobs, now))
            return await self._take_in(submissions, now)
        finally:
            # Also after a failure: the rows may be there all the same.
            self._marks.lower_to(new.row for new in jobs)

    async def _take_in(self, submissions: Sequence[Submission], now: Micros) -> list[Answer]:
        async def work(connection: Connection) -> Intake:
            intake = Intake(submissions, now)
            await intake.run(connection)
            return intake

        try:
            intake = await self._transact(work)
        except BaseException:
            if any(new.parents for submission in submissions for new in submission.jobs):
                self._marks.reset()
            raise
        self._marks.lower(intake.parents.places)
        return intake.answers

    async def _insert_plain(self, jobs: Sequence[NewJob], now: Micros) -> set[JobKey]:
        if len(jobs) >= COPIED:
            try:
                return await self._transact(lambda connection: _copy(connection, jobs, now))
            except UniqueViolationError:
                pass  # some are there already: find out which
        return {row[0] for row in await self._record(SQL["insert_jobs"], *job_columns(jobs), now)}


async def _copy(connection: Connection, jobs: Sequence[NewJob], now: Micros) -> set[JobKey]:
    """Write jobs of which none is there, else raise."""
    ready: list[Ready] = []
    waiting: list[Waiting] = []
    for new in jobs:
        if isinstance(new.row, Ready):
            ready.append(new.row)
        else:
            waiting.append(new.row)
    for table, names, records in (
        ("jobs", JOB_COLUMNS, [job_record(new.job) for new in jobs]),
        ("ready", READY_COLUMNS, list(map(narrow_values, ready))),
        ("waiting", WAITING_COLUMNS, list(map(narrow_values, waiting))),
    ):
        if records:
            await connection.copy_records_to_table(table, records=records, columns=names)
    journal = Journal()
    journal.begin(ready, waiting)
    await journal.write(connection, now)
    return {new.job.id for new in jobs}


def _is_plain(new: NewJob) -> bool:
    return new.job.name is None and not new.parents and new.job.unique_key is None


def _answers(submissions: Sequence[Submission], kept: set[JobKey]) -> list[Answer]:
    return [Accepted(shown_ids(s), [new.job.id for new in s.jobs if new.job.id in kept]) for s in submissions]
