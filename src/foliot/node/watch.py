"""On watch: one node at a time follows what happens for webhooks and alert rules, and looks at what should have
happened and did not.

How far it has read is kept with what came of it, in one transaction: whoever takes over goes on from there, so that
each event is looked at once, whichever nodes die. A node that is not on watch tries every few seconds to be."""

import asyncio
from collections.abc import Sequence
from contextlib import suppress

import msgspec

from foliot.clock import Clock
from foliot.domain.duration import SECOND, Micros
from foliot.domain.errors import FoliotError
from foliot.domain.feed import Position, read_position
from foliot.node.running import Alarm, Running
from foliot.service.alerts import Alerts
from foliot.service.definitions import Definitions
from foliot.service.event import Event, events_of, lanes_of, with_records
from foliot.service.wake import Wake
from foliot.service.webhooks import Webhooks
from foliot.store.base import Delivery, Incident, Post, Reading, Store

NAME = "watch"
LEASE = 10 * SECOND
RENEW_EVERY = 3 * SECOND
CHECK_EVERY = SECOND
STEP_EVERY = 5 * SECOND
NOTE_EVERY = SECOND  # how far was read, where nothing came of it
APART = 0.05  # seconds between two readings, so that under load each has many batches
CHUNK = 200
JOBS = 1000


class Watch(Running):
    def __init__(
        self,
        store: Store,
        clock: Clock,
        wake: Wake,
        number: int,
        definitions: Definitions,
        webhooks: Webhooks,
        alerts: Alerts,
    ) -> None:
        super().__init__()
        self._store = store
        self._clock = clock
        self._wake = wake
        self._number = number
        self._definitions = definitions
        self._webhooks = webhooks
        self._alerts = alerts
        self._post: Post | None = None
        self._position: Position | None = None
        self._renew_at: Micros = 0
        self._check_at: Micros = 0
        self._noted_at: Micros = 0
        self._alarm = Alarm()
        wake.on_change.append(lambda _tell: self._alarm.ring())

    async def stop(self) -> None:
        await super().stop()
        if self._post is not None:
            with suppress(FoliotError):  # else the others wait until its time is over
                await self._store.leave_post(NAME, self._number)

    async def round(self) -> None:
        try:
            if self._clock.now() >= self._renew_at:
                await self._take_post()
            if self._post is None:
                await asyncio.sleep(RENEW_EVERY / SECOND)
                return
            await self._check()
            await self._follow(self._post)
        except Exception:
            self._renew_at, self._post = 0, None  # what was written is not known: begin from what is kept
            raise
        await asyncio.sleep(APART)
        await self._alarm.wait((min(self._check_at, self._renew_at) - self._clock.now()) / SECOND)

    async def _take_post(self) -> None:
        now = self._clock.now()
        post = await self._store.take_post(NAME, self._number, now, now + LEASE)
        self._renew_at = now + RENEW_EVERY
        if post is None or self._post is None or post.position != self._post.position:
            self._position = None if post is None else read_position(post.position)
        self._post = post

    async def _check(self) -> None:
        """What should have happened and did not; who is gone."""
        now = self._clock.now()
        if now < self._check_at:
            return
        self._check_at = now + CHECK_EVERY
        if await self._store.lose_workers(now) + await self._store.lose_nodes(now):
            self._wake.change()
        await self._alerts.check(now)

    async def _follow(self, post: Post) -> None:
        """Read on, and keep what comes of it with the position."""
        if not self._store.recording:
            return
        mask = self._webhooks.wanted() | self._alerts.wanted()
        if not mask and not self._definitions.any:
            await self._step_over(post)
            return
        if self._position is None:
            self._position = await self._store.feed_end()
        if not post.position:  # kept before anything is read: who takes over must not begin later
            await self._keep(post, self._position)
        more = True
        while more and self._post is not None:
            reading = await self._store.read_feed(self._position, CHUNK, mask=mask)
            more = reading.more
            await self._carry_on(self._post, reading, mask)

    async def _step_over(self, post: Post) -> None:
        """Nobody wants to know: where to begin, once somebody does, is where the record ended lately."""
        now = self._clock.now()
        if post.position and await self._store.advance(post, ""):
            self._post = msgspec.structs.replace(post, position="")
        if self._position is None or now >= self._noted_at + STEP_EVERY:
            self._position, self._noted_at = await self._store.feed_end(), now

    async def _carry_on(self, post: Post, reading: Reading, mask: int) -> None:
        events = await self._events(reading, mask)
        deliveries = self._webhooks.deliveries_for(events)
        incidents = self._alerts.on_events(events)
        now = self._clock.now()
        if deliveries or incidents or (reading.batches and now >= self._noted_at + NOTE_EVERY):
            if not await self._keep(post, reading.position, deliveries, incidents):
                return
            self._noted_at = now
            if deliveries:
                self._webhooks.added(len(deliveries))
            if incidents:
                self._alerts.saved(incidents)
        self._position = reading.position

    async def _keep(
        self,
        post: Post,
        position: Position,
        deliveries: Sequence[Delivery] = (),
        incidents: Sequence[Incident] = (),
    ) -> bool:
        text = position.text()
        if await self._store.advance(post, text, deliveries=deliveries, incidents=incidents):
            self._post = msgspec.structs.replace(post, position=text)
            return True
        self._renew_at = self._check_at = 0  # another one is on watch, or somebody changed an incident
        self._post = None
        return False

    async def _events(self, reading: Reading, mask: int) -> list[Event]:
        lanes = await lanes_of(self._store, reading.batches)
        told = [one.event for batch in reading.batches for one in events_of(batch, lanes, mask)]
        found: list[Event] = []
        for start in range(0, len(told), JOBS):
            found += await with_records(self._store, told[start : start + JOBS])
        return found
