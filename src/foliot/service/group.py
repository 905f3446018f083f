"""Group commit without timers: what arrives while a commit is under way forms the next batch.

An idle system adds no wait, a busy one does hundreds of jobs in a transaction. A batch is bounded in rows. An item that
the store can not keep is found by splitting the batch, so that it harms no neighbour. While the store does not answer a
batch is repeated for `patience` seconds; `flush` must be safe to repeat.
"""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from typing import Generic, TypeVar

from foliot.domain.errors import StoreFull, Unavailable, Unstorable

Item = TypeVar("Item")
Answer = TypeVar("Answer")

PATIENCE = 5.0
FIRST_PAUSE, LONGEST_PAUSE = 0.02, 0.5


async def persist(call: Callable[[bool], Awaitable[Answer]], patience: float = PATIENCE) -> Answer:
    """`call(again)` until the store answers, for about `patience` seconds. `again` is true once an earlier call's fate
    is unknown; an answer after that settles it."""
    pause, waited, again = FIRST_PAUSE, 0.0, False
    while True:
        try:
            return await call(again)
        except StoreFull:
            raise
        except Unavailable as error:
            again = again or error.fate_unknown
            if waited >= patience:
                raise Unavailable(error.detail, fate_unknown=again) from error
        await asyncio.sleep(pause)
        waited += pause
        pause = min(2 * pause, LONGEST_PAUSE)


class Group(Generic[Item, Answer]):
    """Collects items and hands them to `flush` in batches; each `add` gets its own answer or error."""

    def __init__(
        self,
        flush: Callable[[Sequence[Item]], Awaitable[Sequence[Answer]]],
        *,
        size: Callable[[Item], int],
        most: int = 1000,
        pending: int = 100_000,
        width: int = 1,
    ) -> None:
        self._flush = flush
        self._size = size
        self._most = most
        self._room = pending
        self._width = width
        self._queue: deque[tuple[Item, asyncio.Future[Answer]]] = deque()
        self._busy = 0  # runs that still look at the queue; a task that is done with it may not have ended yet
        self._runs: set[asyncio.Task[None]] = set()

    async def add(self, item: Item) -> Answer:
        size = self._size(item)
        if self._room < size:
            raise Unavailable("too much is waiting to be written; try again shortly")
        self._room -= size
        future: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        self._queue.append((item, future))
        if self._busy < self._width:
            self._busy += 1
            task = asyncio.create_task(self._run())
            self._runs.add(task)
            task.add_done_callback(self._runs.discard)
        return await future

    async def drain(self) -> None:
        """Wait until nothing is under way."""
        while self._runs:
            await asyncio.wait(self._runs)

    async def _run(self) -> None:
        while self._queue:
            batch = [self._queue.popleft()]
            rows = self._size(batch[0][0])
            while self._queue and rows + (more := self._size(self._queue[0][0])) <= self._most:
                batch.append(self._queue.popleft())
                rows += more
            try:
                await self._write(batch)
            finally:
                self._room += rows
        self._busy -= 1

    async def _write(self, batch: Sequence[tuple[Item, asyncio.Future[Answer]]]) -> None:
        try:
            items = [item for item, _ in batch]
            answers = await persist(lambda _again: self._flush(items))
        except Unstorable as error:
            if len(batch) > 1:
                middle = len(batch) // 2
                await self._write(batch[:middle])
                await self._write(batch[middle:])
            else:
                _fail(batch, error)
        except Exception as error:
            _fail(batch, error)
        else:
            for (_, future), answer in zip(batch, answers, strict=True):
                if not future.done():
                    future.set_result(answer)


def _fail(batch: Sequence[tuple[Item, asyncio.Future[Answer]]], error: Exception) -> None:
    for _, future in batch:
        if not future.done():
            future.set_exception(error)
