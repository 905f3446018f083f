"""Hints between nodes over LISTEN/NOTIFY, on a connection of its own that comes back by itself."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from typing import Final

import msgspec

from foliot.domain.rank import Turn
from foliot.store.postgres.connections import LOST, close, connect

CHANNEL: Final = "foliot"
_FIRST_PAUSE, _LONGEST_PAUSE = 0.05, 2.0  # seconds between attempts to reconnect
_LONGEST_MESSAGE: Final = 7900  # bytes; PostgreSQL takes less than 8,000


class Message(msgspec.Struct, frozen=True, array_like=True):
    """What goes over the channel: who sends it, the node's own hint, and the lowest place in each lane that
    was written (`None`: too many to tell)."""

    sender: str
    hint: str
    places: dict[int, Turn] | None

    def encode(self) -> str:
        text = msgspec.json.encode(self).decode()
        if len(text.encode()) <= _LONGEST_MESSAGE:
            return text
        return msgspec.json.encode(msgspec.structs.replace(self, places=None)).decode()


_decode = msgspec.json.Decoder(Message).decode


class Listener:
    """Hands every message of other senders to `heard`, and None after a gap."""

    def __init__(self, url: str, sender: str, heard: Callable[[Message | None], None]) -> None:
        self._url = url
        self._sender = sender
        self._heard = heard
        self._subscribers: set[asyncio.Queue[str | None]] = set()
        self._task: asyncio.Task[None] | None = None

    async def start(self) -> None:
        listening = asyncio.get_running_loop().create_future()
        self._task = asyncio.create_task(self._run(listening), name="foliot hints")
        await listening

    async def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task
            self._task = None
        for queue in self._subscribers:
            queue.put_nowait(None)

    def subscribe(self) -> AsyncIterator[str]:
        """Hints from this moment on, not from the first time that one is asked for."""
        queue: asyncio.Queue[str | None] = asyncio.Queue()
        self._subscribers.add(queue)
        return self._hints(queue)

    async def _hints(self, queue: asyncio.Queue[str | None]) -> AsyncIterator[str]:
        try:
            while (hint := await queue.get()) is not None:
                yield hint
        finally:
            self._subscribers.discard(queue)

    async def _run(self, listening: asyncio.Future[None]) -> None:
        pause = _FIRST_PAUSE
        while True:
            try:
                await self._listen(listening)
                pause = _FIRST_PAUSE
            except LOST as error:
                if not listening.done():
                    listening.set_exception(error)
                    return
                pause = min(pause * 2, _LONGEST_PAUSE)
            await asyncio.sleep(pause)

    async def _listen(self, listening: asyncio.Future[None]) -> None:
        """Listen until the connection ends."""
        ended = asyncio.Event()
        connection = await connect(self._url)
        try:
            connection.add_termination_listener(lambda _: ended.set())
            await connection.add_listener(CHANNEL, self._receive)
            if listening.done():
                self._pass_on(None)
            else:
                listening.set_result(None)
            await ended.wait()
        finally:
            await close(connection)

    def _receive(self, _connection: object, _process: int, _channel: str, payload: object) -> None:
        try:
            message = _decode(str(payload))
        except msgspec.DecodeError:
            self._pass_on(None)  # of a version with other words: all it can tell is that something happened
            return
        if message.sender != self._sender:
            self._pass_on(message)

    def _pass_on(self, message: Message | None) -> None:
        self._heard(message)
        for queue in self._subscribers:
            queue.put_nowait("" if message is None else message.hint)
