"""`foliot top`: the whole system on one screen."""

import time
from typing import TYPE_CHECKING, Any

import click

from foliot.cli.connection import with_client
from foliot.cli.exits import failure_of
from foliot.cli.lateness import show_brief
from foliot.cli.show import console, count_text, json_option, print_json, progress_text, status_text, table
from foliot.cli.times import read_clock, show_relative, show_span
from foliot.cli.tree import Command
from foliot.cli.workers import load_text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import RenderableType

    from foliot.sdk.client import Client
    from foliot.wire import LatenessInfo

# A person reads from waiting to ended.
ORDER = ("scheduled", "blocked", "queued", "retrying", "paused", "running", "completed", "failed", "cancelled")
ROWS = 15
LATE_EVERY = 10.0


@click.command(cls=Command, examples="foliot top\nfoliot top --once\nfoliot top --once --json")
@click.option("--once", is_flag=True, help="Print one picture and end.")
@click.option(
    "--interval", type=click.FloatRange(min=0.2), default=1.0, show_default=True, help="Seconds between two looks."
)
@json_option
@with_client
def top(client: "Client", once: bool, interval: float, as_json: bool) -> None:
    """Watch the system: how many jobs stand where, rates, how late jobs start, workers, what runs now. Ctrl-C ends it.

    --json prints the API's /stats once.
    """
    if as_json:
        print_json(client.stats())
        return
    screen, late = console(), LateJobs()
    if once or not screen.is_terminal:
        screen.print(picture(client, late))
        return
    from rich.live import Live

    from foliot.domain.errors import FoliotError

    live = Live(picture(client, late), console=screen, screen=True, auto_refresh=False)
    try:
        live.start(refresh=True)  # inside, so that a Ctrl-C during the first picture gives the screen back too
        while True:
            time.sleep(interval)
            try:
                live.update(picture(client, late), refresh=True)
            except FoliotError as error:
                live.update(_trouble(error), refresh=True)
    finally:
        live.stop()


class LateJobs:
    """How late jobs were, looked up every ten seconds: nodes tell each other no more often."""

    def __init__(self) -> None:
        self._found: Sequence[LatenessInfo] = ()
        self._next = 0.0

    def look(self, client: "Client") -> "Sequence[LatenessInfo]":
        if time.monotonic() >= self._next:
            self._found = client.lateness(by="queue")
            self._next = time.monotonic() + LATE_EVERY
        return self._found


def picture(client: "Client", late: LateJobs) -> "RenderableType":
    """One look at everything."""
    from rich.console import Group
    from rich.text import Text

    from foliot.wire import FilterBody

    stats, workers, nodes = client.stats(), client.workers(), client.nodes()
    running, _ = client.page(FilterBody(status="running"), limit=ROWS)
    now = read_clock()

    head = Text.assemble(
        ("foliot ", "bold"),
        f"{client.url}  {count_text(sum(node.alive for node in nodes), 'node')}  ",
        f"{count_text(stats.workers, 'worker')}  ",
        f"{stats.running}/{stats.slots:g} slots  {now.astimezone():%H:%M:%S}",
    )
    counts = Text("  ").join(
        Text.assemble(status_text(status), f" {stats.jobs.get(status, 0):,}")
        for status in (*ORDER, *sorted(set(stats.jobs) - set(ORDER)))
        if status in stats.jobs
    )
    rates = (
        f"submitted {stats.submitted_per_second:,.1f}/s  started {stats.started_per_second:,.1f}/s  "
        f"ended {stats.ended_per_second:,.1f}/s"
    )
    worker_rows = [
        (
            worker.worker_id,
            worker.name,
            status_text(worker.status),
            load_text(worker),
            show_relative(worker.last_seen, now),
        )
        for worker in workers[:ROWS]
    ]
    job_rows: list[tuple[Any, ...]] = [
        (
            job.job_id,
            job.job_type,
            job.queue,
            show_span(max((now - job.start_time).total_seconds(), 0)) if job.start_time else "",
            str(job.attempt),
            progress_text(job.progress),
        )
        for job in running
    ]
    late_rows = [
        (
            each.queue or "",
            f"{each.jobs:,}",
            show_brief(each.late.p50),
            show_brief(each.late.p99),
            show_brief(each.late.max),
        )
        for each in sorted(late.look(client), key=lambda each: -each.jobs)[:ROWS]
        if each.late is not None
    ]
    return Group(
        head,
        counts,
        rates,
        "",
        table(("QUEUE", "IN THE LAST HOUR", "LATE P50", "P99", "MAX"), late_rows)
        if late_rows
        else Text("nothing has ended in the last hour", "dim"),
        "",
        table(("WORKER", "NAME", "STATUS", "LOAD", "SEEN"), worker_rows) if workers else Text("no workers", "dim"),
        "",
        table(("RUNNING", "TYPE", "QUEUE", "FOR", "TRY", "PROGRESS"), job_rows)
        if running
        else Text("nothing is running", "dim"),
    )


def _trouble(error: Exception) -> "RenderableType":
    """The node may come back, so the screen stays and says what is wrong."""
    from rich.text import Text

    failure = failure_of(error)
    return Text(f"{failure.message if failure else error}\ntrying again …", "red")
