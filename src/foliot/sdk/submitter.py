"""Submits that are under way at the same time share a request.

No timer: what arrives while a request is under way forms the next one, so that a lone submit waits for nobody and a
hundred at once cost one request. Of an event loop's submits one request is under way at a time, in order.
A shared request that is refused is halved and sent again until the bad job stands alone: it fails, the others do not.
"""

import asyncio
import itertools
import weakref
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from typing import TypeVar

import msgspec

from foliot.sdk.failures import BadInput, Conflict
from foliot.telemetry import tracing
from foliot.wire import BATCH_LIMIT, BODY_LIMIT, BatchSubmitted, Submitted

T = TypeVar("T")
Post = Callable[[str, bytes, str | None], Awaitable[bytes]]  # with the trace that the jobs belong to

SHARED_LIMIT = 1000  # beyond it a request is no faster and dearer to repeat
_ONE = msgspec.json.Decoder(Submitted)
_MANY = msgspec.json.Decoder(BatchSubmitted)


class Submitter:
    """`post` sends a body to a path and repeats it safely; what it raises is final. Usable from several event loops:
    each has its own line, so that a waiting caller is only ever woken by its own loop."""

    def __init__(self, post: Post) -> None:
        self._post = post
        self._lines: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, _Line] = weakref.WeakKeyDictionary()

    async def submit(self, body: bytes) -> Submitted:
        loop = asyncio.get_running_loop()
        line = self._lines.get(loop)
        if line is None:
            line = self._lines[loop] = _Line(self._post)
        answer: asyncio.Future[Submitted] = loop.create_future()
        line.join(body, answer)
        return await answer

    async def submit_many(self, bodies: Iterable[bytes]) -> list[Submitted]:
        answers: list[Submitted] = []
        for chunk in chunks(bodies, BATCH_LIMIT, len):
            answers += await self._post_many(chunk)
        return answers

    async def submit_whole(self, bodies: Sequence[bytes]) -> list[Submitted]:
        """In one request; ValueError, and nothing is sent, where they do not fit into one."""
        if len(bodies) > BATCH_LIMIT:
            raise ValueError(f"{len(bodies):,} jobs are more than one request can hold; at most {BATCH_LIMIT:,} are")
        size = sum(map(len, bodies)) + len(bodies)
        if size > BODY_LIMIT - len(_batch(())):
            raise ValueError(f"the jobs have {size:,} bytes; one request can hold {BODY_LIMIT:,}")
        return await self._post_many(bodies) if bodies else []

    async def _post_many(self, bodies: Sequence[bytes]) -> list[Submitted]:
        return _each(_MANY.decode(await self._post("/jobs/batch", _batch(bodies), tracing.current())))


Entry = tuple[bytes, "asyncio.Future[Submitted]", str | None]


class _Line:
    """Those who wait on one event loop, and the task that serves them while there are any."""

    def __init__(self, post: Post) -> None:
        self._post = post
        self._waiting: list[Entry] = []
        self._server: asyncio.Task[None] | None = None

    def join(self, body: bytes, answer: "asyncio.Future[Submitted]") -> None:
        self._waiting.append((body, answer, tracing.current()))
        if self._server is None or self._server.done():
            self._server = asyncio.create_task(self._serve(), name="foliot submits")

    async def _serve(self) -> None:
        entries: list[Entry] = []
        try:
            while self._waiting:
                entries, self._waiting = self._waiting, []
                wanted = [entry for entry in entries if not entry[1].done()]
                for _, own in itertools.groupby(wanted, lambda entry: entry[2]):  # a request belongs to one trace
                    for share in chunks(own, SHARED_LIMIT, lambda entry: len(entry[0])):
                        await self._send(share)
        finally:
            for _, answer, _ in entries + self._waiting:  # only where the loop is being shut down
                answer.cancel()
            self._waiting = []

    async def _send(self, entries: Sequence[Entry]) -> None:
        try:
            answers = await self._submitted([body for body, _, _ in entries], entries[0][2])
        except (BadInput, Conflict) as error:
            middle = len(entries) // 2
            if middle == 0:
                _fail(entries, error)
                return
            await self._send(entries[:middle])
            await self._send(entries[middle:])
        except Exception as error:
            _fail(entries, error)
        else:
            for (_, waiting, _), answer in zip(entries, answers, strict=True):
                if not waiting.done():
                    waiting.set_result(answer)

    async def _submitted(self, bodies: Sequence[bytes], trace: str | None) -> Sequence[Submitted]:
        if len(bodies) == 1:
            return [_ONE.decode(await self._post("/jobs", bodies[0], trace))]
        return _each(_MANY.decode(await self._post("/jobs/batch", _batch(bodies), trace)))


def chunks(items: Iterable[T], limit: int, size: Callable[[T], int]) -> Iterator[list[T]]:
    """The items in order, in lists that fit a request. One too large by itself goes alone, to be refused by name."""
    chunk: list[T] = []
    room = BODY_LIMIT - len(_batch(()))
    for item in items:
        needed = size(item) + 1
        if chunk and (len(chunk) == limit or needed > room):
            yield chunk
            chunk, room = [], BODY_LIMIT - len(_batch(()))
        chunk.append(item)
        room -= needed
    if chunk:
        yield chunk


def _each(answer: BatchSubmitted) -> list[Submitted]:
    earlier = frozenset(answer.duplicates)
    return [Submitted(job_id=job_id, duplicate=place in earlier) for place, job_id in enumerate(answer.job_ids)]


def _batch(bodies: Sequence[bytes]) -> bytes:
    return b'{"jobs":[' + b",".join(bodies) + b"]}"


def _fail(entries: Sequence[Entry], error: Exception) -> None:
    for _, answer, _ in entries:
        if not answer.done():
            answer.set_exception(error)
