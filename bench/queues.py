"""What rules cost: backlogs that are drained under a queue's rules or concurrency keys, each right after a plain one on
the same node, database and worker, so that what the machine does meanwhile touches both.

Backlogs are handed in while their queue is paused. So a figure is about claims and ends; jobs of `fifo` and `fair` are
put in order as they come, which may go on while the first of them run.
"""

import statistics
import time
from typing import Any, Final

import msgspec

from bench.databases import Databases
from bench.load import PLAIN_KIND
from bench.marks import BY_KEY, Findings, Reading
from bench.measure import Progress, Scale, all_ended, all_started, once
from bench.site import Site

KEYS: Final = 10_000
LANES: Final = 100
FAIR_KEYS: Final = 1000


class Variant(msgspec.Struct, frozen=True, kw_only=True):
    """A queue with its rules, and the kinds of job that it is given, each in turn. A kind is JSON without braces."""

    name: str
    kinds: tuple[str, ...] = (PLAIN_KIND,)
    rules: dict[str, Any] = {}

    @property
    def kinds_in_queue(self) -> list[str]:
        return [f'{kind},"queue":"{self.name}"' for kind in self.kinds]


PLAIN: Final = Variant(name="plain")
VARIANTS: Final = (
    Variant(
        name="keys",
        kinds=tuple(f'{PLAIN_KIND},"concurrency":{{"key":"key-{number}","limit":1}}' for number in range(KEYS)),
    ),
    Variant(name="lanes", kinds=tuple(f'"job_type":"noop-{number}"' for number in range(LANES))),
    Variant(
        name="fair",
        kinds=tuple(f'{PLAIN_KIND},"fair_key":"tenant-{number}"' for number in range(FAIR_KEYS)),
        rules={"policy": "fair"},
    ),
    Variant(name="fifo", rules={"policy": "fifo"}),
    Variant(name="places", rules={"max_concurrency": 100_000}),
    Variant(name="rate", rules={"rate_limit": {"limit": 1_000_000, "per": "1s", "burst": 1_000_000}}),
)


def queues(databases: Databases, scale: Scale, progress: Progress) -> Findings:
    """Each variant after a plain backlog, round by round; the shares of plain are medians."""
    count = scale.claims
    rounds = scale.claim_rounds
    total = count * (1 + rounds * 2 * len(VARIANTS))
    plain: list[float] = []
    shares: dict[str, list[float]] = {variant.name: [] for variant in VARIANTS}
    with Site.open(databases, capacity=total) as site:
        for variant in VARIANTS:
            site.call("PUT", f"/queues/{variant.name}", variant.rules)
        site.start_worker("bench.lanes_app:app", BENCH_LANES=str(LANES))
        backlogs = Backlogs(site, count, progress)
        backlogs.drain(PLAIN)  # nothing of it counts: all that is done for the first time is done here
        for turn in range(rounds):
            for variant in VARIANTS:
                progress.tell(f"{variant.name}, round {turn + 1} of {rounds}")
                beside = backlogs.drain(PLAIN)
                plain.append(beside)
                shares[variant.name].append(backlogs.drain(variant) * 100 / beside)
        notes = once(site, total)
    readings = [Reading(f"queues_{name}", statistics.median(found)) for name, found in shares.items()]
    assert all(reading.key in BY_KEY for reading in readings)
    told = f"Under rules: backlogs of {count:,} jobs, {rounds} of each kind, each beside a plain one."
    if count < 2 * KEYS:
        told += f" Of {KEYS:,} concurrency keys {min(count, KEYS):,} were used, few or none of them twice."
    return Findings(readings=[Reading("queues_plain", statistics.median(plain)), *readings], notes=[told, *notes])


class Backlogs:
    """One after the other on one site; jobs are numbered on."""

    def __init__(self, site: Site, count: int, progress: Progress) -> None:
        self._site = site
        self._count = count
        self._progress = progress
        self._first = 0

    def drain(self, variant: Variant) -> float:
        """Jobs a second from the first handler's start to the last committed end."""
        site, first, count = self._site, self._first, self._count
        self._first += count
        site.call("POST", f"/queues/{variant.name}/pause", {})
        site.load("batches", count, first=first, width=4, kinds=variant.kinds_in_queue)
        site.call("POST", f"/queues/{variant.name}/resume", {})
        all_started(site, first + count, self._progress)
        all_ended(site, pause=0.002)
        end = time.time_ns()
        return count * 1e9 / (end - min(site.sheet.started(first, count)))
