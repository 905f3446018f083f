"""A real store that a test can meddle with: what happens between two of its calls, or goes wrong in one."""

import asyncio
from collections import defaultdict, deque
from collections.abc import Awaitable, Callable
from typing import Any

from foliot.clock import Clock
from foliot.store.sqlite import SqliteStore

Step = Callable[[], Awaitable[object]]


class Gate:
    """Holds whoever comes until it is opened."""

    def __init__(self) -> None:
        self.reached = asyncio.Event()
        self.opened = asyncio.Event()

    async def __call__(self) -> None:
        self.reached.set()
        await self.opened.wait()


class Meddling(SqliteStore):
    """The real store, in which something else happens before or after calls that a test names: another change, an
    error, a wait. Each step is for one call; what a step itself asks of the store goes straight through."""

    def __init__(self, path: str, *, clock: Clock | None = None) -> None:
        super().__init__(path, clock=clock)
        self._before: dict[str, deque[Step]] = defaultdict(deque)
        self._after: dict[str, deque[Step]] = defaultdict(deque)
        self._meddles = False
        self.calls: dict[str, int] = defaultdict(int)

    def before(self, method: str, *steps: Step) -> None:
        self._before[method] += steps

    def after(self, method: str, *steps: Step) -> None:
        self._after[method] += steps

    async def _step(self, steps: deque[Step]) -> None:
        if steps and not self._meddles:
            step = steps.popleft()
            self._meddles = not isinstance(step, Gate)  # who waits at a gate leaves others alone
            try:
                await step()
            finally:
                self._meddles = False


def _meddled(name: str) -> Any:
    real = getattr(SqliteStore, name)

    async def method(self: Meddling, *args: Any, **named: Any) -> Any:
        self.calls[name] += 1
        await self._step(self._before[name])
        answer = await real(self, *args, **named)
        await self._step(self._after[name])
        return answer

    return method


for _name in (
    "acquire_node",
    "add_lateness",
    "admit",
    "append_logs",
    "beat",
    "beat_node",
    "claim",
    "crowded_limits",
    "edges",
    "forget",
    "forget_workers",
    "give_tokens",
    "heads",
    "insert_jobs",
    "leases_of",
    "load",
    "logs",
    "missed",
    "next_deadline",
    "notify",
    "occupied_lanes",
    "open_incidents",
    "peek_due",
    "peek_schedules",
    "put_queue",
    "read_feed",
    "refund",
    "release",
    "release_node",
    "rooms",
    "remove_schedule",
    "save",
    "save_schedules",
    "schedule",
    "set_limits",
    "standings",
    "take_notices",
    "upstream",
):
    setattr(Meddling, _name, _meddled(_name))


def failing(error: Exception) -> Step:
    """A step that fails."""

    async def step() -> None:
        raise error

    return step
