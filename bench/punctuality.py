"""The measures of time: what starts when it is due, beside how much else, and what waiting costs.

Jobs are handed in before they are due; how late one is, is its handler's start after its due time. Some jobs go first,
so that the node and the worker have done before what they are watched at.
"""

import statistics
import time
from collections.abc import Sequence
from typing import Final

from bench.bare import Limits
from bench.databases import Databases
from bench.load import URGENT_AT, Outcome
from bench.marks import Findings, Reading
from bench.measure import Progress, Scale, all_ended, all_started, limits, once, percentile, percents_at_rest
from bench.site import CONCURRENCY, Broken, Site

DUE_PER_SECOND: Final = 200
WARM_UPS: Final = 20
HANDED_IN_PER_SECOND: Final = 10_000  # what the node surely takes; only decides how early a load begins
OVERTIME_SECONDS: Final = 10


def late(databases: Databases, scale: Scale, progress: Progress) -> Findings:
    """Jobs at future times, beside many that are not due; then nothing but those."""
    progress.tell("bare limit")
    limit = limits(databases, pairs=True)
    count = round(DUE_PER_SECOND * scale.due_seconds)
    with Site.open(databases, capacity=count + WARM_UPS) as site:
        progress.tell(f"{scale.waiting:,} waiting jobs")
        if scale.waiting:
            site.load("background", scale.waiting, width=2)
        _warm_worker(site, count, progress)
        progress.tell(f"{count:,} due at {DUE_PER_SECOND} a second")
        handed_in = site.load("future", count, rate=DUE_PER_SECOND, lead=_lead(count))
        all_started(site, WARM_UPS + count, progress)
        all_ended(site)
        memory = site.node.rss
        delays = site.sheet.delays(0, count)
        notes = [f"Lateness with {scale.waiting:,} jobs waiting for later days.", *_notes(site, count, handed_in)]
        databases.settle(site.url)
        progress.tell(f"at rest for {scale.idle_seconds:g} s")
        used = percents_at_rest(site, databases, scale.idle_seconds)
    readings = [
        *_lateness("late", delays, limit),
        Reading("node_waiting", memory),
        Reading("waiting_node", used["node"]),
    ]
    if "database" in used:
        readings.append(Reading("waiting_database", used["database"]))
    return Findings(
        readings=readings, spreads={f"handler start after the due time, {DUE_PER_SECOND} due/s": delays}, notes=notes
    )


def burst(databases: Databases, scale: Scale, progress: Progress) -> Findings:
    """Many jobs at one instant, and urgent ones that come while those are being started."""
    progress.tell("bare limit")
    count = scale.burst
    limit = limits(databases, drain=count, batch=CONCURRENCY, pairs=True)
    with Site.open(databases, capacity=count + len(URGENT_AT) + WARM_UPS) as site:
        _warm_worker(site, count + len(URGENT_AT), progress)
        progress.tell(f"{count:,} due at one second")
        handed_in = site.load("burst", count, width=4, lead=_lead(count))
        all_started(site, WARM_UPS + count + len(URGENT_AT), progress)
        all_ended(site)
        delays = site.sheet.delays(0, count)
        starts = site.sheet.started(0, count)
        urgent = list(
            zip(site.sheet.started(count, len(URGENT_AT)), site.sheet.delays(count, len(URGENT_AT)), strict=True)
        )
        notes = [f"Due at one second: {count:,} jobs.", *_notes(site, count, handed_in)]
    readings = [
        Reading("burst_first", min(delays), limit.pair_p50),
        Reading("burst_last", max(delays)),
        Reading("burst_rate", count * 1000 / max(delays), limit.drain),
    ]
    return Findings(
        readings=[*readings, *_urgency(starts, urgent)],
        spreads={"handler start after the due time that all share": delays},
        notes=notes,
    )


