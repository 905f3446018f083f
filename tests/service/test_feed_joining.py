"""Somebody begins to follow while the tail is in the middle of a reading that knows nothing of him."""

import asyncio

from tests.service.conftest import World
from tests.service.meddling import Gate
from tests.service.test_feed import following


async def test_what_is_read_while_somebody_comes_is_told_to_him_too(world: World) -> None:
    async def newcomer() -> str:
        async with following(world, "start", queues=["mine"]) as follower:
            return (await follower.take(1))[0][0]

    gate = Gate()
    async with asyncio.timeout(10), following(world, queues=["other"]) as first:
        assert await world.submit(job_id="zero", queue="other")
        await first.take(1)
        world.store.before("read_feed", gate)
        await world.submit(job_id="one", queue="other")  # wakes the tail, which is held before it reads
        await gate.reached.wait()
        coming = asyncio.create_task(newcomer())
        await asyncio.wait({coming}, timeout=0.1)  # time enough for readings of his own, were he to begin already
        await world.submit(job_id="two", queue="mine")
        gate.opened.set()
        assert await coming == "two"
        assert (await first.take(1))[0][0] == "one"
