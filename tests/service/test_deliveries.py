"""What a try means for a message and its webhook; what became of messages, and sending them again."""

from collections.abc import Awaitable, Callable
from typing import Any

import msgspec
import pytest
from standardwebhooks import Webhook as Receiver

from foliot.clock import wall
from foliot.domain.access import ADMIN, Caller
from foliot.domain.duration import HOUR, MINUTE, SECOND
from foliot.domain.errors import BadInput, Conflict, Forbidden, NotFound, Unreadable
from foliot.domain.feed import Position
from foliot.domain.ids import parse, show
from foliot.domain.webhook import DELIVERY, Outcome
from foliot.service import deliveries as module
from foliot.service.deliveries import CALM, Message
from foliot.service.sealing import Sealer
from foliot.store.base import Delivery
from foliot.wire import NewWebhook, RedeliverBody, RotateBody, WebhookChange, to_time
from tests.service.conftest import ManualClock, World
from tests.service.meddling import Meddling
from tests.service.test_sealing import NEW, OLD
from tests.service.told import URL, happened, listed, make, told

OK, BAD, GONE = Outcome(status=204), Outcome(status=500, error="answered 500"), Outcome(status=410, error="gone")


async def delivery(world: World) -> tuple[NewWebhook, Delivery]:
    """A webhook and something to send to it."""
    made = await make(world)
    return made, await another(world)


async def another(world: World) -> Delivery:
    await world.submit()
    *_, one = await told(world)
    return one


async def settle(world: World, one: Delivery, outcome: Outcome) -> Delivery:
    """As after a try."""
    done = await world.services.deliveries.settle(one, outcome, chance=0.5)
    await world.store.finish_deliveries([done])
    return done


async def info(world: World, webhook_id: str) -> Any:
    return await world.services.webhooks.read(webhook_id, ADMIN)


async def switch(world: World, webhook_id: str, on: bool) -> None:
    await world.services.webhooks.switch(webhook_id, on=on, if_match=None, caller=ADMIN)


async def disabled(world: World) -> list[dict[str, Any]]:
    """What was told of webhooks that were switched off."""
    events, _ = await happened(world.store, Position())
    return [
        msgspec.json.decode(event.happening.data)
        for event in events
        if event.kind == "webhook.disabled" and event.happening is not None
    ]


# messages


async def test_a_message_is_signed_so_that_an_outside_client_takes_it(store: Meddling) -> None:
    world = World(store, clock=ManualClock(wall()), sealer=Sealer([OLD]))
    made, one = await delivery(world)
    new = await world.services.webhooks.rotate(made.webhook_id, RotateBody(), ADMIN)
    message = await world.services.deliveries.prepare(one)
    assert isinstance(message, Message)
    assert (message.url, message.headers["Content-Type"]) == (URL, "application/cloudevents+json")
    assert message.headers["webhook-id"] == show(DELIVERY, one.id)
    for secret in (made.secret, new.secret):
        event = Receiver(secret).verify(message.body, message.headers)
        assert (event["type"], event["id"]) == ("foliot.job.queued", one.event_id)


async def test_a_message_goes_to_where_the_webhook_is_now(world: World) -> None:
    made, one = await delivery(world)
    change = WebhookChange(url="https://elsewhere.example.org/")
    await world.services.webhooks.update(made.webhook_id, change, if_match=None, caller=ADMIN)
    message = await world.services.deliveries.prepare(one)
    assert isinstance(message, Message)
    assert message.url == "https://elsewhere.example.org/"


async def test_a_message_that_can_not_be_read_is_not_sent(store: Meddling) -> None:
    sealed = World(store, sealer=Sealer([OLD]))
    _, one = await delivery(sealed)
    other = World(store, clock=sealed.clock, sealer=Sealer([NEW]))
    with pytest.raises(Unreadable):
        await other.services.deliveries.prepare(one)


