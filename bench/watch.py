"""What being watched costs, and how soon it tells.

Two systems stand side by side: one that keeps no record, and one that keeps it, has a webhook, alert rules and a
subscriber, and is scraped each second. They are given the same work in turns, so that what the machine does meanwhile
touches both; a share is the median over all turns.
"""

import http.client
import statistics
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from typing import Any, Final

import msgspec

from bench.databases import Databases
from bench.marks import Findings, Reading
from bench.measure import Progress, Scale, all_ended, all_started, once, percentile
from bench.site import Site

SINGLES: Final = 2000
CONNECTIONS: Final = 64
RATE: Final = 50.0  # jobs a second while their events are timed
OFF: Final = {"FOLIOT_EVENTS": "false"}


def watch(databases: Databases, scale: Scale, progress: Progress) -> Findings:
    """Submits and backlogs, by turns without and with everything on."""
    total = (scale.watched + SINGLES) * (scale.watch_rounds + 1)
    shares: dict[str, list[float]] = {"watch_drain": [], "watch_submit": [], "watch_single": []}
    with (
        Site.open(databases, capacity=total, environ=OFF) as plain,
        Site.open(databases, capacity=total) as watched,
        _everything_on(watched),
    ):
        plain.start_worker()
        watched.start_worker()
        sides = (_Side(plain, scale.watched, progress), _Side(watched, scale.watched, progress))
        for turn in range(scale.watch_rounds + 1):
            progress.tell(f"turn {turn} of {scale.watch_rounds}")
            order = sides if turn % 2 else sides[::-1]
            rates = {id(side): side.work() for side in order}
            if turn:  # all that is done for the first time is done in the one before
                for key in shares:
                    shares[key].append(rates[id(sides[1])][key] * 100 / rates[id(sides[0])][key])
        notes = once(watched, total)
    told = f"While watched: {scale.watch_rounds} turns of {scale.watched:,} jobs on each side, medians of the ratios."
    return Findings(
        readings=[Reading(key, statistics.median(found)) for key, found in shares.items()], notes=[told, *notes]
    )


class _Side:
    """One of the two systems; its jobs are numbered on."""

    def __init__(self, site: Site, count: int, progress: Progress) -> None:
        self._site = site
        self._count = count
        self._progress = progress
        self._first = 0

    def work(self) -> dict[str, float]:
        """Jobs a second, each way."""
        site, first, count = self._site, self._first, self._count
        self._first += count + SINGLES
        site.call("POST", "/queues/default/pause", {})
        many = site.load("batches", count, first=first, width=4)
        single = site.load("singly", SINGLES, first=first + count, width=CONNECTIONS)
        site.call("POST", "/queues/default/resume", {})
        all_started(site, self._first, self._progress)
        all_ended(site, pause=0.002)
        end = time.time_ns()
        return {
            "watch_submit": count / many.seconds,
            "watch_single": SINGLES / single.seconds,
            "watch_drain": (count + SINGLES) * 1e9 / (end - min(site.sheet.started(first, count + SINGLES))),
        }


@contextmanager
def _everything_on(site: Site) -> Iterator[None]:
    # Nothing is ever sent to these: no job fails.
    site.call("POST", "/channels", {"name": "bench", "url": "json://alerts.example.com/"})
    site.call("POST", "/alerts", {"name": "failures", "on": "failed", "channels": ["bench"]})
    site.call("POST", "/alerts", {"name": "lateness", "on": "late", "after": "1h", "channels": ["bench"]})
    site.call("POST", "/webhooks", {"url": "https://hooks.example.com/", "events": ["job.failed"]})
    stop = threading.Event()
    threads = [
        threading.Thread(target=_scrape, args=(site, stop), daemon=True),
        threading.Thread(target=_follow, args=(site.port, site.key, "status=failed", [], stop), daemon=True),
    ]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        stop.set()


def _scrape(site: Site, stop: threading.Event) -> None:
    while not stop.wait(1.0):
        connection = http.client.HTTPConnection("127.0.0.1", site.port, timeout=10)
        connection.request("GET", "/metrics", headers={"Authorization": f"Bearer {site.key}"})
        connection.getresponse().read()
        connection.close()


def _follow(
    port: int, key: str, asked: str, delays: list[float], stop: threading.Event, *live: threading.Event
) -> None:
    """Milliseconds from each event's own time to its arrival here; `live` is set once nothing is missed."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    connection.request("GET", f"/api/v1/events?{asked}", headers={"Authorization": f"Bearer {key}"})
    answer = connection.getresponse()
    while not stop.is_set():
        line = answer.readline()
        arrived = time.time()
        for event in live:
            event.set()
        if line.startswith(b"data: "):
            told: dict[str, Any] = msgspec.json.decode(line[6:])
            delays.append((arrived - datetime.fromisoformat(told["time"]).timestamp()) * 1000)


def events(databases: Databases, scale: Scale, progress: Progress) -> Findings:
    """From the time that an event carries, which is before its commit, to a subscriber: on another node of the same
    database, or on the only one where there can be no other."""
    delays: list[float] = []
    stop, live = threading.Event(), threading.Event()
    with Site.open(databases, capacity=scale.events) as site:
        port = site.add_node() if site.url.startswith("postgres") else site.port
        site.start_worker()
        follower = threading.Thread(
            target=_follow, args=(port, site.key, "job_type=noop", delays, stop, live), daemon=True
        )
        follower.start()
        site.wait(live.is_set, 10, "the subscriber")
        progress.tell(f"{scale.events:,} jobs at {RATE:g} a second")
        site.load("spaced", scale.events, rate=RATE)
        all_started(site, scale.events, progress)
        all_ended(site)
        site.wait(lambda: len(delays) >= 3 * scale.events, 30, f"{3 * scale.events:,} events, {len(delays):,} came")
        stop.set()
        notes = once(site, scale.events)
    return Findings(
        readings=[
            Reading("events_p50", statistics.median(delays)),
            Reading("events_p99", percentile(delays, 0.99)),
            Reading("events_most", max(delays)),
        ],
        spreads={"change → subscriber": delays},
        notes=notes,
    )
