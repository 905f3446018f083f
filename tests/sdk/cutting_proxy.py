"""A TCP proxy that loses answers: the request arrives and is carried out, what comes back does not."""

import asyncio
import contextlib

from foliot.sdk.loop_thread import LoopThread


class CuttingProxy:
    """Forwards to `port`. While `cuts` is above zero, a connection is dropped at the first byte of an answer."""

    def __init__(self, port: int) -> None:
        self.cuts = 0
        self.cut = 0
        self._target = port
        self._thread = LoopThread()

    def start(self) -> None:
        self._thread.run(self._start)

    def stop(self) -> None:
        self._thread.run(self._stop)
        self._thread.close()

    async def _start(self) -> None:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.url = f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"

    async def _stop(self) -> None:
        self._server.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        their_reader, their_writer = await asyncio.open_connection("127.0.0.1", self._target)
        there = asyncio.create_task(self._copy(reader, their_writer, answers=False))
        back = asyncio.create_task(self._copy(their_reader, writer, answers=True))
        try:
            await asyncio.wait([there, back], return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in (there, back):
                task.cancel()
            for each in (writer, their_writer):
                each.close()
            with contextlib.suppress(OSError):
                await writer.wait_closed()
                await their_writer.wait_closed()

    async def _copy(self, source: asyncio.StreamReader, target: asyncio.StreamWriter, *, answers: bool) -> None:
        with contextlib.suppress(ConnectionError):
            while data := await source.read(65536):
                if answers and self.cuts > 0:
                    self.cuts -= 1
                    self.cut += 1
                    return
                target.write(data)
                await target.drain()