async def test_what_was_on_its_way_to_one_that_was_switched_off_or_deleted_is_not_sent(world: World) -> None:
    made, one = await delivery(world)
    await switch(world, made.webhook_id, False)
    stopped = await world.services.deliveries.prepare(one)
    assert isinstance(stopped, Delivery)
    assert (stopped.state, stopped.next_try, stopped.last_error) == ("failed", None, "the webhook is switched off")
    assert stopped.attempts == 0
    await world.services.webhooks.delete(made.webhook_id, ADMIN)
    stopped = await world.services.deliveries.prepare(one)
    assert isinstance(stopped, Delivery)
    assert (stopped.state, stopped.last_error) == ("failed", "the webhook was deleted")
    assert (await world.services.deliveries.settle(one, OK, chance=0.5)).state == "delivered"
    assert (await world.services.deliveries.settle(one, BAD, chance=0.5)).state == "failed"


async def test_a_node_looks_before_it_says_that_a_webhook_is_off_or_not_there(world: World) -> None:
    other = World(world.store, clock=world.clock, ids=world.ids)  # another node, which knows nothing yet
    made, one = await delivery(world)
    assert isinstance(await other.services.deliveries.prepare(one), Message)
    await switch(world, made.webhook_id, False)
    await other.services.definitions.refresh()
    world.clock.pass_seconds(1)
    stopped = await other.services.deliveries.prepare(one)
    assert isinstance(stopped, Delivery)
    await world.store.finish_deliveries([stopped])
    world.clock.pass_seconds(1)
    await switch(world, made.webhook_id, True)
    await world.services.deliveries.redeliver(made.webhook_id, show(DELIVERY, one.id), ADMIN)
    again = await world.store.delivery("default", made.webhook_id, one.id)
    assert again is not None
    assert isinstance(await other.services.deliveries.prepare(again), Message)


async def test_a_node_does_not_look_for_every_message_of_a_webhook_that_is_gone(world: World) -> None:
    made, one = await delivery(world)
    await world.services.webhooks.delete(made.webhook_id, ADMIN)
    world.clock.pass_seconds(1)
    await world.services.deliveries.prepare(one)
    edition, counted = world.services.definitions, 0
    real = edition.refresh

    async def count() -> None:
        nonlocal counted
        counted += 1
        await real()

    edition.refresh = count  # type: ignore[method-assign]
    await world.services.deliveries.prepare(one)
    assert counted == 0


# tries


async def test_what_arrived_is_delivered(world: World) -> None:
    made, one = await delivery(world)
    done = await settle(world, one, OK)
    assert (done.state, done.attempts, done.next_try, done.last_status, done.last_error) == (
        "delivered",
        1,
        None,
        204,
        None,
    )
    assert (await info(world, made.webhook_id)).version == 1


async def test_what_did_not_arrive_is_tried_again_and_the_webhook_is_failing_until_something_arrives(
    world: World,
) -> None:
    made, one = await delivery(world)
    begun = world.clock.now()
    done = await settle(world, one, BAD)
    assert (done.state, done.attempts, done.next_try) == ("pending", 1, begun + 5 * SECOND)
    assert (done.last_status, done.last_error) == (500, "answered 500")
    world.clock.pass_seconds(5)
    done = await settle(world, done, Outcome(error="x" * 10_000))
    assert (done.attempts, done.next_try) == (2, begun + 5 * SECOND + 5 * MINUTE)
    assert (done.last_status, done.last_error) == (None, "x" * 500)
    assert (await info(world, made.webhook_id)).failing_since == to_time(begun)
    assert (await info(world, made.webhook_id)).version == 2
    await settle(world, done, OK)
    assert (await info(world, made.webhook_id)).failing_since is None


async def test_a_receiver_that_takes_most_is_not_failing(world: World) -> None:
    made, one = await delivery(world)
    await settle(world, one, OK)
    other = await another(world)
    world.clock.pass_seconds(CALM / SECOND - 1)
    await settle(world, other, BAD)
    assert (await info(world, made.webhook_id)).failing_since is None
    world.clock.pass_seconds(1)
    await settle(world, other, BAD)
    assert (await info(world, made.webhook_id)).failing_since == to_time(world.clock.now())


