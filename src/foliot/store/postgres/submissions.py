"""Keeping new jobs. Without names and request keys that is one statement, or a COPY where they are many (half again as
fast from a hundred rows on, in spite of its round trips); with them the names are taken first."""

from collections.abc import Sequence
from typing import Final

from asyncpg.exceptions import UniqueViolationError

from foliot.domain.duration import DAY, Micros
from foliot.domain.ids import JOB, JobKey, show
from foliot.domain.job import Ready, Waiting
from foliot.store.base import Accepted, Clash, NewJob, Submission
from foliot.store.postgres.connections import Connection, columns
from foliot.store.postgres.part import SQL, Part
from foliot.store.postgres.rows import (
    JOB_COLUMNS,
    READY_COLUMNS,
    WAITING_COLUMNS,
    array_text,
    job_record,
    narrow_values,
    new_job_values,
)

REQUEST_KEY_AGE: Final[Micros] = DAY
COPIED: Final = 64  # jobs in a call from which on they are copied
Name = tuple[str, str]  # a namespace, and a name or request key within it


class Submissions(Part):
    async def insert_jobs(self, submissions: Sequence[Submission], now: Micros) -> list[Accepted | Clash]:
        plain = not any(s.request_key or any(new.job.name is not None for new in s.jobs) for s in submissions)
        jobs = [new for submission in submissions for new in submission.jobs]
        try:
            if plain:
                return _answers(submissions, await self._insert_plain(jobs))
            return await self._connections.transact(lambda connection: _insert_named(connection, submissions, now))
        finally:
            # Also after a failure: the rows may be there all the same.
            self._marks.lower_to(new.row for new in jobs)

    async def _insert_plain(self, jobs: Sequence[NewJob]) -> set[JobKey]:
        if len(jobs) >= COPIED:
            try:
                return await self._connections.transact(lambda connection: _copy(connection, jobs))
            except UniqueViolationError:
                pass  # some are there already: find out which
        return {row[0] for row in await self._connections.write(SQL["insert_jobs"], *job_columns(jobs))}


async def _copy(connection: Connection, jobs: Sequence[NewJob]) -> set[JobKey]:
    """Write jobs of which none is there, else raise."""
    rows = [new.row for new in jobs]
    for table, names, records in (
        ("jobs", JOB_COLUMNS, [job_record(new.job) for new in jobs]),
        ("ready", READY_COLUMNS, [narrow_values(row) for row in rows if isinstance(row, Ready)]),
        ("waiting", WAITING_COLUMNS, [narrow_values(row) for row in rows if isinstance(row, Waiting)]),
    ):
        if records:
            await connection.copy_records_to_table(table, records=records, columns=names)
    return {new.job.id for new in jobs}


def job_columns(jobs: Sequence[NewJob]) -> list[list[object]]:
    """As `insert_jobs` takes them."""
    return columns([new_job_values(new) for new in sorted(jobs, key=_key)], 20)


def _key(new: NewJob) -> int:
    return new.job.id


def _answers(submissions: Sequence[Submission], kept: set[JobKey]) -> list[Accepted | Clash]:
    return [Accepted(_shown(s), [new.job.id for new in s.jobs if new.job.id in kept]) for s in submissions]


def _shown(submission: Submission) -> list[str]:
    return [new.job.name if new.job.name is not None else show(JOB, new.job.id) for new in submission.jobs]


async def _insert_named(
    connection: Connection, submissions: Sequence[Submission], now: Micros
) -> list[Accepted | Clash]:
    """Take every name and request key for whoever comes first with it; what others had before is then seen by a later
    statement; decide in order; put right the few that were taken for a submission which then clashed."""
    requests = _Requests(submissions, now)
    names = _Names(submissions)
    await requests.take(connection)
    await names.take(connection)
    answers: list[Accepted | Clash] = []
    accepted: list[NewJob] = []
    for submission in submissions:
        answer = requests.answer(submission) or names.clash(submission)
        if answer is None:
            accepted += names.keep(submission)
            requests.keep(submission)
            answer = Accepted(_shown(submission), [new.job.id for new in submission.jobs])
        answers.append(answer)
    await names.settle(connection)
    await requests.settle(connection)
    rows = await connection.fetch(SQL["insert_jobs"], *job_columns(accepted)) if accepted else []
    kept = {row[0] for row in rows}
    return [
        Accepted(answer.ids, [key for key in answer.new if key in kept]) if isinstance(answer, Accepted) else answer
        for answer in answers
    ]


