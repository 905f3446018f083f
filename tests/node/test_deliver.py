"""Messages go to a real receiver over HTTP, which checks them with a library of others."""

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest
from aiohttp import web
from aiohttp.abc import AbstractResolver

from foliot.clock import wall
from foliot.domain.access import ADMIN
from foliot.domain.duration import MINUTE, SECOND
from foliot.domain.errors import Unavailable
from foliot.node import deliver as module
from foliot.node.deliver import FAILURES, FIRST_REST, LONGEST_REST, Deliver, Rest, allowed_by
from foliot.outbound import AllowList, OutboundClient
from foliot.service.sealing import Sealer
from foliot.settings import Settings, SettingsError
from foliot.wire import DeliveryInfo, NewWebhook, RedeliverBody, to_time
from tests.handlers.places import Names, canary_on, served
from tests.node.receiver import Receiver, receiving
from tests.service.conftest import ManualClock, World
from tests.service.meddling import Meddling
from tests.service.test_sealing import NEW, OLD
from tests.service.told import listed, make, told


class Post(World):
    """A node's services with the duty that sends, started by `start`."""

    def __init__(self, store: Meddling, *, sealer: Sealer | None = None) -> None:
        super().__init__(store, clock=ManualClock(wall()), sealer=sealer)
        self.duty: Deliver | None = None
        self.allow("127.0.0.0/8")

    def allow(self, entries: str, resolver: AbstractResolver | None = None) -> None:
        allowed = AllowList.parse(entries)
        self.services.webhooks._allowed = allowed
        self.client = OutboundClient(allowed, agent="foliot/test", resolver=resolver)

    def start(self) -> Deliver:
        services = self.services
        self.duty = Deliver(
            self.store, self.clock, services.webhooks, services.deliveries, self.client, chance=lambda: 0.5
        )
        self.duty.start()
        return self.duty

    async def stop(self) -> None:
        if self.duty is not None:
            await self.duty.stop()
            self.duty = None

    def look(self) -> None:
        """Let it look again at once: the time has moved."""
        self.services.webhooks.added(0)

    async def until(
        self, webhook: NewWebhook, holds: Callable[[list[DeliveryInfo]], bool], state: str | None = None
    ) -> list[DeliveryInfo]:
        while True:
            found = await listed(self, webhook.webhook_id, state)
            if holds(found):
                return found
            await asyncio.sleep(0.005)

    async def tried(self, webhook: NewWebhook, times: int) -> DeliveryInfo:
        """The one delivery, after so many tries."""
        (found,) = await self.until(webhook, lambda found: [each.attempts for each in found] == [times])
        return found

    async def ended(self, webhook: NewWebhook, count: int = 1) -> list[DeliveryInfo]:
        return await self.until(
            webhook, lambda found: len([each for each in found if each.state != "pending"]) == count
        )


@pytest.fixture
async def store() -> AsyncIterator[Meddling]:
    store = Meddling(":memory:")
    await store.open()
    yield store
    await store.close()


@pytest.fixture
async def post(store: Meddling) -> AsyncIterator[Post]:
    post = Post(store)
    yield post
    await post.stop()
    await post.client.close()


@pytest.fixture
async def receiver() -> AsyncIterator[Receiver]:
    async with receiving() as receiver:
        yield receiver


async def subscribe(post: Post, receiver: Receiver, **fields: Any) -> NewWebhook:
    made = await make(post, url=receiver.url, events=["job.queued"], **fields)
    receiver.secret = made.secret
    return made


async def happen(post: Post, count: int = 1) -> None:
    for _ in range(count):
        await post.submit()
    await told(post)


# delivered


async def test_a_message_arrives_signed_and_is_kept_as_delivered(post: Post, receiver: Receiver) -> None:
    made = await subscribe(post, receiver)
    post.start()
    job_id = await post.submit(tags=["red"])
    await told(post)
    (received,) = await receiver.count(1)
    assert (received.event["type"], received.event["subject"]) == ("foliot.job.queued", job_id)
    assert received.event["data"]["tags"] == ["red"]
    assert received.headers["content-type"] == "application/cloudevents+json"
    assert received.headers["user-agent"] == "foliot/test"
    (done,) = await post.ended(made)
    assert (done.state, done.attempts, done.last_status, done.last_error) == ("delivered", 1, 204, None)
    assert received.message_id == done.delivery_id


