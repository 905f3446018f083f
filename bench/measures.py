"""The measures. Each takes fresh databases and a scale, puts a system together, and brings back findings."""

import statistics
import time
from collections.abc import Callable, Sequence
from typing import Any, Final, Protocol

import msgspec
import uvloop

from bench import bare
from bench.databases import Databases
from bench.marks import BY_KEY, Findings, Reading
from bench.site import CONCURRENCY, Broken, Site

CONNECTIONS: Final = 64
TASKS: Final = 100
DUE_PER_SECOND: Final = 200
PATIENCE_SECONDS: Final = 120


class Scale(msgspec.Struct, frozen=True, kw_only=True):
    """How much of everything."""

    jobs: int = 50_000  # backlog, and batches
    singles: int = 20_000
    waiting: int = 100_000
    steady_seconds: float = 8
    spaced: int = 300
    due_seconds: float = 8
    idle_seconds: float = 10


QUICK: Final = Scale(jobs=5000, singles=2000, waiting=5000, steady_seconds=2, spaced=60, due_seconds=2, idle_seconds=3)


class Progress(Protocol):
    def tell(self, what: str) -> None: ...


class Used:
    """Processor time from now on. It depends less than a rate on what else the machine does."""

    def __init__(self, site: Site, databases: Databases) -> None:
        self._site = site
        self._databases = databases
        self._before = self._now()

    def readings(self, key: str, jobs: int) -> list[Reading]:
        """Microseconds a job of each part of the system that has a figure of that name."""
        used = {f"{key}_{part}": seconds - self._before.get(part, 0.0) for part, seconds in self._now().items()}
        return [Reading(name, seconds * 1e6 / jobs) for name, seconds in used.items() if name in BY_KEY]

    def _now(self) -> dict[str, float]:
        found = {"node": self._site.node.cpu_seconds}
        if self._site.worker is not None:
            found["worker"] = self._site.worker.cpu_seconds
        if (database := self._databases.cpu_seconds()) is not None:
            found["database"] = database
        return found


def percentile(values: Sequence[float], share: float) -> float:
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(len(ordered) * share))]


def limits(databases: Databases, **asked: Any) -> bare.Limits:
    return uvloop.run(bare.measure(databases.bare(), **asked))


def submit(databases: Databases, scale: Scale, progress: Progress) -> Findings:
    """No worker: what the node takes in."""
    progress.tell("bare limit")
    limit = limits(databases, insert=(CONNECTIONS, 1000))
    with Site.open(databases) as site:
        progress.tell(f"{scale.singles:,} singly")
        site.load("singly", min(500, scale.singles), width=CONNECTIONS)
        used = Used(site, databases)
        single = site.load("singly", scale.singles, width=CONNECTIONS)
        single_node = used.readings("submit_single", scale.singles)
        progress.tell(f"{scale.jobs:,} in batches")
        used = Used(site, databases)
        many = site.load("batches", scale.jobs, width=4)
        many_node = used.readings("submit_batch", scale.jobs)
    latencies = single.latencies
    return Findings(
        readings=[
            Reading("submit_single", scale.singles / single.seconds, limit.insert[CONNECTIONS]),
            Reading("submit_single_p50", statistics.median(latencies)),
            Reading("submit_single_p99", percentile(latencies, 0.99)),
            Reading("submit_batch", scale.jobs / many.seconds, limit.insert[1000]),
            *single_node,
            *many_node,
        ],
        spreads={f"answer to a single submit, {CONNECTIONS} connections": latencies},
    )


def sdk(databases: Databases, scale: Scale, progress: Progress) -> Findings:
    progress.tell("bare limit")
    limit = limits(databases, insert=(TASKS,))
    with Site.open(databases) as site:
        progress.tell(f"{scale.singles:,} by {TASKS} tasks")
        site.load("sdk", min(500, scale.singles), width=TASKS)
        done = site.load("sdk", scale.singles, width=TASKS)
    return Findings(readings=[Reading("sdk", scale.singles / done.seconds, limit.insert[TASKS])])


def drain(databases: Databases, scale: Scale, progress: Progress) -> Findings:
    """A backlog, then a worker, then a steady flow at half of what was seen."""
    progress.tell("bare limit")
    limit = limits(databases, drain=scale.jobs, batch=CONCURRENCY)
    most = scale.jobs * 2 + round(50_000 * scale.steady_seconds)
    with Site.open(databases, capacity=most) as site:
        progress.tell(f"backlog of {scale.jobs:,}")
        empty = site.size()
        site.load("batches", scale.jobs, width=4)
        progress.tell("drain")
        worker = site.start_worker()
        used = Used(site, databases)
        _all_started(site, scale.jobs, progress)
        site.wait(site.nothing_runs, PATIENCE_SECONDS, "the last job to end", pause=0.002)
        end = time.time_ns()
        starts = site.sheet.started(0, scale.jobs)
        rate = scale.jobs * 1e9 / (end - min(starts))
        costs = used.readings("drain", scale.jobs)
        memory = Reading("node_after", site.node.rss), Reading("worker_after", worker.rss)
        size = (site.size() - empty) / scale.jobs
        flow = rate / 2
        count = min(round(flow * scale.steady_seconds), most - scale.jobs)
        progress.tell(f"steady {flow:,.0f} a second")
        site.load("steady", count, first=scale.jobs, width=32, rate=flow)
        _all_started(site, scale.jobs + count, progress)
        delays = site.sheet.delays(scale.jobs, count)
        site.wait(site.nothing_runs, PATIENCE_SECONDS, "the last job to end")
        notes = _once(site, scale.jobs + count)
    return Findings(
        readings=[
            Reading("drain", rate, limit.drain),
            Reading("bytes", size, limit.bytes),
            *costs,
            *memory,
            Reading("steady_rate", flow),
            Reading("steady_p50", statistics.median(delays)),
            Reading("steady_p99", percentile(delays, 0.99)),
        ],
        spreads={f"submit → start at {flow:,.0f} jobs/s": delays},
        notes=notes,
    )


