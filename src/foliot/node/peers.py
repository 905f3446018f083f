"""Which nodes live, and whose share something is."""

from collections.abc import Sequence


class Peers:
    def __init__(self, own: int) -> None:
        self.own = own
        self._living = [own]

    def update(self, living: Sequence[int]) -> None:
        self._living = sorted({self.own, *living})

    def meet(self, number: int) -> None:
        """A node that speaks lives, whatever was read last."""
        if number not in self._living:
            self.update([*self._living, number])

    @property
    def alone(self) -> bool:
        return len(self._living) == 1

    def is_home(self, key: int) -> bool:
        """Whether this node is the one that moves it (a job, a schedule) at its instant."""
        return self._living[_spread(key) % len(self._living)] == self.own


def _spread(key: int) -> int:
    """Ids end in a sequence that is mostly small: mix them, so that every node gets its share."""
    return (key * 0x9E3779B97F4A7C15 >> 32) & 0xFFFFFFFF