async def test_each_of_many_arrives_once(post: Post, receiver: Receiver, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST", 7)  # in hand, so that it has to come back for more
    made = await subscribe(post, receiver)
    post.start()
    await happen(post, 30)
    await post.ended(made, 30)
    assert len(set(receiver.ids)) == len(receiver.ids) == 30


# tried again


async def test_what_was_answered_with_an_error_is_tried_again_under_the_same_id(post: Post, receiver: Receiver) -> None:
    made = await subscribe(post, receiver)
    receiver.answers = [500, 404, 200]
    post.start()
    await happen(post)
    begun = post.clock.now()
    first = await post.tried(made, 1)
    assert (first.state, first.last_status, first.last_error) == ("pending", 500, "answered 500")
    assert first.next_try == to_time(begun + 5 * SECOND)
    post.clock.pass_seconds(5)
    post.look()
    second = await post.tried(made, 2)
    assert (second.last_status, second.next_try) == (404, to_time(begun + 5 * SECOND + 5 * MINUTE))
    assert len(receiver.received) == 2
    post.clock.time = begun + 30 * SECOND  # within what its receiver takes for the present
    await post.services.deliveries.redeliver(made.webhook_id, second.delivery_id, ADMIN)
    (done,) = await post.ended(made)
    assert done.state == "delivered"
    assert set(receiver.ids) == {done.delivery_id}
    assert len({each.headers["webhook-timestamp"] for each in receiver.received}) == 3


async def test_a_receiver_may_ask_for_more_time(post: Post, receiver: Receiver) -> None:
    made = await subscribe(post, receiver)
    receiver.answers = [web.Response(status=429, headers={"Retry-After": "90"})]
    post.start()
    await happen(post)
    tried = await post.tried(made, 1)
    assert tried.next_try == to_time(post.clock.now() + 90 * SECOND)


async def test_a_redirect_is_not_followed(post: Post, receiver: Receiver) -> None:
    made = await subscribe(post, receiver)
    async with canary_on(["127.0.0.1"]) as canary:
        elsewhere = {"Location": f"http://127.0.0.1:{canary.port}/"}
        receiver.answers = [web.Response(status=307, headers=elsewhere)]
        post.start()
        await happen(post)
        assert (await post.tried(made, 1)).last_status == 307
        assert canary.visits == 0


async def test_who_does_not_answer_in_time_is_tried_again(
    post: Post, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "CALL", 0.05)
    made = await subscribe(post, receiver)
    receiver.open.clear()
    post.start()
    await happen(post)
    tried = await post.tried(made, 1)
    assert (tried.state, tried.last_status, tried.last_error) == ("pending", None, "no answer within 0.05 s")


async def test_who_is_not_there_is_tried_again(post: Post, free_port: int) -> None:
    made = await make(post, url=f"http://127.0.0.1:{free_port}/", events=["job.queued"])
    post.start()
    await happen(post)
    tried = await post.tried(made, 1)
    assert (tried.state, tried.last_status) == ("pending", None)
    assert tried.last_error is not None
    assert "Connect" in tried.last_error


async def test_an_endless_answer_is_cut(post: Post) -> None:
    sent = 0

    async def flood(request: web.Request) -> web.StreamResponse:
        nonlocal sent
        await request.read()
        response = web.StreamResponse()
        await response.prepare(request)
        try:
            while True:
                await response.write(b"x" * 65536)
                sent += 1
        except ConnectionError:
            return response

    async with served(flood) as port:
        made = await make(post, url=f"http://127.0.0.1:{port}/", events=["job.queued"])
        post.start()
        await happen(post)
        assert (await post.ended(made))[0].state == "delivered"


# addresses


async def test_a_name_that_leads_into_this_machine_is_not_called(post: Post) -> None:
    """It is looked up when it is called: at creation nobody could know."""
    async with canary_on(["127.0.0.1"]) as canary:
        post.allow("", Names({"receiver.example.org": [["127.0.0.1"]]}))
        made = await make(post, url=f"http://receiver.example.org:{canary.port}/", events=["job.queued"])
        post.start()
        await happen(post)
        tried = await post.tried(made, 1)
        assert (tried.state, tried.last_status) == ("pending", None)
        assert tried.last_error is not None
        assert "leads to a loopback address, which webhooks may not call" in tried.last_error
        assert canary.visits == 0


def test_what_may_be_called_is_what_http_jobs_may_call() -> None:
    assert allowed_by(Settings(http_allow="10.0.0.0/8")) == AllowList.parse("10.0.0.0/8")
    with pytest.raises(SettingsError, match=r"^http_allow: '10\.0\.0\.1/8'"):
        allowed_by(Settings(http_allow="10.0.0.1/8"))


# off


async def test_a_receiver_that_is_gone_gets_no_more_until_it_is_enabled_and_asked_again(
    post: Post, receiver: Receiver
) -> None:
    made = await subscribe(post, receiver)
    receiver.answers = [410, 204]
    post.start()
    await happen(post)
    assert (await post.ended(made))[0].state == "failed"
    assert (await post.services.webhooks.read(made.webhook_id, ADMIN)).off_reason == "gone"
    await post.services.webhooks.switch(made.webhook_id, on=True, if_match=None, caller=ADMIN)
    answer = await post.services.deliveries.redeliver_failed(made.webhook_id, RedeliverBody(), ADMIN)
    assert answer.redelivered == 1
    await post.until(made, lambda found: len(found) == 1, "delivered")
    assert len(receiver.received) == 2


async def test_a_webhook_that_failed_for_its_settable_time_is_switched_off(post: Post, receiver: Receiver) -> None:
    made = await subscribe(post, receiver, give_up_after="1m")
    receiver.answers = [500]
    post.start()
    await happen(post)
    await post.tried(made, 1)
    for times, seconds in ((2, 5), (3, 55)):
        post.clock.pass_seconds(seconds)
        post.look()
        await post.tried(made, times)
    assert (await post.services.webhooks.read(made.webhook_id, ADMIN)).off_reason == "failing"
    assert [each.state for each in await listed(post, made.webhook_id)] == ["failed"]


async def test_what_was_on_its_way_to_one_that_is_off_is_not_sent(post: Post, receiver: Receiver) -> None:
    made = await subscribe(post, receiver)
    await happen(post)
    await post.services.webhooks.switch(made.webhook_id, on=False, if_match=None, caller=ADMIN)
    post.start()
    (done,) = await post.ended(made)
    assert (done.state, done.attempts, done.last_error) == ("failed", 0, "the webhook is switched off")
    assert receiver.received == []


async def test_what_can_not_be_read_is_put_off_and_harms_nobody(store: Meddling, receiver: Receiver) -> None:
    sealed = Post(store, sealer=Sealer([OLD]))
    made = await subscribe(sealed, receiver)
    await happen(sealed)
    other = Post(store, sealer=Sealer([NEW]))
    other.clock, other.ids = sealed.clock, sealed.ids
    other.start()
    (found,) = await sealed.until(made, lambda found: found[0].last_error is not None)
    assert (found.state, found.attempts) == ("pending", 0)
    assert "does not have" in (found.last_error or "")
    assert (await sealed.services.webhooks.read(made.webhook_id, ADMIN)).failing_since is None
    await other.stop()
    await sealed.client.close()
    assert receiver.received == []


# many at once


async def test_only_a_few_go_to_one_host_at_once(post: Post, receiver: Receiver) -> None:
    made = await subscribe(post, receiver)
    receiver.open.clear()
    post.start()
    await happen(post, 20)
    await receiver.count(module.PER_HOST)
    async with receiving() as quick:  # another host is not held up
        second = await make(post, url=quick.url, events=["job.queued"])
        await happen(post)
        await post.ended(second)
    assert (receiver.most, len(receiver.received)) == (module.PER_HOST, module.PER_HOST)
    receiver.open.set()
    await post.ended(made, 21)
    assert receiver.most == module.PER_HOST


async def test_what_finds_no_place_is_put_off_untried(
    post: Post, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "IN_LINE", 0.01)
    made = await subscribe(post, receiver)
    receiver.open.clear()
    post.start()
    await happen(post, module.PER_HOST + 1)
    later = to_time(post.clock.now() + round(2.5 * SECOND))
    found = await post.until(made, lambda found: any(each.next_try == later for each in found))
    assert [each.attempts for each in found if each.next_try == later] == [0]
    receiver.open.set()
    await post.ended(made, module.PER_HOST)


async def test_a_receiver_of_which_nothing_arrives_is_given_a_rest_and_asked_with_one_message(
    post: Post, receiver: Receiver
) -> None:
    made = await subscribe(post, receiver)
    receiver.answers = [500]
    post.start()
    await happen(post, 20)
    rest_over = post.clock.now() + FIRST_REST
    by_then = to_time(rest_over + round(2.5 * SECOND))
    await post.until(made, lambda found: all(each.next_try and each.next_try <= by_then for each in found))
    tried = len(receiver.received)
    assert FAILURES <= tried < FAILURES + module.PER_HOST
    receiver.open.clear()
    receiver.answers = [204]
    post.clock.time = rest_over + 3 * SECOND
    post.look()
    await receiver.count(tried + 1)
    others = post.clock.now() + round(2.5 * SECOND)
    await post.until(made, lambda found: all(each.next_try and each.next_try >= to_time(others) for each in found))
    assert len(receiver.received) == tried + 1
    receiver.open.set()
    await post.ended(made, 1)
    post.clock.time = others
    post.look()
    await post.ended(made, 20)


def test_rests_grow_up_to_a_limit_and_failures_of_one_moment_count_once() -> None:
    rest = Rest()
    now = 0
    for _ in range(FAILURES):
        assert not rest.ordered
        rest.fail(now)
    assert (rest.ordered, rest.until) == (True, FIRST_REST)
    rest.fail(now + 1)
    assert rest.until == FIRST_REST
    lengths = []
    for _ in range(30):
        now = rest.until
        rest.fail(now)
        lengths.append(rest.until - now)
    assert lengths[0] == 2 * FIRST_REST
    assert lengths == sorted(lengths)
    assert lengths[-1] == LONGEST_REST


# trouble


async def test_a_message_whose_end_could_not_be_written_is_sent_again(
    post: Post, receiver: Receiver, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    made = await subscribe(post, receiver)
    real = post.store.finish_deliveries
    failed = asyncio.Event()

    async def fail(_deliveries: Any) -> None:
        failed.set()
        raise RuntimeError("no pen")

    monkeypatch.setattr(post.store, "finish_deliveries", fail)
    post.start()
    await happen(post)
    await failed.wait()
    monkeypatch.setattr(post.store, "finish_deliveries", real)
    post.clock.pass_seconds(module.LEASE / SECOND - 1)
    post.look()
    post.clock.pass_seconds(1)
    post.look()
    await post.ended(made)
    assert len(receiver.received) == 2
    assert len(set(receiver.ids)) == 1
    assert "failed; trying again" in caplog.text


async def test_a_store_that_does_not_answer_is_told_in_one_line(
    post: Post, receiver: Receiver, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    await subscribe(post, receiver)
    told_it = asyncio.Event()

    async def away(*_: Any, **__: Any) -> Any:
        told_it.set()
        raise Unavailable("the store is away")

    monkeypatch.setattr(post.services.deliveries, "settle", away)
    post.start()
    await happen(post)
    await told_it.wait()
    await post.stop()
    assert "the store is away; trying again" in caplog.text


async def test_a_node_that_stops_leaves_what_it_has_in_hand_to_others_at_once(
    post: Post, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "GRACE", 0.05)
    made = await subscribe(post, receiver)
    receiver.open.clear()
    post.start()
    await happen(post, 6)
    await receiver.count(module.PER_HOST)
    await post.stop()
    found = await listed(post, made.webhook_id)
    assert [(each.state, each.attempts) for each in found] == [("pending", 0)] * 6
    now = post.clock.now()
    assert len(await post.store.take_deliveries(now, now + MINUTE, 10)) == 6


async def test_a_node_that_stops_waits_for_calls_under_way(post: Post, receiver: Receiver) -> None:
    made = await subscribe(post, receiver)
    receiver.open.clear()
    post.start()
    await happen(post)
    await receiver.count(1)
    stopping = asyncio.create_task(post.stop())
    await asyncio.sleep(0)
    receiver.open.set()
    await stopping
    (done,) = await listed(post, made.webhook_id)
    assert (done.state, done.delivery_id) == ("delivered", receiver.ids[0])
