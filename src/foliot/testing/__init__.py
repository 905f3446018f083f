"""For tests of apps: a whole app against a clock that jumps.

    with virtual(app, start=datetime(2027, 1, 1, tzinfo=UTC)) as time:
        time.advance(days=90)
        assert len(time.runs("pay-out")) == 3

Everything is real but the clock: the services of a node over a store in memory, the rules of schedules, retries and
deadlines, the app's own functions. There are no duties in the background and no waiting: `advance` goes from one moment
at which something is due to the next and does what a node and a worker would do then, one thing after another, so that
the same test does the same every time. Functions run on the thread that advances the time, coroutines on an event loop.

What is not here: several workers, lost leases, processes of their own (`isolation="process"` runs like a thread), and
the time inside functions, which is that of the machine unless they take it from their `JobContext`.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from foliot.testing.virtual_time import AsyncVirtualTime, VirtualTime, virtual

__all__ = ["AsyncVirtualTime", "VirtualTime", "virtual"]


def __getattr__(name: str) -> Any:
    """Loaded when first used: pytest imports this room for every run, whether its fixture is used or not."""
    if name in __all__:
        from foliot.testing import virtual_time

        return getattr(virtual_time, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
