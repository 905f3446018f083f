"""A node and a worker inside one process, with the same API but no socket: requests go straight to the ASGI
application."""

import asyncio
import os
import secrets
import socket
from collections.abc import Mapping, MutableMapping
from typing import Any
from urllib.parse import unquote

from foliot.api import create_app
from foliot.node.node import Node
from foliot.sdk.handler import Handler
from foliot.settings import PREFIX, Settings
from foliot.store.base import Store
from foliot.worker import Worker


class InProcess:
    """The transport of an embedded client and worker: one call in, one answer out."""

    def __init__(self, app: Any, key: str) -> None:
        self._app = app
        self._authorization = f"Bearer {key}".encode()

    async def call(
        self, method: str, path: str, body: bytes | None = None, headers: Mapping[str, str] | None = None
    ) -> tuple[int, dict[str, str], bytes]:
        path, _, query = path.partition("?")
        sent = {name.lower().encode(): value.encode() for name, value in (headers or {}).items()}
        sent[b"authorization"] = self._authorization
        scope = {
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
        answer: dict[str, Any] = {"status": 500, "headers": {}}
        parts: list[bytes] = []
        given = False

        async def receive() -> MutableMapping[str, Any]:
            nonlocal given
            if given:
                await asyncio.Event().wait()
            given = True
            return {"type": "http.request", "body": body or b"", "more_body": False}

        async def send(message: MutableMapping[str, Any]) -> None:
            if message["type"] == "http.response.start":
                answer["status"] = message["status"]
                answer["headers"] = {name.decode(): value.decode() for name, value in message["headers"]}
            elif message["type"] == "http.response.body":
                parts.append(message.get("body", b""))

        await self._app(scope, receive, send)
        return answer["status"], answer["headers"], b"".join(parts)


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
        settings = Settings(encryption_keys=os.environ.get(f"{PREFIX}ENCRYPTION_KEYS", ""))
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
