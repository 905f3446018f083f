"""Making few rows of the many that writes add to the tallies: a step now and then, along with a write."""

from typing import Final

from foliot.clock import monotonic
from foliot.domain.duration import Micros
from foliot.domain.errors import FoliotError
from foliot.store.postgres.connections import Connections
from foliot.store.postgres.writer import SQL

WRITES: Final = 300  # of this process, between two steps
ROWS: Final = 50_000  # that are folded at once
_SHARE: Final = 50  # a step may take one in so many parts of the time, however many dead rows it steps over


class Folding:
    def __init__(self, connections: Connections) -> None:
        self._connections = connections
        self._writes = 0
        self._rest_until: Micros = 0

    async def step(self) -> None:
        """Before a write. What goes wrong here is the next one's: nothing is lost by it."""
        self._writes += 1
        if self._writes < WRITES or monotonic() < self._rest_until:
            return
        self._writes = 0
        try:
            await self.fold()
        except FoliotError:
            return

    async def fold(self) -> None:
        began = monotonic()
        found, made = ROWS, 0
        while found >= ROWS and made <= found // 2:  # as long as it is worth it: there may be as many lanes
            ((found, made),) = await self._connections.write(SQL["fold_tallies"], ROWS)
        now = monotonic()
        self._rest_until = now + _SHARE * (now - began)
