"""The process that hands jobs in. Reads a Plan from standard input, carries it out, prints an Outcome.

What can be prepared is prepared before the clock starts: on a small machine the load's own work is taken from the node.
"""

import asyncio
import contextlib
import gc
import random
import sys
import time
from collections.abc import Awaitable, Callable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Literal

import msgspec
import uvloop

from bench.connection import Connection, request
from bench.sheet import Sheet

PAYLOAD_BYTES = 200
BATCH = 1000
TICK_SECONDS = 0.01
FIRST_DUE_SECONDS = 1.5


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    mode: Literal["singly", "batches", "spaced", "steady", "future", "background", "sdk"]
    port: int
    key: str
    sheet: str
    count: int
    first: int = 0  # number of the first job
    width: int = 1  # connections, or tasks of the SDK
    rate: float = 0.0  # jobs a second, where the plan has a pace


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    seconds: float
    latencies: list[float] = []  # milliseconds, of each request


def payload(number: int) -> bytes:
    head = b'{"number":%d,"pad":"' % number
    return head + b"x" * (PAYLOAD_BYTES - len(head) - 2) + b'"}'


def job(number: int, due: datetime | None = None) -> bytes:
    when = f',"schedule_time":"{due.isoformat()}"'.encode() if due else b""
    return b'{"job_type":"noop","payload":' + payload(number) + when + b"}"


def batch(key: str, numbers: Sequence[int], due: Callable[[int], datetime] | None = None) -> bytes:
    jobs = b",".join(job(number, due(number) if due else None) for number in numbers)
    return request("/jobs/batch", key, b'{"jobs":[' + jobs + b"]}")


class Load:
    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._sheet = Sheet(plan.sheet)
        self._numbers = range(plan.first, plan.first + plan.count)
        self._connections: list[Connection] = []

    async def run(self) -> Outcome:
        self._connections = [await Connection.open(self._plan.port) for _ in range(self._plan.width)]
        modes: dict[str, Callable[[], Awaitable[Outcome]]] = {
            "singly": self._singly,
            "batches": self._batches,
            "spaced": self._spaced,
            "steady": self._steady,
            "future": self._future,
            "background": self._background,
            "sdk": self._sdk,
        }
        try:
            return await modes[self._plan.mode]()
        finally:
            for connection in self._connections:
                connection.close()

    async def _singly(self) -> Outcome:
        """Each connection sends its next job when the one before is answered."""
        return await self._send_all([request("/jobs", self._plan.key, job(number)) for number in self._numbers])

    async def _batches(self) -> Outcome:
        return await self._send_all([batch(self._plan.key, part) for part in self._parts(BATCH)])

    async def _background(self) -> Outcome:
        """Jobs that are not due while anybody looks."""
        far = datetime.now(UTC) + timedelta(days=30)
        parts = (
            batch(self._plan.key, part, lambda number: far + timedelta(seconds=number)) for part in self._parts(BATCH)
        )
        begin = time.perf_counter()
        for part in parts:
            await self._send(self._connections[0], part)
        return Outcome(seconds=time.perf_counter() - begin)

    async def _spaced(self) -> Outcome:
        """One after the other, with a pause in which the system comes to rest."""
        latencies = []
        begin = time.perf_counter()
        for number in self._numbers:
            await asyncio.sleep((0.5 + random.random()) / self._plan.rate)
            text = request("/jobs", self._plan.key, job(number))
            self._sheet.note_asked(number, time.time_ns())
            latencies.append(await self._send(self._connections[0], text))
        return Outcome(seconds=time.perf_counter() - begin, latencies=latencies)

    async def _steady(self) -> Outcome:
        """So many a second whatever the answers do. A job is asked for when its turn comes, not when it can leave."""
        size = max(1, round(self._plan.rate * TICK_SECONDS))
        texts = [batch(self._plan.key, part) for part in self._parts(size)]
        free: asyncio.Queue[Connection] = asyncio.Queue()
        for connection in self._connections:
            free.put_nowait(connection)
        loop = asyncio.get_running_loop()
        begin, begin_ns = loop.time() + 0.1, time.time_ns() + 100_000_000

        async def send(index: int) -> float:
            connection = await free.get()
            try:
                return await self._send(connection, texts[index])
            finally:
                free.put_nowait(connection)

        sending = []
        for index in range(len(texts)):
            turn = index * size / self._plan.rate
            await asyncio.sleep(begin + turn - loop.time())
            for number in self._numbers[index * size : (index + 1) * size]:
                self._sheet.note_asked(number, begin_ns + int(turn * 1e9))
            sending.append(asyncio.create_task(send(index)))
        latencies = await asyncio.gather(*sending)
        return Outcome(seconds=loop.time() - begin, latencies=latencies)

    async def _future(self) -> Outcome:
        """Jobs at times of their own, evenly spaced, handed in before the first is due."""
        begin = datetime.now(UTC) + timedelta(seconds=FIRST_DUE_SECONDS)

        def due(number: int) -> datetime:
            return begin + timedelta(seconds=(number - self._plan.first) / self._plan.rate)

        for number in self._numbers:
            self._sheet.note_asked(number, round(due(number).timestamp() * 1e6) * 1000)
        return await self._send_all([batch(self._plan.key, part, due) for part in self._parts(BATCH)])

    async def _sdk(self) -> Outcome:
        """Tasks that submit one job after the other through one client."""
        from foliot import AsyncClient
        from foliot.wire import SubmitBody

        bodies = iter([SubmitBody(job_type="noop", payload=msgspec.Raw(payload(number))) for number in self._numbers])
        async with AsyncClient(f"http://127.0.0.1:{self._plan.port}", self._plan.key) as client:

            async def task() -> None:
                for body in bodies:
                    await client.submit(body)

            begin = time.perf_counter()
            await asyncio.gather(*(task() for _ in range(self._plan.width)))
            return Outcome(seconds=time.perf_counter() - begin)

    async def _send_all(self, texts: Sequence[bytes]) -> Outcome:
        waiting = iter(texts)

        async def send(connection: Connection) -> list[float]:
            return [await self._send(connection, text) for text in waiting]

        begin = time.perf_counter()
        latencies = await asyncio.gather(*map(send, self._connections))
        return Outcome(seconds=time.perf_counter() - begin, latencies=[each for some in latencies for each in some])

    async def _send(self, connection: Connection, text: bytes) -> float:
        """Milliseconds to the answer."""
        begin = time.perf_counter()
        status, answer = await connection.call(text)
        if status != 201:
            raise SystemExit(f"the node answered {status}: {answer.decode(errors='replace')[:500]}")
        return (time.perf_counter() - begin) * 1000

    def _parts(self, size: int) -> list[range]:
        return [self._numbers[begin : begin + size] for begin in range(0, len(self._numbers), size)]


def main() -> None:
    plan = msgspec.json.decode(sys.stdin.buffer.read(), type=Plan)
    gc.disable()  # a collection in the middle would be counted as the node's time
    with contextlib.suppress(KeyboardInterrupt):
        sys.stdout.buffer.write(msgspec.json.encode(uvloop.run(Load(plan).run())))


if __name__ == "__main__":
    main()
