"""`foliot jobs cancel|pause|resume|retry|run`: change jobs, one by one or all that a filter finds."""

import sys
from collections.abc import Callable
from functools import partial
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Literal, TypeVar

import click

from foliot.cli.connection import with_client
from foliot.cli.exits import FAILED, NotFound, failure_of
from foliot.cli.filters import filter_body, filter_options, given_filter
from foliot.cli.show import count_text, json_option, print_json
from foliot.cli.submit import payload_of
from foliot.cli.tree import Command

if TYPE_CHECKING:
    from foliot.sdk.client import Client
    from foliot.wire import ManyChanged

Action = Literal["cancel", "pause", "resume"]
T = TypeVar("T")


def change_each(
    ids: tuple[str, ...],
    change: Callable[[str], T],
    *,
    as_json: bool,
    tell: Callable[[T], str] = attrgetter("status"),
) -> None:
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
                click.echo(f"{each} {tell(answer)}")
    if as_json:
        print_json(changed)
    click.get_current_context().exit(code)


def change_found(
    action: str,
    change: "Callable[..., ManyChanged]",
    filters: dict[str, Any],
    *,
    dry_run: bool,
    yes: bool,
    as_json: bool,
) -> None:
    """All jobs that the filter finds, after a look at how many they are."""
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
    @_which_options
    @json_option
    @with_client
    def command(client: "Client", job_ids: tuple[str, ...], as_json: bool, **which: Any) -> None:
        if _by_id(job_ids, which):
            change_each(job_ids, getattr(client, action), as_json=as_json)
        else:
            change_found(action, getattr(client, f"{action}_many"), as_json=as_json, **_split(which))

    return command


def _which_options(function: Callable[..., None]) -> Callable[..., None]:
    for option in (
        click.option("-y", "--yes", is_flag=True, help="Do not ask before changing what the filter finds."),
        click.option("--dry-run", is_flag=True, help="Only count the jobs that the filter finds."),
        filter_options,
        click.argument("job_ids", nargs=-1, metavar="[JOB_ID]..."),
    ):
        function = option(function)
    return function


def _by_id(job_ids: tuple[str, ...], which: dict[str, Any]) -> bool:
    """Whether the jobs are named; else a filter finds them."""
    if job_ids and (given_filter(which) or which["dry_run"]):
        raise click.UsageError("give job ids or a filter, not both")
    if not job_ids and not given_filter(which):
        raise click.UsageError("which jobs? Give job ids, or a filter such as --status or --queue")
    return bool(job_ids)


def _split(which: dict[str, Any]) -> dict[str, Any]:
    """The filter apart from how it is gone about."""
    return {"dry_run": which.pop("dry_run"), "yes": which.pop("yes"), "filters": which}


@click.command(
    cls=Command,
    examples="""
    foliot jobs retry j_2x9k4
    foliot jobs retry j_2x9k4 --dependents --payload '{"region": "eu"}'
    foliot jobs retry --status failed --due-after -1h --yes
    """,
)
@_which_options
@click.option("--payload", metavar="JSON", help="Run them with this payload: JSON, @FILE, or - for stdin.")
@click.option(
    "--dependents", is_flag=True, help="With job ids: also those that were cancelled because of them, and wait anew."
)
@json_option
@with_client
def retry(
    client: "Client", job_ids: tuple[str, ...], payload: str | None, dependents: bool, as_json: bool, **which: Any
) -> None:
    """Run failed or cancelled jobs again: those with the ids given, or all that a filter finds.

    A job gets all its tries anew, and keeps its payload unless another one is given. 'foliot jobs failed' lists those
    that failed.
    """
    by_id = _by_id(job_ids, which)
    if dependents and not by_id:
        raise click.UsageError("--dependents goes with job ids; what a filter finds is run again by itself")
    more = {} if payload is None else {"payload": payload_of(payload)}
    if by_id:
        change_each(job_ids, partial(client.retry, dependents=dependents, **more), as_json=as_json)
    else:
        change_found("retry", partial(client.retry_many, **more), as_json=as_json, **_split(which))


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
    retry,
    run,
)
