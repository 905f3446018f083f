"""How much happened a second, over the last ten, and in which lanes since the start: counted once per batch."""

from collections import Counter
from collections.abc import Sequence

from foliot.clock import Clock
from foliot.domain.duration import SECOND

SPAN = 10


class Rate:
    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._seconds = [0] * (SPAN + 1)
        self._newest = 0
        self.lanes: Counter[int] = Counter()  # since the start

    def add_of(self, lane_ids: Sequence[int]) -> None:
        """One for each of these."""
        self.add(len(lane_ids))
        self.lanes.update(lane_ids)

    def add(self, count: int) -> None:
        self._seconds[self._advance() % (SPAN + 1)] += count

    def per_second(self) -> float:
        """Over the last ten whole seconds."""
        current = self._advance() % (SPAN + 1)
        return sum(count for slot, count in enumerate(self._seconds) if slot != current) / SPAN

    def _advance(self) -> int:
        second = self._clock.now() // SECOND
        for passed in range(max(self._newest + 1, second - SPAN), second + 1):
            self._seconds[passed % (SPAN + 1)] = 0
        self._newest = max(self._newest, second)
        return self._newest
