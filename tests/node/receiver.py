"""A service that webhooks are sent to, on this machine, which checks signatures with a library of others."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import msgspec
from aiohttp import web
from standardwebhooks import Webhook

from tests.handlers.places import served


class Received(msgspec.Struct):
    """A request that came; `event` is None where its signature was not good."""

    message_id: str
    headers: dict[str, str]
    body: bytes
    event: Any


class Receiver:
    """Answers as `answers` say, one for each request, the last one for all that follow."""

    def __init__(self) -> None:
        self.port = 0
        self.secret = ""
        self.answers: list[int | web.Response] = [204]
        self.received: list[Received] = []
        self.now = self.most = 0  # requests under way together
        self.open = asyncio.Event()  # while it is not set nobody is answered
        self.open.set()
        self._news = asyncio.Event()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/hook"

    @property
    def ids(self) -> list[str]:
        return [each.message_id for each in self.received]

    async def count(self, number: int) -> list[Received]:
        """What came, when so many have come."""
        return await self.until(lambda: len(self.received) >= number)

    async def until(self, holds: Callable[[], bool]) -> list[Received]:
        while not holds():
            await self._news.wait()
            self._news.clear()
        return self.received

    async def answer(self, request: web.Request) -> web.StreamResponse:
        body = await request.read()
        headers = {name.lower(): value for name, value in request.headers.items()}
        event = None
        if self.secret:
            event = Webhook(self.secret).verify(body, headers)
        self.received.append(Received(headers["webhook-id"], headers, body, event))
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        self.now += 1
        self.most = max(self.most, self.now)
        self._news.set()
        try:
            await self.open.wait()
        finally:
            self.now -= 1
        return web.Response(status=answer) if isinstance(answer, int) else answer


@asynccontextmanager
async def receiving() -> AsyncIterator[Receiver]:
    receiver = Receiver()
    async with served(receiver.answer) as port:
        receiver.port = port
        yield receiver
        receiver.open.set()
