"""Hand ready jobs to workers that wait for them: one plan for all waiting workers, one claim at a time.

A lane is looked at when a hint says that it may have ready jobs, until a claim finds fewer than it asked for. `look`
flags every occupied lane; a node calls it each second while workers wait, so that a lost hint costs a second at most.

What a worker is given is bounded by what its calls say is free: it alone knows what it runs, whichever nodes it speaks
to. It asks for each amount in one call at a time, so the calls that wait here add up; what is given leaves with the
answer of a call that asked for it, and that call does not ask again. Two nodes never see the same amount, and nothing
has to be counted in the store. Only a call that broke off may leave more leased than the worker has; it names what it
holds in its next call, and starts nothing beyond what it offers.
"""

import asyncio
from collections import Counter
from collections.abc import Collection, Mapping, Sequence

from foliot.clock import Clock
from foliot.domain.ids import IdMaker, WorkerKey
from foliot.domain.job import Lane, QueueName
from foliot.domain.needs import holds, read_needs
from foliot.domain.placement import Demand, Order, Turns, fits, most, plan
from foliot.domain.worker import Worker
from foliot.service.gate import Gate
from foliot.service.group import persist
from foliot.service.rates import Rate
from foliot.service.wake import Wake
from foliot.store.base import Claimed, Store

MOST_AT_ONCE = 1000
LEAST_DEPTH = 16  # ranks that are read of each of several lanes
PATIENCE = 2.0


class Waiter:
    """A worker's call that wants jobs. A patient one waits for them; the other is answered by the next look. While a
    claim is `under_way` for it nothing else answers it: what is claimed must be told. It is `outdated` once its worker
    has asked for more in another call: by now there may be more free than its calls here say."""

    def __init__(self, worker: Worker, free: dict[str, int], *, patient: bool) -> None:
        self.worker = worker
        self.free = free
        self.patient = patient
        self.outdated = False
        self.under_way = False
        self.future: asyncio.Future[list[Claimed]] = asyncio.get_running_loop().create_future()

    def give(self, jobs: list[Claimed]) -> None:
        if not self.future.done():
            self.future.set_result(jobs)

    def dismiss(self) -> None:
        """Answer without jobs, or with what the claim under way brings."""
        self.patient = False
        if not self.under_way:
            self.give([])

    def fail(self, error: Exception) -> None:
        if not self.future.done():
            self.future.set_exception(error)


