"""A real node with its HTTP API on a free port, on a thread of its own, and what came to it."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import uvicorn

from foliot.api import create_app
from foliot.main import open_node
from foliot.node.node import Node
from foliot.sdk.loop_thread import LoopThread
from foliot.settings import Settings
from tests.postgres_server import free_port

KEY = "an-admin-key-for-tests"


class Server(uvicorn.Server):
    """uvicorn, without signals, telling when it listens."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.listening = asyncio.Event()

    async def startup(self, sockets: Any = None) -> None:
        await super().startup(sockets)
        self.listening.set()

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


class ServedNode:
    """`requests` are those that arrived, as "POST /api/v1/jobs"; `keys` the idempotency keys that came with them."""

    def __init__(self, folder: Path, **settings: Any) -> None:
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.requests: list[str] = []
        self.keys: list[str] = []
        self._settings = Settings(data_dir=str(folder), admin_key=KEY, **settings)
        self._thread = LoopThread()
        self._app: Any = None
        self._workers: list[Any] = []

    def start(self) -> None:
        self._thread.run(self._start)

    def stop(self) -> None:
        self._thread.run(self._stop)
        self._thread.close()

    def run_worker(self, handlers: Any, **more: Any) -> None:
        """A worker beside the node, over HTTP, until the node is stopped."""
        self._thread.run(lambda: self._run_worker(handlers, more))

    def count(self, request: str) -> int:
        return self.requests.count(request)

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        self.requests.append(f"{scope['method']} {scope['path']}")
        self.keys += [value.decode() for name, value in scope["headers"] if name == b"idempotency-key"]
        await self._app(scope, receive, send)

    async def _start(self) -> None:
        self._node: Node = await open_node(self._settings)
        self._app = create_app(self._node.services, admin_key=KEY)
        config = uvicorn.Config(self, port=self.port, loop="none", lifespan="off", log_config=None, access_log=False)
        self._server = Server(config)
        self._serving = asyncio.create_task(self._server.serve())
        await self._server.listening.wait()

    async def _run_worker(self, handlers: Any, more: dict[str, Any]) -> None:
        from foliot.worker import Worker

        worker = Worker(self.url, KEY, handlers, name="beside", **more)
        await worker.start()
        self._workers.append(worker)

    async def _stop(self) -> None:
        for worker in self._workers:
            await worker.stop()
        self._node.services.close()
        self._server.should_exit = True
        await self._serving
        await self._node.stop()
