"""A clock that stands still until it is set."""

from foliot.domain.duration import Micros
from foliot.domain.ids import EPOCH_MS
from foliot.wire import to_time

END: Micros = (EPOCH_MS + (1 << 40)) * 1000  # ids have no room for a later time


class VirtualClock:
    def __init__(self, time: Micros) -> None:
        check_reach(time)
        self._time = time

    def now(self) -> Micros:
        return self._time

    def set(self, time: Micros) -> None:
        self._time = max(self._time, time)


def check_reach(time: Micros) -> None:
    if time >= END:
        raise ValueError(f"a virtual clock goes up to {to_time(END):%Y-%m-%d}; {to_time(time):%Y-%m-%d} is beyond that")
