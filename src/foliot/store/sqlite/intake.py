"""Submissions: what of them is new, what was there before, and what they depend on."""

import sqlite3
from collections.abc import Callable, Iterable, Sequence
from typing import Final

import msgspec

from foliot.domain import ids
from foliot.domain.duration import DAY
from foliot.domain.ids import JobKey
from foliot.domain.job import Job, Ties
from foliot.store.base import Accepted, Clash, NewJob, Orphan, Parent, Submission
from foliot.store.sqlite import edges
from foliot.store.sqlite.batch import fetch, write
from foliot.store.sqlite.changes import Moves
from foliot.store.sqlite.connection import SQL
from foliot.store.sqlite.rows import keys_json, to_json

Answer = Accepted | Clash | Orphan
Name = tuple[str, str]  # namespace and name, or namespace and unique key

REQUEST_KEY_AGE: Final = DAY
_shown_ids = msgspec.json.Decoder(tuple[str, ...])


def _shown(key: JobKey, name: str | None) -> str:
    return ids.show(ids.JOB, key) if name is None else name


class Intake:
    """One call's submissions, in order: each sees what those before it brought in."""

    def __init__(self, connection: sqlite3.Connection, submissions: Sequence[Submission], moves: Moves) -> None:
        self._connection = connection
        self._submissions = submissions
        self._moves = moves
        self._now = moves.now
        self._known = self._known_names()
        self._present = self._known_ids()
        self._barred = self._barred_keys()
        self._standing = self._standing_parents()
        self._new: dict[JobKey, tuple[str, NewJob]] = {}
        self._edges: list[tuple[JobKey, JobKey, int, int]] = []

    def answers(self) -> list[Answer]:
        answers = [self._answer(submission) for submission in self._submissions]
        moves = self._moves
        parents = {parent for parent, *_ in self._edges}
        for namespace, new in self._new.values():
            moves.add(namespace, _with_children(new) if new.job.id in parents else new)
        if parents:
            self._tie(parents)
        moves.write(self._connection)
        return answers

    def _tie(self, parents: Iterable[JobKey]) -> None:
        """Write the edges; those parents that were there before are told of them, or have ended."""
        write(self._connection, "insert_edge", self._edges)
        standing = {parent: self._standing[parent] for parent in parents if parent in self._standing}
        self._moves.releases.update((parent, state) for parent, state in standing.items() if state is not None)
        if standing:
            edges.tie(self._connection, standing)

    def _gather(self, pick: Callable[[Job], str | None]) -> dict[str, list[str]]:
        """What this call's jobs are called, by namespace."""
        found: dict[str, list[str]] = {}
        for submission in self._submissions:
            given = [word for new in submission.jobs if (word := pick(new.job)) is not None]
            if given:
                found.setdefault(submission.namespace, []).extend(given)
        return found

    def _known_names(self) -> dict[Name, tuple[JobKey, bytes]]:
        """The ids and body hashes of the names in this call that are taken."""
        return {
            (namespace, name): (key, body_hash)
            for namespace, given in self._gather(lambda job: job.name).items()
            for name, key, body_hash in self._connection.execute(SQL["job_keys"], (namespace, to_json(given)))
        }

    def _known_ids(self) -> set[JobKey]:
        keys = [new.job.id for submission in self._submissions for new in submission.jobs]
        return {key for (key,) in fetch(self._connection, "known_jobs", (keys_json(keys),))}

    def _barred_keys(self) -> dict[Name, tuple[JobKey, str]]:
        """The jobs, by id and as they are shown, that have the unique keys in this call and still wait."""
        return {
            (namespace, unique_key): (key, _shown(key, name))
            for namespace, given in self._gather(lambda job: job.unique_key).items()
            for unique_key, key, name in self._connection.execute(SQL["unique_keys_held"], (namespace, to_json(given)))
        }

    def _standing_parents(self) -> dict[JobKey, int | None]:
        """The parents in this call that were there before it; jobs that are there already may stand for its own."""
        parents = {parent.id for submission in self._submissions for new in submission.jobs for parent in new.parents}
        if not parents:
            return {}
        parents.update(key for key, _ in self._known.values())
        parents.update(key for key, _ in self._barred.values())
        return edges.standing_of(self._connection, parents)

    def _answer(self, submission: Submission) -> Answer:
        if submission.request_key is None:
            return self._accept(submission)
        key = (submission.namespace, submission.request_key)
        seen = self._connection.execute(SQL["request_key"], (*key, self._now - REQUEST_KEY_AGE)).fetchone()
        if seen is not None:
            hashes = (submission.request_hash, *submission.older_hashes)
            return Accepted(_shown_ids.decode(seen[1]), ()) if seen[0] in hashes else Clash(None)
        answer = self._accept(submission)
        if isinstance(answer, Accepted):
            columns = (*key, submission.request_hash, to_json(answer.ids), self._now)
            self._connection.execute(SQL["put_request_key"], columns)
        return answer

    def _accept(self, submission: Submission) -> Answer:
        namespace, shown = submission.namespace, []
        known: dict[Name, tuple[JobKey, bytes]] = {}
        barred: dict[Name, tuple[JobKey, str]] = {}
        stand_ins: dict[JobKey, JobKey] = {}  # for jobs of this submission that are there already, those that are
        new_jobs: dict[JobKey, NewJob] = {}
        duplicates: list[int] = []
        for place, new in enumerate(submission.jobs):
            job = new.job
            shown.append(_shown(job.id, job.name))
            name = (namespace, job.name or "")
            if job.name is not None:
                taken = known.get(name) or self._known.get(name)
                if taken is not None:
                    if taken[1] != new.body_hash and taken[1] not in new.older_hashes:
                        return Clash(job.name)
                    stand_ins[job.id] = taken[0]
                    continue
            if job.id in self._present or job.id in new_jobs:
                continue
            if job.unique_key is not None:
                unique = (namespace, job.unique_key)
                holder = barred.get(unique) or self._barred.get(unique)
                if holder is not None:
                    stand_ins[job.id], shown[place] = holder
                    duplicates.append(place)
                    continue
                barred[unique] = (job.id, shown[place])
            if job.name is not None:
                known[name] = (job.id, new.body_hash)
            new_jobs[job.id] = new
        settled = self._settle(new_jobs, stand_ins)
        if isinstance(settled, Orphan):
            return settled
        for new in settled:
            self._new[new.job.id] = (namespace, new)
            self._edges += [(parent.id, new.job.id, int(parent.on), 0) for parent in new.parents]
        self._known.update(known)
        self._barred.update(barred)
        self._present.update(new_jobs)
        ended = any(self._standing.get(parent.id) is not None for new in settled for parent in new.parents)
        return Accepted(shown, list(new_jobs), duplicates, ended)

    def _settle(self, new_jobs: dict[JobKey, NewJob], stand_ins: dict[JobKey, JobKey]) -> list[NewJob] | Orphan:
        """The new jobs with the parents that they really have."""
        settled = []
        for new in new_jobs.values():
            if not new.parents:
                settled.append(new)
                continue
            parents: dict[JobKey, Parent] = {}
            for parent in new.parents:
                key = stand_ins.get(parent.id, parent.id)
                if key not in new_jobs and key not in self._new and key not in self._standing:
                    return Orphan(parent.id)
                parents.setdefault(key, msgspec.structs.replace(parent, id=key))
            row = msgspec.structs.replace(new.row, parents=len(parents))
            settled.append(msgspec.structs.replace(new, row=row, parents=tuple(parents.values())))
        return settled


def _with_children(new: NewJob) -> NewJob:
    row = msgspec.structs.replace(new.row, ties=new.row.ties | Ties.CHILDREN)
    return msgspec.structs.replace(new, row=row)
