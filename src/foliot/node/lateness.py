"""Writes down how late jobs were, so that other nodes can tell it too."""

import asyncio

from foliot.node.running import Running
from foliot.service.lateness import Lateness

FLUSH_EVERY = 10.0


class LatenessKeeper(Running):
    def __init__(self, lateness: Lateness) -> None:
        super().__init__()
        self._lateness = lateness

    async def round(self) -> None:
        await asyncio.sleep(FLUSH_EVERY)
        await self._lateness.flush()