class Dispatch:
    def __init__(self, store: Store, clock: Clock, ids: IdMaker, wake: Wake, gate: Gate, rate: Rate) -> None:
        self._store = store
        self._clock = clock
        self._ids = ids
        self._gate = gate
        self._wake = wake
        self._rate = rate
        self._depth = LEAST_DEPTH
        self._turns = Turns(lambda queue: self._gate.book.weight(queue))
        self._waiters: list[Waiter] = []
        self._calls: dict[WorkerKey, list[Waiter]] = {}  # the same, by worker
        self._flagged: dict[int, int] = {}  # lane → how often it was flagged
        self._news = 0  # counts flags and waiters, so that none that comes during a look is overlooked
        self._run: asyncio.Task[None] | None = None
        self._closed = False
        wake.on_ready.append(lambda lanes, _tell: self.flag(lanes))
        wake.on_place.append(lambda _queues, _tell: self._look_again())

    @property
    def hungry(self) -> bool:
        """Whether any worker waits for jobs."""
        return bool(self._waiters)

    async def take(self, worker: Worker, free: dict[str, int], wait: float) -> list[Claimed]:
        """Jobs that fit in what is free of the worker, waiting up to `wait` seconds for the first."""
        if self._closed:
            return []
        waiter = Waiter(worker, free, patient=wait > 0)
        self._waiters.append(waiter)
        calls = self._calls.setdefault(worker.id, [])
        for earlier in calls:
            earlier.outdated = True
        calls.append(waiter)
        self._news += 1
        self._kick()
        try:
            if waiter.patient:
                await asyncio.wait((waiter.future,), timeout=wait)
            if waiter.patient or self._run is None:
                waiter.dismiss()
            return await waiter.future
        finally:
            self._waiters.remove(waiter)
            calls.remove(waiter)
            if not calls:
                del self._calls[worker.id]

    def interrupt(self, worker: WorkerKey) -> None:
        """End the waiting calls of a worker: there is something to tell it."""
        for waiter in self._calls.get(worker, ()):
            waiter.dismiss()

    def close(self) -> None:
        """End all waiting calls, and let nobody wait again: the node is about to stop."""
        self._closed = True
        for waiter in self._waiters:
            waiter.dismiss()

    async def drain(self) -> None:
        """Wait until no claim is under way."""
        while self._run is not None:
            await asyncio.wait((self._run,))

    def flag(self, lanes: Collection[int]) -> None:
        for lane in self._gate.in_order(lanes):
            self._flagged[lane] = self._flagged.get(lane, 0) + 1
        self._look_again()

    async def look(self) -> None:
        """Flag every lane that has ready jobs."""
        self.flag(await self._store.occupied_lanes())

    def _look_again(self) -> None:
        self._news += 1
        self._kick()

    def _kick(self) -> None:
        if self._run is None and self._waiters and self._flagged:
            self._run = asyncio.create_task(self._serve())

    async def _serve(self) -> None:
        """Claim while somebody waits for a lane that may have jobs. An error is the answer of all who wait."""
        try:
            await self._claim_all()
        except Exception as error:
            for waiter in self._waiters:
                waiter.fail(error)
        finally:
            self._run = None  # at once: a hint that comes before this task has ended must start the next

    async def _claim_all(self) -> None:
        while waiters := [waiter for waiter in self._waiters if not waiter.future.done()]:
            seen, demands = self._news, _demands(waiters)
            for waiter in waiters:
                waiter.under_way = True
            lanes = await self._lanes(demands)
            rooms = await self._rooms(lanes)
            if lanes:
                _hand_out(waiters, await self._claim(demands, lanes, rooms))
            _let_go(waiters)
            if not lanes and seen == self._news:
                return

    async def _rooms(self, lanes: dict[int, Lane]) -> dict[QueueName, int]:
        """How many may start in the queues that have limits; lanes of those in which none may are taken out."""
        flags = {lane_id: self._flagged[lane_id] for lane_id in lanes}
        rooms = await self._gate.rooms(lanes)
        if rooms:
            for lane_id, lane in list(lanes.items()):
                if not rooms.get(lane.line, 1):
                    del lanes[lane_id]
                    if self._gate.is_aside(lane_id, lane):
                        self._unflag([lane_id], flags)
        return rooms

    async def _claim(
        self, demands: Sequence[Demand], lanes: dict[int, Lane], rooms: Mapping[QueueName, int]
    ) -> list[Claimed]:
        flags = {lane_id: self._flagged[lane_id] for lane_id in lanes}
        heads, cut = await self._heads(demands, lanes, rooms)
        orders = plan(demands, lanes, heads, rooms=rooms, turns=self._turns, cut=cut)
        self._learn_depth(orders, heads, cut)
        nonce = self._ids.one(self._clock.now())
        claimed = await persist(
            lambda again: self._store.claim(orders, nonce, self._clock.now(), again=again), PATIENCE
        )
        self._rate.add_of([one.lease.lane_id for one in claimed])
        if claimed:
            self._wake.change()
        exhausted = _exhausted(heads, orders, self._claimed_of(lanes, claimed))
        self._unflag(exhausted, flags)
        self._gate.try_again({each: lanes[each] for each in exhausted if heads[each] and lanes[each].line in rooms})
        return claimed

    async def _lanes(self, demands: Sequence[Demand]) -> dict[int, Lane]:
        """The flagged lanes of which somebody waiting can take a job."""
        found: dict[int, Lane] = {}
        for lane_id, flags in list(self._flagged.items()):
            lane = self._store.lane(lane_id)
            if lane is None:
                await self._store.occupied_lanes()
                lane = self._store.lane(lane_id)
            if lane is None or not self._gate.open(lane_id, lane):
                self._unflag([lane_id], {lane_id: flags})
            elif any(fits(demand, lane) for demand in demands):
                found[lane_id] = lane
            else:
                self._ask_anew(demands, lane)
        return found

    def _ask_anew(self, demands: Sequence[Demand], lane: Lane) -> None:
        """A job fits nobody as far as is known here. A worker that may have more free by now is answered, so that it
        says so: its next call asks for all that no other does."""
        for demand in demands:
            calls = [call for call in self._calls.get(demand.worker.id, ()) if not call.future.done()]
            if any(call.outdated for call in calls) and demand.worker.serves(lane):
                for call in calls:
                    if call.under_way:  # one that came during this look has not been looked at yet
                        call.dismiss()

    async def _heads(
        self, demands: Sequence[Demand], lanes: dict[int, Lane], rooms: Mapping[QueueName, int]
    ) -> tuple[dict[int, Sequence[int]], int | None]:
        """The ranks to plan by, and at which length they were cut. A lane alone has nothing to be compared with: its
        ranks are not read, unless its queue has limits: then it must be known whether less was claimed than there was.
        Of many lanes not all is read that could be wanted of each: mostly a few of each go, and where one of them has
        nearly all that go first, the next look is deeper."""
        kinds = {lane.needs for lane in lanes.values()}
        wanted = min(max(most(demands, read_needs(kind).amounts, MOST_AT_ONCE) for kind in kinds), MOST_AT_ONCE)
        if len(lanes) == 1 and not rooms:
            return {lane_id: range(wanted) for lane_id in lanes}, None
        depth = min(wanted, max(self._depth, 2 * wanted // len(lanes)))
        found = await self._store.heads(list(lanes), depth)
        return {lane_id: found.get(lane_id, []) for lane_id in lanes}, depth if depth < wanted else None

    def _learn_depth(self, orders: Sequence[Order], heads: Mapping[int, Sequence[int]], cut: int | None) -> None:
        """Look deeper where heads that were cut were used up, else less deep again."""
        if cut is not None:
            used_up = any(count == cut == len(heads[lane_id]) for lane_id, count in _ordered(orders).items())
            self._depth = min(4 * cut, MOST_AT_ONCE) if used_up else max(self._depth // 2, LEAST_DEPTH)

    def _claimed_of(self, lanes: Mapping[int, Lane], claimed: Sequence[Claimed]) -> Counter[int]:
        """How many were claimed of each lane. A lease is of the job's own lane, wherever it stood."""
        counts = Counter(one.lease.lane_id for one in claimed)
        own = {lane.own: lane_id for lane_id, lane in lanes.items() if lane.ordering}
        if own:
            for lane_id in list(counts):
                if (lane := self._store.lane(lane_id)) in own:
                    counts[own[lane]] += counts.pop(lane_id)
        return counts

    def _unflag(self, exhausted: Collection[int], flags: dict[int, int]) -> None:
        """Forget lanes that were found empty, unless they were flagged since."""
        for lane_id in exhausted:
            if self._flagged[lane_id] == flags[lane_id]:
                del self._flagged[lane_id]


def _ordered(orders: Sequence[Order]) -> Counter[int]:
    """How many were ordered of each lane."""
    ordered: Counter[int] = Counter()
    for order in orders:
        ordered[order.lane_id] += order.count
    return ordered


def _exhausted(heads: Mapping[int, Sequence[int]], orders: Sequence[Order], claimed: Counter[int]) -> list[int]:
    """The lanes that had no head, or gave less than was ordered."""
    ordered = _ordered(orders)
    return [lane_id for lane_id, ranks in heads.items() if not ranks or ordered[lane_id] > claimed[lane_id]]


def _demands(waiters: Sequence[Waiter]) -> list[Demand]:
    """What each waiting worker can take, over all its calls; one that waits twice is one worker."""
    found: dict[WorkerKey, Demand] = {}
    for waiter in waiters:
        known = found.get(waiter.worker.id)
        free = waiter.free if known is None else _sum(known.free, waiter.free)
        found[waiter.worker.id] = Demand(waiter.worker, free)
    return list(found.values())


def _sum(one: Mapping[str, int], other: Mapping[str, int]) -> dict[str, int]:
    return {name: one.get(name, 0) + other.get(name, 0) for name in one.keys() | other.keys()}


def _hand_out(waiters: Sequence[Waiter], claimed: Sequence[Claimed]) -> None:
    jobs: dict[WorkerKey, list[Claimed]] = {}
    for one in claimed:
        jobs.setdefault(one.lease.worker, []).append(one)
    calls: dict[WorkerKey, list[Waiter]] = {}
    for waiter in waiters:
        if waiter.worker.id in jobs:
            calls.setdefault(waiter.worker.id, []).append(waiter)
    for worker, given in jobs.items():
        _share(calls[worker], given)


def _share(calls: Sequence[Waiter], jobs: Sequence[Claimed]) -> None:
    """Answer a worker's calls with what was claimed for it: each job to a call that asked for enough of everything. One
    that only several of them together have room for goes to the first; all are answered then, so that none still asks
    for what that job holds."""
    if len(calls) == 1:
        calls[0].give(list(jobs))
        return
    parts: list[list[Claimed]] = [[] for _ in calls]
    rooms = [dict(call.free) for call in calls]
    torn = False
    for job in jobs:
        amounts = read_needs(job.job.lane.needs).amounts
        place = next((place for place, room in enumerate(rooms) if holds(room, amounts)), None)
        torn |= place is None
        parts[place or 0].append(job)
        for name, amount in amounts:
            rooms[place or 0][name] = rooms[place or 0].get(name, 0) - amount
    for call, part in zip(calls, parts, strict=True):
        if part or torn:
            call.give(part)


def _let_go(waiters: Sequence[Waiter]) -> None:
    """The look is over: who does not wait, or not any more, is answered."""
    for waiter in waiters:
        waiter.under_way = False
        if not waiter.patient:
            waiter.give([])
