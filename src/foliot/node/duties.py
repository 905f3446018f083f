"""The slower duties: bring back what is stuck, end what is past its deadline, beat, look for forgotten jobs, prune."""

import asyncio

from foliot.clock import Clock, OffsetClock, monotonic
from foliot.domain.duration import DAY, SECOND, Micros
from foliot.domain.ids import IdMaker
from foliot.node.peers import Peers
from foliot.node.running import Alarm, Running
from foliot.service.dispatch import Dispatch
from foliot.service.recover import Recover
from foliot.service.wake import Wake
from foliot.store.base import LifecycleStore, NodeLease, Store

NODE_LEASE = 30 * SECOND
NODE_BEAT = 5 * SECOND
JUMP = 2 * SECOND
LOOK_EVERY = 1.0
READINGS = 8  # on one machine a single one was off by up to 5 ms, the best of eight by 10 µs
PRUNE_EVERY = 600.0
PRUNE_CHUNK = 5000
WORKER_KEPT = DAY // 24


class Recovery(Running):
    """Ends attempts whose worker is gone or that are past their time. How soon follows from the workers' lease."""

    def __init__(self, recover: Recover, *, lease: Micros) -> None:
        super().__init__()
        self._recover = recover
        self._every = min(1.0, lease / SECOND / 4)

    async def round(self) -> None:
        await self._recover.missed()
        await asyncio.sleep(self._every)


class Expiry(Running):
    """Ends jobs at their deadline."""

    def __init__(self, store: Store, recover: Recover, clock: Clock, wake: Wake) -> None:
        super().__init__()
        self._store = store
        self._recover = recover
        self._clock = clock
        self._alarm = Alarm()
        self._next: Micros = 0
        wake.on_deadline.append(self._hint)

    def _hint(self, time: Micros) -> None:
        if time < self._next:
            self._next = time
            self._alarm.ring()

    async def round(self) -> None:
        await self._recover.expired()
        self._next = self._clock.now() + NODE_BEAT
        earliest = await self._store.next_deadline()
        if earliest is not None:
            self._next = min(self._next, earliest)
        while (left := self._next - self._clock.now()) > 0:
            await self._alarm.wait(left / SECOND)


class Looker(Running):
    """While workers wait, looks each second for ready jobs of which no hint came."""

    def __init__(self, dispatch: Dispatch) -> None:
        super().__init__()
        self._dispatch = dispatch

    async def round(self) -> None:
        await asyncio.sleep(LOOK_EVERY)
        if self._dispatch.hungry:
            await self._dispatch.look()


class Heartbeat(Running):
    """Keeps the node's number, measures the store's clock, learns which nodes live. Where the time has jumped (the
    machine slept, or the store's clock was set) all who wait for a moment look again at once."""

    def __init__(
        self, store: LifecycleStore, clock: Clock, wake: Wake, ids: IdMaker, peers: Peers, lease: NodeLease
    ) -> None:
        super().__init__()
        self._store = store
        self._clock = clock
        self._wake = wake
        self._ids = ids
        self._peers = peers
        self._lease = lease
        self._expected = clock.now()  # when the next round is to begin
        self.lost = asyncio.Event()  # the number went to another node: this one must end

    async def round(self) -> None:
        await measure(self._store, self._clock)
        now = self._clock.now()
        if not await self._store.beat_node(self._lease.number, now, now + NODE_LEASE, self._ids.last):
            self.lost.set()
        self._peers.update([node.number for node in await self._store.nodes() if node.until > now])
        if abs(now - self._expected) > JUMP:
            self._wake.due(0, tell=False)
            self._wake.fire(0, tell=False)
        self._expected = self._clock.now() + NODE_BEAT
        await asyncio.sleep(NODE_BEAT / SECOND)


class Prune(Running):
    """Makes room for the coming days and takes away what is past."""

    def __init__(self, store: Store, clock: Clock, *, retention: Micros, events_kept: Micros) -> None:
        super().__init__()
        self._store = store
        self._clock = clock
        self._retention = retention
        self._events_kept = events_kept

    async def round(self) -> None:
        now = self._clock.now()
        await self._store.prepare_days(now)
        while await self._store.forget(now - self._retention, PRUNE_CHUNK):
            pass
        while await self._store.forget_feed(now - self._events_kept):
            pass
        while await self._store.forget_watch(now - self._retention, PRUNE_CHUNK):
            pass
        await self._store.forget_workers(now - WORKER_KEPT)
        await asyncio.sleep(PRUNE_EVERY)


async def measure(store: LifecycleStore, clock: Clock) -> None:
    """Set the clock by the store's: of a few readings the one that took the shortest is the closest."""
    if isinstance(clock, OffsetClock):
        readings = []
        for _ in range(READINGS):
            asked = monotonic()
            reading = await store.now()
            answered = monotonic()
            readings.append((answered - asked, reading, asked, answered))
        _, reading, asked, answered = min(readings)
        clock.set(reading, asked=asked, answered=answered)
