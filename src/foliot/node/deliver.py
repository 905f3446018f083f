"""Sends what webhooks are to be told.

Any node does. A delivery is taken for a minute, and kept as delivered once its receiver has said so: a node that dies
in between leaves it to another, which sends it again under the same id. Nobody waits for a receiver that is slow or
does not answer: a few messages at a time go to one host, what finds no place there is put off, and a webhook of which
nothing arrives any more is asked with one message at a time, now and then.
"""

import asyncio
import logging
from collections.abc import Callable, Sequence
from contextlib import suppress
from random import SystemRandom
from weakref import WeakValueDictionary

import msgspec
from yarl import URL

from foliot.clock import Clock
from foliot.domain.duration import MINUTE, SECOND, Micros
from foliot.domain.errors import FoliotError, Unreadable
from foliot.domain.webhook import Outcome
from foliot.node.running import Alarm, Running
from foliot.outbound import AddressNotAllowed, AllowList, BadEntry, OutboundClient, OutboundError, retry_after
from foliot.service.deliveries import Deliveries, Message
from foliot.service.group import Group
from foliot.service.webhooks import Name, Webhooks
from foliot.settings import Settings, SettingsError
from foliot.store.base import Delivery, Store
from foliot.telemetry.counters import count

LEASE = 60 * SECOND  # longer than a place in line, a call and writing down how it went take together
MOST = 100  # in hand at once
PER_HOST = 4
IN_LINE = 20.0  # seconds that a message waits for a place at its host
CALL = 15.0  # seconds for one call
LOOK_EVERY = 5 * SECOND
SHORTEST_WAIT = 0.02
ANSWER_KEPT = 1024  # bytes, so that a connection can be used again
PUT_OFF = 5 * SECOND
UNREADABLE_FOR = 5 * MINUTE
FAILURES = 5  # in a row, after which a webhook is given a rest
FIRST_REST, LONGEST_REST = 5 * SECOND, 5 * MINUTE
GRACE = 2.0  # seconds for calls under way when the node stops

log = logging.getLogger("foliot.webhooks")
_chance = SystemRandom().random


def allowed_by(settings: Settings) -> AllowList:
    """What webhooks may call besides public addresses. Raises `SettingsError`."""
    try:
        return AllowList.parse(settings.http_allow)
    except BadEntry as error:
        raise SettingsError(f"http_allow: {error}") from None


class Rest:
    """A webhook's failures since something arrived, and until when it is left alone."""

    __slots__ = ("asking", "failures", "until")

    def __init__(self) -> None:
        self.failures = 0
        self.until: Micros = 0
        self.asking = False  # a message is on its way that tells whether it is over

    @property
    def ordered(self) -> bool:
        return self.failures >= FAILURES

    def fail(self, now: Micros) -> None:
        """Failures of calls that were under way together count for one more rest, not for many."""
        if not self.ordered or now >= self.until:
            self.failures += 1
            if self.ordered:
                self.until = now + min(FIRST_REST << min(self.failures - FAILURES, 20), LONGEST_REST)


