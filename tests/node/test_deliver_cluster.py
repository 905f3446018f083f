"""Several nodes send for the same webhooks, over one PostgreSQL: each message once, and none is lost with a node."""

import asyncio
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from foliot.domain.access import ADMIN
from foliot.main import open_node
from foliot.node.deliver import Deliver
from foliot.node.node import Node
from foliot.settings import Settings
from foliot.wire import DeliveryInfo, NewWebhook, SubmitBody, WebhookBody
from tests.node.receiver import Receiver, receiving
from tests.service.told import carry

PROGRAM = Path(__file__).with_name("deliver_program.py")


def settings(database_url: str) -> Settings:
    return Settings(database=database_url, worker=False, http_allow="127.0.0.0/8")


async def subscribe(node: Node, receiver: Receiver) -> NewWebhook:
    body = WebhookBody(url=receiver.url, events=["job.queued"])
    made = await node.services.webhooks.create(body, ADMIN)
    receiver.secret = made.secret
    return made


async def happen(node: Node, count: int) -> None:
    body = msgspec.convert({"job_type": "nobodys"}, SubmitBody)
    await asyncio.gather(*(node.services.submit.one(body, b"", ADMIN) for _ in range(count)))


async def deliveries(node: Node, made: NewWebhook, count: int, state: str | None = None) -> list[DeliveryInfo]:
    """So many of them, carried on by whoever is on watch."""
    services = node.services
    while True:
        found, _ = await services.deliveries.page(made.webhook_id, state=state, limit=1000, cursor=None, caller=ADMIN)
        if len(found) >= count:
            return found
        await carry(node.store, services.webhooks, services.webhooks._clock.now(), node=node._number)
        await asyncio.sleep(0.02)


def sender(node: Node) -> Deliver:
    return next(duty for duty in node._duties if isinstance(duty, Deliver))


@pytest.fixture
async def receiver() -> AsyncIterator[Receiver]:
    async with receiving() as receiver:
        yield receiver


async def test_two_nodes_deliver_each_event_once(database_url: str, receiver: Receiver) -> None:
    first, second = await open_node(settings(database_url)), await open_node(settings(database_url))
    try:
        made = await subscribe(first, receiver)
        await second.services.definitions.refresh()
        for node in (first, second):  # both at once, so that they meet
            await sender(node).stop()
        await happen(first, 60)
        await deliveries(first, made, 60)
        for node in (first, second):
            sender(node).start()
        await deliveries(first, made, 60, "delivered")
        assert len(receiver.ids) == len(set(receiver.ids)) == 60
        assert len({each.event["subject"] for each in receiver.received}) == 60
    finally:
        await first.stop()
        await second.stop()


async def test_what_a_killed_node_was_sending_is_sent_by_another(database_url: str, receiver: Receiver) -> None:
    node = await open_node(settings(database_url))
    killed: Any = None
    try:
        made = await subscribe(node, receiver)
        await sender(node).stop()
        receiver.open.clear()
        killed = await asyncio.create_subprocess_exec(sys.executable, str(PROGRAM), database_url, "1")
        await happen(node, 1)
        await deliveries(node, made, 1)
        await receiver.count(1)
        killed.kill()
        await killed.wait()
        receiver.open.set()
        sender(node).start()
        (done,) = await deliveries(node, made, 1, "delivered")
        assert receiver.ids == [done.delivery_id] * 2
        assert done.attempts == 1  # nobody lived to count the other one
    finally:
        if killed is not None and killed.returncode is None:
            killed.kill()
            await killed.wait()
        await node.stop()
