"""The measures. Each takes fresh databases and a scale, puts a system together, and brings back findings."""

import statistics
import time
from typing import Final

from bench.databases import Databases
from bench.graphs import graphs
from bench.marks import Findings, Reading
from bench.measure import (
    Measure,
    Progress,
    Scale,
    Used,
    all_ended,
    all_started,
    limits,
    once,
    percentile,
    percents_at_rest,
)
from bench.punctuality import burst, late, minute, schedules
from bench.queues import queues
from bench.site import CONCURRENCY, Site
from bench.watch import events, watch

CONNECTIONS: Final = 64
TASKS: Final = 100


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
        all_started(site, scale.jobs, progress)
        all_ended(site, pause=0.002)
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
        all_started(site, scale.jobs + count, progress)
        delays = site.sheet.delays(scale.jobs, count)
        all_ended(site)
        notes = once(site, scale.jobs + count)
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
        used = percents_at_rest(site, databases, scale.idle_seconds)
        readings = [
            Reading("start", seconds),
            Reading("start_new", site.seconds_to_first_start),
            Reading("node_idle", site.node.rss),
            Reading("worker_idle", worker.rss),
            Reading("cpu_idle", used["node"] + used["worker"]),
        ]
        if "database" in used:
            readings.append(Reading("cpu_database", used["database"]))
        progress.tell(f"{scale.spaced} jobs, one at a time")
        site.load("spaced", 20, rate=100)
        site.load("spaced", scale.spaced, first=20, rate=25)
        all_started(site, scale.spaced + 20, progress)
        delays = site.sheet.delays(20, scale.spaced)
        all_ended(site)
        notes = once(site, scale.spaced + 20)
    readings += [
        Reading("idle_p50", statistics.median(delays), limit.pair_p50),
        Reading("idle_p99", percentile(delays, 0.99), limit.pair_p99),
    ]
    return Findings(readings=readings, spreads={"submit → start on an idle system": delays}, notes=notes)


MEASURES: Final[dict[str, Measure]] = {
    "submit": submit,
    "sdk": sdk,
    "drain": drain,
    "idle": idle,
    "late": late,
    "burst": burst,
    "minute": minute,
    "schedules": schedules,
    "queues": queues,
    "graphs": graphs,
    "watch": watch,
    "events": events,
}
GROUPS: Final = {"time": ("late", "burst", "minute", "schedules")}
LONG_ONES: Final = ("minute",)  # left out unless they are asked for
