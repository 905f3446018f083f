"""`foliot why`: why a job does not run yet, or how it ended."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from foliot.cli import attempts
from foliot.cli.connection import with_client
from foliot.cli.show import console, json_option, plain, print_json, some, table
from foliot.cli.times import read_clock, show_moment
from foliot.cli.tree import Command

if TYPE_CHECKING:
    from datetime import datetime

    from foliot.sdk.client import Client
    from foliot.wire import Execution, ReasonInfo

ATTEMPTS_SHOWN = 10
NAMES_SHOWN = 5


@click.command(
    cls=Command,
    examples="""
    foliot why j_2x9k4
    foliot jobs why nightly-report --json
    """,
)
@click.argument("job_id")
@json_option
@with_client
def why(client: "Client", job_id: str, as_json: bool) -> None:
    """Tell why a job does not run yet, or how it ended.

    Every reason that holds it back now is shown, with who is behind it and until when, then the expected start where it
    can be told, and the attempts so far. Ends with 0 however the job ended.
    """
    found = client.why(job_id)
    if as_json:
        print_json(found)
        return
    now = read_clock()
    click.echo(sentence(found.summary))
    if found.reasons:
        click.echo()
        console().print(reason_table(found.reasons, now))
    if found.expected_start is not None:
        click.echo(f"\nExpected start: {show_moment(found.expected_start, now) if found.reasons else 'now'}")
    _print_attempts(client.executions(job_id), job_id, now)


def sentence(summary: str) -> str:
    """The summary, which may end with a job's own words, in one line."""
    text = " ".join(plain(summary).split())
    return text[:1].upper() + text[1:] + ("" if text.endswith((".", "!", "?")) else ".")


def reason_table(reasons: "Sequence[ReasonInfo]", now: "datetime") -> Any:
    shown = table(
        ("REASON", "DETAIL", "BY", "UNTIL"),
        [
            (
                each.reason,
                plain(each.detail),
                plain(some(each.by, NAMES_SHOWN)),
                show_moment(each.until, now) if each.until else "",
            )
            for each in reasons
        ],
    )
    for column in shown.columns[1:]:  # told in full, in several lines where the terminal is narrow
        column.no_wrap, column.overflow = False, "fold"
    return shown


def _print_attempts(made: "Sequence[Execution]", job_id: str, now: "datetime") -> None:
    if not made:
        return
    click.echo()
    console().print(table(attempts.COLUMNS, attempts.rows(made[-ATTEMPTS_SHOWN:], now)))
    if len(made) > ATTEMPTS_SHOWN:
        click.echo(
            f"these are the last {ATTEMPTS_SHOWN} of {len(made):,}; see all with: foliot jobs executions {job_id}",
            err=True,
        )
