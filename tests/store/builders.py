"""What store tests are made of: a scene on a store, with jobs, workers and claims in few words."""

import itertools
from collections.abc import Sequence
from typing import Any

import msgspec

from foliot.domain import events, states
from foliot.domain.changes import Change, Refusal
from foliot.domain.duration import MINUTE, SECOND, Micros
from foliot.domain.graph import On
from foliot.domain.ids import IdMaker, JobKey, ScheduleKey, WorkerKey, show
from foliot.domain.job import NAMESPACE, Job, Lane, Lease, Ready, Record, State, Ties, Waiting
from foliot.domain.placement import Order
from foliot.domain.schedule import Plan, Run, Schedule, Standing, Verdict, run_name
from foliot.domain.timetable.interval import Every
from foliot.domain.timetable.timetable import Timetable
from foliot.domain.worker import Worker
from foliot.store.base import (
    Accepted,
    Claimed,
    Clash,
    Fenced,
    LogLine,
    NewJob,
    Orphan,
    Parent,
    Released,
    Step,
    Store,
    Submission,
)


def shown(job: Job) -> str:
    """The id as clients know it."""
    return show("j_", job.id) if job.name is None else job.name


class Scene:
    """Makes and moves jobs on one store. `now` is the scene's time: the store's at the start, moved on by the test.
    Scenes that follow each other on one store share their `ids`."""

    def __init__(self, store: Store, now: Micros, ids: IdMaker | None = None) -> None:
        self.store = store
        self.now = now
        self._ids = ids or IdMaker(node=200)
        self._nonces = itertools.count(1)
        self._limits: dict[tuple[str, str], int] = {}

    def new_id(self) -> int:
        return self._ids.one(self.now)

    def new_nonce(self) -> int:
        return next(self._nonces)

    async def job(
        self,
        *,
        namespace: str = NAMESPACE,
        queue: str = "default",
        job_type: str = "echo",
        needs: str = "",
        **fields: Any,
    ) -> Job:
        """A job due now, not yet in the store."""
        lane = Lane(namespace, queue, job_type, needs)
        (lane_id,) = await self.store.lane_ids([lane])
        defaults = {"id": JobKey(self.new_id()), "name": None, "due": self.now, "created": self.now}
        return Job(**(defaults | fields), lane=lane, lane_id=lane_id)

    async def jobs(self, count: int, **fields: Any) -> list[Job]:
        return [await self.job(**fields) for _ in range(count)]

    def submission(self, *jobs: Job, body: bytes = b"body", parents: int = 0, **fields: Any) -> Submission:
        return self.request(*(self.new(job, body=body, count=parents) for job in jobs), **fields)

    def new(self, job: Job, *parents: Parent, body: bytes = b"body", count: int = 0) -> NewJob:
        """A job with its first row. Its concurrency key, where it has one, is known from `limit`; `count` stands for
        parents that nobody needs to know."""
        row = states.submit(
            job,
            self.now,
            parents=count + len(parents),
            limit_id=None if job.limit_key is None else self._limits[job.lane.namespace, job.limit_key],
            ties=Ties.PARENTS if parents else 0,
        )
        return NewJob(job=job, row=row, body_hash=body, parents=parents)

    def request(self, *new: NewJob, **fields: Any) -> Submission:
        namespace = new[0].job.lane.namespace if new else NAMESPACE
        return Submission(**({"namespace": namespace, "jobs": new} | fields))

    async def limit(self, key: str, most: int, *, namespace: str = NAMESPACE) -> int:
        """Set a concurrency key's limit; its number."""
        (number,) = await self.store.set_limits([(namespace, key, most)])
        self._limits[namespace, key] = number
        return number

    async def child(self, *parents: JobKey, on: On = On.SUCCESS, **fields: Any) -> Job:
        """A job in the store that depends on these."""
        job = await self.job(**fields)
        (answer,) = await self.insert(self.request(self.new(job, *(Parent(parent, on) for parent in parents))))
        assert isinstance(answer, Accepted)
        assert list(answer.new) == [job.id]
        return job

    async def release(self, limit: int = 100) -> Released:
        """Carry ends on to children until there is no more to do: all that this brought."""
        parts = [await self.store.release(limit, self.now)]
        while parts[-1].more:
            parts.append(await self.store.release(limit, self.now))
        return Released(
            lanes={lane_id for part in parts for lane_id in part.lanes},
            due=tuple(due for part in parts for due in part.due),
            limits={number for part in parts for number in part.limits},
            cancelled={key for part in parts for key in part.cancelled},
            freed={key for part in parts for key in part.freed},
        )

    async def insert(self, *submissions: Submission) -> list[Accepted | Clash | Orphan]:
        return await self.store.insert_jobs(submissions, self.now)

    async def submit(self, *jobs: Job, parents: int = 0) -> list[JobKey]:
        (answer,) = await self.insert(self.submission(*jobs, parents=parents))
        assert isinstance(answer, Accepted)
        assert list(answer.ids) == [shown(job) for job in jobs]
        return [job.id for job in jobs]

    async def submitted(self, **fields: Any) -> Job:
        job = await self.job(**fields)
        await self.submit(job)
        return job

    async def worker(self, **fields: Any) -> Worker:
        defaults: dict[str, Any] = {"id": WorkerKey(self.new_id()), "namespace": NAMESPACE, "name": "worker"}
        times = {"since": self.now, "seen": self.now, "until": self.now + MINUTE}
        worker = Worker(**(defaults | times | fields))
        await self.store.add_worker(worker)
        return worker

    async def claim(self, worker: Worker, job: Job, count: int = 1) -> list[Claimed]:
        """Claim from the job's lane."""
        return await self.store.claim([Order(job.lane_id, worker.id, count)], self.new_nonce(), self.now)

    async def running(self, worker: Worker | None = None, **fields: Any) -> Lease:
        """A job in a lane where nothing else is ready, leased."""
        job = await self.submitted(**fields)
        (claimed,) = await self.claim(worker or await self.worker(), job)
        assert claimed.lease.id == job.id
        return claimed.lease

    async def record(self, key: JobKey) -> Record:
        return (await self.store.load([key]))[key]

    async def row(self, key: JobKey) -> Waiting | Ready | Lease | Any:
        return (await self.record(key)).row

    async def save(self, changes: Sequence[Change]) -> set[JobKey]:
        """The jobs whose change took effect."""
        return (await self.store.save(changes, self.now)).done

    async def happen(self, key: JobKey, event: events.Event) -> Record:
        """Load, decide, save: the event must take effect. The record after it."""
        record = await self.record(key)
        change = states.transition(record.row, event, self.now, retry=record.job.retry)
        assert not isinstance(change, Refusal), change
        assert await self.save([change]) == {key}
        return await self.record(key)

    async def ended(self, state: State = State.COMPLETED, **fields: Any) -> Record:
        """A job that ran and ended."""
        lease = await self.running(**fields)
        match state:
            case State.COMPLETED:
                return await self.happen(lease.id, events.Succeed(result='{"ok":true}'))
            case State.FAILED:
                return await self.happen(lease.id, events.FailFatal(error='"boom"', exit_code=3, code="broken"))
            case _:
                await self.happen(lease.id, events.Cancel())
                return await self.happen(lease.id, events.Stopped())

    def decide(self, record: Record, event: events.Event) -> Change:
        """The change that an event makes of what was loaded."""
        change = states.transition(record.row, event, self.now, retry=record.job.retry)
        assert not isinstance(change, Refusal), change
        return change

    def schedule(self, name: str = "nightly", **fields: Any) -> Schedule:
        """A schedule that is due every minute, next in one minute; not yet in the store."""
        every = Every(interval=MINUTE, anchor=self.now, runs_at_anchor=False)
        defaults: dict[str, Any] = {
            "id": ScheduleKey(self.new_id()),
            "namespace": NAMESPACE,
            "definition": '{"every":60}',
            "plan": Plan(timetable=Timetable(trigger=every)),
            "owner": "ann",
            "created": self.now,
            "changed": self.now,
            "next_due": self.now + MINUTE,
        }
        return Schedule(**(defaults | {"name": name} | fields))

    async def scheduled(self, name: str = "nightly", **fields: Any) -> Schedule:
        """A schedule in the store."""
        schedule = self.schedule(name, **fields)
        assert await self.store.save_schedules([Step(schedule=schedule)]) == {schedule.id}
        return schedule

    def run(self, due: Micros, verdict: Verdict | None = Verdict.RAN, **fields: Any) -> Run:
        """A row of the ledger: one due time."""
        defaults = {"until": due, "promised": verdict or Verdict.RAN, "decided": self.now}
        return Run(**(defaults | {"due": due, "verdict": verdict} | fields))

    async def run_job(self, schedule: Schedule, due: Micros, **fields: Any) -> NewJob:
        """The job of a due time."""
        named = {"name": run_name(schedule.name, due), "schedule_id": schedule.name}
        job = await self.job(namespace=schedule.namespace, **({"due": due} | named | fields))
        return NewJob(job=job, row=states.submit(job, self.now), body_hash=b"run")

    async def step(self, schedule: Schedule, *runs: Run, jobs: Sequence[NewJob] = (), **changes: Any) -> Schedule:
        """The schedule after one more step, which must take effect."""
        changed = msgspec.structs.replace(schedule, version=schedule.version + 1, **changes)
        assert await self.store.save_schedules([Step(schedule=changed, runs=runs, jobs=jobs)]) == {schedule.id}
        return changed

    async def fire(
        self, schedule: Schedule, *dues: Micros, verdict: Verdict = Verdict.RAN, **fields: Any
    ) -> tuple[Schedule, list[Job]]:
        """The schedule and its new runs, one for each due time."""
        new = [await self.run_job(schedule, due, **fields) for due in dues]
        changed = await self.step(schedule, *(self.run(due, verdict) for due in dues), jobs=new)
        return changed, [one.job for one in new]

    async def standing(self, schedule: Schedule) -> Standing:
        return (await self.store.standings([schedule.id]))[schedule.id]

    def line(self, lease: Lease, message: str = "hello", *, level: int = 20, nonce: int | None = None) -> Fenced:
        line = LogLine(
            log_id=self.new_id(), id=lease.id, attempt=lease.attempt, time=self.now, level=level, message=message
        )
        return Fenced(lease.nonce if nonce is None else nonce, line)

    def later(self, seconds: float) -> Micros:
        return self.now + round(seconds * SECOND)
