"""`foliot watch`: what happens, a line for each change, as it happens."""

import math
from typing import TYPE_CHECKING

import click

from foliot.cli.connection import with_client
from foliot.cli.filters import STATUSES
from foliot.cli.show import STATUS_STYLES, one_line
from foliot.cli.times import show_span
from foliot.cli.tree import Command

if TYPE_CHECKING:
    from foliot.sdk.client import Client
    from foliot.sdk.event import Event
    from foliot.wire import JobInfo

STATUS_WIDTH = max(map(len, STATUSES))


@click.command(
    cls=Command,
    examples="""
    foliot watch
    foliot watch --queue mail --status failed --status cancelled
    foliot watch --job nightly-2027-03-01 --job j_2x9k4
    foliot watch --type report --since start --json
    """,
)
@click.option("--queue", "queues", multiple=True, metavar="QUEUE", help="Only jobs of this queue; may repeat.")
@click.option("--type", "job_types", multiple=True, metavar="TYPE", help="Only jobs of this type; may repeat.")
@click.option(
    "--status",
    "statuses",
    multiple=True,
    type=click.Choice(STATUSES),
    metavar="STATUS",
    help=f"Only changes to this status; may repeat. One of {', '.join(STATUSES)}.",
)
@click.option("--job", "job_ids", multiple=True, metavar="JOB_ID", help="Only this job; may repeat.")
@click.option(
    "--since",
    default="now",
    metavar="WHEN",
    show_default=True,
    help="now, start (all that is kept), or the position of an event, to go on behind it.",
)
@click.option("--json", "as_json", is_flag=True, help="Print each event as the API's JSON (CloudEvents), one a line.")
@with_client
def watch(
    client: "Client",
    queues: tuple[str, ...],
    job_types: tuple[str, ...],
    statuses: tuple[str, ...],
    job_ids: tuple[str, ...],
    since: str,
    as_json: bool,
) -> None:
    """Show each change of a job's status as it happens, until Ctrl-C.

    Nothing is missed and nothing shown twice where the connection is lost: it goes on behind the last event, at
    whichever node answers then. A line tells the time, the status, the job, its type and queue; how late it started,
    and why it failed.
    """
    from foliot.sdk.event_stream import Lost, Opened, follow
    from foliot.sdk.watch_calls import events_wanted

    try:
        wanted = events_wanted(job_ids, queues, job_types, statuses)
    except ValueError as error:
        raise click.UsageError(str(error)) from None
    for told in client.thread.iterate(lambda: follow(client.aio, wanted, since)):
        match told:
            case Opened(again=again):
                client.aio.patience = math.inf  # once a node has answered, the next one is waited for
                if again:
                    click.echo("connected again; nothing was missed", err=True)
            case Lost(error=lost):
                reason = f": {one_line(lost.detail)}" if lost else ""
                click.echo(f"the connection is lost{reason}; trying again", err=True)
            case event:
                click.echo(event.text if as_json else event_line(event))


def event_line(event: "Event") -> str:
    """Local time, what it is, whom it concerns, and what there is to say about it."""
    time = f"{event.time.astimezone():%H:%M:%S.%f}"[:-3]
    job = event.job
    if job is None:
        kind = event.type.removeprefix("foliot.")
        return one_line(f"{time} {kind:<{STATUS_WIDTH}} {event.subject}")
    status = click.style(f"{event.status:<{STATUS_WIDTH}}", fg=STATUS_STYLES.get(event.status))
    parts = (job.job_id, job.job_type, job.queue, *_remarks(event.status, job))
    return f"{time} {status} " + "  ".join(one_line(part) for part in parts)


def _remarks(status: str, job: "JobInfo") -> list[str]:
    """How late it started; why it ended or waits; which attempt it is, where it is not the first."""
    found = []
    if status == "running" and job.attempt <= 1 and job.start_time is not None:
        late = (job.start_time - job.schedule_time).total_seconds()
        found.append(f"{show_span(max(late, 0))} after it was due")
    if job.attempt > 1:
        found.append(f"attempt {job.attempt}")
    if job.reason:
        found.append(job.reason)
    return found
