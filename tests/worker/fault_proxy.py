"""A TCP proxy that can lose an answer or stop carrying anything."""

import asyncio
from contextlib import suppress


class FaultProxy:
    """Between a worker and a node. `lose` breaks the connection instead of carrying the next answer with these bytes
    in it; while `blocked` is set, connections are broken at once."""

    def __init__(self, port: int) -> None:
        self._target = port
        self._lose: bytes | None = None
        self._writers: set[asyncio.StreamWriter] = set()
        self._server: asyncio.Server | None = None
        self.lost = asyncio.Event()
        self.blocked = False
        self.sent = bytearray()  # everything that went to the node

    @property
    def url(self) -> str:
        assert self._server is not None
        return f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"

    async def __aenter__(self) -> "FaultProxy":
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._server is not None
        self._server.close()
        self.block()

    def lose(self, mark: bytes) -> None:
        self._lose = mark

    def block(self) -> None:
        self.blocked = True
        for writer in self._writers:
            writer.transport.abort()

    def open(self) -> None:
        self.blocked = False

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self.blocked:
            writer.transport.abort()
            return
        with suppress(OSError, asyncio.CancelledError):
            far_reader, far_writer = await asyncio.open_connection("127.0.0.1", self._target)
            mine = {writer, far_writer}
            self._writers |= mine
            await asyncio.gather(self._carry(reader, far_writer, out=True), self._carry(far_reader, writer, out=False))
            self._writers -= mine

    async def _carry(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, *, out: bool) -> None:
        with suppress(OSError):
            while data := await reader.read(256 * 1024):
                if out:
                    self.sent += data
                elif self._lose is not None and self._lose in data:
                    self._lose = None
                    self.lost.set()
                    break
                writer.write(data)
                await writer.drain()
        writer.transport.abort()
