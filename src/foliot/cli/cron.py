"""`foliot cron`: when a schedule would run, worked out here, without a node."""

from datetime import datetime
from typing import TYPE_CHECKING, Any

import click

from foliot.cli.exits import WrongUse
from foliot.cli.show import console, json_option, print_json, table
from foliot.cli.times import DURATION, TIME, read_clock, show_relative
from foliot.cli.tree import Command

if TYPE_CHECKING:
    from foliot.wire import PreviewBody, PreviewTime

MOST = 1000


@click.command(
    cls=Command,
    examples="""
    foliot cron "0 9 LW * *" --tz Europe/Madrid
    foliot cron "0 9 LW * *" --tz Europe/Madrid --country ES --subdivision MD --on-holiday previous
    foliot cron "30 2 * * *" --tz Europe/Madrid --from 2027-03-27T00:00:00Z --count 3
    foliot cron --every 90m --from 2027-01-01T00:00:00Z
    foliot cron --rrule "FREQ=MONTHLY;BYDAY=-1FR" --json
    """,
)
@click.argument("expression", required=False)
@click.option("--every", type=DURATION, help="Instead of a cron expression, an even beat: 30s, 5m, 2h.")
@click.option("--rrule", metavar="RULE", help="Instead of a cron expression, a rule of RFC 5545.")
@click.option("--tz", metavar="ZONE", help="The IANA time zone.  [default: UTC]")
@click.option("--from", "start", type=TIME, help="The schedule's start_time: look from then on.  [default: now]")
@click.option("--count", type=click.IntRange(1, MOST), default=10, metavar="N", help="How many runs.  [default: 10]")
@click.option("--country", metavar="CODE", help="Close this country's holidays and weekends: ES, US.")
@click.option("--subdivision", metavar="CODE", help="With --country: a part of it, for its own holidays: MD, CA.")
@click.option("--except", "closed", multiple=True, metavar="DATE", help="Close this date, and weekends; may repeat.")
@click.option(
    "--on-holiday",
    type=click.Choice(("skip", "next", "previous")),
    help="What becomes of a run on a closed day: left out, or moved to the next or previous open one.  [default: skip]",
)
@json_option
def cron(as_json: bool, **given: Any) -> None:
    """Show when a schedule would run: in words, then its next runs.

    EXPRESSION is a cron expression of 5 fields, or 6 with seconds first, or @hourly, @daily, @weekly, @monthly or
    @yearly. A note tells where a change of the clock or a holiday has moved a run. No node is needed, and nothing is
    saved.
    """
    from foliot.service.preview import preview_times, timetable_of
    from foliot.wire import to_micros

    body, now = preview_body(**given), read_clock()
    found = preview_times(body, to_micros(now))
    if as_json:
        print_json(found)
        return
    from foliot.domain.timetable.describe import describe

    words = describe(timetable_of(body, to_micros(now)))
    click.echo(f"{words[0].upper()}{words[1:]}\n")
    print_times(found, now)


def preview_body(
    *,
    expression: str | None,
    every: float | str | None,
    rrule: str | None,
    tz: str | None,
    start: datetime | None,
    count: int,
    country: str | None,
    subdivision: str | None,
    closed: tuple[str, ...],
    on_holiday: Any,
) -> "PreviewBody":
    """The body of the API's call."""
    from foliot.wire import CalendarBody, PreviewBody

    if (expression is not None) + (every is not None) + (rrule is not None) != 1:
        raise WrongUse('give one of a cron expression, --every and --rrule. For example: foliot cron "0 9 * * *"')
    calendar = CalendarBody(country=country, subdivision=subdivision, closed=list(closed) or None)
    return PreviewBody(
        cron=expression,
        every=every,
        rrule=rrule,
        timezone=tz,
        start_time=start,
        calendar=None if calendar == CalendarBody() else calendar,
        on_holiday=on_holiday,
        count=count,
    )


def print_times(found: "list[PreviewTime]", now: datetime) -> None:
    """Due times as a table: on the wall of their zone, in UTC, and from `now`."""
    rows = [
        (
            f"{datetime.fromisoformat(each.local):%a} {each.local.replace('T', ' ')}",
            each.time.isoformat(sep=" ").removesuffix("+00:00"),
            show_relative(each.time, now),
            each.note or "",
        )
        for each in found
    ]
    shown = table(("LOCAL", "UTC", "IN", "NOTE"), rows)
    if any(each.note for each in found):
        shown.columns[-1].no_wrap = False  # a note is there to be read: rather on two lines than cut
    console().print(shown)
