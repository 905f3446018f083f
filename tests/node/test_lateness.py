"""A node writes down how late jobs were, by itself."""

import asyncio

import pytest

from foliot.clock import WallClock
from foliot.domain.duration import HOUR
from foliot.domain.job import Lane, State
from foliot.node import lateness as module
from foliot.node.lateness import LatenessKeeper
from foliot.service.lateness import Lateness
from foliot.store.base import Timing
from tests.service.meddling import Meddling


async def test_what_was_counted_is_written_every_few_seconds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "FLUSH_EVERY", 0.001)
    store, clock, written = Meddling(":memory:"), WallClock(), asyncio.Event()

    async def note() -> None:
        written.set()

    await store.open()
    lateness = Lateness(store, clock, 1)
    keeper = LatenessKeeper(lateness)
    keeper.start()
    try:
        (lane_id,) = await store.lane_ids([Lane("default", "mail", "send")])
        now = clock.now()
        store.after("add_lateness", note)
        lateness.take([Timing(lane_id, State.COMPLETED, now, now, now, now, now)])
        await written.wait()
        assert [row.queue for row in await store.lateness("default", now - HOUR, now + HOUR)] == ["mail"]
    finally:
        await keeper.stop()
        await store.close()
