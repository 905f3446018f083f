"""Messages of webhooks: what became of them, sending them again, and what one try means for a message and its
webhook."""

import logging

import msgspec

from foliot.clock import Clock
from foliot.domain.access import Caller
from foliot.domain.duration import MINUTE, Micros
from foliot.domain.errors import BadInput, NotFound
from foliot.domain.feed import Happening
from foliot.domain.ids import first_of, parse, show
from foliot.domain.webhook import DELIVERY, DISABLED, Off, Outcome, Verdict, Webhook, judge, sign
from foliot.service.definitions import Definitions
from foliot.service.sealing import Sealer
from foliot.service.wake import Wake
from foliot.service.webhooks import Name, Webhooks, check_on
from foliot.store.base import Delivery, Store
from foliot.wire import DeliveryInfo, RedeliverBody, Redelivered, encode, to_micros, to_time

CHUNK = 500
CALM: Micros = MINUTE  # a webhook is not failing where something arrived so short a time ago
LONGEST_ERROR = 500
REASONS: dict[Off, str] = {
    "gone": "its receiver answered 410",
    "failing": "it failed for too long",
    "switched_off": "a user did so",
}

log = logging.getLogger("foliot.webhooks")


class Message(msgspec.Struct, frozen=True, kw_only=True):
    """A delivery as it is sent now."""

    url: str
    headers: dict[str, str]
    body: bytes


