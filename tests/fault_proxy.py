"""A TCP proxy before PostgreSQL that loses answers, holds them back or falls silent, at a moment the test chooses.

It reads the client's messages (a type, a length, a body) to find the moment; what it forwards it does not change.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from typing import Self
from urllib.parse import urlsplit

Match = Callable[[bytes, bytes], bool]  # a message's type and body

_READY = b"Z\x00\x00\x00\x05"  # the server's word that a request is done, but for the last byte
_STARTUP = 196608


def commit(kind: bytes, body: bytes) -> bool:
    return kind == b"Q" and body.upper().startswith(b"COMMIT")


def execute(kind: bytes, _body: bytes) -> bool:
    """A prepared statement is run; outside of a transaction that is the commit as well."""
    return kind == b"E"


class FaultProxy:
    def __init__(self, url: str) -> None:
        self._target = urlsplit(url)
        self._tasks: set[asyncio.Task[None]] = set()
        self._connections: set[_Wire] = set()
        self._lose: Match | None = None
        self._refuse: Match | None = None
        self.faults = 0  # how often it did what it was told
        self.open = asyncio.Event()  # while clear nothing is forwarded
        self.open.set()
        self.url = ""

    @classmethod
    @contextlib.asynccontextmanager
    async def before(cls, url: str) -> AsyncIterator[Self]:
        proxy = cls(url)
        server = await asyncio.start_server(proxy._serve, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        target = proxy._target
        user = f"{target.username}@" if target.username else ""
        proxy.url = target._replace(netloc=f"{user}127.0.0.1:{port}").geturl()
        try:
            yield proxy
        finally:
            server.close()
            proxy.cut()
            for task in proxy._tasks:
                task.cancel()
            await asyncio.gather(*proxy._tasks, return_exceptions=True)

    def lose_answer(self, match: Match) -> None:
        """The next request that matches is carried out by the server, and its answer is lost with the connection."""
        self._lose = match

    def lose_request(self, match: Match) -> None:
        """The next request that matches never reaches the server; the connection is lost."""
        self._refuse = match

    def cut(self) -> None:
        """Lose every connection now."""
        for wire in list(self._connections):
            wire.cut()

    def should_lose(self, kind: bytes, body: bytes) -> bool:
        if self._lose is None or not self._lose(kind, body):
            return False
        self._lose = None
        self.faults += 1
        return True

    def should_refuse(self, kind: bytes, body: bytes) -> bool:
        if self._refuse is None or not self._refuse(kind, body):
            return False
        self._refuse = None
        self.faults += 1
        return True

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        wire = None
        try:
            upstream = await asyncio.open_connection(self._target.hostname, self._target.port)
            wire = _Wire(self, (reader, writer), upstream)
            self._connections.add(wire)
            await wire.run()
        except OSError:
            pass
        finally:
            if wire is not None:
                self._connections.discard(wire)
                wire.cut()
            writer.close()
            self._tasks.discard(task)


class _Wire:
    """One client's connection and the one to the server that belongs to it."""

    def __init__(
        self,
        proxy: FaultProxy,
        client: tuple[asyncio.StreamReader, asyncio.StreamWriter],
        server: tuple[asyncio.StreamReader, asyncio.StreamWriter],
    ) -> None:
        self._proxy = proxy
        self._client_reader, self._client_writer = client
        self._server_reader, self._server_writer = server
        self._losing = False

    async def run(self) -> None:
        directions = {asyncio.create_task(self._requests()), asyncio.create_task(self._answers())}
        try:
            await asyncio.wait(directions, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for direction in directions:
                direction.cancel()
            await asyncio.gather(*directions, return_exceptions=True)

    def cut(self) -> None:
        for writer in (self._client_writer, self._server_writer):
            writer.transport.abort()

    async def _requests(self) -> None:
        started = False
        while True:
            kind = await self._client_reader.readexactly(1) if started else b""
            length = await self._client_reader.readexactly(4)
            body = await self._client_reader.readexactly(int.from_bytes(length) - 4)
            started = started or int.from_bytes(body[:4]) == _STARTUP
            await self._proxy.open.wait()
            if kind and self._proxy.should_refuse(kind, body):
                return
            if kind and self._proxy.should_lose(kind, body):
                self._losing = True
            self._server_writer.write(kind + length + body)
            await self._server_writer.drain()

    async def _answers(self) -> None:
        swallowed = b""
        while data := await self._server_reader.read(65536):
            await self._proxy.open.wait()
            if self._losing:
                swallowed = (swallowed + data)[-6:]
                if swallowed[:5] == _READY:
                    return
            else:
                self._client_writer.write(data)
                await self._client_writer.drain()
