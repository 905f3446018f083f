"""Queues: their rules, how full they are; holding a queue or a job type."""

from collections.abc import Callable, Sequence

import msgspec
from msgspec import UNSET

from foliot.clock import Clock
from foliot.domain.access import Caller
from foliot.domain.duration import SECOND, Micros, parse_duration
from foliot.domain.errors import BadInput, Conflict, Forbidden, NotFound, Stale
from foliot.domain.queue import DEFAULT_RULES, Queue, QueueRules
from foliot.domain.rate import RateLimit
from foliot.service.alert_telling import (
    QueueTelling,
    Telling,
    parse_notify,
    parse_objective,
    show_notify,
    show_objective,
)
from foliot.service.gate import Gate
from foliot.service.group import persist
from foliot.service.wake import Wake
from foliot.store.base import Crowd, Store
from foliot.wire import JobTypeInfo, QueueBody, QueueInfo, RateLimitBody, RateLimitInfo

ROUNDS = 20
SHORTEST_PER = SECOND // 1000
LONGEST_PER = 31 * 24 * 3600 * SECOND
LONGEST_BURST = 366 * 24 * 3600 * SECOND
LONGEST_AGING = 366 * 24 * 3600 * SECOND


class Queues:
    def __init__(self, store: Store, clock: Clock, wake: Wake, gate: Gate, telling: Telling) -> None:
        self._store = store
        self._clock = clock
        self._wake = wake
        self._gate = gate
        self._telling = telling

    async def page(self, *, limit: int, cursor: str | None, caller: Caller) -> tuple[list[QueueInfo], str | None]:
        """Queues by name, and where the next page begins."""
        names = sorted(name for name in caller.queues if name > (cursor or "")) if caller.queues else None
        found = await self._store.reader(caller.namespace).queues(
            caller.namespace, names=names, limit=limit + 1, after=cursor or ""
        )
        page = found[:limit]
        return await self._show(page), page[-1].name if len(found) > limit else None

    async def read(self, name: str, caller: Caller) -> QueueInfo:
        if caller.queues and name not in caller.queues:
            raise NotFound(f"there is no queue {name!r} that this key reaches")
        queue = await self._find(name, caller)
        if queue is None:
            raise NotFound(f"there is no queue {name!r}; it comes into being with its first job, or a PUT")
        return (await self._show([queue]))[0]

    async def set(self, name: str, body: QueueBody, *, if_match: int | None, caller: Caller) -> QueueInfo:
        """Change the rules that are given."""
        await self._telling.refresh()
        telling = _amended_telling(self._telling.of_queue(caller.namespace, name), body)
        if body.notify is not UNSET:
            await self._telling.check(caller.namespace, telling)
        await self._change(name, lambda queue: _amended(queue, body), if_match, caller)
        await self._telling.set_queue(caller.namespace, name, telling)
        return await self.read(name, caller)

    async def pause(self, name: str, *, if_match: int | None, caller: Caller) -> QueueInfo:
        """Let nothing of the queue start; what runs goes on."""
        return await self._change(name, lambda queue: msgspec.structs.replace(queue, paused=True), if_match, caller)

    async def resume(self, name: str, *, if_match: int | None, caller: Caller) -> QueueInfo:
        await self.read(name, caller)  # one that is not there can not be resumed
        return await self._change(name, lambda queue: msgspec.structs.replace(queue, paused=False), if_match, caller)

    async def hold_type(self, job_type: str, *, held: bool, caller: Caller) -> JobTypeInfo:
        """Let nothing of a job type start, in any queue, or let it start again."""
        if caller.queues or (caller.job_types and job_type not in caller.job_types):
            raise Forbidden(f"this key reaches only a part of the jobs of type {job_type}")
        await persist(lambda _again: self._store.hold_type(caller.namespace, job_type, held=held))
        await self._rules_changed()
        return JobTypeInfo(job_type=job_type, paused=held)

    async def held_types(self, caller: Caller) -> list[JobTypeInfo]:
        held = await self._store.reader(caller.namespace).held_types(caller.namespace)
        shown = [name for name in held if not caller.job_types or name in caller.job_types]
        return [JobTypeInfo(job_type=name, paused=True) for name in shown]

    async def _change(
        self, name: str, change: Callable[[Queue], Queue], if_match: int | None, caller: Caller
    ) -> QueueInfo:
        if caller.job_types or (caller.queues and name not in caller.queues):
            raise Forbidden(f"this key reaches only a part of the jobs of the queue {name}")
        for _ in range(ROUNDS):
            known = await self._find(name, caller)
            version = 0 if known is None else known.version
            if if_match is not None and if_match != version:
                raise Stale(f"queue {name!r} is at version {version}, not {if_match}; read it again and decide anew")
            queue = known or Queue(queue_id=0, namespace=caller.namespace, name=name)
            saved = await self._store.put_queue(change(queue), expected=version, now=self._clock.now())
            if saved is not None:
                await self._rules_changed()
                return (await self._show([saved]))[0]
        raise Conflict(f"queue {name!r} changes faster than it can be changed; try again")

    async def _rules_changed(self) -> None:
        """Known here before the answer goes out; elsewhere a moment later."""
        await self._gate.refresh()
        self._wake.rules()

    async def _find(self, name: str, caller: Caller) -> Queue | None:
        reader = self._store.reader(caller.namespace)
        return next(iter(await reader.queues(caller.namespace, names=[name])), None)

    async def _show(self, queues: Sequence[Queue]) -> list[QueueInfo]:
        await self._telling.refresh()
        crowds = await self._store.crowds([queue.queue_id for queue in queues]) if queues else {}
        now = self._clock.now()
        return [
            _info(
                queue,
                crowds.get(queue.queue_id, Crowd()),
                self._telling.of_queue(queue.namespace, queue.name),
                now,
            )
            for queue in queues
        ]