class Deliveries:
    def __init__(
        self, store: Store, clock: Clock, wake: Wake, definitions: Definitions, webhooks: Webhooks, sealer: Sealer
    ) -> None:
        self._store = store
        self._clock = clock
        self._wake = wake
        self._definitions = definitions
        self._webhooks = webhooks
        self._sealer = sealer
        self._refreshed: Micros = 0
        self._arrived: dict[Name, Micros] = {}

    # what users ask

    async def page(
        self, webhook_id: str, *, state: str | None, limit: int, cursor: str | None, caller: Caller
    ) -> tuple[list[DeliveryInfo], str | None]:
        """Newest first, and where the next page begins."""
        before = None if cursor is None else parse(DELIVERY, cursor)
        if cursor is not None and before is None:
            raise BadInput.at("cursor", "not one of ours; take it from the Link header of the page before")
        await self._webhooks.find(webhook_id, caller)
        found = await self._store.deliveries(caller.namespace, webhook_id, limit=limit + 1, before=before, state=state)
        page = [_show(each) for each in found[:limit]]
        return page, page[-1].delivery_id if len(found) > limit else None

    async def redeliver(self, webhook_id: str, delivery_id: str, caller: Caller) -> DeliveryInfo:
        """Send it once more, now, whatever became of it."""
        definition = await self._webhooks.find(webhook_id, caller)
        number = parse(DELIVERY, delivery_id)
        found = None if number is None else await self._store.delivery(caller.namespace, webhook_id, number)
        if found is None:
            raise NotFound(f"webhook {webhook_id!r} has no delivery {delivery_id!r}; old ones are not kept")
        check_on(definition)
        again = self._anew(found)
        await self._store.finish_deliveries([again])
        self._webhooks.added(1)
        return _show(again)

    async def redeliver_failed(self, webhook_id: str, body: RedeliverBody, caller: Caller) -> Redelivered:
        """Send all again that failed, of events from `since` on."""
        check_on(await self._webhooks.find(webhook_id, caller))
        first = 0 if body.since is None else first_of(to_micros(body.since))
        before, count = None, 0
        while True:
            found = await self._store.deliveries(
                caller.namespace, webhook_id, limit=CHUNK, before=before, state="failed"
            )
            chosen = [self._anew(each) for each in found if each.id >= first]
            if chosen:
                await self._store.finish_deliveries(chosen)
                self._webhooks.added(len(chosen))
            count += len(chosen)
            if len(chosen) < CHUNK:
                return Redelivered(redelivered=count)
            before = chosen[-1].id

    # what the one who sends asks

    async def prepare(self, delivery: Delivery) -> Message | Delivery:
        """The message to send; or, where its webhook is off or gone, the delivery as it is from then on. `Unreadable`
        where it does not open."""
        webhook = await self._webhook(delivery)
        if webhook is None or webhook.off is not None:
            error = "the webhook was deleted" if webhook is None else "the webhook is switched off"
            return msgspec.structs.replace(
                delivery, state="failed", next_try=None, last_error=error, changed=self._clock.now()
            )
        body = self._sealer.open(delivery.body, delivery.id, "delivery").encode()
        keys = self._webhooks.secrets_of(delivery.webhook, webhook)
        headers = {"Content-Type": "application/cloudevents+json"}
        headers |= sign(show(DELIVERY, delivery.id), self._clock.now(), body, keys)
        return Message(url=webhook.url, headers=headers, body=body)

    async def settle(self, delivery: Delivery, outcome: Outcome, *, chance: float) -> Delivery:
        """The delivery as it is after a try, for the caller to keep. The webhook is marked, or switched off."""
        now, attempts = self._clock.now(), delivery.attempts + 1
        webhook = self._webhooks.known(delivery.namespace, delivery.webhook)
        state, next_try = "delivered" if outcome.arrived else "failed", None
        if webhook is not None:
            verdict = judge(webhook, outcome, attempts=attempts, now=now, chance=chance)
            await self._mark((delivery.namespace, delivery.webhook), webhook, verdict, now)
            state, next_try = verdict.state, verdict.next_try
        return msgspec.structs.replace(
            delivery,
            state=state,
            attempts=attempts,
            next_try=next_try,
            last_status=outcome.status,
            last_error=None if outcome.error is None else outcome.error[:LONGEST_ERROR],
            changed=now,
        )

    async def _webhook(self, delivery: Delivery) -> Webhook | None:
        """What this node knows may be older than the delivery: then it looks before it says no."""
        found = self._webhooks.known(delivery.namespace, delivery.webhook)
        if (found is None or found.off is not None) and self._refreshed <= delivery.changed:
            self._refreshed = self._clock.now()
            await self._definitions.refresh()
            found = self._webhooks.known(delivery.namespace, delivery.webhook)
        return found

    async def _mark(self, name: Name, webhook: Webhook, verdict: Verdict, now: Micros) -> None:
        """Keep since when it fails. That is written once for each change: a receiver that fails now and then, and takes
        the rest, costs nothing."""
        if verdict.state == "delivered":
            self._arrived[name] = now
            if webhook.failing_since is not None:
                await self._webhooks.amend(*name, _recovered)
        elif verdict.off is not None:
            await self._switch_off(name, webhook, verdict, verdict.off)
        elif webhook.failing_since is None and now - self._arrived.get(name, 0) >= CALM:
            await self._webhooks.amend(*name, lambda known: _failing(known, verdict.failing_since))

    async def _switch_off(self, name: Name, webhook: Webhook, verdict: Verdict, off: Off) -> None:
        """Told first: a node that dies in between lets it be told once more, not never."""
        namespace, webhook_id = name
        log.warning("webhook %s in %s is switched off: %s", webhook_id, namespace, REASONS[off])
        data = {
            "webhook_id": webhook_id,
            "url": webhook.url,
            "reason": off,
            "failing_since": None if verdict.failing_since is None else to_time(verdict.failing_since),
        }
        happening = Happening(kind=DISABLED, subject=webhook_id, namespace=namespace, data=encode(data).decode())
        await self._store.note([happening], self._clock.now())
        self._wake.change()
        await self._webhooks.amend(
            namespace,
            webhook_id,
            lambda known: (
                known
                if known.off is not None
                else msgspec.structs.replace(known, off=off, failing_since=verdict.failing_since)
            ),
        )

    def _anew(self, delivery: Delivery) -> Delivery:
        now = self._clock.now()
        return msgspec.structs.replace(delivery, state="pending", attempts=0, next_try=now, changed=now)


def _recovered(webhook: Webhook) -> Webhook:
    return msgspec.structs.replace(webhook, failing_since=None)


def _failing(webhook: Webhook, since: Micros | None) -> Webhook:
    return webhook if webhook.failing_since is not None else msgspec.structs.replace(webhook, failing_since=since)


def _show(delivery: Delivery) -> DeliveryInfo:
    return DeliveryInfo(
        delivery_id=show(DELIVERY, delivery.id),
        event_id=delivery.event_id,
        event_type=delivery.event_type,
        state=delivery.state,
        attempts=delivery.attempts,
        next_try=None if delivery.next_try is None else to_time(delivery.next_try),
        last_status=delivery.last_status,
        last_error=delivery.last_error,
        created_time=to_time(delivery.created),
        last_updated=to_time(delivery.changed),
    )
