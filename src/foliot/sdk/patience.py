"""Doing a call again while the node is away or asks for a moment: with growing waits, for so long and no longer."""

import asyncio
from collections.abc import Awaitable, Callable

from foliot.sdk.failures import Unavailable, Unreachable, refusal
from foliot.sdk.transport import Answer

FIRST_WAIT_SECONDS = 0.05
LONGEST_WAIT_SECONDS = 2.0


async def patiently(call: Callable[[], Awaitable[Answer]], *, seconds: float, again: bool) -> Answer:
    """The answer, where it is below 300; else raises the error that it is. With `again` the call is safe to repeat
    whatever became of it; without, it is repeated only where it can not have arrived, or was turned away unseen because
    there were too many (429). A `Retry-After` is honoured."""
    loop = asyncio.get_running_loop()
    end, wait = loop.time() + seconds, FIRST_WAIT_SECONDS
    while True:
        tried = await _try(call)
        if not isinstance(tried, Unavailable):
            return tried
        turned_away = tried.http_status == 429 or (isinstance(tried, Unreachable) and not tried.sent)
        harmless = again or turned_away
        pause = max(wait, tried.retry_after or 0.0)
        if not harmless or loop.time() + pause > end:
            raise tried
        await asyncio.sleep(pause)
        wait = min(wait * 2, LONGEST_WAIT_SECONDS)


async def _try(call: Callable[[], Awaitable[Answer]]) -> Answer | Unavailable:
    try:
        answer = await call()
    except Unreachable as error:
        return error
    if answer[0] < 300:
        return answer
    refused = refusal(*answer)
    if isinstance(refused, Unavailable):
        return refused
    raise refused
