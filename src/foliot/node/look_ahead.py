"""What has a moment and is to be moved at it. No scan: the next moments are in memory, the rest is asleep.

A node looks ahead `LOOK_AHEAD` and keeps those moments in a heap. Each has a home node (by its id, over the living
nodes), which moves it at its instant; the others leave it `COURTESY` longer, so that nodes do not all try the same, and
a node's death delays its share by that much only. The store checks its own clock, so that a wrong offset here can only
make something late.
"""

import asyncio
import heapq
from abc import abstractmethod
from collections.abc import Collection
from typing import Generic, TypeVar

from foliot.clock import Clock
from foliot.domain.duration import SECOND, Micros
from foliot.node.peers import Peers
from foliot.node.running import Alarm, Running

Key = TypeVar("Key", bound=int)

LOOK_AHEAD = 2 * SECOND
COURTESY = SECOND // 10
SOON = SECOND // 500  # by how much this clock may be ahead of the store's
LONGEST_SLEEP = 30 * SECOND  # a lost hint costs this at most for a far moment, see `_look`
LATER = SECOND
PEEK = 5000
FIRST_CHUNK, CHUNK = 25, 500  # of many that are due at once the first must not wait until hundreds are moved
HEAD_START = 0.003  # seconds in which the first of many are handed out before the rest is moved


class LookAhead(Running, Generic[Key]):
    """`peek` and `move` say what it is that has moments."""

    def __init__(self, clock: Clock, peers: Peers) -> None:
        super().__init__()
        self._clock = clock
        self._peers = peers
        self._heap: list[tuple[Micros, Key]] = []
        self._known: dict[Key, Micros] = {}  # the moment under which each is in the heap
        self._horizon: Micros = 0  # everything due before it is in the heap
        self._look_at: Micros = 0  # when to look ahead again
        self._alarm = Alarm()

    @abstractmethod
    async def peek(self, until: Micros, limit: int) -> list[tuple[Micros, Key]]:
        """The earliest moments up to `until`; where there is none up to then, the single earliest one of all."""

    @abstractmethod
    async def move(self, keys: list[Key]) -> Collection[Key]:
        """Move those whose moment has come; those that may still be due."""

    async def round(self) -> None:
        try:
            await self._move_due()  # first: what is known must not wait for a look at what is not
            if (now := self._clock.now()) >= self._look_at:
                await self._look(now)
        except Exception:
            self._look_at = 0  # what was under way is in the heap no more
            raise
        next_moment = min(self._look_at, self._heap[0][0] if self._heap else self._look_at)
        await self._alarm.wait((next_moment - self._clock.now()) / SECOND)

    def hint(self, time: Micros, key: Key | None, _tell: bool = False) -> None:
        """Something was given a moment, here (its key is known) or on another node."""
        if time < self._horizon:
            if key is None:
                self._look_at = 0
            else:
                self._remember(time, key)
        elif self._look_at > self._horizon and time - LOOK_AHEAD < self._look_at:  # else the next look is soon enough
            self._look_at = time - LOOK_AHEAD
        else:
            return
        self._alarm.ring()

    async def _look(self, now: Micros) -> None:
        until = now + LOOK_AHEAD
        self._horizon, self._look_at = until, now + LONGEST_SLEEP  # hints that come during the look count from here
        found = await self.peek(until, PEEK)
        for time, key in found:
            if time <= until:
                self._remember(time, key)
        if len(found) >= PEEK:
            self._horizon = next_look = found[-1][0]
        elif found:
            next_look = max(now, found[-1][0] - LOOK_AHEAD) + LOOK_AHEAD // 2
        else:
            next_look = now + LONGEST_SLEEP
        self._look_at = min(self._look_at, next_look)

    def _remember(self, time: Micros, key: Key) -> None:
        moment = time if self._peers.is_home(key) else time + COURTESY
        if moment < self._known.get(key, moment + 1):
            self._known[key] = moment
            heapq.heappush(self._heap, (moment, key))

    async def _move_due(self) -> None:
        """Move all whose moment has come, in chunks. What could not be moved and may still be due is looked for again;
        of another node's share with less haste, it was most likely moved there."""
        size = FIRST_CHUNK
        while keys := self._pop_due(size):
            left = await self.move(keys)
            if len(keys) == FIRST_CHUNK:
                await asyncio.sleep(HEAD_START)
            size = min(2 * size, CHUNK)
            if left:
                again = SOON if any(map(self._peers.is_home, left)) else LATER
                self._look_at = min(self._look_at, self._clock.now() + again)

    def _pop_due(self, most: int) -> list[Key]:
        now = self._clock.now()
        keys: list[Key] = []
        while self._heap and self._heap[0][0] <= now and len(keys) < most:
            moment, key = heapq.heappop(self._heap)
            if self._known.get(key) == moment:
                del self._known[key]
                keys.append(key)
        return keys
