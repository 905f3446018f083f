"""What happens, carried to webhooks as the node on watch does it."""

from typing import Any

import msgspec

from foliot.domain.access import ADMIN, Caller
from foliot.domain.duration import SECOND
from foliot.domain.feed import ALL_STATUSES, Position, read_position
from foliot.service.event import Event, events_of, lanes_of, with_records
from foliot.service.webhooks import Webhooks
from foliot.store.base import Delivery, Store
from foliot.wire import DeliveryInfo, NewWebhook, WebhookBody
from tests.service.conftest import World

URL = "https://receiver.example.org/hook"


async def happened(store: Store, position: Position, mask: int = ALL_STATUSES) -> tuple[list[Event], Position]:
    """All events after the position, with their jobs."""
    reading = await store.read_feed(position, 1000, mask=mask)
    lanes = await lanes_of(store, reading.batches)
    told = [one.event for batch in reading.batches for one in events_of(batch, lanes, mask)]
    return await with_records(store, told), reading.position


async def carry(store: Store, webhooks: Webhooks, now: int, *, node: int = 1) -> list[Delivery]:
    """Turn what has happened since the last time into deliveries, and keep them; none where another one does it."""
    post = await store.take_post("watch", node, now, now + 10 * SECOND)
    if post is None:
        return []
    events, position = await happened(store, read_position(post.position) or Position(), webhooks.wanted())
    deliveries = webhooks.deliveries_for(events)
    if not await store.advance(post, position.text(), deliveries=deliveries):
        return []
    webhooks.added(len(deliveries))
    return deliveries


async def make(world: World, caller: Caller = ADMIN, **fields: Any) -> NewWebhook:
    body = msgspec.convert({"url": URL, "events": ["*"]} | fields, WebhookBody)
    return await world.services.webhooks.create(body, caller)


async def told(world: World) -> list[Delivery]:
    return await carry(world.store, world.services.webhooks, world.clock.now())


async def listed(world: World, webhook_id: str, state: str | None = None, caller: Caller = ADMIN) -> list[DeliveryInfo]:
    found, _ = await world.services.deliveries.page(webhook_id, state=state, limit=1000, cursor=None, caller=caller)
    return found
