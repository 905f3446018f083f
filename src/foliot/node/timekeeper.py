"""Moves waiting jobs to ready at their instant."""

from collections.abc import Collection

from foliot.clock import Clock
from foliot.domain.duration import Micros
from foliot.domain.ids import JobKey
from foliot.node.look_ahead import LookAhead
from foliot.node.peers import Peers
from foliot.service.wake import Wake
from foliot.store.base import Store


class Timekeeper(LookAhead[JobKey]):
    def __init__(self, store: Store, clock: Clock, wake: Wake, peers: Peers) -> None:
        super().__init__(clock, peers)
        self._store = store
        self._wake = wake
        wake.on_due.append(self.hint)

    async def peek(self, until: Micros, limit: int) -> list[tuple[Micros, JobKey]]:
        return [(due.time, due.id) for due in await self._store.peek_due(until, limit)]

    async def move(self, keys: list[JobKey]) -> Collection[JobKey]:
        admitted = await self._store.admit(keys)
        if admitted.ready or admitted.for_key:
            self._wake.change()
        if admitted.ready:
            self._wake.ready({lane_id for _, lane_id in admitted.ready})
        if admitted.for_key:
            self._wake.tokens({limit_id for _, limit_id in admitted.for_key})
        return set(keys).difference(key for key, _ in (*admitted.ready, *admitted.for_key))
