"""Carries the ends of jobs on: to those that depend on them, and to those that wait for a token of their key. At once
by a hint, and every few seconds what no hint came for, since the node that was to do it may be gone."""

from collections.abc import Collection

from foliot.clock import Clock
from foliot.domain.duration import SECOND, Micros
from foliot.node.running import Alarm, Running
from foliot.service.announce import announce_released
from foliot.service.limits import Limits
from foliot.service.wake import Wake
from foliot.store.base import Store

FORGOTTEN_AFTER = 5 * SECOND
CHUNK = 500  # edges in one transaction, so that a fan-out of thousands holds up nobody


class Release(Running):
    """Ends of parents, to their children."""

    def __init__(self, store: Store, clock: Clock, wake: Wake) -> None:
        super().__init__()
        self._store = store
        self._clock = clock
        self._wake = wake
        self._alarm = Alarm()
        wake.on_release.append(self._alarm.ring)

    async def round(self) -> None:
        while True:
            released = await self._store.release(CHUNK, self._clock.now())
            announce_released(self._wake, released)
            if not released.more:
                break
        await self._alarm.wait(FORGOTTEN_AFTER / SECOND)


class Tokens(Running):
    """Tokens of concurrency keys, to those that wait for them."""

    def __init__(self, clock: Clock, wake: Wake, limits: Limits) -> None:
        super().__init__()
        self._clock = clock
        self._limits = limits
        self._wanted: set[int] = set()
        self._look_at: Micros = 0
        self._alarm = Alarm()
        wake.on_tokens.append(self._hint)

    def _hint(self, limit_ids: Collection[int]) -> None:
        self._wanted.update(limit_ids)
        self._alarm.ring()

    async def round(self) -> None:
        if self._wanted:
            wanted, self._wanted = self._wanted, set()
            await self._limits.give_tokens(wanted)
        if self._clock.now() >= self._look_at:
            await self._limits.give_forgotten()
            self._look_at = self._clock.now() + FORGOTTEN_AFTER
        if not self._wanted:
            await self._alarm.wait((self._look_at - self._clock.now()) / SECOND)
