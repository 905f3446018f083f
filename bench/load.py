"""The process that hands jobs in. Reads a Plan from standard input, carries it out, prints an Outcome.

What can be prepared is prepared before the clock starts: on a small machine the load's own work is taken from the node.
"""

import asyncio
import contextlib
import gc
import random
import sys
import time
from collections.abc import Awaitable, Callable, Iterable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Literal

import msgspec
import uvloop

from bench.connection import Connection, request
from bench.sheet import Sheet

PAYLOAD_BYTES = 200
BATCH = 1000
TICK_SECONDS = 0.01
PATIENCE_SECONDS = 60
URGENT_AT = (0.3, 0.4, 0.5, 0.6, 0.7)  # shares of a burst that have started
PLAIN_KIND = '"job_type":"noop"'
PARENTS = 2  # of each child


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    mode: Literal[
        "singly", "batches", "spaced", "steady", "future", "background", "burst", "schedules", "sdk", "graphs"
    ]
    port: int
    key: str
    sheet: str
    count: int
    first: int = 0  # number of the first job
    width: int = 1  # connections, or tasks of the SDK
    rate: float = 0.0  # jobs a second, where the plan has a pace
    lead: float = 1.5  # seconds until the first is due, where jobs are handed in before they are due
    runs: int = 0  # of each schedule
    kinds: tuple[str, ...] = (PLAIN_KIND,)  # of batches: fields of jobs, as JSON without braces, one after the other


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    seconds: float
    latencies: list[float] = []  # milliseconds, of each request
    spare: float = 0.0  # seconds from the last answer to the first due time; below zero some were handed in late


def payload(number: int) -> bytes:
    head = b'{"number":%d,"pad":"' % number
    return head + b"x" * (PAYLOAD_BYTES - len(head) - 2) + b'"}'


def job(number: int, due: datetime | None = None, more: bytes = b"", kind: str = PLAIN_KIND) -> bytes:
    when = f',"schedule_time":"{due.isoformat()}"'.encode() if due else b""
    return b"{" + kind.encode() + b',"payload":' + payload(number) + when + more + b"}"


def batch(
    key: str,
    numbers: Sequence[int],
    due: Callable[[int], datetime] | None = None,
    kinds: Sequence[str] = (PLAIN_KIND,),
) -> bytes:
    jobs = (job(number, due(number) if due else None, kind=kinds[number % len(kinds)]) for number in numbers)
    return request("/jobs/batch", key, b'{"jobs":[' + b",".join(jobs) + b"]}")


def graph(key: str, child: int, parents: Sequence[int]) -> bytes:
    """A job and those that it waits for."""
    names = [f"parent-{number}" for number in parents]
    jobs: list[dict[str, object]] = [
        {"job_type": "parent", "job_id": name, "payload": {"number": number, "child": child}}
        for name, number in zip(names, parents, strict=True)
    ]
    jobs.append({"job_type": "noop", "payload": {"number": child, "pad": ""}, "depends_on": names})
    return request("/jobs/batch", key, msgspec.json.encode({"jobs": jobs}))


def nanoseconds(time: datetime) -> int:
    return round(time.timestamp() * 1e6) * 1000


def spared(outcome: Outcome, begin: datetime) -> Outcome:
    """The outcome of a hand-in that has just ended and was to end before `begin`."""
    return msgspec.structs.replace(outcome, spare=(begin - datetime.now(UTC)).total_seconds())


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
            "burst": self._burst,
            "schedules": self._schedules,
            "sdk": self._sdk,
            "graphs": self._graphs,
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
        plan = self._plan
        return await self._send_all([batch(plan.key, part, kinds=plan.kinds) for part in self._parts(BATCH)])

    async def _background(self) -> Outcome:
        """Jobs that are not due while anybody looks."""
        far = datetime.now(UTC) + timedelta(days=30)
        # Each is made when its turn comes, as there may be millions. Larger batches are no faster, and the memory of
        # the node would then tell of them and not of what waits.
        return await self._send_all(
            batch(self._plan.key, part, lambda number: far + timedelta(seconds=number)) for part in self._parts(BATCH)
        )

    async def _spaced(self) -> Outcome:
        """One after the other, with a pause in which the system comes to rest."""
        return await self._one_by_one([request("/jobs", self._plan.key, job(number)) for number in self._numbers])

    async def _graphs(self) -> Outcome:
        """Graphs one after the other. Children have the first numbers, their parents those after all of them."""
        texts = []
        for place, child in enumerate(self._numbers):
            first = self._numbers.stop + place * PARENTS
            texts.append(graph(self._plan.key, child, range(first, first + PARENTS)))
        return await self._one_by_one(texts)

    async def _one_by_one(self, texts: Sequence[bytes]) -> Outcome:
        latencies = []
        begin = time.perf_counter()
        for number, text in zip(self._numbers, texts, strict=True):
            await asyncio.sleep((0.5 + random.random()) / self._plan.rate)
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
        begin = datetime.now(UTC) + timedelta(seconds=self._plan.lead)

        def due(number: int) -> datetime:
            return begin + timedelta(seconds=(number - self._plan.first) / self._plan.rate)

        return await self._before(begin, due)

    async def _burst(self) -> Outcome:
        """Jobs at one whole second; while they are started, now and then an urgent one, numbered after them."""
        begin = (datetime.now(UTC) + timedelta(seconds=self._plan.lead + 1)).replace(microsecond=0)
        outcome = await self._before(begin, lambda _: begin)
        urgent = range(self._numbers.stop, self._numbers.stop + len(URGENT_AT))
        texts = [request("/jobs", self._plan.key, job(number, more=b',"priority":"high"')) for number in urgent]
        before = self._sheet.starts
        async with asyncio.timeout(PATIENCE_SECONDS):
            for number, text, share in zip(urgent, texts, URGENT_AT, strict=True):
                while self._sheet.starts - before < share * self._plan.count:  # noqa: ASYNC110 - another process writes it
                    await asyncio.sleep(0.001)
                self._sheet.note_asked(number, time.time_ns())
                await self._send(self._connections[0], text)
        return outcome

    async def _schedules(self) -> Outcome:
        """Schedules that run each second, so many times, their first runs evenly spaced over a second."""
        plan, texts = self._plan, []
        begin = datetime.now(UTC) + timedelta(seconds=plan.lead)
        for place in range(plan.count):
            first, start = plan.first + place * plan.runs, begin + timedelta(seconds=place / plan.count)
            for run in range(plan.runs):
                self._sheet.note_asked(first + run, nanoseconds(start) + run * 1_000_000_000)
            body = {
                "schedule_id": f"tick-{place}",
                "every": "1s",
                "start_time": start.isoformat(),
                "max_runs": plan.runs,
                "job": {"job_type": "tick", "payload": {"number": first, "start": start.isoformat()}},
            }
            texts.append(request("/schedules", plan.key, msgspec.json.encode(body)))
        return spared(await self._send_all(texts), begin)

    async def _before(self, begin: datetime, due: Callable[[int], datetime]) -> Outcome:
        """Hand in jobs that are asked for by their due time; `begin` is the first of those."""
        for number in self._numbers:
            self._sheet.note_asked(number, nanoseconds(due(number)))
        texts = [batch(self._plan.key, part, due) for part in self._parts(BATCH)]
        return spared(await self._send_all(texts), begin)

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

    async def _send_all(self, texts: Iterable[bytes]) -> Outcome:
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
