"""Everything that runs looks alike: `start`, `started`, `stop`."""

import asyncio
import logging
from abc import ABC, abstractmethod
from contextlib import suppress

from foliot.domain.errors import FoliotError

log = logging.getLogger("foliot.node")

PAUSE_AFTER_ERROR = 1.0


class Running(ABC):
    """A loop in a task of its own. An error ends one round, not the loop: it is logged, and the next round follows
    after a pause."""

    def __init__(self) -> None:
        self.started = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    @abstractmethod
    async def round(self) -> None:
        """One step: wait for something to do, and do it. Safe to repeat, safe to be cut off at any await."""

    def start(self) -> None:
        self._task = asyncio.create_task(self._run(), name=type(self).__name__)

    async def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])
            self._task = None

    async def _run(self) -> None:
        self.started.set()
        while True:
            try:
                await self.round()
            except FoliotError as error:
                log.warning("%s: %s; trying again", type(self).__name__, error.detail)
                await asyncio.sleep(PAUSE_AFTER_ERROR)
            except Exception:
                log.exception("%s failed; trying again", type(self).__name__)
                await asyncio.sleep(PAUSE_AFTER_ERROR)


class Alarm:
    """Waits for the earliest of: a time that was set, a ring, a longest wait."""

    def __init__(self) -> None:
        self._bell = asyncio.Event()

    def ring(self) -> None:
        self._bell.set()

    async def wait(self, seconds: float) -> None:
        if seconds > 0:
            with suppress(TimeoutError):
                async with asyncio.timeout(seconds):
                    await self._bell.wait()
        else:
            await asyncio.sleep(0)
        self._bell.clear()
