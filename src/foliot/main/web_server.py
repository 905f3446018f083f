"""uvicorn, with connections of our own, and with the signals left to us: the worker must drain before the API goes."""

import asyncio
import contextlib
import functools
import socket
import ssl
from collections.abc import Iterator
from typing import Any

import uvicorn

from foliot.main.http_connection import HttpConnection
from foliot.main.listener import Listener
from foliot.sdk.tls import Reloaded

KEEP_SECONDS = 75
SHUTDOWN_SECONDS = 10


class WebServer(uvicorn.Server):
    """Serves `app` on a bound socket until `should_exit` is set. `listening` is set when it takes connections."""

    def __init__(
        self,
        app: Any,
        bound: socket.socket,
        *,
        tls: Reloaded[ssl.SSLContext] | None = None,
        connections: int,
        seconds: float,
    ) -> None:
        super().__init__(
            uvicorn.Config(
                app,
                loop="none",
                http=HttpConnection,
                ws="none",
                lifespan="off",
                log_config=None,
                log_level="warning",
                access_log=False,
                server_header=False,
                proxy_headers=False,
                timeout_keep_alive=KEEP_SECONDS,
                timeout_graceful_shutdown=SHUTDOWN_SECONDS,
            )
        )
        self.listening = asyncio.Event()
        self._listener = Listener(bound, tls=tls, limit=connections, seconds=seconds)

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        self._listener.start(
            functools.partial(HttpConnection, self.config, self.server_state, self.lifespan.state),
        )
        self.servers = [self._listener]  # type: ignore[list-item]
        self.started = True
        self.listening.set()

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield
