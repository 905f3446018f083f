"""`foliot jobs cancel|pause|resume|retry|run`: change jobs, one by one or all that a filter finds."""

import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Literal

import click

from foliot.cli.connection import with_client
from foliot.cli.exits import FAILED, NotFound, failure_of
from foliot.cli.filters import filter_body, filter_options, given_filter
from foliot.cli.show import count_text, json_option, print_json
from foliot.cli.tree import Command

if TYPE_CHECKING:
    from foliot.sdk.client import Client
    from foliot.wire import Changed, ManyChanged, ScheduleChanged

Action = Literal["cancel", "pause", "resume", "retry"]


def change_each(ids: tuple[str, ...], change: "Callable[[str], Changed | ScheduleChanged]", *, as_json: bool) -> None:
    """Every one is tried, whatever became of the one before; the exit code is that of the last one refused."""
    from foliot.domain.errors import FoliotError

    changed = []
    code = 0
    for each in ids:
        try:
            answer = change(each)
        except FoliotError as error:
            failure = failure_of(error)
            if failure is None or failure.exit_code not in (FAILED, NotFound.exit_code):
                raise
            click.echo(f"{each}: {failure.message}", err=True)
            code = failure.exit_code
        else:
            changed.append(answer)
            if not as_json:
                click.echo(f"{each} {answer.status}")
    if as_json:
        print_json(changed)
    click.get_current_context().exit(code)


def change_found(
    client: "Client", action: Action, filters: dict[str, Any], *, dry_run: bool, yes: bool, as_json: bool
) -> None:
    """All jobs that the filter finds, after a look at how many they are."""
    change: Callable[..., ManyChanged] = getattr(client, f"{action}_many")
    which = filter_body(filters)
    if not (dry_run or yes):
        matched = change(which, dry_run=True).matched
        if not sys.stdin.isatty():
            raise click.UsageError(
                f"this would {action} {count_text(matched)}; say --yes to do it, or --dry-run to count them"
            )
        click.confirm(f"{action} {count_text(matched)}?", abort=True, err=True)
    answer = change(which, dry_run=dry_run)
    if as_json:
        print_json(answer)
    elif dry_run:
        click.echo(f"the filter finds {count_text(answer.matched)}")
    else:
        click.echo(f"{answer.changed} of {count_text(answer.matched)} changed")


def _command(action: Action, text: str, examples: str) -> click.Command:
    @click.command(name=action, cls=Command, help=text, examples=examples)
    @click.argument("job_ids", nargs=-1, metavar="[JOB_ID]...")
    @filter_options
    @click.option("--dry-run", is_flag=True, help="Only count the jobs that the filter finds.")
    @click.option("-y", "--yes", is_flag=True, help="Do not ask before changing what the filter finds.")
    @json_option
    @with_client
    def command(
        client: "Client", job_ids: tuple[str, ...], dry_run: bool, yes: bool, as_json: bool, **filters: Any
    ) -> None:
        if job_ids and (given_filter(filters) or dry_run):
            raise click.UsageError("give job ids or a filter, not both")
        if job_ids:
            change_each(job_ids, getattr(client, action), as_json=as_json)
        elif given_filter(filters):
            change_found(client, action, filters, dry_run=dry_run, yes=yes, as_json=as_json)
        else:
            raise click.UsageError("which jobs? Give job ids, or a filter such as --status or --queue")

    return command


@click.command(cls=Command, examples="foliot jobs run nightly-report")
@click.argument("job_ids", nargs=-1, required=True, metavar="JOB_ID...")
@json_option
@with_client
def run(client: "Client", job_ids: tuple[str, ...], as_json: bool) -> None:
    """Run waiting jobs now instead of at their time."""
    change_each(job_ids, client.run, as_json=as_json)


COMMANDS = (
    _command(
        "cancel",
        "Cancel jobs: those with the ids given, or all that a filter finds.\n\n"
        "A waiting job is cancelled at once; a running one is told to stop ('cancelling') and has ten seconds for it.",
        "foliot jobs cancel j_2x9k4 j_2x9k5\nfoliot jobs cancel --queue mail --status waiting --dry-run",
    ),
    _command(
        "pause",
        "Hold waiting jobs: those with the ids given, or all that a filter finds.",
        "foliot jobs pause j_2x9k4\nfoliot jobs pause --type report --status waiting --yes",
    ),
    _command(
        "resume",
        "Let held jobs go on: those with the ids given, or all that a filter finds.",
        "foliot jobs resume j_2x9k4\nfoliot jobs resume --status paused --yes",
    ),
    _command(
        "retry",
        "Run failed or cancelled jobs again: those with the ids given, or all that a filter finds.\n\n"
        "A job gets all its tries anew.",
        "foliot jobs retry j_2x9k4\nfoliot jobs retry --status failed --due-after -1h --yes",
    ),
    run,
)
