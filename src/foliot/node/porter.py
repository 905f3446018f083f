"""Keeps the lists of who may come in: when keys were last used, and what is over is taken away."""

import asyncio

from foliot.clock import Clock
from foliot.domain.duration import SECOND
from foliot.node.running import Running
from foliot.service.access import Access
from foliot.store.base import Store

NOTE_EVERY = 30.0
METER_KEPT = 3600 * SECOND


class Porter(Running):
    def __init__(self, store: Store, clock: Clock, access: Access) -> None:
        super().__init__()
        self._store = store
        self._clock = clock
        self._access = access

    async def round(self) -> None:
        await self._access.note_uses()
        now = self._clock.now()
        while await self._store.forget_access(now - METER_KEPT, now):
            pass
        await asyncio.sleep(NOTE_EVERY)
