"""`foliot forecast`: what is due in the next 24 hours, against what the workers can take."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from foliot.cli.connection import with_client
from foliot.cli.show import console, count_text, json_option, print_json, table
from foliot.cli.times import read_clock
from foliot.cli.tree import Command

if TYPE_CHECKING:
    from rich.text import Text

    from foliot.sdk.client import Client
    from foliot.wire import Forecast

HOURS = 24
WIDTH = 40
EIGHTHS = " ▏▎▍▌▋▊▉"
BUSY = 0.8  # of the capacity: from here on it is told in colour


class Bucket(NamedTuple):
    """A minute or an hour, and what is due in it."""

    time: datetime
    jobs: int
    runs: int

    @property
    def due(self) -> int:
        return self.jobs + self.runs


@click.command(
    cls=Command,
    examples="""
    foliot forecast
    foliot forecast --by minute --hours 2
    foliot forecast --json
    """,
)
@click.option("--by", type=click.Choice(("hour", "minute")), default="hour", show_default=True, help="What a line is.")
@click.option("--hours", type=click.IntRange(1, HOURS), default=HOURS, show_default=True, help="How far to look ahead.")
@json_option
@with_client
def forecast(client: "Client", by: str, hours: int, as_json: bool) -> None:
    """Show what is due in the next 24 hours against what the workers can take.

    Jobs are those that wait for their time, runs those of schedules. The capacity is what the living workers got done
    of late; where more is due than that, jobs will start late. Minutes with nothing due are left out.
    """
    found = client.forecast()
    if as_json:
        print_json(found)
        return
    now = read_clock()
    size = timedelta(hours=1) if by == "hour" else timedelta(minutes=1)
    buckets = gather(found, now, now + timedelta(hours=hours), size)
    capacity = None if found.capacity_per_minute is None else found.capacity_per_minute * (size / timedelta(minutes=1))
    click.echo(headline(found, buckets, hours))
    if any(bucket.due for bucket in buckets):
        click.echo()
        console().print(plot(buckets, capacity))


def gather(found: "Forecast", since: datetime, until: datetime, size: timedelta) -> list[Bucket]:
    """What is due before `until`, by the hours or minutes of this machine's wall. Every hour is there, of minutes only
    those with something due."""
    counts: dict[datetime, list[int]] = {}
    if size >= timedelta(hours=1):
        hour = _floor(since, size)
        while hour < until:
            counts[hour] = [0, 0]
            hour += size
    for minute in found.minutes:
        if minute.time < until:
            place = counts.setdefault(_floor(minute.time, size), [0, 0])
            place[0] += minute.jobs
            place[1] += minute.runs
    return [Bucket(time, *numbers) for time, numbers in sorted(counts.items())]


def _floor(time: datetime, size: timedelta) -> datetime:
    """The begin of the hour or minute on the wall; zones differ from UTC by parts of an hour too."""
    offset = time.astimezone().utcoffset() or timedelta()
    since_midnight = timedelta(hours=time.hour, minutes=time.minute, seconds=time.second, microseconds=time.microsecond)
    return time - (since_midnight + offset) % size


def headline(found: "Forecast", buckets: Sequence[Bucket], hours: int) -> str:
    jobs, runs = sum(bucket.jobs for bucket in buckets), sum(bucket.runs for bucket in buckets)
    due = f"{count_text(jobs)} and {count_text(runs, 'run')} of schedules due in the next {hours} h"
    if not found.slots:
        return f"{due}; no worker is there to run them"
    slots = count_text(round(found.slots), "slot")
    if found.capacity_per_minute is None:
        return f"{due}; {slots}, their pace is not known while nothing runs"
    return f"{due}; {slots}, about {found.capacity_per_minute:,.0f} jobs a minute"


def plot(buckets: Sequence[Bucket], capacity: float | None) -> Any:
    most = max(bucket.due for bucket in buckets)
    shown = table(
        ("TIME", "DUE", "JOBS", "RUNS", "OF CAPACITY"),
        [
            (
                f"{bucket.time.astimezone():%a %H:%M}",
                _bar(bucket.due, most, capacity),
                f"{bucket.jobs:,}",
                f"{bucket.runs:,}",
                f"{bucket.due / capacity:.0%}" if capacity else "",
            )
            for bucket in buckets
        ],
    )
    for column in shown.columns[2:]:
        column.justify = "right"
    return shown


def _bar(due: int, most: int, capacity: float | None) -> "Text":
    from rich.text import Text

    share = due / capacity if capacity else 0
    style = "red" if share > 1 else "yellow" if share > BUSY else "green"
    eighths = -(-due * WIDTH * 8 // most)  # rounded up: a little is seen
    return Text(("█" * (eighths // 8) + EIGHTHS[eighths % 8]).rstrip(), style)
