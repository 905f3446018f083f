"""Work that only makes sense while the client is there."""

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

from foliot.api.call import Receive
from foliot.api.errors import ClientGone

Result = TypeVar("Result")


async def while_connected(receive: Receive, work: Coroutine[Any, Any, Result]) -> Result:
    """What `work` returns or raises. `ClientGone` where the client went away before that; `work` is then cancelled, and
    has ended when this returns."""
    task = asyncio.create_task(work)
    watch = asyncio.create_task(_until_gone(receive))
    try:
        await asyncio.wait((task, watch), return_when=asyncio.FIRST_COMPLETED)
        if task.done():
            return task.result()
        raise ClientGone
    finally:
        task.cancel()
        watch.cancel()
        await asyncio.gather(task, watch, return_exceptions=True)


async def _until_gone(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
