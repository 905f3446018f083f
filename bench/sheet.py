"""A file of times that several processes share: when each job was asked for, and when its handler started.

Memory, not messages: noting a time costs well under a microsecond, so that it does not disturb what is measured.
"""

import mmap
import time
from pathlib import Path

HEADER = 2  # how many handlers started; how many of those were not the first of their job
STARTS, REPEATS = 0, 1
WORD = 8


class Sheet:
    """Numbers are jobs; times are nanoseconds since 1970. One process writes `asked`, one writes `started`; of
    jobs that wait for others the worker writes both."""

    def __init__(self, path: str) -> None:
        with Path(path).open("r+b") as file:
            self._memory = mmap.mmap(file.fileno(), 0)
        self._words = memoryview(self._memory).cast("Q")
        self.capacity = (len(self._words) - HEADER) // 2

    @classmethod
    def create(cls, path: str, capacity: int) -> "Sheet":
        with Path(path).open("wb") as file:
            file.truncate((HEADER + 2 * capacity) * WORD)
        return cls(path)

    def note_asked(self, number: int, time_ns: int) -> None:
        self._words[HEADER + number] = time_ns

    def note_started(self, number: int) -> None:
        words, place = self._words, HEADER + self.capacity + number
        words[STARTS] += 1
        if words[place]:
            words[REPEATS] += 1
        else:
            words[place] = time.time_ns()

    @property
    def starts(self) -> int:
        return self._words[STARTS]

    @property
    def repeats(self) -> int:
        return self._words[REPEATS]

    def asked(self, first: int, count: int) -> list[int]:
        return self._words[HEADER + first : HEADER + first + count].tolist()

    def started(self, first: int, count: int) -> list[int]:
        """When these started; zero where they did not."""
        begin = HEADER + self.capacity + first
        return self._words[begin : begin + count].tolist()

    def delays(self, first: int, count: int) -> list[float]:
        """Milliseconds from asked to started of those that have started."""
        pairs = zip(self.asked(first, count), self.started(first, count), strict=True)
        return [(start - ask) / 1e6 for ask, start in pairs if start]
