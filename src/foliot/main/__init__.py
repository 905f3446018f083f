"""The composition root: the only place that knows which parts make a whole. Everything else gets what it needs handed
in.

`serve` runs a node with its HTTP API, `open_node` one without, `open_embedded` node and worker inside a program of a
user's. What is not needed is not imported: each function imports its own parts.
"""

import asyncio
import os
import socket
from collections.abc import Mapping
from typing import TYPE_CHECKING

from foliot.settings import Settings

if TYPE_CHECKING:
    from foliot.clock import Clock
    from foliot.main.embedded import EmbeddedNode
    from foliot.node.node import Node
    from foliot.sdk.handler import Handler


async def open_node(settings: Settings) -> "Node":
    """A running node, without HTTP. Stop it with `await node.stop()`."""
    from foliot.main.stores import make_store
    from foliot.node.node import Node
    from foliot.oidc.relying_party import RelyingParty

    def identity(clock: "Clock") -> RelyingParty | None:
        return RelyingParty.of(settings, clock)

    name = f"{socket.gethostname()}:{os.getpid()}"
    node = Node(make_store(settings.store_url, recording=settings.events), settings, name=name, identity=identity)
    await node.start()
    return node


def open_embedded(url: str, handlers: "Mapping[str, Handler]") -> "EmbeddedNode":
    """A node and a worker inside this process; `await .start()` starts them."""
    from foliot.main.embedded import EmbeddedNode
    from foliot.main.stores import make_store

    return EmbeddedNode(make_store(url), handlers)


def migrate(settings: Settings) -> list[str]:
    """Bring the database's schema up to date; the names of the migrations that were applied."""
    from foliot.main.stores import migrate_store

    return asyncio.run(migrate_store(settings.store_url))


def serve(settings: Settings) -> int:
    """Run a node with its HTTP API until a signal ends it; the process's exit code."""
    from foliot.main.server import run_server

    return run_server(settings)