class _Requests:
    """The request keys of one call."""

    def __init__(self, submissions: Sequence[Submission], now: Micros) -> None:
        self._now = now
        self._wanted: dict[Name, Submission] = {}
        for submission in submissions:
            if submission.request_key:
                self._wanted.setdefault((submission.namespace, submission.request_key), submission)
        self._known: dict[Name, tuple[bytes, Sequence[str]]] = {}
        self._taken: dict[Name, Submission] = {}
        self._kept: dict[Name, Submission] = {}

    async def take(self, connection: Connection) -> None:
        taken = await self._insert(connection, self._wanted)
        self._taken = {name: self._wanted[name] for name in taken}
        others = sorted(name for name in self._wanted if name not in taken)
        if others:
            for namespace, key, request_hash, ids in await connection.fetch(SQL["request_keys"], *columns(others, 2)):
                self._known[namespace, key] = (request_hash, ids)

    def answer(self, submission: Submission) -> Accepted | Clash | None:
        """What was answered before, if anything was."""
        known = self._known.get((submission.namespace, submission.request_key or ""))
        if known is None:
            return None
        return Accepted(known[1], []) if known[0] == submission.request_hash else Clash(None)

    def keep(self, submission: Submission) -> None:
        if submission.request_key:
            name = (submission.namespace, submission.request_key)
            self._kept[name] = submission
            self._known[name] = (submission.request_hash, _shown(submission))

    async def settle(self, connection: Connection) -> None:
        wrong = sorted(name for name, submission in self._taken.items() if self._kept.get(name) is not submission)
        if wrong:
            await connection.execute(SQL["give_back_request_keys"], *columns(wrong, 2))
            await self._insert(connection, {name: self._kept[name] for name in wrong if name in self._kept})

    async def _insert(self, connection: Connection, wanted: dict[Name, Submission]) -> set[Name]:
        if not wanted:
            return set()
        values = [
            (*name, s.request_hash, array_text(_shown(s)) or "{}") for name, s in sorted(wanted.items(), key=_name)
        ]
        rows = await connection.fetch(
            SQL["insert_request_keys"], *columns(values, 4), self._now, self._now - REQUEST_KEY_AGE
        )
        return {(row[0], row[1]) for row in rows}


class _Names:
    """The clients' own job names of one call."""

    def __init__(self, submissions: Sequence[Submission]) -> None:
        self._wanted: dict[Name, NewJob] = {}
        for submission in submissions:
            for new in submission.jobs:
                if new.job.name is not None:
                    self._wanted.setdefault((submission.namespace, new.job.name), new)
        self._known: dict[Name, tuple[JobKey, bytes]] = {}
        self._taken: dict[Name, NewJob] = {}

    async def take(self, connection: Connection) -> None:
        taken = await self._insert(connection, self._wanted)
        self._taken = {name: new for name, new in self._wanted.items() if new.job.id in taken}
        others = sorted(name for name in self._wanted if name not in self._taken)
        if others:
            for namespace, name, key, body_hash in await connection.fetch(SQL["job_keys"], *columns(others, 2)):
                self._known[namespace, name] = (key, body_hash)

    def clash(self, submission: Submission) -> Clash | None:
        hashes: dict[str, bytes] = {}
        for new in submission.jobs:
            if (name := new.job.name) is not None:
                known = self._known.get((submission.namespace, name))
                if hashes.setdefault(name, new.body_hash if known is None else known[1]) != new.body_hash:
                    return Clash(name)
        return None

    def keep(self, submission: Submission) -> list[NewJob]:
        """The jobs of an accepted submission that are to be written: those whose name nobody has."""
        fresh = []
        for new in submission.jobs:
            if new.job.name is not None:
                name = (submission.namespace, new.job.name)
                if name in self._known:
                    continue
                self._known[name] = (new.job.id, new.body_hash)
            fresh.append(new)
        return fresh

    async def settle(self, connection: Connection) -> None:
        owners = {key for key, _ in self._known.values()}
        wrong = {name: new for name, new in self._taken.items() if new.job.id not in owners}
        if wrong:
            await connection.execute(SQL["give_back_job_keys"], [new.job.id for new in wrong.values()])
            values = [(*name, *self._known[name]) for name in sorted(wrong) if name in self._known]
            await connection.fetch(SQL["lock_job_keys"], *columns(values, 4))

    async def _insert(self, connection: Connection, wanted: dict[Name, NewJob]) -> set[JobKey]:
        if not wanted:
            return set()
        values = [(*name, new.job.id, new.body_hash) for name, new in sorted(wanted.items(), key=_name)]
        return {row[0] for row in await connection.fetch(SQL["lock_job_keys"], *columns(values, 4))}


def _name(item: tuple[Name, object]) -> Name:
    return item[0]
