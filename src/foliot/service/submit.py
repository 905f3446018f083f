"""Take jobs in: check, number, decide where each begins, keep them in a group commit, then say so."""

from collections.abc import Collection, Mapping, Sequence
from typing import assert_never

from foliot.clock import Clock
from foliot.domain.access import Caller
from foliot.domain.errors import BadInput, Conflict
from foliot.domain.graph import ON_WORDS, On, find_cycle
from foliot.domain.ids import JOB, IdMaker, JobKey, parse
from foliot.domain.job import Job, Lane
from foliot.service.alert_telling import Telling
from foliot.service.announce import announce_new
from foliot.service.group import Group
from foliot.service.job_fields import DEFAULT_QUEUE, lane_of, new_job, parse_job, set_limits, within
from foliot.service.quota import Quota
from foliot.service.rates import Rate
from foliot.service.sealing import Sealer
from foliot.service.wake import Wake
from foliot.store.base import Accepted, Clash, Orphan, Parent, Store, Submission
from foliot.wire import (
    BatchBody,
    BatchSubmitted,
    SubmitBody,
    Submitted,
)

Kind = tuple[str, str, str]  # namespace, queue and job type of a job that needs a slot and nothing else


class Submit:
    def __init__(
        self,
        store: Store,
        clock: Clock,
        ids: IdMaker,
        wake: Wake,
        rate: Rate,
        sealer: Sealer,
        quota: Quota,
        telling: Telling,
        *,
        width: int = 1,
    ) -> None:
        self._store = store
        self._clock = clock
        self._ids = ids
        self._wake = wake
        self._rate = rate
        self._sealer = sealer
        self._quota = quota
        self._telling = telling
        self._plain: dict[Kind | None, tuple[Lane, int]] = {}  # a lane is slow to hash, and its number never changes
        self.group: Group[Submission, Accepted | Clash | Orphan] = Group(
            self._keep, size=lambda submission: len(submission.jobs), width=width
        )

    async def one(
        self, body: SubmitBody, raw: bytes, caller: Caller, request_key: str | None = None, trace: str | None = None
    ) -> Submitted:
        answer = await self._submit([body], raw, caller, request_key, trace, "")
        return Submitted(job_id=answer.ids[0], duplicate=bool(answer.duplicates))

    async def batch(
        self, body: BatchBody, raw: bytes, caller: Caller, request_key: str | None = None, trace: str | None = None
    ) -> BatchSubmitted:
        answer = await self._submit(body.jobs, raw, caller, request_key, trace, "jobs")
        return BatchSubmitted(job_ids=answer.ids, duplicates=tuple(answer.duplicates))

    async def _submit(
        self,
        bodies: Sequence[SubmitBody],
        raw: bytes,
        caller: Caller,
        request_key: str | None,
        trace: str | None,
        where: str,
    ) -> Accepted:
        now = self._clock.now()
        keys = [JobKey(key) for key in self._ids.take(len(bodies), now)]
        parents = await self._parents(bodies, keys, caller, where)
        mothers = {parent.id for own in parents.values() for parent in own}
        lanes = await self._lanes(bodies, caller, where)
        jobs: list[Job] = []
        for index, (body, key) in enumerate(zip(bodies, keys, strict=True)):
            try:
                jobs.append(parse_job(body, key, *lanes[index], caller, now, trace=trace))
            except BadInput as error:
                raise within(error, f"{where}[{index}]" if where else "") from None
        await self._quota.check(caller.namespace, len(jobs), sum([_bytes(job.payload) for job in jobs]))
        for index, job in enumerate(jobs):
            if job.notify is not None:
                await self._expect(job, f"{where}[{index}]" if where else "")
        limits = await set_limits(self._store, bodies, caller.namespace)  # what is refused sets none
        new = [
            new_job(
                body,
                job,
                now,
                limits=limits,
                sealer=self._sealer,
                parents=parents.get(job.id, ()),
                has_children=job.id in mothers,
            )
            for body, job in zip(bodies, jobs, strict=True)
        ]
        answer = await self.group.add(
            Submission(
                namespace=caller.namespace,
                jobs=new,
                request_key=request_key,
                request_hash=self._sealer.hash(raw) if request_key else b"",
                older_hashes=self._sealer.older_hashes(raw) if request_key else (),
            )
        )
        match answer:
            case Accepted():
                return answer
            case Clash(name=None):
                raise Conflict("this Idempotency-Key was used with another body; use a new key for a new request")
            case Clash():
                raise Conflict(f"job_id {answer.name!r} is taken by a job with another body; use another job_id")
            case Orphan():
                raise Conflict("a job in depends_on has gone from history meanwhile; submit without it")
            case _:
                assert_never(answer)

    async def _expect(self, job: Job, where: str) -> None:
        try:
            await self._telling.expect(job.lane, job.notify)
        except BadInput as error:
            raise within(error, where) from None

    async def _lanes(self, bodies: Sequence[SubmitBody], caller: Caller, where: str) -> list[tuple[Lane, int]]:
        """The lane of each job and its number."""
        known = [self._plain.get(_kind(body, caller)) for body in bodies]
        if all(known) and not caller.narrowed:
            return known  # type: ignore[return-value]
        lanes: list[Lane] = []
        for index, body in enumerate(bodies):
            try:
                lanes.append(lane_of(body, caller.namespace))
            except BadInput as error:
                raise within(error, f"{where}[{index}]" if where else "") from None
        wanted = list(dict.fromkeys(lanes))
        for lane in wanted:
            caller.check_reach(lane)
        numbers = dict(zip(wanted, await self._store.lane_ids(wanted), strict=True))
        found = [(lane, numbers[lane]) for lane in lanes]
        for body, lane_and_number in zip(bodies, found, strict=True):
            if (kind := _kind(body, caller)) is not None:
                self._plain[kind] = lane_and_number
        return found

    async def _parents(
        self, bodies: Sequence[SubmitBody], keys: Sequence[JobKey], caller: Caller, where: str
    ) -> dict[JobKey, list[Parent]]:
        """What each job depends on; jobs of the same request go by their `job_id`."""
        if not any(body.depends_on for body in bodies):
            return {}
        own = {body.job_id: key for body, key in zip(bodies, keys, strict=True) if body.job_id}
        _check_circles(bodies, own, where)
        wanted = {name for body in bodies for name, _ in _dependencies(body) if name not in own}
        known = await self._known(wanted, caller)
        found: dict[JobKey, list[Parent]] = {}
        for index, (body, key) in enumerate(zip(bodies, keys, strict=True)):
            parents: dict[JobKey, Parent] = {}
            for place, (name, on) in enumerate(_dependencies(body)):
                parent = own.get(name) or known.get(name)
                field = f"{where}[{index}].depends_on[{place}]" if where else f"depends_on[{place}]"
                if parent is None:
                    raise BadInput.at(field, f"there is no job {name!r}; submit it first, or in the same batch")
                if parents.setdefault(parent, Parent(parent, on)).on is not on:
                    raise BadInput.at(field, f"job {name!r} is named twice with different `on`; name it once")
            found[key] = list(parents.values())
        return found

    async def _known(self, names: Collection[str], caller: Caller) -> dict[str, JobKey]:
        """The jobs behind ids that are not of this request."""
        keys = {name: JobKey(key) for name in names if (key := parse(JOB, name)) is not None}
        others = [name for name in names if name not in keys]
        if others:
            keys |= await self._store.find(caller.namespace, others)
        records = await self._store.load(list(keys.values())) if keys else {}
        return {name: key for name, key in keys.items() if key in records and caller.reaches(records[key].job.lane)}

    async def _keep(self, submissions: Sequence[Submission]) -> Sequence[Accepted | Clash | Orphan]:
        answers = await self._store.insert_jobs(submissions, self._clock.now())
        for submission, answer in zip(submissions, answers, strict=True):
            if isinstance(answer, Accepted):
                self._rate.add_of(_lanes_of_new(submission, answer))
                # Also after a repeat: the first try may have been cut off.
                announce_new(self._wake, submission.jobs, parents_ended=answer.parents_ended)
        return answers


