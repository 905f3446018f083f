"""Workers: they register, exchange, leave. An exchange hands in what ended, asks for what fits, and is the heartbeat.

The lease that is written runs from an exchange's arrival. It is not written anew for every exchange: at most a tenth of
it may be missing, so a worker that goes by nine tenths of its lease never outlives it.
"""

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

from msgspec import UNSET, Raw

from foliot.clock import Clock
from foliot.domain.access import Caller
from foliot.domain.duration import SECOND, Micros, show_duration
from foliot.domain.errors import Forbidden, Gone, NotFound, Unreadable
from foliot.domain.ids import JOB, WORKER, IdMaker, JobKey, WorkerKey, parse, parse_token, show, show_token
from foliot.domain.job import Lane, Lease
from foliot.domain.needs import PLAIN, SLOT, UNIT, parse_offer, read_needs, show_amounts
from foliot.domain.worker import Worker
from foliot.service.dispatch import MOST_AT_ONCE, Dispatch
from foliot.service.graphs import Graphs
from foliot.service.job_fields import DEFAULT_QUEUE
from foliot.service.recover import Recover
from foliot.service.report import OLD_TOKEN, Reports, check_reports
from foliot.service.sealing import Sealer
from foliot.service.view import shown_id
from foliot.service.wake import Wake
from foliot.store.base import Beat, Claimed, Store
from foliot.wire import (
    AssignedJob,
    ExchangeAnswer,
    ExchangeBody,
    LogBody,
    RegisterBody,
    Registered,
    Rejected,
    Report,
    Stop,
    WorkerInfo,
    to_time,
)

MOST_GIVEN = 100_000
PLAIN_RESOURCES = show_amounts(PLAIN.amounts)


class Seat:
    """A worker as this node knows it: its row, when its lease was last written, and which stops it was told of."""

    def __init__(self, worker: Worker) -> None:
        self.worker = worker
        self.written = worker.seen
        self.stop: Sequence[Lease] = ()
        self.told: set[tuple[JobKey, int]] = set()
        self.stale = False
        self.news = asyncio.Event()


