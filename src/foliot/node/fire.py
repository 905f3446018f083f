"""Fires schedules at their instant, and lets due times that wait have their turn."""

import asyncio
from collections.abc import Collection

from foliot.clock import Clock
from foliot.domain.duration import SECOND, Micros
from foliot.domain.ids import ScheduleKey
from foliot.domain.schedule import Standing
from foliot.node.look_ahead import LookAhead
from foliot.node.peers import Peers
from foliot.node.running import Alarm, Running
from foliot.service.firing import Firing
from foliot.service.wake import Wake
from foliot.store.base import Store

FORGOTTEN_AFTER = 5 * SECOND


class Fire(LookAhead[ScheduleKey]):
    """Schedules are read ahead along with their moment, so that at the instant itself there is only one write."""

    def __init__(self, store: Store, clock: Clock, wake: Wake, peers: Peers, firing: Firing) -> None:
        super().__init__(clock, peers)
        self._store = store
        self._firing = firing
        self._read: dict[ScheduleKey, Standing] = {}
        wake.on_fire.append(self.hint)

    async def peek(self, until: Micros, limit: int) -> list[tuple[Micros, ScheduleKey]]:
        standings = await self._store.peek_schedules(until, limit)
        self._read = {standing.schedule.id: standing for standing in standings}
        return [(standing.schedule.next_due or 0, standing.schedule.id) for standing in standings]

    async def move(self, keys: list[ScheduleKey]) -> Collection[ScheduleKey]:
        """Read anew are another node's share, which was most likely fired there, and what is due earlier than was
        read."""
        now = self._clock.now()
        known = [self._read.pop(key) for key in keys if key in self._read and self._peers.is_home(key)]
        standings = [standing for standing in known if _is_due(standing, now)]
        unread = set(keys).difference(standing.schedule.id for standing in standings)
        if unread:
            for standing in (await self._store.standings(sorted(unread))).values():
                if _is_due(standing, now):
                    standings.append(standing)
                elif standing.schedule.next_due is not None:
                    self.hint(standing.schedule.next_due, standing.schedule.id)
        return await self._firing.fire(standings)


def _is_due(standing: Standing, now: Micros) -> bool:
    due = standing.schedule.next_due
    return due is not None and due <= now


class Settle(Running):
    """Starts due times that waited for room, as soon as a run ends here; every few seconds those of which no hint came,
    since the node that was to start them may be gone."""

    def __init__(self, clock: Clock, wake: Wake, firing: Firing) -> None:
        super().__init__()
        self._clock = clock
        self._firing = firing
        self._freed: set[ScheduleKey] = set()
        self._look_at: Micros = 0
        self._alarm = Alarm()
        wake.on_freed.append(self._hint)

    def _hint(self, keys: Collection[ScheduleKey]) -> None:
        self._freed.update(keys)
        self._alarm.ring()

    async def round(self) -> None:
        if self._freed:
            freed, self._freed = self._freed, set()
            await self._firing.settle(freed)
        if self._clock.now() >= self._look_at:
            await self._firing.settle_forgotten()
            self._look_at = self._clock.now() + FORGOTTEN_AFTER
        if not self._freed:
            await self._alarm.wait((self._look_at - self._clock.now()) / SECOND)
        else:
            await asyncio.sleep(0)
