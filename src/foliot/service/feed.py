"""Who follows what happens: subscribers of this node, each told of what it asked for, in order, nothing missed.

One reader, the tail, reads the record for all of them as it grows, and only while there is somebody to read for.
Whoever comes first reads from the store by himself up to where the record ends, and takes over what the tail has read
meanwhile: what both have seen is told once, by the position. A subscriber that can not keep up is let go, not waited
for; it comes again with the position of the last event that it saw.
"""

import asyncio
import logging
from collections import deque
from collections.abc import AsyncGenerator, Collection, Sequence
from contextlib import suppress

import msgspec

from foliot.clock import Clock, monotonic
from foliot.domain.access import Caller
from foliot.domain.duration import SECOND, Micros
from foliot.domain.errors import BadInput, Conflict, FoliotError, Gone
from foliot.domain.feed import ALL_STATUSES, Batch, Position, mask_of, read_position
from foliot.domain.ids import JobKey
from foliot.domain.job import Lane
from foliot.domain.status import STATUSES, WAITING_STATUSES
from foliot.service.event import Event, Told, events_of, lanes_of, with_records
from foliot.service.query import find_key
from foliot.service.sealing import Sealer
from foliot.service.wake import Wake
from foliot.store.base import Store
from foliot.telemetry.counters import count
from foliot.wire import encode

CHUNK = 50  # batches in one reading
JOBS = 1000  # in one load
MOST_BATCHES = 1000  # that a subscriber may be behind
MOST_JOBS = 100  # that one subscription names
KEEP_ALIVE = 15.0
APART = 0.01  # seconds between two readings, so that under load each has many batches
LONGEST_WAIT = 1.0  # for news: another node's hint may be lost
NOW, START = "now", "start"

log = logging.getLogger("foliot.node")


class Selection(msgspec.Struct, frozen=True, kw_only=True):
    """What a subscriber wants to know; empty is everything that its caller reaches."""

    caller: Caller
    keys: frozenset[JobKey] = frozenset()
    queues: Collection[str] = ()
    job_types: Collection[str] = ()
    mask: int = ALL_STATUSES

    def takes(self, event: Event) -> bool:
        lane, entry = event.lane, event.entry
        if lane is None or entry is None:
            return self._takes_others(event.namespace)
        return (
            bool(self.mask >> entry.status & 1)
            and (not self.keys or entry.id in self.keys)
            and self._takes_lane(lane)
            and self.caller.reaches(lane)
        )

    def _takes_lane(self, lane: Lane) -> bool:
        return (not self.queues or lane.queue in self.queues) and (
            not self.job_types or lane.job_type in self.job_types
        )

    def _takes_others(self, namespace: str | None) -> bool:
        """What is not about a job goes to those who asked for no jobs in particular; what is about the nodes, to the
        admin key."""
        if self.keys or self.queues or self.job_types or self.mask != ALL_STATUSES or self.caller.narrowed:
            return False
        return self.caller.root if namespace is None else namespace == self.caller.namespace


class Page:
    """A batch's events, with their jobs, for all who want one of them."""

    def __init__(self, batch: Batch, told: Sequence[Told]) -> None:
        self.batch = batch
        self._told = told
        self._encoded: dict[int, bytes] = {}

    def chunk(self, selection: Selection, position: Position, sealer: Sealer) -> bytes:
        """Those that a subscriber wants, as server-sent events, each with the position after it."""
        wanted = [one for one in self._told if selection.takes(one.event)]
        read = position.skipped(self.batch)
        before, parts = msgspec.structs.replace(position, within=0, skip=0), []
        for one in wanted:
            if one.place >= read:
                text = self._encoded.get(one.place)
                if text is None:
                    event = one.event.cloud_event(sealer)
                    text = self._encoded[one.place] = b"event: %s\ndata: %s\n\n" % (event.type.encode(), encode(event))
                after = before.after(self.batch) if one is wanted[-1] else before.inside(self.batch, one.place + 1)
                parts.append(b"id: %s\n%s" % (after.text().encode(), text))
        count("events", amount=len(parts))
        return b"".join(parts)


