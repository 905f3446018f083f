"""A node and a worker inside this process, over SQLite. The composition root makes them; here they are only used."""

import importlib
import os
from collections.abc import AsyncIterator, Mapping
from typing import Protocol, cast

from foliot.sdk.handler import Handler
from foliot.sdk.transport import Answer, Headers, StreamingTransport

SCHEME = "sqlite:"


class EmbeddedNode(Protocol):
    """What `foliot.main.open_embedded` gives."""

    @property
    def transport(self) -> StreamingTransport: ...

    async def start(self) -> None: ...

    async def offer(self) -> None:
        """The handlers have grown: take jobs for the new ones, too."""
        ...

    async def stop(self) -> None: ...


class EmbeddedTransport:
    """Calls the node's API without a socket. Closing it stops the node and its worker."""

    def __init__(self, node: EmbeddedNode, handlers: Mapping[str, Handler]) -> None:
        self._node = node
        self._handlers = handlers
        self._offered = len(handlers)

    @classmethod
    async def start(cls, url: str, handlers: Mapping[str, Handler], *, process: int) -> "EmbeddedTransport":
        """`process` made the app: a fork of it must not write to the same file."""
        if os.getpid() != process:
            raise RuntimeError(
                f"{url} is already in use by the process that this one was forked from; "
                "start a node with foliot serve and give its address, to use it from several processes"
            )
        node = cast(EmbeddedNode, importlib.import_module("foliot.main").open_embedded(url, handlers))
        await node.start()
        return cls(node, handlers)

    async def call(self, method: str, path: str, body: bytes | None, headers: Headers) -> Answer:
        if len(self._handlers) != self._offered:
            self._offered = len(self._handlers)
            await self._node.offer()
        return await self._node.transport.call(method, path, body, headers)

    def stream(self, path: str, headers: Headers) -> AsyncIterator[bytes]:
        return self._node.transport.stream(path, headers)

    async def close(self) -> None:
        await self._node.stop()