class Workers:
    def __init__(
        self,
        store: Store,
        clock: Clock,
        ids: IdMaker,
        wake: Wake,
        dispatch: Dispatch,
        reports: Reports,
        recover: Recover,
        graphs: Graphs,
        sealer: Sealer,
        *,
        lease: Micros,
        heartbeat: Micros,
    ) -> None:
        self._store = store
        self._clock = clock
        self._ids = ids
        self._wake = wake
        self._dispatch = dispatch
        self._reports = reports
        self._recover = recover
        self._graphs = graphs
        self._sealer = sealer
        self._lease = lease
        self._heartbeat = heartbeat
        self._rewrite_after = min(heartbeat // 4, lease // 10)
        self._seats: dict[WorkerKey, Seat] = {}
        self._given: dict[JobKey, Lane] = {}  # the jobs that were handed out here last
        self._closed = False
        wake.on_stop.append(lambda worker, _tell: self._told_to_stop(worker))

    def close(self) -> None:
        """End the waiting calls of workers that want nothing: the node is about to stop."""
        self._closed = True
        for seat in self._seats.values():
            seat.news.set()

    async def register(self, body: RegisterBody, caller: Caller) -> Registered:
        resources = show_amounts(parse_offer(body.resources, "resources").items())
        now = self._clock.now()
        worker = Worker(
            id=WorkerKey(self._ids.one(now)),
            namespace=caller.namespace,
            name=body.name,
            queues=_within(tuple(body.queues), caller.queues, "queues"),
            job_types=_within(tuple(body.job_types), caller.job_types, "job_types"),
            resources=resources,
            labels=body.labels,
            since=now,
            seen=now,
            until=now + self._lease,
        )
        await self._store.add_worker(worker)
        self._forget_seats(now)
        self._seats[worker.id] = Seat(worker)
        return Registered(
            worker_id=show(WORKER, worker.id),
            lease_seconds=show_duration(self._lease),
            heartbeat_seconds=show_duration(self._heartbeat),
        )

    async def exchange(self, worker_id: str, body: ExchangeBody, caller: Caller) -> ExchangeAnswer:
        key = _key(worker_id)
        check_reports(body.reports)
        seat = await self._beat(key, caller)
        reports, logs, rejected = await self._reached(body, caller)
        if logs:
            rejected += await self._reports.log(logs)
        again = await self._send_again(seat, body.holds) if body.holds is not None else []
        free = {} if seat.worker.draining else _free(seat.worker, body.free, again)
        told = bool(body.reports or body.logs or again or self._news_for(seat))
        wait = 0.0 if told else min(body.wait, self._heartbeat / SECOND)
        taken, refused = await asyncio.gather(self._take(seat, free, wait), self._hand_in(reports))
        if seat.stale:
            seat = await self._beat(key, caller)
        return ExchangeAnswer(
            jobs=await self._assigned(await self._recover.in_time([*again, *taken])),
            stop=await self._tell_stops(seat),
            rejected=rejected + refused,
            drain=seat.worker.draining,
        )

    async def _assigned(self, claimed: Sequence[Claimed]) -> list[AssignedJob]:
        upstream, links = await self._graphs.upstream(claimed)
        assigned: list[AssignedJob] = []
        unreadable: list[tuple[Claimed, Unreadable]] = []
        for one in claimed:
            try:
                payload = self._sealer.payload_of(one.job)
            except Unreadable as error:
                unreadable.append((one, error))
            else:
                key = one.lease.id
                assigned.append(_assigned(one, payload, upstream.get(key, {}), links.get(key, ())))
                self._give(one)
        if unreadable:
            await self._recover.unreadable(unreadable)
        return assigned

    def _give(self, claimed: Claimed) -> None:
        self._given.pop(claimed.lease.id, None)
        self._given[claimed.lease.id] = claimed.job.lane
        if len(self._given) > MOST_GIVEN:
            del self._given[next(iter(self._given))]

    async def leave(self, worker_id: str, caller: Caller) -> None:
        """What it held goes back at once."""
        key = _key(worker_id)
        await self._own(key, caller)
        await self._store.remove_worker(key)
        self._wake.stop(key)
        self._seats.pop(key, None)
        await self._recover.missed()

    async def drain(self, worker_id: str, caller: Caller) -> None:
        key = _key(worker_id)
        await self._own(key, caller)
        await self._store.drain_worker(key)
        self._wake.stop(key)

    async def _own(self, key: WorkerKey, caller: Caller) -> None:
        found = await self._store.workers(caller.namespace)
        if not any(worker.id == key and _is_of(worker, caller) for worker, _ in found):
            raise NotFound(f"there is no worker {show(WORKER, key)}; `GET /workers` lists those that are there")

    async def _beat(self, key: WorkerKey, caller: Caller) -> Seat:
        """The worker's seat, its lease prolonged; `Gone` where that has ended."""
        now = self._clock.now()
        seat = self._seats.get(key)
        if seat is not None and not _is_of(seat.worker, caller):
            raise _gone(key)
        if seat is not None and not seat.stale and now - seat.written < self._rewrite_after:
            return seat
        if seat is not None:
            seat.stale = False  # before the read, so that what comes during it counts
        try:
            beat = await self._store.beat(key, now, now + self._lease, namespace=caller.namespace)
        except BaseException:
            if seat is not None:
                seat.stale = True
            raise
        if beat is None:
            self._seats.pop(key, None)
            raise _gone(key)
        if not _is_of(beat.worker, caller):
            raise _gone(key)
        return self._seat(beat, now)

    def _seat(self, beat: Beat, now: Micros) -> Seat:
        seat = self._seats.setdefault(beat.worker.id, Seat(beat.worker))
        seat.worker, seat.written, seat.stop = beat.worker, now, beat.stop
        seat.told.intersection_update((lease.id, lease.nonce) for lease in beat.stop)
        return seat

    def _forget_seats(self, now: Micros) -> None:
        """Those of workers that were not here for a lease; one that comes back gets another."""
        for key in [key for key, seat in self._seats.items() if seat.written + self._lease < now]:
            del self._seats[key]

    async def _take(self, seat: Seat, free: dict[str, int], wait: float) -> list[Claimed]:
        patience = 0.0 if seat.stale or self._closed else wait
        if free:
            return await self._dispatch.take(seat.worker, free, patience)
        if patience > 0:
            seat.news.clear()
            with suppress(TimeoutError):
                async with asyncio.timeout(patience):
                    await seat.news.wait()
        return []

    async def _hand_in(self, reports: Sequence[Report]) -> list[Rejected]:
        return await self._reports.ends.add(reports) if reports else []

    async def _reached(
        self, body: ExchangeBody, caller: Caller
    ) -> tuple[Sequence[Report], Sequence[LogBody], list[Rejected]]:
        """What is told of jobs that the caller reaches; of others it can not know anything, whatever token it shows.
        The jobs that were given out here are known here, so that the store is asked for few."""
        told: list[Report | LogBody] = [*body.reports, *body.logs]
        if not told:
            return (), (), []
        keys = {each.token: JobKey(proof[0]) for each in told if (proof := parse_token(each.token)) is not None}
        lanes = {key: lane for key in keys.values() if (lane := self._given.get(key)) is not None}
        if unknown := [key for key in keys.values() if key not in lanes]:
            lanes |= {key: record.job.lane for key, record in (await self._store.load(unknown)).items()}
        beyond = {token for token, key in keys.items() if key in lanes and not caller.reaches(lanes[key])}
        return (
            [report for report in body.reports if report.token not in beyond],
            [line for line in body.logs if line.token not in beyond],
            [
                Rejected(job_id=each.job_id, attempt=each.attempt, reason=OLD_TOKEN)
                for each in told
                if each.token in beyond
            ],
        )

    async def _send_again(self, seat: Seat, holds: Sequence[str]) -> list[Claimed]:
        """What is leased to the worker and not among what it holds: its answer was lost on the way, and with it perhaps
        what it was told to stop."""
        held = set(holds)
        seat.told.clear()
        return [
            job
            for job in await self._store.leases_of(seat.worker.id)
            if show_token(job.lease.id, job.lease.nonce) not in held
        ]

    async def _tell_stops(self, seat: Seat) -> Sequence[Stop]:
        """The attempts to stop that this worker was not told of yet."""
        fresh = [lease for lease in seat.stop if (lease.id, lease.nonce) not in seat.told]
        jobs = await self._store.load([lease.id for lease in fresh]) if fresh else {}
        seat.told.update((lease.id, lease.nonce) for lease in fresh)
        return [
            Stop(
                job_id=shown_id(jobs[lease.id].job),
                attempt=lease.attempt,
                token=show_token(lease.id, lease.nonce),
            )
            for lease in fresh
            if lease.id in jobs
        ]

    def _news_for(self, seat: Seat) -> bool:
        return any((lease.id, lease.nonce) not in seat.told for lease in seat.stop)

    def _told_to_stop(self, worker: WorkerKey) -> None:
        seat = self._seats.get(worker)
        if seat is not None:
            seat.stale = True
            seat.told.clear()
            seat.news.set()
            self._dispatch.interrupt(worker)

    async def list(self, caller: Caller) -> list[WorkerInfo]:
        now = self._clock.now()
        found = await self._store.workers(caller.namespace)
        held = [lease.id for _, leases in found for lease in leases]
        jobs = await self._store.load(held)
        return [
            WorkerInfo(
                worker_id=show(WORKER, worker.id),
                name=worker.name,
                status="lost" if worker.until <= now else "draining" if worker.draining else "alive",
                queues=list(worker.queues),
                job_types=list(worker.job_types),
                resources=worker.resources,
                labels=worker.labels,
                since=to_time(worker.since),
                last_seen=to_time(worker.seen),
                lease_until=to_time(worker.until),
                running=[
                    shown_id(jobs[lease.id].job)
                    for lease in leases
                    if lease.id in jobs and caller.reaches(jobs[lease.id].job.lane)
                ],
            )
            for worker, leases in found
            if _meets(worker.queues, caller.queues) and _meets(worker.job_types, caller.job_types)
        ]


def _gone(key: WorkerKey) -> Gone:
    return Gone(f"worker {show(WORKER, key)} is not registered, or its lease has ended; register anew")


def _within(asked: tuple[str, ...], reached: tuple[str, ...], field: str) -> tuple[str, ...]:
    """What a worker serves: what it asks for, and no more than its key reaches."""
    if not reached:
        return asked
    if beyond := [name for name in asked if name not in reached]:
        raise Forbidden(f"{field}: this key reaches only {', '.join(reached)}, not {', '.join(beyond)}")
    return asked or reached


def _meets(served: tuple[str, ...], reached: tuple[str, ...]) -> bool:
    """Whether a worker may have to do with what is reached; none named is all."""
    return not served or not reached or not set(served).isdisjoint(reached)


def _is_of(worker: Worker, caller: Caller) -> bool:
    """Whether a worker is the caller's to speak for: one that serves nothing beyond what the caller reaches."""
    return (
        worker.namespace == caller.namespace
        and (not caller.queues or (bool(worker.queues) and set(worker.queues) <= set(caller.queues)))
        and (not caller.job_types or (bool(worker.job_types) and set(worker.job_types) <= set(caller.job_types)))
    )


def _key(worker_id: str) -> WorkerKey:
    key = parse(WORKER, worker_id)
    if key is None:
        raise NotFound(f"{worker_id!r} is no worker id; registering gives one")
    return WorkerKey(key)


def _free(worker: Worker, said: Mapping[str, float | str], again: Sequence[Claimed]) -> dict[str, int]:
    """What a call asks for: what it says is free, less what it is sent again, and of nothing more than was offered."""
    free = parse_offer(said, "free")
    for job in again:
        for name, amount in read_needs(job.job.lane.needs).amounts:
            free[name] = free.get(name, 0) - amount
    if SLOT in free:
        free[SLOT] = min(free[SLOT], MOST_AT_ONCE * UNIT)
    for name, amount in free.items():
        offered = worker.offer(name)
        free[name] = amount if offered is None else min(amount, offered)
    return {name: amount for name, amount in free.items() if amount > 0}


def _assigned(claimed: Claimed, payload: str, upstream: dict[str, Any], links: Sequence[str]) -> AssignedJob:
    job, lease = claimed.job, claimed.lease
    return AssignedJob(
        job_id=shown_id(job),
        job_type=job.lane.job_type,
        attempt=lease.attempt,
        token=show_token(lease.id, lease.nonce),
        payload=Raw(payload.encode()),
        timeout=show_duration(job.timeout),
        schedule_time=to_time(job.due),
        idempotency_key=show(JOB, job.id),
        upstream=upstream,
        resources=show_amounts(read_needs(job.lane.needs).amounts) if job.lane.needs else PLAIN_RESOURCES,
        secret_fields=job.secret_fields or UNSET,
        queue=UNSET if job.lane.queue == DEFAULT_QUEUE else job.lane.queue,
        trace=job.trace or UNSET,
        trace_links=links or UNSET,
    )
