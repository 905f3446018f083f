"""Real servers and names for calls that must, or must not, get somewhere."""

import asyncio
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager

from aiohttp import ThreadedResolver, web
from aiohttp.abc import AbstractResolver, ResolveResult

ADDRESSES = ("127.0.0.1", "127.0.0.2", "::1")


class Canary:
    """Listens on several addresses at one port, answers everybody, and remembers that somebody came."""

    def __init__(self, port: int) -> None:
        self.port = port
        self.visits = 0

    async def meet(self, _reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.visits += 1
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\nConnection: close\r\n\r\nsecret")
        writer.close()


@asynccontextmanager
async def canary_on(addresses: Sequence[str]) -> AsyncIterator[Canary]:
    listeners = _listen_at_one_port(addresses)
    canary = Canary(listeners[0].getsockname()[1])
    servers = [await asyncio.start_server(canary.meet, sock=listener) for listener in listeners]
    yield canary
    for server in servers:
        server.close()
        await server.wait_closed()


def has_ipv6() -> bool:
    try:
        with socket.socket(socket.AF_INET6) as probe:
            probe.bind(("::1", 0))
    except OSError:
        return False
    return True


def _listen_at_one_port(addresses: Sequence[str]) -> list[socket.socket]:
    while True:
        port, found = 0, []
        for address in addresses:
            listener = socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET)
            found.append(listener)
            try:
                listener.bind((address, port))
            except OSError:  # taken on this one: another port
                break
            port = listener.getsockname()[1]
        else:
            return found
        for listener in found:
            listener.close()


@asynccontextmanager
async def served(answer: Callable[[web.Request], Awaitable[web.StreamResponse]]) -> AsyncIterator[int]:
    """The port of a server on 127.0.0.1 that answers every path."""
    app = web.Application()
    app.router.add_route("*", "/{rest:.*}", answer)
    runner = web.AppRunner(app, shutdown_timeout=0)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    yield runner.addresses[0][1]
    await runner.cleanup()


class Names(AbstractResolver):
    """Names with our own addresses, a list for each look-up, the last for all that follow; the system knows the
    others."""

    def __init__(self, known: Mapping[str, Sequence[Sequence[str]]]) -> None:
        self._answers = {name: list(answers) for name, answers in known.items()}
        self._system = ThreadedResolver()
        self.asked: list[str] = []

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_UNSPEC
    ) -> list[ResolveResult]:
        self.asked.append(host)
        answers = self._answers.get(host.rstrip("."))
        if answers is None:
            return await self._system.resolve(host, port, family)
        addresses = answers.pop(0) if len(answers) > 1 else answers[0]
        return [
            ResolveResult(
                hostname=host,
                host=address,
                port=port,
                family=socket.AF_INET6 if ":" in address else socket.AF_INET,
                proto=0,
                flags=0,
            )
            for address in addresses
        ]

    async def close(self) -> None:
        await self._system.close()
