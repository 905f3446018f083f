"""`foliot schedules create|change|pause|resume|trigger|backfill|delete`: make schedules and change them."""

import sys
from collections.abc import Callable
from datetime import datetime
from typing import TYPE_CHECKING, Any

import click

from foliot.cli.connection import with_client
from foliot.cli.control import change_each
from foliot.cli.schedule_options import RESETTABLE, change_body, create_body, schedule_options
from foliot.cli.show import count_text, json_option, print_json
from foliot.cli.times import TIME, show_local
from foliot.cli.tree import Command
from foliot.cli.upcoming import print_upcoming

if TYPE_CHECKING:
    from foliot.sdk.client import Client
    from foliot.wire import ScheduleChanged

NEXT_RUNS = 3


@click.command(
    cls=Command,
    examples="""
    foliot schedules create report --cron "0 9 * * mon-fri" --tz Europe/Madrid --id morning-report
    foliot schedules create payout --cron "0 9 L * *" --tz Europe/Madrid --country ES --on-holiday previous
    foliot schedules create sync --every 5m --overlap queue --payload '{"source": "crm"}' --queue slow
    foliot schedules create --file schedule.json
    """,
)
@click.argument("job_type", required=False)
@click.option("--id", "schedule_id", metavar="SCHEDULE_ID", help="Your own id: creating it again changes nothing.")
@schedule_options
@json_option
@with_client
def create(client: "Client", as_json: bool, **given: Any) -> None:
    """Make a schedule: JOB_TYPE is what each run is.

    Prints its id, when it runs in words, and its next runs. Times without an offset are this machine's local time. To
    see first when it would run, use 'foliot cron'; nothing is saved where the input is not right.
    """
    _tell(client, client.create_schedule(create_body(**given)), as_json=as_json)


@click.command(
    cls=Command,
    examples="""
    foliot schedules change morning-report --cron "30 8 * * mon-fri"
    foliot schedules change morning-report --queue slow --payload @payload.json
    foliot schedules change morning-report --reset end_time --reset calendar
    """,
)
@click.argument("schedule_id")
@click.option("--type", "job_type", metavar="JOB_TYPE", help="What each run is.")
@schedule_options
@click.option(
    "--reset",
    multiple=True,
    type=click.Choice(RESETTABLE),
    metavar="FIELD",
    help=f"Set this back to its default; may repeat. One of {', '.join(RESETTABLE)}.",
)
@json_option
@with_client
def change(client: "Client", schedule_id: str, as_json: bool, **given: Any) -> None:
    """Change a schedule: what is given, for every due time from now on.

    Runs that have not started yet get the new job; a trigger takes the place of the one before, of whichever kind.
    """
    body, version = change_body(present=lambda: client.schedule(schedule_id), **given)
    _tell(client, client.change_schedule(schedule_id, body, if_match=version), as_json=as_json)


def _tell(client: "Client", changed: "ScheduleChanged", *, as_json: bool) -> None:
    """What a schedule has become: its id first, to copy."""
    if as_json:
        print_json(changed)
        return
    info = client.schedule(changed.schedule_id)
    click.echo(f"{info.schedule_id} {changed.status}\n{info.description[:1].upper()}{info.description[1:]}\n")
    print_upcoming(info, NEXT_RUNS)


def _each(name: str, text: str, examples: str) -> click.Command:
    @click.command(name=name, cls=Command, help=text, examples=examples)
    @click.argument("schedule_ids", nargs=-1, required=True, metavar="SCHEDULE_ID...")
    @json_option
    @with_client
    def command(client: "Client", schedule_ids: tuple[str, ...], as_json: bool) -> None:
        change: Callable[[str], ScheduleChanged] = getattr(client, f"{name}_schedule")
        change_each(schedule_ids, change, as_json=as_json)

    return command


@click.command(
    cls=Command, examples="foliot schedules delete morning-report\nfoliot schedules delete old-1 old-2 --yes"
)
@click.argument("schedule_ids", nargs=-1, required=True, metavar="SCHEDULE_ID...")
@click.option("-y", "--yes", is_flag=True, help="Do not ask.")
@json_option
@with_client
def delete(client: "Client", schedule_ids: tuple[str, ...], yes: bool, as_json: bool) -> None:
    """Delete schedules, with the record of what became of their due times.

    Jobs that they made stay, and run.
    """
    if not yes:
        which = schedule_ids[0] if len(schedule_ids) == 1 else count_text(len(schedule_ids), "schedule")
        if not sys.stdin.isatty():
            raise click.UsageError(f"this would delete {which}; say --yes to do it")
        click.confirm(f"delete {which}?", abort=True, err=True)
    change_each(schedule_ids, client.delete_schedule, as_json=as_json)


@click.command(
    cls=Command,
    examples="""
    foliot schedules trigger morning-report
    foliot schedules trigger morning-report --wait
    """,
)
@click.argument("schedule_id")
@click.option("--wait", is_flag=True, help="Follow the run's log and progress to the end.")
@json_option
@with_client
@click.pass_context
def trigger(ctx: click.Context, client: "Client", schedule_id: str, wait: bool, as_json: bool) -> None:
    """Make a run now, and print its job id.

    It is made whether the schedule is paused or not, and whatever is under way. With --wait the exit code tells how the
    job ended: 0 completed, 1 failed, 3 cancelled.
    """
    triggered = client.trigger_schedule(schedule_id)
    if wait:
        from foliot.cli import watching

        ctx.exit(watching.watch_to_end(client, triggered.job_id, as_json=as_json))
    print_json(triggered) if as_json else click.echo(triggered.job_id)


@click.command(
    cls=Command,
    examples="""
    foliot schedules backfill morning-report --from 2026-10-01T00:00:00Z --to 2026-10-31T23:59:59Z
    foliot schedules backfill sync --from -1d --to -1m --max-concurrency 4
    """,
)
@click.argument("schedule_id")
@click.option("--from", "since", type=TIME, required=True, help="From this time on, included.")
@click.option("--to", "until", type=TIME, required=True, help="Up to this time, included; not in the future.")
@click.option(
    "--max-concurrency",
    type=click.IntRange(1, 1000),
    metavar="N",
    help="How many of these runs at once.  [default: the schedule's]",
)
@json_option
@with_client
def backfill(
    client: "Client", schedule_id: str, since: datetime, until: datetime, max_concurrency: int | None, as_json: bool
) -> None:
    """Run past due times that have no job, up to 100,000 of them.

    Says how many there will be. Those that have their job already are left alone, so that doing it again is harmless.
    """
    from foliot.wire import BackfillBody

    answer = client.backfill_schedule(
        schedule_id, BackfillBody(since=since, until=until, max_concurrency=max_concurrency)
    )
    if as_json:
        print_json(answer)
    elif answer.runs:
        click.echo(f"{count_text(answer.runs, 'run')} will be made; follow them: foliot schedules runs {schedule_id}")
    else:
        click.echo(f"nothing to do: each due time from {show_local(since)} to {show_local(until)} has its job")


COMMANDS = (
    create,
    change,
    _each(
        "pause",
        "Make no runs until the schedules are resumed. Runs that were made already go on.",
        "foliot schedules pause morning-report",
    ),
    _each(
        "resume",
        "Let paused schedules go on. What was due meanwhile was skipped.",
        "foliot schedules resume morning-report",
    ),
    trigger,
    backfill,
    delete,
)
