"""A node's services over the SQLite store in memory, and ten workers, from moment to moment. What a node's duties do is
done where a hint asked for it, never by looking around, so that a forgotten hint leaves a worker idle and is seen."""

import asyncio
import heapq
from datetime import UTC, datetime

import msgspec

from foliot.domain.access import ADMIN
from foliot.domain.duration import DAY, SECOND, Micros
from foliot.domain.ids import IdMaker
from foliot.service import Services
from foliot.service.wake import Wake
from foliot.testing.clock import VirtualClock
from foliot.testing.memory_store import MemoryStore
from foliot.wire import (
    AssignedJob,
    ExchangeAnswer,
    ExchangeBody,
    LimitInfo,
    QueueBody,
    QueueInfo,
    RegisterBody,
    Report,
    SubmitBody,
    to_micros,
)
from tests.simulation.scenario import KEY_LIMIT, OFFERS, RULES, Offer, Task, tasks
from tests.simulation.watch import Watch

BEGIN: Micros = to_micros(datetime(2027, 1, 1, tzinfo=UTC))
LEASE = 100 * DAY


class Worker:
    """What it runs, and what that leaves free. It reports at the moment at which a job is done."""

    def __init__(self, offer: Offer, worker_id: str) -> None:
        self.offer = offer
        self.worker_id = worker_id
        self.running: list[tuple[Micros, int, AssignedJob, Task]] = []

    @property
    def free(self) -> dict[str, float]:
        held: dict[str, float] = {}
        for _, _, _, task in self.running:
            for name, amount in task.holds.items():
                held[name] = held.get(name, 0) + amount
        return {name: amount - held.get(name, 0) for name, amount in self.offer.resources.items()}

    def start(self, job: AssignedJob, task: Task, now: Micros) -> None:
        heapq.heappush(self.running, (now + round(task.lasts * SECOND), task.number, job, task))

    def ended(self, now: Micros) -> list[tuple[AssignedJob, Task]]:
        found = []
        while self.running and self.running[0][0] <= now:
            _, _, job, task = heapq.heappop(self.running)
            found.append((job, task))
        return found


class Cluster:
    def __init__(self) -> None:
        self.clock = VirtualClock(BEGIN)
        self.watch = Watch()
        self._store = MemoryStore(self.clock)
        self._wake = Wake()
        self._limits: set[int] = set()
        self._wake.on_tokens.append(self._limits.update)
        self.services = Services(self._store, self.clock, IdMaker(node=1), self._wake, lease=LEASE, heartbeat=LEASE)
        self._coming = tasks()[::-1]
        self._tasks = {task.job_id: task for task in self._coming}
        self._workers: list[Worker] = []

    async def run(self) -> None:
        """From the first job to the end of the last."""
        await self._store.open()
        try:
            await self._open()
            while (moment := self._next_moment()) is not None:
                self.clock.set(moment)
                await self._live()
                self.watch.check((moment - BEGIN) / SECOND)
            self.queues, _ = await self.services.queues.page(limit=50, cursor=None, caller=ADMIN)
            self.limits, _ = await self.services.limits.page(limit=50, cursor=None, caller=ADMIN)
            self.statuses = [(await self.services.query.job(job_id, ADMIN)).status for job_id in self._tasks]
        finally:
            self.services.close()
            await self.services.drain()
            await self._store.close()

    queues: list[QueueInfo]
    limits: list[LimitInfo]
    statuses: list[str]

    async def _open(self) -> None:
        for name, rules in RULES.items():
            body = msgspec.convert(rules, QueueBody)
            await self.services.queues.set(name, body, if_match=None, caller=ADMIN)
        for offer in OFFERS:
            offered = RegisterBody(
                name=offer.name, resources=dict(offer.resources), labels=offer.labels, queues=list(offer.queues)
            )
            registered = await self.services.workers.register(offered, ADMIN)
            self._workers.append(Worker(offer, registered.worker_id))

    def _next_moment(self) -> Micros | None:
        moments = [worker.running[0][0] for worker in self._workers if worker.running]
        if self._coming:
            moments.append(_arrival(self._coming[-1]))
        if (moment := self.services.gate.next_moment) is not None:
            moments.append(moment)
        return min(moments, default=None)

    async def _live(self) -> None:
        """All that happens at this moment: ends, new jobs, then starts, until nobody is given any more."""
        now = self.clock.now()
        for worker in self._workers:
            if ended := worker.ended(now):
                reports = [_success(job) for job, _ in ended]
                assert (await self._exchange(worker, ExchangeBody(reports=reports))).rejected == []
                for _, task in ended:
                    self.watch.end(task, worker.offer)
        while self._coming and _arrival(self._coming[-1]) <= now:
            task = self._coming.pop()
            await self.services.submit.one(_body(task), b"", ADMIN)
            self.watch.wait(task)
        await self._settle()
        while await self._ask(now):
            await self._settle()

    async def _settle(self) -> None:
        """What the duties of a node do when they are told to."""
        while self._limits:
            limits = set(self._limits)
            self._limits.clear()
            await self.services.limits.give_tokens(limits)
        self.services.gate.let_in()
        await self.services.gate.put_in_order()

    async def _ask(self, now: Micros) -> bool:
        """All workers that have room ask at once; whether any was given a job."""
        asking = [worker for worker in self._workers if worker.free["slot"]]
        bodies = [ExchangeBody(free=dict(worker.free)) for worker in asking]
        answers = await asyncio.gather(*map(self._exchange, asking, bodies))
        for worker, answer in zip(asking, answers, strict=True):
            for job in answer.jobs:
                task = self._tasks[job.job_id]
                worker.start(job, task, now)
                self.watch.start(task, worker.offer, (now - BEGIN) / SECOND)
        return any(answer.jobs for answer in answers)

    async def _exchange(self, worker: Worker, body: ExchangeBody) -> ExchangeAnswer:
        return await self.services.workers.exchange(worker.worker_id, body, ADMIN)


def _arrival(task: Task) -> Micros:
    return BEGIN + round(task.arrives * SECOND)


def _body(task: Task) -> SubmitBody:
    fields: dict[str, object] = {
        "job_type": "work",
        "job_id": task.job_id,
        "queue": task.queue,
        "priority": task.priority,
        "fair_key": task.fair_key,
        "resources": task.resources,
        "requires": task.requires,
    }
    if task.key is not None:
        fields["concurrency"] = {"key": task.key, "limit": KEY_LIMIT}
    return msgspec.convert(fields, SubmitBody)


def _success(job: AssignedJob) -> Report:
    return Report(job_id=job.job_id, attempt=job.attempt, token=job.token, status="success")
