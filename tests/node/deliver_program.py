"""A node that sends, as a process of its own that a test can kill: its arguments are a database and how long a delivery
is its own, in seconds."""

import asyncio
import sys

from foliot.domain.duration import SECOND
from foliot.main import open_node
from foliot.node import deliver
from foliot.settings import Settings


async def main(database: str, seconds: str) -> None:
    deliver.LEASE = round(float(seconds) * SECOND)
    await open_node(Settings(database=database, worker=False, http_allow="127.0.0.0/8"))
    await asyncio.Event().wait()


asyncio.run(main(*sys.argv[1:]))