def _lanes_of_new(submission: Submission, answer: Accepted) -> list[int]:
    if len(answer.new) == len(submission.jobs):
        return [new.job.lane_id for new in submission.jobs]
    kept = set(answer.new)
    return [new.job.lane_id for new in submission.jobs if new.job.id in kept]


def _kind(body: SubmitBody, caller: Caller) -> Kind | None:
    if body.resources or body.requires:
        return None
    return caller.namespace, body.queue or DEFAULT_QUEUE, body.job_type


def _bytes(text: str) -> int:
    """How long it is as it came; nearly always that is known without looking."""
    return len(text) if text.isascii() else len(text.encode())


def _dependencies(body: SubmitBody) -> list[tuple[str, On]]:
    return [
        (each, On.SUCCESS) if isinstance(each, str) else (each.job_id, ON_WORDS[each.on])
        for each in body.depends_on or ()
    ]


def _check_circles(bodies: Sequence[SubmitBody], own: Mapping[str, JobKey], where: str) -> None:
    named = {body.job_id: [name for name, _ in _dependencies(body) if name in own] for body in bodies if body.job_id}
    circle = find_cycle(named)
    if circle is not None:
        places = {body.job_id: index for index, body in enumerate(bodies)}
        field = f"{where}[{places[circle[0]]}].depends_on" if where else "depends_on"
        raise BadInput.at(field, f"a circle, so that none of them could start: {' → '.join(circle)}")
