"""A node and a worker inside one process, with the same API but no socket: requests go straight to the ASGI
application."""

import asyncio
import os
import secrets
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, MutableMapping
from typing import Any
from urllib.parse import unquote

from foliot.api import create_app
from foliot.main.telemetry import start_traces, stop_traces
from foliot.node.node import Node
from foliot.sdk.failures import refusal
from foliot.sdk.handler import Handler
from foliot.settings import PREFIX, Settings
from foliot.store.base import Store
from foliot.worker import Worker

PIECES_AHEAD = 8  # of a stream, before the node waits


class InProcess:
    """The transport of an embedded client and worker: one call in, one answer out."""

    def __init__(self, app: Any, key: str) -> None:
        self._app = app
        self._authorization = f"Bearer {key}".encode()

    async def call(
        self, method: str, path: str, body: bytes | None = None, headers: Mapping[str, str] | None = None
    ) -> tuple[int, dict[str, str], bytes]:
        answer: dict[str, Any] = {"status": 500, "headers": {}}
        parts: list[bytes] = []

        async def send(message: MutableMapping[str, Any]) -> None:
            if message["type"] == "http.response.start":
                answer["status"] = message["status"]
                answer["headers"] = {name.decode(): value.decode() for name, value in message["headers"]}
            elif message["type"] == "http.response.body":
                parts.append(message.get("body", b""))

        await self._app(self._scope(method, path, headers), _given(body), send)
        return answer["status"], answer["headers"], b"".join(parts)

    async def stream(self, path: str, headers: Mapping[str, str] | None = None) -> AsyncIterator[bytes]:
        """An answer that does not end, in the pieces that it comes in. The node waits for who takes them."""
        status, found = 500, dict[str, str]()
        pieces: asyncio.Queue[bytes | None] = asyncio.Queue(PIECES_AHEAD)

        async def send(message: MutableMapping[str, Any]) -> None:
            nonlocal status, found
            if message["type"] == "http.response.start":
                status = message["status"]
                found = {name.decode(): value.decode() for name, value in message["headers"]}
            elif message.get("body"):
                await pieces.put(message["body"])

        async def run() -> None:
            await self._app(self._scope("GET", path, headers), _given(None), send)
            await pieces.put(None)

        running = asyncio.create_task(run())
        try:
            while (piece := await pieces.get()) is not None:
                if status != 200:
                    raise refusal(status, found, piece)
                yield piece
        finally:
            running.cancel()
            await asyncio.wait([running])

    def _scope(self, method: str, path: str, headers: Mapping[str, str] | None) -> dict[str, Any]:
        path, _, query = path.partition("?")
        sent = {name.lower().encode(): value.encode() for name, value in (headers or {}).items()}
        sent[b"authorization"] = self._authorization
        return {
            "type": "http",
            "asgi": {"version": "3.0"},
            "http_version": "1.1",
            "method": method,
            "scheme": "http",
            "path": unquote(path),
            "raw_path": path.encode(),
            "query_string": query.encode(),
            "headers": list(sent.items()),
            "client": None,
            "server": None,
        }


def _given(body: bytes | None) -> Callable[[], Awaitable[MutableMapping[str, Any]]]:
    """A request that is all there, from a caller that does not hang up by a word."""
    given = False

    async def receive() -> MutableMapping[str, Any]:
        nonlocal given
        if given:
            await asyncio.Event().wait()
        given = True
        return {"type": "http.request", "body": body or b"", "more_body": False}

    return receive


class EmbeddedNode:
    """Start, use `transport`, stop."""

    def __init__(self, store: Store, handlers: Mapping[str, Handler], *, concurrency: int = 20) -> None:
        self._store = store
        self._handlers = handlers
        self._concurrency = concurrency
        self._key = secrets.token_hex(32)
        self.transport: InProcess
        self._node: Node
        self._worker: Worker
        self._leaving: list[Worker] = []

    async def start(self) -> None:
        settings = Settings(
            encryption_keys=os.environ.get(f"{PREFIX}ENCRYPTION_KEYS", ""),
            otlp_endpoint=os.environ.get(f"{PREFIX}OTLP_ENDPOINT", ""),
        )
        start_traces(settings, service="foliot")
        self._node = Node(self._store, settings, name="embedded")
        await self._node.start()
        self.transport = InProcess(create_app(self._node.services, admin_key=self._key), self._key)
        self._worker = await self._start_worker()

    async def offer(self) -> None:
        """The handlers have grown. A worker offers what it had when it came, so another takes its place; the old one
        ends what it has and leaves."""
        self._leaving = [worker for worker in self._leaving if worker.running]
        self._leaving.append(self._worker)
        self._worker = await self._start_worker()
        self._leaving[-1].drain(None)

    async def stop(self) -> None:
        await asyncio.gather(self._worker.stop(), *map(_see_off, self._leaving))
        await self._node.stop()
        stop_traces()  # not on a thread: while a program ends none can be started

    async def _start_worker(self) -> Worker:
        worker = Worker(
            "",
            self._key,
            dict(self._handlers),
            name=f"embedded@{socket.gethostname()}",
            concurrency=self._concurrency,
            transport=self.transport,
        )
        await worker.start()
        return worker


async def _see_off(worker: Worker) -> None:
    """It drains without haste: let it, as long as one that is stopped may take."""
    await asyncio.wait([asyncio.ensure_future(worker.wait())], timeout=worker.grace)
    await worker.stop()