def minute(databases: Databases, scale: Scale, progress: Progress) -> Findings:
    """A busy minute: many jobs, evenly spaced."""
    progress.tell("bare limit")
    limit = limits(databases, pairs=True)
    count = scale.minute
    with Site.open(databases, capacity=count + WARM_UPS) as site:
        _warm_worker(site, count, progress)
        progress.tell(f"{count:,} due within {scale.minute_seconds:g} s")
        handed_in = site.load("future", count, width=4, rate=count / scale.minute_seconds, lead=_lead(count))
        all_started(site, WARM_UPS + count, progress)
        all_ended(site)
        delays = site.sheet.delays(0, count)
        over = (max(site.sheet.started(0, count)) - site.sheet.asked(0, 1)[0]) / 1e6 - scale.minute_seconds * 1000
        notes = [f"Due within {scale.minute_seconds:g} s: {count:,} jobs.", *_notes(site, count, handed_in)]
    return Findings(
        readings=[*_lateness("minute", delays, limit), Reading("minute_over", over)],
        spreads={f"handler start after the due time, {count / scale.minute_seconds:,.0f} due/s": delays},
        notes=notes,
    )


def schedules(databases: Databases, scale: Scale, progress: Progress) -> Findings:
    """Schedules that make a job each second."""
    progress.tell("bare limit")
    limit = limits(databases, pairs=True)
    runs = scale.due_seconds
    count = scale.schedules * runs
    with Site.open(databases, capacity=count + WARM_UPS) as site:
        _warm_worker(site, count, progress)
        progress.tell(f"{scale.schedules:,} schedules, each second")
        handed_in = site.load("schedules", scale.schedules, width=4, runs=runs, lead=_lead(scale.schedules * 10))
        end = time.time() + handed_in.spare + runs + OVERTIME_SECONDS
        wanted = WARM_UPS + count
        # A due time may pass without a run, by the schedule's own rules; the others are worth their figures.
        site.wait(lambda: site.sheet.starts >= wanted or time.time() > end, runs + 60, "the schedules to run")
        all_ended(site)
        delays = site.sheet.delays(0, count)
        notes = _notes(site, count, handed_in)
    if not delays:
        raise Broken("no schedule made a job")
    if len(delays) < count:
        notes.append(f"{count - len(delays):,} of {count:,} due times of schedules started no job.")
    return Findings(
        readings=_lateness("schedules", delays, limit),
        spreads={f"handler start after the due time, {scale.schedules} schedules each second": delays},
        notes=notes,
    )


def _warm_worker(site: Site, first: int, progress: Progress) -> None:
    """A worker that has had its first jobs, numbered from `first`."""
    site.start_worker()
    site.load("spaced", WARM_UPS, first=first, rate=100)
    all_started(site, WARM_UPS, progress)
    all_ended(site)


def _lead(count: int) -> float:
    """Seconds in which so many are made and handed in."""
    return 1.5 + count / HANDED_IN_PER_SECOND


def _lateness(key: str, delays: Sequence[float], limit: Limits) -> list[Reading]:
    return [
        Reading(f"{key}_p50", statistics.median(delays), limit.pair_p50),
        Reading(f"{key}_p90", percentile(delays, 0.9)),
        Reading(f"{key}_p99", percentile(delays, 0.99), limit.pair_p99),
        Reading(f"{key}_most", max(delays)),
    ]


def _urgency(starts: Sequence[int], urgent: Sequence[tuple[int, float]]) -> list[Reading]:
    """Medians over the urgent jobs (start, delay), each held against those that were queued when it came."""
    waits, passed = [], []
    for start, delay in urgent:
        queued = [each for each in starts if each > start - delay * 1e6]
        if queued:
            waits.append((statistics.median(queued) - start) / 1e6 + delay)
            passed.append(sum(each > start for each in queued) * 100 / len(queued))
    if not waits:
        return []
    return [
        Reading("burst_high", statistics.median(delay for _, delay in urgent)),
        Reading("burst_queued", statistics.median(waits)),
        Reading("burst_passed", statistics.median(passed)),
    ]


def _notes(site: Site, count: int, handed_in: Outcome) -> list[str]:
    found = once(site, count)
    if handed_in.spare < 0:
        found.append(f"The last of {count:,} jobs was handed in {-handed_in.spare:.1f} s after the first was due.")
    return found
