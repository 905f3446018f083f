"""`foliot schedules`: find schedules and look at them. The commands that change them are in `schedule_control`."""

from functools import partial
from typing import TYPE_CHECKING, Any

import click

from foliot.cli import schedule_control
from foliot.cli.connection import with_client
from foliot.cli.paging import collect, page_options, tell_of_more
from foliot.cli.show import console, json_option, plain, print_fields, print_json, print_table, status_text, table
from foliot.cli.times import read_clock, show_local, show_moment, show_relative, show_span
from foliot.cli.tree import Group
from foliot.cli.upcoming import print_upcoming

if TYPE_CHECKING:
    from datetime import datetime

    from foliot.sdk.client import Client
    from foliot.wire import RunInfo, ScheduleInfo


@click.group(
    cls=Group,
    aliases={"ls": "list", "get": "show"},  # as jobs have them
    examples="""
    foliot schedules list
    foliot schedules create report --cron "0 9 * * mon-fri" --tz Europe/Madrid --id morning-report
    foliot schedules runs morning-report
    """,
)
def schedules() -> None:
    """Jobs that run again and again: make them, look at them, change them."""


@schedules.command(name="list", examples="foliot schedules list\nfoliot schedules list --all --json")
@page_options
@json_option
@with_client
def list_(client: "Client", limit: int, everything: bool, as_json: bool) -> None:
    """List schedules, newest first."""
    found, more = collect(client.schedule_page, None if everything else limit)
    if as_json:
        print_json(found)
        return
    now = read_clock()
    print_table(
        ("SCHEDULE", "STATUS", "WHEN", "NEXT RUN", "IN", "RUNS"),
        [
            (
                each.schedule_id,
                status_text(each.status),
                each.description,
                show_local(each.next_run) if each.next_run else "",
                show_relative(each.next_run, now) if each.next_run else "",
                f"{each.runs:,}",
            )
            for each in found
        ],
        empty='no schedules; make one with: foliot schedules create report --cron "0 9 * * *"',
    )
    if more:
        tell_of_more(len(found))


@schedules.command(examples="foliot schedules show morning-report\nfoliot schedules show morning-report --next 20")
@click.argument("schedule_id")
@click.option("--next", "count", type=click.IntRange(1, 1000), default=5, show_default=True, help="How many next runs.")
@json_option
@with_client
def show(client: "Client", schedule_id: str, count: int, as_json: bool) -> None:
    """Show one schedule and its next runs."""
    info = client.schedule(schedule_id)
    if as_json:
        print_json(info)
        return
    print_fields(_fields(info, read_clock()))
    click.echo()
    print_upcoming(info, count)


def _fields(info: "ScheduleInfo", now: "datetime") -> list[tuple[str, Any]]:
    import msgspec

    from foliot.wire import encode

    job = msgspec.json.decode(info.job, type=dict[str, msgspec.Raw])
    every = None if info.every is None else show_span(info.every)
    return [
        ("schedule", info.schedule_id),
        ("status", status_text(info.status)),
        ("when", info.description),
        ("cron", info.cron),
        ("every", every),
        ("rrule", info.rrule),
        ("timezone", info.timezone),
        ("start", show_moment(info.start_time, now) if info.start_time else None),
        ("end", show_moment(info.end_time, now) if info.end_time else None),
        ("calendar", None if info.calendar is None else plain(encode(info.calendar).decode())),
        ("on holiday", info.on_holiday),
        ("jitter", show_span(info.jitter) if info.jitter else None),
        ("overlap", f"{info.overlap}, {info.max_concurrency} at once" if info.overlap != "allow" else info.overlap),
        (
            "catch up",
            info.catch_up if info.catch_up == "none" else f"{info.catch_up}, {show_span(info.catch_up_window)}",
        ),
        ("runs", f"{info.runs:,}" if info.max_runs is None else f"{info.runs:,} of {info.max_runs:,}"),
        ("owner", info.owner or None),
        ("created", show_moment(info.created_time, now)),
        ("changed", show_moment(info.last_updated, now) if info.last_updated != info.created_time else None),
        ("version", str(info.version)),
        *((f"job {name}".replace("job job_", "job "), plain(_text(value))) for name, value in job.items()),
    ]


def _text(value: Any) -> str:
    text = bytes(value).decode()
    return text[1:-1] if text.startswith('"') and "\\" not in text else text


@schedules.command(
    examples="""
    foliot schedules runs morning-report
    foliot schedules runs morning-report --all --json
    """
)
@click.argument("schedule_id")
@page_options
@json_option
@with_client
def runs(client: "Client", schedule_id: str, limit: int, everything: bool, as_json: bool) -> None:
    """Show what became of a schedule's due times, newest first.

    Each due time ends with one verdict: ran, skipped, caught_up, backfilled, missed or expired; one that waits for room
    has none yet. Due times in a row that share a verdict are one line with a count.
    """
    found, more = collect(partial(client.run_page, schedule_id), None if everything else limit)
    if as_json:
        print_json(found)
        return
    if not found:
        click.echo(f"nothing was due yet; see what will be: foliot schedules show {schedule_id}", err=True)
        return
    shown = table(("DUE", "UNTIL", "COUNT", "VERDICT", "REASON", "JOB"), [run_row(run) for run in found])
    last = shown.columns[-1]
    if last.header == "JOB":
        last.overflow = "fold"  # an id to copy: rather on two lines than cut
        last.no_wrap = False
    console().print(shown)
    if more:
        tell_of_more(len(found))


def run_row(run: "RunInfo") -> tuple[Any, ...]:
    several = run.until is not None
    return (
        show_local(run.due_time),
        show_local(run.until) if run.until else "",
        f"{'' if run.exact else 'at least '}{run.count:,}" if several else "",
        status_text(run.verdict or "waiting"),
        run.reason or "" if run.verdict else "",
        run.job_id or "",
    )


for command in schedule_control.COMMANDS:
    schedules.add_command(command)