def idle(databases: Databases, scale: Scale, progress: Progress) -> Findings:
    """Rest: start, memory, processor time; then one job at a time."""
    progress.tell("bare limit")
    limit = limits(databases, pairs=True)
    with Site.open(databases, capacity=scale.spaced + 20) as site:
        progress.tell("start")
        seconds = site.restart_node()
        worker = site.start_worker()
        progress.tell(f"at rest for {scale.idle_seconds:g} s")
        time.sleep(1)
        before, database_before = site.node.cpu_seconds + worker.cpu_seconds, databases.cpu_seconds()
        time.sleep(scale.idle_seconds)
        used = (site.node.cpu_seconds + worker.cpu_seconds - before) * 100 / scale.idle_seconds
        database_after = databases.cpu_seconds()
        readings = [
            Reading("start", seconds),
            Reading("start_new", site.seconds_to_first_start),
            Reading("node_idle", site.node.rss),
            Reading("worker_idle", worker.rss),
            Reading("cpu_idle", used),
        ]
        if database_before is not None and database_after is not None:
            readings.append(Reading("cpu_database", (database_after - database_before) * 100 / scale.idle_seconds))
        progress.tell(f"{scale.spaced} jobs, one at a time")
        site.load("spaced", 20, rate=100)
        site.load("spaced", scale.spaced, first=20, rate=25)
        _all_started(site, scale.spaced + 20, progress)
        delays = site.sheet.delays(20, scale.spaced)
        site.wait(site.nothing_runs, PATIENCE_SECONDS, "the last job to end")
        notes = _once(site, scale.spaced + 20)
    readings += [
        Reading("idle_p50", statistics.median(delays), limit.pair_p50),
        Reading("idle_p99", percentile(delays, 0.99), limit.pair_p99),
    ]
    return Findings(readings=readings, spreads={"submit → start on an idle system": delays}, notes=notes)


def late(databases: Databases, scale: Scale, progress: Progress) -> Findings:
    """Jobs at future times, beside many that are not due."""
    progress.tell("bare limit")
    limit = limits(databases, pairs=True)
    count = round(DUE_PER_SECOND * scale.due_seconds)
    with Site.open(databases, capacity=count) as site:
        progress.tell(f"{scale.waiting:,} waiting jobs")
        if scale.waiting:
            site.load("background", scale.waiting)
        worker_of_site = site.start_worker()
        progress.tell(f"{count:,} due at {DUE_PER_SECOND} a second")
        site.load("future", count, rate=DUE_PER_SECOND)
        _all_started(site, count, progress)
        worker_of_site.check()
        memory = site.node.rss
        delays = site.sheet.delays(0, count)
        notes = [f"Lateness with {scale.waiting:,} jobs waiting for later days.", *_once(site, count)]
    return Findings(
        readings=[
            Reading("late_p50", statistics.median(delays), limit.pair_p50),
            Reading("late_p99", percentile(delays, 0.99), limit.pair_p99),
            Reading("late_most", max(delays)),
            Reading("node_waiting", memory),
        ],
        spreads={f"handler start after the due time, {DUE_PER_SECOND} due/s": delays},
        notes=notes,
    )


def _all_started(site: Site, count: int, progress: Progress) -> None:
    def done() -> bool:
        progress.tell(f"{site.sheet.starts:,} of {count:,} started")
        return site.sheet.starts >= count

    site.wait(done, PATIENCE_SECONDS, f"{count:,} jobs to start")


def _once(site: Site, count: int) -> list[str]:
    """A figure of a system that loses or fails jobs would be worth nothing."""
    if failed := site.get("/jobs?status=failed&status=retrying&limit=1"):
        raise Broken(f"a job did not complete: {failed[0]}")
    repeats = site.sheet.repeats
    return [f"{repeats} of {count:,} jobs were started more than once."] if repeats else []


Measure = Callable[[Databases, Scale, Progress], Findings]
MEASURES: Final[dict[str, Measure]] = {"submit": submit, "sdk": sdk, "drain": drain, "idle": idle, "late": late}
