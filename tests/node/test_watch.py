"""On watch: one node at a time, each event looked at once, whoever takes over."""

import asyncio
from collections.abc import AsyncIterator, Callable

import pytest

from foliot.clock import WallClock
from foliot.domain.access import ADMIN
from foliot.domain.duration import SECOND
from foliot.domain.ids import IdMaker
from foliot.node import watch as watch_module
from foliot.node.watch import Watch
from foliot.service import Services
from foliot.service.wake import Wake
from foliot.store.sqlite import SqliteStore
from foliot.wire import SubmitBody, WebhookBody


class OnWatch:
    """A node's part of it, over a store that it shares with others."""

    def __init__(self, store: SqliteStore, number: int) -> None:
        self.store = store
        self.wake = Wake()
        self.ids = IdMaker(node=number)
        clock = WallClock()
        self.services = Services(store, clock, self.ids, self.wake, lease=30 * SECOND, heartbeat=10 * SECOND)
        services = self.services
        self.watch = Watch(store, clock, self.wake, number, services.definitions, services.webhooks, services.alerts)

    async def submit(self, job_type: str = "echo") -> str:
        return (await self.services.submit.one(SubmitBody(job_type=job_type), b"", ADMIN)).job_id

    async def webhook(self, *events: str) -> str:
        body = WebhookBody(url="https://hooks.example.com/", events=list(events))
        return (await self.services.webhooks.create(body, ADMIN)).webhook_id

    async def subjects(self, webhook_id: str) -> list[str]:
        found = await self.store.deliveries("default", webhook_id, limit=100)
        return sorted(delivery.event_type for delivery in found)


@pytest.fixture
async def store() -> AsyncIterator[SqliteStore]:
    store = SqliteStore(":memory:")
    await store.open()
    yield store
    await store.close()


async def until(condition: Callable[[], object]) -> None:
    async with asyncio.timeout(10):
        while True:
            found = condition()
            if await found if asyncio.iscoroutine(found) else found:
                return
            await asyncio.sleep(0.005)


async def test_an_event_becomes_a_delivery_once_whoever_is_on_watch(store: SqliteStore) -> None:
    first, second = OnWatch(store, 1), OnWatch(store, 2)
    hook = await first.webhook("job.queued")
    await second.services.definitions.refresh()
    first.watch.start()
    await until(lambda: _holder(store, 1))
    await first.submit()
    await until(lambda: _has(first, hook, 1))
    await first.watch.stop()  # leaves its post
    await first.submit()  # while nobody is on watch
    second.watch.start()
    await until(lambda: _has(second, hook, 2))
    await second.submit()
    await until(lambda: _has(second, hook, 3))
    await second.watch.stop()
    assert await second.subjects(hook) == ["foliot.job.queued"] * 3


async def _holder(store: SqliteStore, number: int) -> bool:
    post = await store.take_post("watch", number, 0, 1)
    return post is not None and bool(post.position)


async def _has(node: OnWatch, hook: str, count: int) -> bool:
    return len(await node.subjects(hook)) >= count


async def follow(watch: Watch) -> None:
    assert watch._post is not None
    await watch._follow(watch._post)


async def test_a_node_that_lost_its_post_changes_nothing(store: SqliteStore) -> None:
    first, second = OnWatch(store, 1), OnWatch(store, 2)
    hook = await first.webhook("job.queued")
    await second.services.definitions.refresh()
    watch = first.watch
    await watch._take_post()
    await follow(watch)
    await first.submit()
    assert await store.take_post("watch", 2, WallClock().now() + 60 * SECOND, WallClock().now() + 90 * SECOND)
    await follow(watch)
    assert watch._post is None
    assert await first.subjects(hook) == []
    second.watch.start()
    await until(lambda: _has(second, hook, 1))
    await second.watch.stop()


async def test_while_nobody_wants_to_know_the_record_is_not_read(
    store: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watch_module, "STEP_EVERY", 0)
    node = OnWatch(store, 1)
    await node.watch._take_post()
    assert node.watch._post is not None
    for _ in range(3):
        await node.submit()
        await node.watch._follow(node.watch._post)
    hook = await node.webhook("job.queued")
    await node.watch._follow(node.watch._post)
    assert await node.subjects(hook) == []
    await node.submit()
    await node.watch._follow(node.watch._post)
    assert len(await node.subjects(hook)) == 1
    await node.services.webhooks.delete(hook, ADMIN)
    await node.watch._follow(node.watch._post)
    assert node.watch._post.position == ""


async def test_what_failed_is_begun_again_from_what_is_kept(
    store: SqliteStore, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("foliot.node.running.PAUSE_AFTER_ERROR", 0.01)
    node = OnWatch(store, 1)
    hook = await node.webhook("job.queued")
    node.watch.start()
    await until(lambda: _holder(store, 1))
    real = store.advance
    failures = iter([True])

    async def advance(*args: object, **named: object) -> bool:
        if next(failures, False):
            raise RuntimeError("in the middle")
        return await real(*args, **named)  # type: ignore[arg-type]

    monkeypatch.setattr(store, "advance", advance)
    await node.submit()
    await until(lambda: _has(node, hook, 1))
    await node.watch.stop()
    assert "in the middle" in caplog.text
    assert await node.subjects(hook) == ["foliot.job.queued"]
