"""What every measure is given and uses: a scale, the processor time of the parts, waits and checks."""

import time
from collections.abc import Callable, Sequence
from typing import Any, Final, Protocol

import msgspec
import uvloop

from bench import bare
from bench.databases import Databases
from bench.marks import BY_KEY, Findings, Reading
from bench.site import Broken, Site

PATIENCE_SECONDS: Final = 120


class Scale(msgspec.Struct, frozen=True, kw_only=True):
    """How much of everything."""

    jobs: int = 50_000  # backlog, and batches
    singles: int = 20_000
    waiting: int = 100_000
    steady_seconds: float = 8
    spaced: int = 300
    due_seconds: int = 8
    idle_seconds: float = 10
    burst: int = 10_000  # due at one instant
    minute: int = 100_000  # due within `minute_seconds`
    minute_seconds: float = 60
    schedules: int = 200
    claims: int = 20_000  # jobs of one backlog under rules
    claim_rounds: int = 3
    graphs: int = 300
    watched: int = 50_000  # jobs of one backlog, with and without somebody on watch
    watch_rounds: int = 5
    events: int = 1000


QUICK: Final = Scale(
    jobs=5000,
    singles=2000,
    waiting=5000,
    steady_seconds=2,
    spaced=60,
    due_seconds=2,
    idle_seconds=3,
    burst=3000,
    minute=10_000,
    minute_seconds=6,
    claims=2000,
    claim_rounds=1,
    graphs=60,
    watched=2000,
    watch_rounds=1,
    events=100,
)
LONG: Final = Scale(waiting=1_000_000, due_seconds=30, idle_seconds=20)


class Progress(Protocol):
    def tell(self, what: str) -> None: ...


Measure = Callable[[Databases, Scale, Progress], Findings]


class Used:
    """Processor time from now on. It depends less than a rate on what else the machine does."""

    def __init__(self, site: Site, databases: Databases) -> None:
        self._site = site
        self._databases = databases
        self._before = self._now()

    def seconds(self) -> dict[str, float]:
        """By part of the system: node, worker, database."""
        return {part: seconds - self._before.get(part, 0.0) for part, seconds in self._now().items()}

    def readings(self, key: str, jobs: int) -> list[Reading]:
        """Microseconds a job of each part of the system that has a figure of that name."""
        used = {f"{key}_{part}": seconds for part, seconds in self.seconds().items()}
        return [Reading(name, seconds * 1e6 / jobs) for name, seconds in used.items() if name in BY_KEY]

    def _now(self) -> dict[str, float]:
        found = {"node": self._site.node.cpu_seconds}
        if self._site.worker is not None:
            found["worker"] = self._site.worker.cpu_seconds
        if (database := self._databases.cpu_seconds()) is not None:
            found["database"] = database
        return found


def percents_at_rest(site: Site, databases: Databases, seconds: float) -> dict[str, float]:
    """Processor time of each part while nobody asks for anything, in percent of one core."""
    time.sleep(1)  # for what is left of the work before
    used = Used(site, databases)
    time.sleep(seconds)
    return {part: each * 100 / seconds for part, each in used.seconds().items()}


def percentile(values: Sequence[float], share: float) -> float:
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(len(ordered) * share))]


def limits(databases: Databases, **asked: Any) -> bare.Limits:
    return uvloop.run(bare.measure(databases.bare(), **asked))


def all_started(site: Site, count: int, progress: Progress) -> None:
    def done() -> bool:
        progress.tell(f"{site.sheet.starts:,} of {count:,} started")
        return site.sheet.starts >= count

    site.wait(done, PATIENCE_SECONDS, f"{count:,} jobs to start")


def all_ended(site: Site, pause: float = 0.01) -> None:
    site.wait(site.nothing_runs, PATIENCE_SECONDS, "the last job to end", pause)


def once(site: Site, count: int) -> list[str]:
    """A figure of a system that loses or fails jobs would be worth nothing."""
    if failed := site.get("/jobs?status=failed&status=retrying&limit=1"):
        raise Broken(f"a job did not complete: {failed[0]}")
    repeats = site.sheet.repeats
    return [f"{repeats} of {count:,} jobs were started more than once."] if repeats else []