async def test_two_nodes_agree_since_when_a_webhook_fails(world: World) -> None:
    made, one = await delivery(world)
    other = World(world.store, clock=world.clock, ids=world.ids)
    await other.services.definitions.refresh()
    begun = world.clock.now()
    await settle(world, one, BAD)
    world.clock.pass_seconds(3)
    await other.services.deliveries.settle(one, BAD, chance=0.5)  # it does not know yet
    assert (await info(world, made.webhook_id)).failing_since == to_time(begun)


async def test_a_webhook_that_fails_for_too_long_is_switched_off_and_that_is_told(world: World) -> None:
    made = await make(world, give_up_after="1h")
    one, waiting = await another(world), await another(world)
    begun, changes = world.clock.now(), 0
    while one.state == "pending":
        one = await settle(world, one, BAD)
        changes += 1
        if one.next_try is not None:
            world.clock.time = one.next_try
    assert world.clock.now() == begun + HOUR
    read = await info(world, made.webhook_id)
    assert (read.enabled, read.off_reason, read.failing_since) == (False, "failing", to_time(begun))
    (data,) = await disabled(world)
    assert (data["webhook_id"], data["url"], data["reason"]) == (made.webhook_id, URL, "failing")
    stopped = await world.services.deliveries.prepare(waiting)
    assert isinstance(stopped, Delivery)
    await world.store.finish_deliveries([stopped])
    assert [each.state for each in await listed(world, made.webhook_id)] == ["failed", "failed"]


async def test_a_receiver_that_is_gone_is_asked_no_more(world: World) -> None:
    made, one = await delivery(world)
    done = await settle(world, one, GONE)
    assert (done.state, done.next_try) == ("failed", None)
    assert (await info(world, made.webhook_id)).off_reason == "gone"
    assert [each["reason"] for each in await disabled(world)] == ["gone"]


async def test_one_that_a_user_has_switched_off_meanwhile_stays_so(world: World) -> None:
    made, one = await delivery(world)
    other = World(world.store, clock=world.clock, ids=world.ids)
    await other.services.definitions.refresh()
    await switch(world, made.webhook_id, False)
    await other.services.deliveries.settle(one, GONE, chance=0.5)
    assert (await info(world, made.webhook_id)).off_reason == "switched_off"


async def test_enabling_forgets_how_long_it_failed(world: World) -> None:
    made = await make(world, give_up_after="1m")
    one = await settle(world, await another(world), BAD)
    world.clock.pass_seconds(60)
    await settle(world, one, BAD)
    assert not (await info(world, made.webhook_id)).enabled
    await switch(world, made.webhook_id, True)
    read = await info(world, made.webhook_id)
    assert (read.enabled, read.off_reason, read.failing_since) == (True, None, None)
    assert (await settle(world, await another(world), BAD)).state == "pending"


async def test_that_a_webhook_is_off_is_told_to_other_webhooks(world: World) -> None:
    _, one = await delivery(world)
    other = await make(world, events=["webhook.disabled"])
    await settle(world, one, GONE)
    assert [(each.webhook, each.event_type) for each in await told(world)] == [
        (other.webhook_id, "foliot.webhook.disabled")
    ]


# lists


async def test_deliveries_are_listed_page_by_page_newest_first(world: World) -> None:
    made = await make(world)
    sent = [await another(world) for _ in range(3)]
    await settle(world, sent[1], OK)
    page, cursor = await world.services.deliveries.page(made.webhook_id, state=None, limit=2, cursor=None, caller=ADMIN)
    assert [parse(DELIVERY, each.delivery_id) for each in page] == [sent[2].id, sent[1].id]
    rest, end = await world.services.deliveries.page(made.webhook_id, state=None, limit=2, cursor=cursor, caller=ADMIN)
    assert ([parse(DELIVERY, each.delivery_id) for each in rest], end) == ([sent[0].id], None)
    assert [each.state for each in await listed(world, made.webhook_id, "delivered")] == ["delivered"]
    assert await listed(world, made.webhook_id, "failed") == []
    with pytest.raises(BadInput, match=r"^cursor: "):
        await world.services.deliveries.page(made.webhook_id, state=None, limit=2, cursor="3", caller=ADMIN)


