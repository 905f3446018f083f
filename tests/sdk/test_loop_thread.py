"""Blocking calls on a loop of their own."""

import asyncio
from collections.abc import AsyncIterator

from foliot.sdk.loop_thread import LoopThread, Steps


def test_a_step_that_nobody_waits_for_does_not_hold_up_the_close() -> None:
    """As an interrupt leaves it that comes between the start of a step and the wait for it."""
    thread = LoopThread()
    begun = asyncio.Event()

    async def endless() -> AsyncIterator[int]:
        begun.set()
        await asyncio.Event().wait()
        yield 1

    steps = Steps(endless())
    try:
        left = asyncio.run_coroutine_threadsafe(steps.next(), thread.loop)
        thread.run(begun.wait)
        thread.run(steps.close)
        assert left.cancelled()
    finally:
        thread.close()
