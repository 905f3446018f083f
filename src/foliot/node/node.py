"""A node: the services over one store, and the duties that keep them honest. Started and stopped as one."""

import asyncio
from collections.abc import Callable

from foliot import __version__
from foliot.clock import Clock, OffsetClock
from foliot.domain.duration import DAY, HOUR, SECOND
from foliot.domain.ids import IdMaker
from foliot.node.deliver import Deliver, allowed_by
from foliot.node.duties import NODE_LEASE, Expiry, Heartbeat, Looker, Prune, Recovery, measure
from foliot.node.fire import Fire, Settle
from foliot.node.lateness import LatenessKeeper
from foliot.node.learn import Learn
from foliot.node.notify import Notify
from foliot.node.peers import Peers
from foliot.node.porter import Porter
from foliot.node.queues import Order, Pace, Rules
from foliot.node.relay import Listener, Relay
from foliot.node.release import Release, Tokens
from foliot.node.running import Running
from foliot.node.timekeeper import Timekeeper
from foliot.node.watch import Watch
from foliot.outbound import OutboundClient
from foliot.service import Services
from foliot.service.access import Identity
from foliot.service.sealing import Sealer
from foliot.service.wake import Wake
from foliot.settings import Settings
from foliot.store.base import Store


class Node:
    """`start` connects and starts the duties; after that `services` may be used, until `stop`."""

    def __init__(
        self,
        store: Store,
        settings: Settings,
        *,
        name: str,
        identity: Callable[[Clock], Identity | None] = lambda _clock: None,
    ) -> None:
        self.store = store
        self._identity = identity
        self.settings = settings
        self.name = name
        self.lost = asyncio.Event()  # set when the node must end because its number went to another
        self.services: Services
        self._duties: list[Running] = []
        self._ids: IdMaker
        self._number: int

    async def start(self) -> None:
        await self.store.open()
        try:
            await self._start_duties()
        except BaseException:
            await self._stop_duties()
            await self.store.close()
            raise

    async def stop(self) -> None:
        """Let go: answer who waits, write what was taken in, give the number back."""
        self.services.close()
        await self._stop_duties()
        try:
            await self.services.drain()
            if not self.lost.is_set():
                await self.store.release_node(self._number, self._ids.last)
        finally:
            await self.store.close()

    async def _start_duties(self) -> None:
        settings, store, wake = self.settings, self.store, Wake()
        clock = OffsetClock()
        await measure(store, clock)
        now = clock.now()
        lease = await store.acquire_node(self.name, __version__, now, now + NODE_LEASE)
        await store.prepare_days(now)
        self._number, self._ids = lease.number, IdMaker(node=lease.number, floor=lease.floor)
        peers = Peers(lease.number)
        worker_lease, heartbeat = round(settings.lease_seconds * SECOND), round(settings.heartbeat_seconds * SECOND)
        sealer, allowed = Sealer(settings.key_ring), allowed_by(settings)
        self.services = Services(
            store,
            clock,
            self._ids,
            wake,
            lease=worker_lease,
            heartbeat=heartbeat,
            sealer=sealer,
            identity=self._identity(clock),
            events_kept=round(settings.event_hours * HOUR),
            allowed=allowed,
        )
        await self.services.definitions.refresh()
        beat = Heartbeat(store, clock, wake, self._ids, peers, lease)
        self.lost = beat.lost
        self._duties = [
            beat,
            Listener(store, wake, self.services.dispatch, peers),
            Relay(store, wake, peers),
            Timekeeper(store, clock, wake, peers),
            Fire(store, clock, wake, peers, self.services.firing),
            Settle(clock, wake, self.services.firing),
            Release(store, clock, wake),
            Tokens(clock, wake, self.services.limits),
            Rules(wake, self.services.gate, self.services.dispatch),
            Order(self.services.gate),
            Pace(clock, self.services.gate),
            Expiry(store, self.services.recover, clock, wake),
            Recovery(self.services.recover, lease=worker_lease),
            Looker(self.services.dispatch),
            Learn(self.services.definitions, wake),
            Deliver(
                store,
                clock,
                self.services.webhooks,
                self.services.deliveries,
                OutboundClient(allowed, agent=f"foliot/{__version__}"),
            ),
            Watch(
                store,
                clock,
                wake,
                lease.number,
                self.services.definitions,
                self.services.webhooks,
                self.services.alerts,
            ),
            Notify(self.services.notices, self.services.alerts),
            LatenessKeeper(self.services.lateness),
            Porter(store, clock, self.services.access),
            Prune(
                store,
                clock,
                retention=round(settings.retention_days * DAY),
                events_kept=round(settings.event_hours * HOUR),
            ),
        ]
        for duty in self._duties:
            duty.start()
        for duty in self._duties:
            await duty.started.wait()
        await self.services.dispatch.look()

    async def _stop_duties(self) -> None:
        for duty in reversed(self._duties):
            await duty.stop()