@pytest.mark.parametrize(
    ("caller", "error"),
    [(Caller(name="boss", namespace="there"), NotFound), (Caller(name="some", job_types=("side",)), Forbidden)],
)
async def test_nobody_of_another_namespace_or_with_a_narrowed_key_sees_them(
    world: World, caller: Caller, error: type[Exception]
) -> None:
    made, one = await delivery(world)
    deliveries = world.services.deliveries
    calls: list[Callable[[], Awaitable[object]]] = [
        lambda: deliveries.page(made.webhook_id, state=None, limit=2, cursor=None, caller=caller),
        lambda: deliveries.redeliver(made.webhook_id, show(DELIVERY, one.id), caller),
        lambda: deliveries.redeliver_failed(made.webhook_id, RedeliverBody(), caller),
    ]
    for call in calls:
        with pytest.raises(error):
            await call()


# sent again


@pytest.mark.parametrize("outcome", [OK, BAD])
async def test_one_is_sent_again_as_if_it_were_new(world: World, outcome: Outcome) -> None:
    made, one = await delivery(world)
    await settle(world, one, outcome)
    world.clock.pass_seconds(100)
    rung: list[int] = []
    world.services.webhooks.on_added.append(lambda: rung.append(1))
    again = await world.services.deliveries.redeliver(made.webhook_id, show(DELIVERY, one.id), ADMIN)
    assert (again.state, again.attempts, again.next_try) == ("pending", 0, to_time(world.clock.now()))
    assert rung == [1]
    (taken,) = await world.store.take_deliveries(world.clock.now(), world.clock.now() + MINUTE, 10)
    assert (taken.id, taken.body) == (one.id, one.body)


async def test_what_is_not_there_is_not_sent_again(world: World) -> None:
    made, _ = await delivery(world)
    other = await make(world)
    foreign = await another(world)
    assert foreign.webhook == other.webhook_id
    for delivery_id in ("wd_1", show(DELIVERY, 1), show(DELIVERY, foreign.id)):
        with pytest.raises(NotFound, match=delivery_id):
            await world.services.deliveries.redeliver(made.webhook_id, delivery_id, ADMIN)


async def test_all_that_failed_since_a_time_is_sent_again(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "CHUNK", 2)
    made = await make(world)
    old = [await another(world) for _ in range(2)]
    world.clock.pass_seconds(10)
    since = to_time(world.clock.now())
    new = [await another(world) for _ in range(5)]
    for one in (*old, *new[:4]):
        await settle(world, one, GONE)
    await settle(world, new[4], OK)
    with pytest.raises(Conflict, match="enable it first"):
        await world.services.deliveries.redeliver_failed(made.webhook_id, RedeliverBody(), ADMIN)
    with pytest.raises(Conflict, match="enable it first"):
        await world.services.deliveries.redeliver(made.webhook_id, show(DELIVERY, new[0].id), ADMIN)
    await switch(world, made.webhook_id, True)
    done = await world.services.deliveries.redeliver_failed(made.webhook_id, RedeliverBody(since=since), ADMIN)
    assert done.redelivered == 4
    assert [each.state for each in await listed(world, made.webhook_id)] == [
        "delivered",
        *["pending"] * 4,
        "failed",
        "failed",
    ]
    done = await world.services.deliveries.redeliver_failed(made.webhook_id, RedeliverBody(), ADMIN)
    assert done.redelivered == 2
    done = await world.services.deliveries.redeliver_failed(made.webhook_id, RedeliverBody(), ADMIN)
    assert done.redelivered == 0
