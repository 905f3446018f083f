"""Submissions that must be looked at first: those with names, request keys, unique keys or parents.

Every name and key is taken for whoever comes first with it, in order; what others had before is then seen by a later
statement. So are the parents: live ones are locked. Then it is decided, submission by submission, each seeing what
those before it brought in, and all is written. Names taken for a submission that was then refused are put right.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

import msgspec

from foliot.domain.duration import DAY, Micros
from foliot.domain.ids import JOB, JobKey, show
from foliot.domain.job import Ties
from foliot.store.base import Accepted, Clash, NewJob, Orphan, Parent, Submission
from foliot.store.postgres.connections import Connection, columns
from foliot.store.postgres.parents import Parents, note_releases
from foliot.store.postgres.part import SQL
from foliot.store.postgres.rows import array_text, new_job_values

REQUEST_KEY_AGE: Final[Micros] = DAY
Answer = Accepted | Clash | Orphan
Name = tuple[str, str]  # a namespace, and a name or key within it


def job_columns(jobs: Sequence[NewJob]) -> list[list[object] | None]:
    """As `insert_jobs` takes them. A column in which nothing is given is left out, which `unnest` takes for nulls."""
    arrays = columns([new_job_values(new) for new in sorted(jobs, key=_key)], 29)
    return [array if any(value is not None for value in array) else None for array in arrays]


def shown_ids(submission: Submission) -> list[str]:
    return [_shown(new.job.id, new.job.name) for new in submission.jobs]


def _shown(key: JobKey, name: str | None) -> str:
    return show(JOB, key) if name is None else name


def _key(new: NewJob) -> int:
    return new.job.id


async def put_unique_keys(connection: Connection, keys: Sequence[tuple[str, str, JobKey]]) -> None:
    """Note whose unique keys (namespace, key) these are; of the same one the first."""
    first: dict[Name, JobKey] = {}
    for namespace, key, job in keys:
        first.setdefault((namespace, key), job)
    if first:
        values = [(*name, job) for name, job in sorted(first.items())]
        await connection.execute(SQL["put_unique_keys"], *columns(values, 3))


class Intake:
    """One call's submissions, in order."""

    def __init__(self, submissions: Sequence[Submission], now: Micros) -> None:
        self._submissions = submissions
        self._now = now
        self._requests = _Requests(submissions, now)
        self._names = _Names(submissions)
        self._holders: dict[Name, tuple[JobKey, str]] = {}  # of unique keys: who waits with it, and how it is shown
        self._present: set[JobKey] = set()  # those of this call's jobs that were there before
        self._new: dict[JobKey, NewJob] = {}
        self.parents = Parents()  # that were there before
        self.answers: list[Answer] = []

    async def run(self, connection: Connection) -> None:
        await self._requests.take(connection)
        await self._names.take(connection)
        await self._look(connection)
        self.answers = [self._answer(submission) for submission in self._submissions]
        await self._names.settle(connection)
        await self._requests.settle(connection)
        kept = await self._write(connection)
        self.answers = [
            msgspec.structs.replace(answer, new=[key for key in answer.new if key in kept])
            if isinstance(answer, Accepted)
            else answer
            for answer in self.answers
        ]

    def _jobs(self) -> Iterator[tuple[str, NewJob]]:
        return ((submission.namespace, new) for submission in self._submissions for new in submission.jobs)

    async def _look(self, connection: Connection) -> None:
        """Who has the unique keys, which jobs are there, how the parents stand."""
        unique: dict[Name, JobKey] = {}
        for namespace, new in self._jobs():
            if new.job.unique_key is not None:
                unique.setdefault((namespace, new.job.unique_key), new.job.id)
        wanted = {parent.id for _, new in self._jobs() for parent in new.parents}
        if unique or wanted:
            keys = sorted(new.job.id for _, new in self._jobs())
            self._present = {row[0] for row in await connection.fetch(SQL["kept_jobs"], keys)}
        if unique:
            values = [(*name, key) for name, key in sorted(unique.items())]
            await connection.execute(SQL["lock_unique_keys"], *columns(values, 3))
            for namespace, unique_key, key, name in await connection.fetch(
                SQL["unique_keys"], *columns(sorted(unique), 2)
            ):
                self._holders[namespace, unique_key] = (key, _shown(key, name))
        if wanted:
            await self.parents.note(connection, self._candidates(wanted))

    def _candidates(self, parents: set[JobKey]) -> set[JobKey]:
        """The jobs that may turn out to be parents and are not this call's own: what is there may stand for one."""
        found = set(parents)
        for namespace, new in self._jobs():
            job = new.job
            if job.id not in parents:
                continue
            named = None if job.name is None else self._names.get((namespace, job.name))
            holder = None if job.unique_key is None else self._holders.get((namespace, job.unique_key))
            found.update(known[0] for known in (named, holder) if known is not None)
            if job.id not in self._present:
                found.discard(job.id)
        return found

    def _answer(self, submission: Submission) -> Answer:
        settled = self._requests.answer(submission) or self._names.clash(submission)
        if settled is not None:
            return settled
        answer = self._accept(submission)
        if isinstance(answer, Accepted):
            self._requests.keep(submission, answer.ids)
        return answer

    def _accept(self, submission: Submission) -> Accepted | Orphan:
        ids = shown_ids(submission)
        named: dict[Name, tuple[JobKey, bytes]] = {}
        holders: dict[Name, tuple[JobKey, str]] = {}
        stand_ins: dict[JobKey, JobKey] = {}  # for jobs of this submission that are there already, those that are
        fresh: dict[JobKey, NewJob] = {}
        duplicates: list[int] = []
        for place, new in enumerate(submission.jobs):
            job = new.job
            name = (submission.namespace, job.name or "")
            if job.name is not None and (known := named.get(name) or self._names.get(name)) is not None:
                stand_ins[job.id] = known[0]
                continue
            if job.id in self._present or job.id in self._new or job.id in fresh:
                continue
            if job.unique_key is not None:
                unique = (submission.namespace, job.unique_key)
                holder = holders.get(unique) or self._holders.get(unique)
                if holder is not None:
                    stand_ins[job.id], ids[place] = holder
                    duplicates.append(place)
                    continue
                holders[unique] = (job.id, ids[place])
            if job.name is not None:
                named[name] = (job.id, new.body_hash)
            fresh[job.id] = new
        settled = self._settle(fresh, stand_ins)
        if isinstance(settled, Orphan):
            return settled
        self._names.keep(named)
        self._holders.update(holders)
        self._new.update((new.job.id, new) for new in settled)
        ended = any(parent.id in self.parents.ended for new in settled for parent in new.parents)
        return Accepted(ids, list(fresh), duplicates, ended)

    def _settle(self, fresh: Mapping[JobKey, NewJob], stand_ins: Mapping[JobKey, JobKey]) -> list[NewJob] | Orphan:
        """The new jobs with the parents that they really have."""
        settled = []
        for new in fresh.values():
            if new.parents:
                parents: dict[JobKey, Parent] = {}
                for parent in new.parents:
                    key = stand_ins.get(parent.id, parent.id)
                    if key not in fresh and key not in self._new and key not in self.parents:
                        return Orphan(parent.id)
                    parents.setdefault(key, Parent(key, parent.on))
                row = msgspec.structs.replace(new.row, parents=len(parents))
                new = msgspec.structs.replace(new, row=row, parents=tuple(parents.values()))
            settled.append(new)
        return settled

    async def _write(self, connection: Connection) -> set[JobKey]:
        """The ids of those that were not there."""
        if not self._new:
            return set()
        mothers = {parent.id for new in self._new.values() for parent in new.parents}
        jobs = [_with_children(new) if new.job.id in mothers else new for new in self._new.values()]
        values = (*job_columns(jobs), self._now, *connection.stamp())
        kept = {row[0] for row in await connection.fetch(SQL["insert_jobs"], *values)}
        edges = sorted(
            (parent.id, new.job.id, parent.on) for new in jobs for parent in new.parents if _key(new) in kept
        )
        if edges:
            await connection.execute(SQL["insert_edges"], *columns(edges, 3))
            told = {parent for parent, _, _ in edges}
            await note_releases(
                connection, {parent: state for parent, state in self.parents.ended.items() if parent in told}
            )
        unique = [(ns, new.job.unique_key, key) for ns, new in self._jobs() if (key := new.job.id) in kept]
        await put_unique_keys(connection, [(ns, word, key) for ns, word, key in unique if word is not None])
        return kept


