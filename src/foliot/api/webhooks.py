"""The calls on webhooks and their deliveries."""

from msgspec import UNSET, UnsetType

from foliot.api.call import Answer, Call
from foliot.api.headers import etag, if_match
from foliot.api.jobs import NoFields
from foliot.api.paging import paged
from foliot.api.query import Cursor, Limit, PageQuery, given
from foliot.wire import (
    BASE_PATH,
    Body,
    RedeliverBody,
    RotateBody,
    WebhookBody,
    WebhookChange,
    WebhookInfo,
)
from foliot.wire.webhooks import DeliveryState


class DeliveriesQuery(Body, frozen=True, kw_only=True):
    """Which deliveries, and which part of the list."""

    state: DeliveryState | UnsetType = UNSET
    limit: Limit = 50
    cursor: Cursor | UnsetType = UNSET


async def create_webhook(call: Call[WebhookBody, None]) -> Answer:
    created = await call.services.webhooks.create(call.body, call.caller)
    headers = ((b"location", f"{BASE_PATH}/webhooks/{created.webhook_id}".encode()), etag(created.version))
    return Answer(created, headers=headers)


async def list_webhooks(call: Call[None, PageQuery]) -> Answer:
    page, cursor = await call.services.webhooks.page(
        limit=call.query.limit, cursor=given(call.query.cursor), caller=call.caller
    )
    return paged(call, page, cursor)


async def read_webhook(call: Call[None, None]) -> Answer:
    return _answer(await call.services.webhooks.read(call.names["webhook_id"], call.caller))


async def update_webhook(call: Call[WebhookChange, None]) -> Answer:
    webhook = await call.services.webhooks.update(
        call.names["webhook_id"], call.body, if_match=if_match(call.headers), caller=call.caller
    )
    return _answer(webhook)


async def delete_webhook(call: Call[None, None]) -> Answer:
    await call.services.webhooks.delete(call.names["webhook_id"], call.caller)
    return Answer(None)


async def enable_webhook(call: Call[NoFields, None]) -> Answer:
    webhook = await call.services.webhooks.switch(
        call.names["webhook_id"], on=True, if_match=if_match(call.headers), caller=call.caller
    )
    return _answer(webhook)


async def disable_webhook(call: Call[NoFields, None]) -> Answer:
    webhook = await call.services.webhooks.switch(
        call.names["webhook_id"], on=False, if_match=if_match(call.headers), caller=call.caller
    )
    return _answer(webhook)


async def rotate_webhook(call: Call[RotateBody, None]) -> Answer:
    return _answer(await call.services.webhooks.rotate(call.names["webhook_id"], call.body, call.caller))


async def send_test(call: Call[NoFields, None]) -> Answer:
    return Answer(await call.services.webhooks.test(call.names["webhook_id"], call.caller))


async def list_deliveries(call: Call[None, DeliveriesQuery]) -> Answer:
    page, cursor = await call.services.deliveries.page(
        call.names["webhook_id"],
        state=given(call.query.state),
        limit=call.query.limit,
        cursor=given(call.query.cursor),
        caller=call.caller,
    )
    return paged(call, page, cursor)


async def redeliver(call: Call[NoFields, None]) -> Answer:
    delivery = await call.services.deliveries.redeliver(
        call.names["webhook_id"], call.names["delivery_id"], call.caller
    )
    return Answer(delivery)


async def redeliver_failed(call: Call[RedeliverBody, None]) -> Answer:
    return Answer(await call.services.deliveries.redeliver_failed(call.names["webhook_id"], call.body, call.caller))


def _answer(webhook: WebhookInfo) -> Answer:
    return Answer(webhook, headers=(etag(webhook.version),))