class Deliver(Running):
    def __init__(
        self,
        store: Store,
        clock: Clock,
        webhooks: Webhooks,
        deliveries: Deliveries,
        client: OutboundClient,
        *,
        chance: Callable[[], float] = _chance,
    ) -> None:
        super().__init__()
        self._store = store
        self._clock = clock
        self._webhooks = webhooks
        self._deliveries = deliveries
        self._client = client
        self._chance = chance
        self._in_hand: dict[int, tuple[Delivery, asyncio.Task[None]]] = {}
        self._full = False
        self._hosts: WeakValueDictionary[str, asyncio.Semaphore] = WeakValueDictionary()
        self._rests: dict[Name, Rest] = {}
        self._ends: Group[Delivery, None] = Group(self._keep, size=lambda _delivery: 1)
        self._alarm = Alarm()
        webhooks.on_added.append(self._alarm.ring)

    async def round(self) -> None:
        now = self._clock.now()
        room = MOST - len(self._in_hand)
        taken = await self._store.take_deliveries(now, now + LEASE, room) if room else []
        for delivery in taken:
            task = asyncio.create_task(self._carry(delivery))
            self._in_hand[delivery.id] = delivery, task
            task.add_done_callback(lambda _task, number=delivery.id: self._put_down(number))  # type: ignore[misc]
        self._full = len(taken) == room
        if self._full:
            await self._alarm.wait(LOOK_EVERY / SECOND)
            return
        following = await self._store.next_delivery()
        until = LOOK_EVERY if following is None else min(LOOK_EVERY, following - self._clock.now())
        await self._alarm.wait(max(SHORTEST_WAIT, until / SECOND))

    async def stop(self) -> None:
        """Calls under way are given a moment; what is left is for another node, at once."""
        await super().stop()
        if tasks := [task for _, task in self._in_hand.values()]:
            await asyncio.wait(tasks, timeout=GRACE)
        left = [delivery for delivery, task in self._in_hand.values() if not task.done()]
        for _, task in list(self._in_hand.values()):
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)
        with suppress(FoliotError):
            await self._ends.drain()
            now = self._clock.now()
            if left:
                await self._store.finish_deliveries([msgspec.structs.replace(each, next_try=now) for each in left])
        await self._client.close()

    def _put_down(self, number: int) -> None:
        self._in_hand.pop(number, None)
        if self._full:
            self._alarm.ring()

    async def _carry(self, delivery: Delivery) -> None:
        """From taken to kept. Where that fails the delivery comes again when its time with this node is over."""
        try:
            await self._ends.add(await self._deliver(delivery))
        except FoliotError as error:
            log.warning("a delivery of webhook %s: %s; trying again", delivery.webhook, error.detail)
        except Exception:
            log.exception("a delivery of webhook %s failed; trying again", delivery.webhook)

    async def _deliver(self, delivery: Delivery) -> Delivery:
        """The delivery as it is to be kept."""
        name = (delivery.namespace, delivery.webhook)
        if self._resting(name):
            return self._put_off(delivery, self._rests[name].until)
        place = self._place(name)
        try:
            async with asyncio.timeout(IN_LINE):
                await place.acquire()
        except TimeoutError:
            return self._put_off(delivery)
        try:
            if self._resting(name):
                return self._put_off(delivery, self._rests[name].until)
            return await self._try(name, delivery)
        finally:
            place.release()

    async def _try(self, name: Name, delivery: Delivery) -> Delivery:
        try:
            message = await self._deliveries.prepare(delivery)
        except Unreadable as error:
            log.error("a delivery of webhook %s can not be read: %s", delivery.webhook, error.detail)
            now = self._clock.now()
            return msgspec.structs.replace(
                delivery, next_try=now + UNREADABLE_FOR, last_error=error.detail, changed=now
            )
        if isinstance(message, Delivery):
            self._rests.pop(name, None)
            return message
        rest = self._rests.setdefault(name, Rest())
        rest.asking = rest.ordered
        try:
            outcome = await self._send(message)
        finally:
            rest.asking = False
        if outcome.arrived:
            self._rests.pop(name, None)
        else:
            rest.fail(self._clock.now())
        settled = await self._deliveries.settle(delivery, outcome, chance=self._chance())
        count("webhook_deliveries", "retried" if settled.state == "pending" else settled.state)
        return settled

    async def _send(self, message: Message) -> Outcome:
        try:
            answer = await self._client.request(
                "POST",
                message.url,
                headers=message.headers,
                body=message.body,
                seconds=CALL,
                most=ANSWER_KEPT,
                follow=False,
            )
        except TimeoutError:
            return Outcome(error=f"no answer within {CALL:g} s")
        except AddressNotAllowed as error:
            return Outcome(error=f"{error}, which webhooks may not call; http_allow could list {error.entry}")
        except OutboundError as error:
            return Outcome(error=str(error))
        outcome = Outcome(status=answer.status)
        if outcome.arrived:
            return outcome
        wait = retry_after(answer.headers.get("Retry-After"), self._clock.now())
        return Outcome(
            status=answer.status,
            error=f"answered {answer.status}",
            retry_after=None if wait is None else round(wait * SECOND),
        )

    def _resting(self, name: Name) -> bool:
        rest = self._rests.get(name)
        return rest is not None and rest.ordered and (rest.asking or self._clock.now() < rest.until)

    def _put_off(self, delivery: Delivery, until: Micros = 0) -> Delivery:
        """To be taken again later, by any node; it was not tried."""
        later = max(self._clock.now(), until) + round(PUT_OFF * self._chance())
        return msgspec.structs.replace(delivery, next_try=later)

    def _place(self, name: Name) -> asyncio.Semaphore:
        """Places at a host; gone when nobody holds one or waits for one."""
        webhook = self._webhooks.known(*name)
        host = "" if webhook is None else URL(webhook.url).raw_authority
        place = self._hosts.get(host)
        if place is None:
            place = self._hosts[host] = asyncio.Semaphore(PER_HOST)
        return place

    async def _keep(self, deliveries: Sequence[Delivery]) -> Sequence[None]:
        await self._store.finish_deliveries(deliveries)
        return [None] * len(deliveries)
