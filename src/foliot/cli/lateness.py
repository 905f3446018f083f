"""`foliot lateness`: how late jobs started, and where the time went."""

from typing import TYPE_CHECKING

import click

from foliot.cli.connection import with_client
from foliot.cli.show import json_option, print_json, print_table
from foliot.cli.times import DURATION, read_clock, show_span
from foliot.cli.tree import Command

if TYPE_CHECKING:
    from datetime import datetime

    from foliot.sdk.client import Client
    from foliot.wire import LatenessInfo, PercentilesInfo

STEPS = ("admit", "claim", "start", "run")


@click.command(
    cls=Command,
    examples="""
    foliot lateness
    foliot lateness --queue mail --since 1d
    foliot lateness --by queue --json
    """,
)
@click.option("--queue", help="Only jobs of this queue.")
@click.option("--type", "job_type", help="Only jobs of this type.")
@click.option("--since", type=DURATION, default="1h", show_default=True, help="Jobs that ended within this time.")
@click.option(
    "--by",
    type=click.Choice(["queue", "job_type", "both"]),
    default="both",
    show_default=True,
    help="What is told apart.",
)
@json_option
@with_client
def lateness(
    client: "Client", queue: str | None, job_type: str | None, since: float | str, by: str, as_json: bool
) -> None:
    """Show how late jobs started, from their due time to their handler, and how long each step took.

    LATE is what half and 99 in 100 did not exceed, and the most. ADMIT is from due to ready for a worker, CLAIM to the
    worker, START to its handler, RUN to the end: what half and 99 in 100 did not exceed. Attempts that were tried again
    do not count.
    """
    found = client.lateness(queue=queue, job_type=job_type, since=_before(since), by=by)  # type: ignore[arg-type]
    if as_json:
        print_json(found)
        return
    print_table(
        ("QUEUE", "TYPE", "JOBS", "LATE P50", "P99", "MAX", "ADMIT", "CLAIM", "START", "RUN"),
        [_row(each) for each in found],
        empty="no job has ended in that time",
    )


def _before(since: float | str) -> "datetime":
    from datetime import timedelta

    from foliot.domain.duration import parse_duration

    return read_clock() - timedelta(microseconds=parse_duration(since, "since"))


def _row(info: "LatenessInfo") -> tuple[str, ...]:
    late = info.late
    return (
        info.queue or "all",
        info.job_type or "all",
        f"{info.jobs:,}",
        show_brief(late.p50) if late else "",
        show_brief(late.p99) if late else "",
        show_brief(late.max) if late else "",
        *(_pair(getattr(info, step)) for step in STEPS),
    )


def _pair(step: "PercentilesInfo | None") -> str:
    return "" if step is None else f"{show_brief(step.p50)} {show_brief(step.p99)}"


def show_brief(seconds: float) -> str:
    """A duration as `show_span` has it, and parts of a millisecond where it is shorter than ten of them."""
    return f"{seconds * 1000:.1f}ms" if seconds < 0.00995 else show_span(seconds)
