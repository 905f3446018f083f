"""A node and a worker by hand: what they would do at each moment, done step by step, and nothing in between."""

import heapq
import itertools
import secrets
from collections.abc import Mapping, Sequence

from foliot.api import create_app
from foliot.domain.access import ADMIN
from foliot.domain.duration import DAY, Micros
from foliot.domain.ids import IdMaker, ScheduleKey
from foliot.main.embedded import InProcess
from foliot.sdk.apply import apply_at_start
from foliot.sdk.async_client import AsyncClient
from foliot.sdk.deferred import Deferred
from foliot.sdk.handler import Handler
from foliot.service import Services
from foliot.service.announce import announce_released
from foliot.service.wake import Wake
from foliot.testing.attempt import Attempt
from foliot.testing.clock import VirtualClock
from foliot.testing.deferred import DeferredByHand
from foliot.testing.memory_store import MemoryStore
from foliot.wire import ExchangeBody, RegisterBody, ScheduleBody, to_time

AT_ONCE = 1000
MOST_CALLS = 100_000  # at one moment
LEASE = 36_525 * DAY  # a worker is never lost by a jump of the clock

Work = Attempt | Deferred[object]


class World:
    """Everything of one app. Belongs to one event loop, all but `deferred`."""

    def __init__(self, handlers: Mapping[str, Handler], clock: VirtualClock) -> None:
        self.clock = clock
        self.takes: dict[str, float] = {}  # job type → seconds
        self.deferred = DeferredByHand(clock)
        self._handlers = handlers
        self._store = MemoryStore(clock)
        self._wake = Wake()
        self._freed: set[ScheduleKey] = set()
        self._limits: set[int] = set()  # concurrency keys that may have a token for somebody
        self._parents_ended = False
        self._rules_changed = False
        self._news = False  # since the last exchange there is something to take, or to stop
        self._wake.on_freed.append(self._freed.update)
        self._wake.on_tokens.append(self._limits.update)
        self._wake.on_release.append(self._note_release)
        self._wake.on_ready.append(lambda _lanes, _tell: self._heard())
        self._wake.on_stop.append(lambda _worker, _tell: self._heard())
        self._wake.on_rules.append(lambda _tell: self._note_rules())
        self.services = Services(self._store, clock, IdMaker(node=0), self._wake, lease=LEASE, heartbeat=LEASE)
        key = secrets.token_hex(16)
        self.transport = InProcess(create_app(self.services, admin_key=key), key)
        self._workers: list[str] = []
        self._offered = 0
        self._numbers = itertools.count()
        self._running: list[tuple[Micros, int, Attempt]] = []
        self._busy_at: Micros = 0
        self._calls = 0
        self._moments: list[Micros] = []  # what was seen ahead when last looked

    async def open(self, schedules: Sequence[ScheduleBody]) -> None:
        """Declared schedules are made as a start of the app makes them."""
        await self._store.open()
        await apply_at_start(AsyncClient("the virtual node", transport=self.transport), schedules)

    async def close(self) -> None:
        self.deferred.close()
        self.services.close()
        await self.services.drain()
        await self._store.close()

    async def step(self, target: Micros, done: Work | None) -> Work | None:
        """Goes on up to the next function that is to be called; None once `target` is reached and all is done. `done`
        is what the step before gave, called meanwhile."""
        if isinstance(done, Attempt):
            self._run_until(done.end(), done)
        while True:
            work = await self._work_now()
            self._wake.change()
            if work is not None:
                self._count(work)
                return work
            moment = min(self._moments, default=target)
            if moment >= target and self.clock.now() >= target:
                return None
            self.clock.set(min(moment, target))

    async def _work_now(self) -> Work | None:
        """The next function that is to be called at this moment."""
        while True:
            if self._news or self._has_ended or len(self._handlers) != self._offered:
                attempt = await self._exchange()
                if attempt is not None:
                    return attempt
            if (deferred := self.deferred.take_due()) is not None:
                return deferred
            self._moments = [end for end, _, _ in self._running[:1]]
            if (moment := self.deferred.next_moment()) is not None:
                self._moments.append(moment)
            if not (
                self._has_ended
                or await self._fire()
                or await self._settle()
                or await self._carry_on()
                or await self._keep_queues()
                or await self._admit()
                or await self._expire()
            ):
                return None

    def _count(self, work: Work) -> None:
        """Work that makes new work for the same moment, without end, must not look like a test that is slow."""
        if self._busy_at != self.clock.now():
            self._busy_at, self._calls = self.clock.now(), 0
        self._calls += 1
        if self._calls > MOST_CALLS:
            raise RuntimeError(
                f"{MOST_CALLS:,} calls at {to_time(self._busy_at):%Y-%m-%d %H:%M:%S} and no end: something there "
                f"submits itself again without a delay; the last was {work!r}"
            )

    async def _exchange(self) -> Attempt | None:
        """Hand in what has ended, and take one job: the next is chosen when this one is through."""
        if len(self._handlers) != self._offered:
            await self._register()
        ended, self._news = [], False
        while self._has_ended:
            ended.append(heapq.heappop(self._running)[2])
        given: Attempt | None = None
        for worker in self._workers:
            newest = worker is self._workers[-1]
            body = ExchangeBody(
                reports=[report for attempt in ended for report in attempt.reports()] if newest else [],
                logs=[line for attempt in ended for line in attempt.lines] if newest else [],
                free={"slot": 1} if newest else {},
            )
            answer = await self.services.workers.exchange(worker, body, ADMIN)
            self._stop({stop.token for stop in answer.stop})
            for job in answer.jobs:
                seconds = self.takes.get(job.job_type, 0.0)
                given = Attempt(job, self._handlers[job.job_type], self.clock, seconds)
                self._news = True  # that there is more is heard only where it is new
        return given

    def _heard(self) -> None:
        self._news = True

    async def _register(self) -> None:
        """A worker offers what it had handlers for when it came; one for those that were added later comes beside
        it."""
        self._offered = len(self._handlers)
        body = RegisterBody(name="virtual", job_types=sorted(self._handlers), resources={"slot": 1})
        self._workers.append((await self.services.workers.register(body, ADMIN)).worker_id)

    def _run_until(self, end: Micros, attempt: Attempt) -> None:
        heapq.heappush(self._running, (end, next(self._numbers), attempt))

    def _stop(self, tokens: set[str]) -> None:
        for entry in [entry for entry in self._running if entry[2].job.token in tokens]:
            self._running.remove(entry)
            entry[2].stop()
            self._run_until(self.clock.now(), entry[2])
        if tokens:
            heapq.heapify(self._running)

    @property
    def _has_ended(self) -> bool:
        return bool(self._running) and self._running[0][0] <= self.clock.now()

    async def _fire(self) -> bool:
        standings = await self._store.peek_schedules(self.clock.now(), AT_ONCE)
        due = [each for each in standings if (each.schedule.next_due or 0) <= self.clock.now()]
        if due:
            await self.services.firing.fire(due)
        elif standings:
            self._moments.append(standings[0].schedule.next_due or 0)
        return bool(due)

    async def _settle(self) -> bool:
        freed = set(self._freed)
        self._freed.clear()
        await self.services.firing.settle(freed)
        return bool(freed)

    def _note_release(self) -> None:
        self._parents_ended = True

    def _note_rules(self) -> None:
        self._rules_changed = True

    async def _keep_queues(self) -> bool:
        """What the duties do for queues with rules of their own."""
        changed, self._rules_changed = self._rules_changed, False
        if changed:
            await self.services.dispatch.look()
            self._news = True
        gate = self.services.gate
        moved, let_in = await gate.put_in_order(), gate.let_in()
        if gate.next_moment is not None:
            self._moments.append(gate.next_moment)
        return changed or moved > 0 or let_in

    async def _carry_on(self) -> bool:
        """Ends of parents, to their children; tokens of concurrency keys, to those that wait for them."""
        ended, self._parents_ended = self._parents_ended, False
        limits = set(self._limits)
        self._limits.clear()
        if ended:
            released = await self._store.release(AT_ONCE, self.clock.now())
            self._parents_ended = released.more
            announce_released(self._wake, released)
        if limits:
            await self.services.limits.give_tokens(limits)
        return ended or bool(limits)

    async def _admit(self) -> bool:
        waiting = await self._store.peek_due(self.clock.now(), AT_ONCE)
        due = [each.id for each in waiting if each.time <= self.clock.now()]
        if due:
            admitted = await self._store.admit(due)
            self._wake.ready({lane_id for _, lane_id in admitted.ready})
            self._wake.tokens({limit_id for _, limit_id in admitted.for_key})
        elif waiting:
            self._moments.append(waiting[0].time)
        return bool(due)

    async def _expire(self) -> bool:
        deadline = await self._store.next_deadline()
        if deadline is not None and deadline <= self.clock.now():
            return await self.services.recover.expired() > 0
        if deadline is not None:
            self._moments.append(deadline)
        return False