def _amended(queue: Queue, body: QueueBody) -> Queue:
    rules = queue.rules
    changed = QueueRules(
        policy=rules.policy if body.policy is UNSET else body.policy or DEFAULT_RULES.policy,
        aging=rules.aging if body.aging is UNSET else None if body.aging is None else _aging(body.aging),
        weight=rules.weight if body.weight is UNSET else body.weight or DEFAULT_RULES.weight,
        weights=rules.weights if body.weights is UNSET else body.weights or {},
        max_concurrency=rules.max_concurrency if body.max_concurrency is UNSET else body.max_concurrency,
        rate_limit=rules.rate_limit if body.rate_limit is UNSET else _rate(body.rate_limit),
    )
    return msgspec.structs.replace(queue, rules=changed)


def _amended_telling(telling: QueueTelling, body: QueueBody) -> QueueTelling:
    notify, objective = telling.notify, telling.objective
    if body.notify is not UNSET:
        notify = None if body.notify is None else parse_notify(body.notify, of_queue=True)
    if body.objective is not UNSET:
        objective = None if body.objective is None else parse_objective(body.objective)
    return QueueTelling(notify=notify, objective=objective)


def _aging(text: float | str) -> Micros:
    aging = parse_duration(text, "aging")
    if not 0 < aging <= LONGEST_AGING:
        raise BadInput.at("aging", "must be above zero and at most a year: how long a wait is worth one priority step")
    return aging


def _rate(body: RateLimitBody | None) -> RateLimit | None:
    if body is None:
        return None
    per = parse_duration(body.per, "rate_limit.per")
    if not SHORTEST_PER <= per <= LONGEST_PER:
        raise BadInput.at("rate_limit.per", "must be from 1 ms to 31 days")
    if body.burst * per > LONGEST_BURST * body.limit:
        raise BadInput.at("rate_limit.burst", "more than a year's starts at this rate; give fewer")
    return RateLimit(limit=body.limit, per=per, burst=body.burst)


def _info(queue: Queue, crowd: Crowd, telling: QueueTelling, now: Micros) -> QueueInfo:
    rules, rate = queue.rules, queue.rules.rate_limit
    return QueueInfo(
        queue=queue.name,
        policy=rules.policy,
        aging=None if rules.aging is None else rules.aging / SECOND,
        weight=rules.weight,
        weights=rules.weights,
        max_concurrency=rules.max_concurrency,
        rate_limit=None if rate is None else RateLimitInfo(limit=rate.limit, per=rate.per / SECOND, burst=rate.burst),
        paused=queue.paused,
        waiting=crowd.waiting,
        running=crowd.running,
        oldest_wait=None if crowd.oldest is None else max(0, now - crowd.oldest) / SECOND,
        notify=show_notify(telling.notify),
        objective=show_objective(telling.objective),
        version=queue.version,
    )
