"""Deferred calls under a virtual clock: in line until somebody advances the time."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

from foliot.clock import Clock
from foliot.domain.duration import Micros
from foliot.sdk.deferred import Deferred, DeferredLine


class DeferredByHand:
    """Stands in for an app's deferred calls."""

    def __init__(self, clock: Clock) -> None:
        self._line = DeferredLine(clock.now)

    def __len__(self) -> int:
        return len(self._line)

    def add(self, delay: float | timedelta, function: Callable[..., Any], *args: Any, **kwargs: Any) -> Deferred[Any]:
        return self._line.add(delay, function, *args, **kwargs)

    def next_moment(self) -> Micros | None:
        with self._line.lock:
            return self._line.next_moment()

    def take_due(self) -> Deferred[Any] | None:
        """The first that is due, begun."""
        while True:
            with self._line.lock:
                deferred = self._line.pop_due()
            if deferred is None or deferred.begin():
                return deferred

    def close(self, *, wait: bool = False) -> int:
        """Drops those whose time has not come; with `wait` they are refused, since only a test can let it come."""
        if wait and len(self._line):
            raise RuntimeError("under a virtual clock deferred calls can not be waited for: advance the time instead")
        with self._line.lock:
            dropped = self._line.pop_all()
        for deferred in dropped:
            deferred.drop()
        return len(dropped)
