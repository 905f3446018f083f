"""One address for several nodes, as a load balancer gives it: connections go to the one that is chosen."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import Self
from urllib.parse import urlsplit


class Switchboard:
    """Forwards new connections to `target`. Those that are open stay where they are, and end with their node."""

    def __init__(self, target: str) -> None:
        self.target = target
        self.url = ""
        self.busy = asyncio.Event()  # more than one connection was made
        self._made = 0

    @classmethod
    @contextlib.asynccontextmanager
    async def before(cls, target: str) -> AsyncIterator[Self]:
        board = cls(target)
        server = await asyncio.start_server(board._serve, "127.0.0.1", 0)
        board.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        try:
            yield board
        finally:
            server.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._made += 1
        if self._made > 1:
            self.busy.set()
        chosen = urlsplit(self.target)
        with contextlib.suppress(OSError, asyncio.CancelledError), contextlib.closing(writer):
            their_reader, their_writer = await asyncio.open_connection(chosen.hostname, chosen.port)
            with contextlib.closing(their_writer):
                ways = [asyncio.create_task(_copy(*way)) for way in ((reader, their_writer), (their_reader, writer))]
                try:
                    await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
                finally:
                    for way in ways:
                        way.cancel()
                    await asyncio.gather(*ways, return_exceptions=True)


async def _copy(source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
    with contextlib.suppress(OSError):
        while data := await source.read(65536):
            target.write(data)
            await target.drain()