class Subscription:
    """What the tail has read for a subscriber and that it has not taken yet."""

    def __init__(self, selection: Selection) -> None:
        self.selection = selection
        self.behind = False
        self.joined = asyncio.Event()  # whatever the tail reads from here on is read for this one, too
        self._pages: deque[Page] = deque()
        self._news = asyncio.Event()

    def offer(self, page: Page) -> None:
        if len(self._pages) >= MOST_BATCHES:
            count("subscribers_dropped")
            self.behind = True
            self._pages.clear()
        elif not self.behind:
            self._pages.append(page)
        self._news.set()

    def end(self) -> None:
        self.behind = True
        self.joined.set()
        self._news.set()

    def clear(self) -> None:
        self._pages.clear()
        self._news.clear()

    async def take(self) -> list[Page]:
        """What has come, or nothing after a while of silence."""
        alarm = asyncio.get_running_loop().call_later(KEEP_ALIVE, self._news.set)
        await self._news.wait()
        alarm.cancel()
        pages = list(self._pages)
        self.clear()
        return pages


class Feed:
    def __init__(self, store: Store, clock: Clock, sealer: Sealer, wake: Wake, *, kept: Micros) -> None:
        self._store = store
        self._clock = clock
        self._sealer = sealer
        self._kept = kept
        self._subscriptions: set[Subscription] = set()
        self._tail: asyncio.Task[None] | None = None
        self._tailing = asyncio.Event()
        self._news = asyncio.Event()
        self._closed = False
        wake.on_change.append(lambda _tell: self._news.set())

    async def select(
        self,
        caller: Caller,
        *,
        job_ids: Sequence[str] = (),
        queues: Sequence[str] = (),
        job_types: Sequence[str] = (),
        statuses: Sequence[str] = (),
    ) -> Selection:
        """What a caller asks for, in the engine's own terms."""
        words: list[str] = []
        for word in statuses:
            if word != "waiting" and word not in STATUSES:
                raise BadInput.at("status", f"{word!r} is no status; use {', '.join(STATUSES)} or waiting")
            words += WAITING_STATUSES if word == "waiting" else (word,)
        if len(job_ids) > MOST_JOBS:
            raise BadInput.at("job_id", f"at most {MOST_JOBS} of them; follow a queue or a job type for more")
        reader = self._store.reader(caller.namespace)
        found = [(job_id, await find_key(reader, job_id, caller)) for job_id in job_ids]
        unknown = [job_id for job_id, key in found if key is None]
        if unknown:
            raise BadInput.at("job_id", f"there is no job {unknown[0]!r}; it may be past the time that history is kept")
        return Selection(
            caller=caller,
            keys=frozenset(key for _, key in found if key is not None),
            queues=frozenset(queues),
            job_types=frozenset(job_types),
            mask=mask_of(words) if words else ALL_STATUSES,
        )

    def begin(self, after: str | None) -> Position | None:
        """Where a subscriber begins; None is from now on. Raises where that can not be."""
        if not self._store.recording:
            raise EventsOff("This node keeps no record of events: FOLIOT_EVENTS is off")
        if after in (None, NOW):
            return None
        if after == START:
            return Position()
        position = read_position(after or "")
        if position is None:
            raise BadInput.at(
                "Last-Event-ID", f"is no position of ours; take it from an event, or use {NOW} or {START}"
            )
        if position != Position() and position.time < self._clock.now() - self._kept:
            raise Gone("Events from so long ago are no longer kept; read the jobs, and follow on from now")
        return position

    async def follow(self, selection: Selection, position: Position | None) -> AsyncGenerator[bytes]:
        """Chunks of server-sent events from there on. The first comes as soon as nothing that happens from then on is
        missed; one without an event now and then tells how far was read."""
        subscription = Subscription(selection)
        self._subscriptions.add(subscription)
        self._news.set()
        if self._tail is None and not self._closed:
            self._tail = asyncio.create_task(self._read_on())
        try:
            await self._tailing.wait()
            if not self._closed:
                await subscription.joined.wait()
            if position is None:
                position = msgspec.structs.replace(await self._store.feed_end(), time=self._clock.now())
            yield _mark(position)
            while not self._closed:
                subscription.clear()
                reading = await self._store.read_feed(position, CHUNK, mask=selection.mask)
                torn = position.within  # what was read in part is read to its end before another one is
                batches = sorted(reading.batches, key=lambda batch: batch.writer != torn) if torn else reading.batches
                for page in await self._pages(batches, [selection]):
                    if chunk := page.chunk(selection, position, self._sealer):
                        yield chunk
                    position = position.after(page.batch)
                position = reading.position
                if not reading.more:
                    break
            silent_since = monotonic()
            while not self._closed:
                pages = await subscription.take()
                if subscription.behind:
                    return
                for page in pages:
                    if not position.covers(page.batch):
                        if chunk := page.chunk(selection, position, self._sealer):
                            yield chunk
                            silent_since = monotonic()
                        position = position.after(page.batch)
                if not pages:
                    position = await self._forward(position)
                if not pages or monotonic() - silent_since >= KEEP_ALIVE * SECOND:  # though others are told of much
                    yield _mark(position)
                    silent_since = monotonic()
        finally:
            self._subscriptions.discard(subscription)

    def close(self) -> None:
        """End all streams."""
        self._closed = True
        self._end_all()
        self._news.set()

    async def drain(self) -> None:
        """End all streams, and wait until nothing is being read."""
        self.close()
        while self._tail is not None:
            await asyncio.wait((self._tail,))

    async def _read_on(self) -> None:
        """The tail: reads what comes, and hands it on, while anybody follows. Where that fails all streams end: who
        follows comes again."""
        try:
            position = await self._store.feed_end()
            self._tailing.set()
            while self._subscriptions and not self._closed:
                position = await self._hand_on(position)
                await asyncio.sleep(APART)
                with suppress(TimeoutError):
                    async with asyncio.timeout(LONGEST_WAIT):
                        await self._news.wait()
                self._news.clear()
        except FoliotError as error:
            log.warning("events can not be read: %s", error.detail)
        except Exception:
            log.exception("events can not be read")
        finally:
            self._tail = None
            self._end_all()
            self._tailing = asyncio.Event()

    async def _hand_on(self, position: Position) -> Position:
        more = True
        while more:
            subscriptions = list(self._subscriptions)
            mask = 0
            for one in subscriptions:
                one.joined.set()
                mask |= one.selection.mask
            reading = await self._store.read_feed(position, CHUNK, mask=mask)
            for page in await self._pages(reading.batches, [one.selection for one in subscriptions]):
                for one in subscriptions:
                    one.offer(page)
            position, more = reading.position, reading.more
        return position

    def _end_all(self) -> None:
        self._tailing.set()
        for subscription in self._subscriptions:
            subscription.end()

    async def _forward(self, position: Position) -> Position:
        """The same, with what is known to be over left out: nothing has come for a while."""
        reading = await self._store.read_feed(position, 1, mask=0)
        if reading.batches:
            return position  # the tail brings it
        return msgspec.structs.replace(reading.position, time=max(position.time, self._clock.now() - 1))

    async def _pages(self, batches: Sequence[Batch], selections: Sequence[Selection]) -> list[Page]:
        lanes = await lanes_of(self._store, batches)
        wanted = [
            [
                one
                for one in events_of(batch, lanes, ALL_STATUSES)
                if any(selection.takes(one.event) for selection in selections)
            ]
            for batch in batches
        ]
        events = [one.event for told in wanted for one in told]
        found: dict[str, Event] = {}
        for start in range(0, len(events), JOBS):
            for event in await with_records(self._store, events[start : start + JOBS]):
                found[event.event_id] = event
        return [
            Page(batch, [Told(one.place, found[key]) for one in told if (key := one.event.event_id) in found])
            for batch, told in zip(batches, wanted, strict=True)
        ]


class EventsOff(Conflict):
    code = "events-off"
    title = "No record of events"


def _mark(position: Position) -> bytes:
    """An event without data: the client notes the position and shows nothing."""
    return b"id: %s\n\n" % position.text().encode()