def _with_children(new: NewJob) -> NewJob:
    return msgspec.structs.replace(new, row=msgspec.structs.replace(new.row, ties=new.row.ties | Ties.CHILDREN))


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
        self._kept: dict[Name, tuple[Submission, Sequence[str]]] = {}

    async def take(self, connection: Connection) -> None:
        taken = await self._insert(connection, {name: (s, shown_ids(s)) for name, s in self._wanted.items()})
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
        hashes = (submission.request_hash, *submission.older_hashes)
        return Accepted(known[1], []) if known[0] in hashes else Clash(None)

    def keep(self, submission: Submission, ids: Sequence[str]) -> None:
        if submission.request_key:
            name = (submission.namespace, submission.request_key)
            self._kept[name] = (submission, ids)
            self._known[name] = (submission.request_hash, ids)

    async def settle(self, connection: Connection) -> None:
        wrong = sorted(name for name, s in self._taken.items() if self._kept.get(name) != (s, shown_ids(s)))
        if wrong:
            await connection.execute(SQL["give_back_request_keys"], *columns(wrong, 2))
            await self._insert(connection, {name: self._kept[name] for name in wrong if name in self._kept})

    async def _insert(self, connection: Connection, wanted: dict[Name, tuple[Submission, Sequence[str]]]) -> set[Name]:
        if not wanted:
            return set()
        values = [
            (*name, s.request_hash, array_text(ids) or "{}") for name, (s, ids) in sorted(wanted.items(), key=_name)
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
                kept = hashes.setdefault(name, new.body_hash if known is None else known[1])
                if kept != new.body_hash and kept not in new.older_hashes:
                    return Clash(name)
        return None

    def get(self, name: Name) -> tuple[JobKey, bytes] | None:
        return self._known.get(name)

    def keep(self, named: Mapping[Name, tuple[JobKey, bytes]]) -> None:
        """These are accepted under names that nobody had."""
        self._known.update(named)

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
