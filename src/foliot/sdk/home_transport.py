"""A transport that lives on the app's own thread and can be used from every event loop and every thread."""

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from typing import Any

from foliot.sdk.failures import EventsOff
from foliot.sdk.loop_thread import LoopThread, Steps, left_behind
from foliot.sdk.transport import Answer, Headers, StreamingTransport, Transport


class HomeTransport:
    """`connect` makes the real one, on the thread's loop, at the first call; a call from another loop is carried over.
    So connections, or an embedded node, outlive the event loops that come and go in a program."""

    def __init__(self, thread: LoopThread, connect: Callable[[], Coroutine[Any, Any, Transport]]) -> None:
        self._thread = thread
        self._connect = connect
        self._connecting: asyncio.Task[Transport] | None = None
        self.stand_in: Transport | None = None  # while there is one, calls go there and the real one is left alone

    async def start(self) -> None:
        await self._thread.hop(self._connected)

    async def call(self, method: str, path: str, body: bytes | None, headers: Headers) -> Answer:
        return await self._thread.hop(lambda: self._call(method, path, body, headers))

    async def stream(self, path: str, headers: Headers) -> AsyncIterator[bytes]:
        """Raises EventsOff where the real one can not stream."""
        transport = await self._thread.hop(self._connected)
        if not isinstance(transport, StreamingTransport):
            raise EventsOff("nothing can be followed here: there is no stream to this node")
        steps = Steps(transport.stream(path, headers))
        try:
            while True:
                try:
                    chunk = await self._thread.hop(steps.next)
                except StopAsyncIteration:
                    return
                yield chunk
        finally:
            await self._thread.hop(steps.close)

    async def close(self) -> None:
        await self._thread.hop(self._close)

    async def _call(self, method: str, path: str, body: bytes | None, headers: Headers) -> Answer:
        return await (await self._connected()).call(method, path, body, headers)

    async def _connected(self) -> Transport:
        if self.stand_in is not None:
            return self.stand_in
        task = self._connecting
        if task is not None and task.get_loop() is not asyncio.get_running_loop():
            left_behind.append(task)
            task = None
        if task is None or _went_wrong(task):
            task = self._connecting = asyncio.create_task(self._connect())
        return await asyncio.shield(task)  # one caller's impatience is not the others'

    async def _close(self) -> None:
        task, self._connecting = self._connecting, None
        if task is None or task.get_loop() is not asyncio.get_running_loop() or _went_wrong(task):
            return
        transport = await task
        if (close := getattr(transport, "close", None)) is not None:
            await close()


def _went_wrong(task: asyncio.Task[Transport]) -> bool:
    return task.done() and (task.cancelled() or task.exception() is not None)
