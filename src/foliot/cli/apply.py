"""`foliot apply`: make the schedules what a file says."""

from collections.abc import Iterable, Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from foliot.cli.connection import be_patient, with_client
from foliot.cli.exits import WrongUse, failure_of
from foliot.cli.schedule_file import ScheduleFile
from foliot.cli.show import plain, print_json
from foliot.cli.times import read_clock
from foliot.cli.tree import Command

if TYPE_CHECKING:
    from foliot.sdk.apply import Difference
    from foliot.sdk.client import Client

MARKS = {"create": ("+", "green"), "change": ("~", "yellow"), "delete": ("-", "red")}
DURATIONS = ("every", "jitter", "catch_up_window", "job.timeout")
DONE = {"create": "created", "change": "changed", "delete": "deleted", "same": "unchanged"}
TO_DO = {"create": "to create", "change": "to change", "delete": "to delete", "same": "unchanged"}


@click.command(
    cls=Command,
    examples="""
    foliot apply schedules.toml --dry-run
    foliot apply schedules.toml
    foliot apply billing.toml --prune --prefix billing.
    """,
)
@click.argument("file", type=click.Path(path_type=Path, allow_dash=True))
@click.option("--dry-run", is_flag=True, help="Only show the difference.")
@click.option("--prune", is_flag=True, help="Also delete the schedules that are not in the file.")
@click.option("--prefix", metavar="TEXT", default="", help="All ids of the file begin so; --prune deletes no others.")
@click.option("--json", "as_json", is_flag=True, help="Print what differs as JSON instead.")
@with_client
def apply(client: "Client", file: Path, dry_run: bool, prune: bool, prefix: str, as_json: bool) -> None:
    """Make the schedules what a file says: create those that are missing, change those that differ.

    FILE is TOML with the API's fields ('-' is stdin):

    \b
    [[schedule]]
    schedule_id = "morning-report"
    cron = "0 9 * * mon-fri"
    timezone = "Europe/Madrid"
    start_time = 2027-01-01T00:00:00+01:00
    calendar = { country = "ES", subdivision = "MD", except = [2027-12-24] }
    job.job_type = "report"
    job.timeout = "10m"
    job.payload = { format = "pdf", pages = 3 }

    \b
    [[schedule]]
    schedule_id = "sync"
    every = "5m"
    overlap = "queue"
    job = { job_type = "sync", queue = "slow" }

    The whole file is checked before anything is changed, and the difference is shown. What is left out of a schedule
    is at its default, but a schedule that was paused by hand stays so unless the file says otherwise. Doing it again
    is harmless.
    """
    from foliot.domain.errors import BadInput
    from foliot.sdk.apply import find_existing, plan
    from foliot.wire import to_micros

    found = ScheduleFile(file)
    if prune and not (found.bodies or prefix):
        raise WrongUse(
            f"{file} has no [[schedule]], and --prune would delete all; delete them by name, or give --prefix"
        )
    existing = client.thread.run(lambda: find_existing(client.aio, found.bodies, prune=prune))
    created = {each.schedule_id: to_micros(each.created_time) for each in existing}
    found.check(created, to_micros(read_clock()))
    try:
        differences = plan(found.bodies, existing, prune=prune, prefix=prefix)
    except BadInput as error:
        raise WrongUse(f"{file}: {error.detail}; nothing was changed") from None
    if not as_json:
        for difference in differences:
            _show(difference)
    if not dry_run:
        differences = carry_out_each(client, differences)
    if as_json:
        print_json([_record(difference) for difference in differences])
    else:
        click.echo(_summary(differences, TO_DO if dry_run else DONE))


def carry_out_each(client: "Client", differences: "Sequence[Difference]") -> "list[Difference]":
    """One by one, so that what was done before some trouble can be told."""
    from foliot.domain.errors import FoliotError
    from foliot.sdk.apply import carry_out

    be_patient(client)
    done: list[Difference] = []
    for difference in differences:
        try:
            done += client.thread.run(lambda each=difference: carry_out(client.aio, [each]))  # type: ignore[misc]
        except FoliotError as error:
            failure = failure_of(error)
            if failure is None:
                raise
            told = (
                f"{difference.schedule_id}: {failure.message.rstrip('.')}. {len(done)} of {len(differences)} were done "
                "before; applying the file again goes on from there"
            )
            raise type(failure)(told) from None
    return done


def _show(difference: "Difference") -> None:
    """One schedule: `+ name`, and a line for each field; nothing for one that is as it should be."""
    if difference.action == "same":
        return
    mark, colour = MARKS[difference.action]
    click.secho(f"{mark} {difference.schedule_id}", fg=colour)
    for name, (old, new) in sorted(difference.fields.items()):
        change = _text(name, new) if difference.action == "create" else f"{_text(name, old)} → {_text(name, new)}"
        click.echo(f"    {name}: {change}")


def _text(name: str, value: Any) -> str:
    import msgspec

    match value:
        case None:
            return "none"
        case str():
            return plain(value)
        case datetime():
            return value.isoformat().replace("+00:00", "Z")
        case _:
            return plain(msgspec.json.encode(value).decode()) + ("s" if name in DURATIONS else "")


def _summary(differences: "Iterable[Difference]", words: dict[str, str]) -> str:
    actions = [difference.action for difference in differences]
    counts = [f"{actions.count(action)} {word}" for action, word in words.items() if action in actions]
    return ", ".join(counts) or "nothing to do"


def _record(difference: "Difference") -> dict[str, Any]:
    """For programs."""
    return {
        "action": difference.action,
        "schedule_id": difference.schedule_id,
        "fields": {name: {"old": old, "new": new} for name, (old, new) in difference.fields.items()},
    }
