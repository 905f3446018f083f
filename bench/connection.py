"""The least HTTP client that is correct here: keep-alive, one request at a time, answers with a Content-Length."""

import asyncio
from typing import Self, cast


class Connection(asyncio.Protocol):
    def __init__(self) -> None:
        self._buffer = b""
        self._needed = 0
        self._transport: asyncio.Transport
        self._answer: asyncio.Future[tuple[int, bytes]] | None = None

    @classmethod
    async def open(cls, port: int) -> Self:
        _, connection = await asyncio.get_running_loop().create_connection(cls, "127.0.0.1", port)
        return connection

    async def call(self, request: bytes) -> tuple[int, bytes]:
        """Status and body."""
        self._answer = asyncio.get_running_loop().create_future()
        self._transport.write(request)
        return await self._answer

    def close(self) -> None:
        self._transport.close()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)  # uvloop's is one in all but descent

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        if len(self._buffer) < self._needed:
            return
        head = self._buffer.find(b"\r\n\r\n")
        if head < 0:
            return
        place = self._buffer.lower().index(b"content-length:", 0, head + 2) + 15
        length = int(self._buffer[place : self._buffer.index(b"\r", place)])
        self._needed = head + 4 + length
        if len(self._buffer) < self._needed:
            return
        status, body = int(self._buffer[9:12]), self._buffer[head + 4 :]
        self._buffer, self._needed = b"", 0
        if self._answer is not None and not self._answer.done():
            self._answer.set_result((status, body))

    def connection_lost(self, exc: Exception | None) -> None:
        if self._answer is not None and not self._answer.done():
            self._answer.set_exception(exc or ConnectionResetError("the node closed the connection"))


def request(path: str, key: str, body: bytes) -> bytes:
    return (
        f"POST /api/v1{path} HTTP/1.1\r\nhost: bench\r\nauthorization: Bearer {key}\r\n"
        f"content-type: application/json\r\ncontent-length: {len(body)}\r\n\r\n"
    ).encode() + body
