"""The only place that asks what time it is. Microseconds since 1970."""

import time
from typing import Protocol

_BOOT = getattr(time, "CLOCK_BOOTTIME", None)


def monotonic() -> int:
    """Microseconds of a clock that is never set and counts while the machine sleeps (where the system has one)."""
    return (time.clock_gettime_ns(_BOOT) if _BOOT is not None else time.monotonic_ns()) // 1000


def wall() -> int:
    """The machine's own idea of the time."""
    return time.time_ns() // 1000


class Clock(Protocol):
    def now(self) -> int: ...


class WallClock:
    """The machine's time: what a store on the same machine goes by."""

    def now(self) -> int:
        return wall()


class OffsetClock:
    """Another clock's time: its reading at one moment, and our monotonic clock since. Ours may be set at will."""

    def __init__(self) -> None:
        self._offset = wall() - monotonic()

    def set(self, reading: int, *, asked: int, answered: int) -> None:
        """The other clock read `reading` at some moment between `asked` and `answered` (both `monotonic`)."""
        self._offset = reading - (asked + answered) // 2

    def now(self) -> int:
        return monotonic() + self._offset
