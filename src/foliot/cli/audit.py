"""`foliot audit`: who did what to which object, from where."""

import sys
from typing import TYPE_CHECKING, Literal

import click

from foliot.cli.audit_export import csv_row, ndjson_row, written
from foliot.cli.connection import be_patient, with_client
from foliot.cli.exits import FAILED
from foliot.cli.paging import PAGE, collect, page_options, tell_of_more
from foliot.cli.show import json_option, one_line, print_json, print_table
from foliot.cli.times import show_local
from foliot.cli.tree import Group

if TYPE_CHECKING:
    from foliot.sdk.client import Client
    from foliot.wire import AuditInfo

Form = Literal["ndjson", "csv"]


@click.group(
    cls=Group,
    default="list",
    aliases={"ls": "list"},
    examples="""
    foliot audit
    foliot audit check
    foliot audit export audit.csv
    """,
)
def audit() -> None:
    """The audit log: who did what to which object, from where. Without a command it lists the newest entries."""


@audit.command(name="list", examples="foliot audit list --limit 200\nfoliot audit list --json")
@page_options
@json_option
@with_client
def list_(client: "Client", limit: int, everything: bool, as_json: bool) -> None:
    """List entries of the audit log, newest first.

    In it is every change but submitted jobs, which carry their owner, and what workers report; also what was refused.
    An entry is written before what it tells is done.
    """
    found, more = collect(client.audit_page, None if everything else limit)
    if as_json:
        print_json(found)
        return
    print_table(
        ("SEQ", "TIME", "NAMESPACE", "WHO", "ACTION", "OBJECT", "OUTCOME", "FROM", "KEY ID"),
        [_row(each) for each in found],
        empty="nothing is in the audit log yet",
    )
    if more:
        tell_of_more(len(found))


@audit.command(examples="foliot audit check\nfoliot audit check --json")
@json_option
@with_client
def check(client: "Client", as_json: bool) -> None:
    """Go through the chain of the whole audit log. Where it is broken, the exit code is 1.

    Each entry has a hash over itself and the hash before it: one that was changed, taken out or put in later does not
    fit. That the newest ones were cut off shows only to who has kept an earlier LAST HASH. It takes the node's own
    admin key.
    """
    found = client.check_audit()
    if as_json:
        print_json(found)
    elif found.broken_at is None:
        click.echo(f"{_entries(found.entries)}, the chain is whole; last hash {found.last_hash}")
    else:
        click.echo(f"the chain is broken at entry {found.broken_at:,}; what stands before it is whole", err=True)
    if found.broken_at is not None:
        click.get_current_context().exit(FAILED)


@audit.command(
    examples="""
    foliot audit export audit.ndjson
    foliot audit export audit.csv
    foliot audit export --format csv > audit.csv
    """
)
@click.argument("file", default="-", metavar="[FILE]")
@click.option(
    "--format",
    "form",
    type=click.Choice(("ndjson", "csv")),
    help="JSON, an entry to a line, or CSV.  [default: csv for a FILE that ends in .csv, else ndjson]",
)
@click.option("--json", "as_json", is_flag=True, help="The same as --format ndjson.")
@with_client
def export(client: "Client", file: str, form: Form | None, as_json: bool) -> None:
    """Write all of the audit log, newest entry first, to FILE or to stdout.

    FILE is replaced once all is there. In CSV a cell that a spreadsheet would take for a formula begins with ' instead.
    """
    if as_json and form == "csv":
        raise click.UsageError("give --format csv or --json, not both")
    form = form or ("csv" if file.lower().endswith(".csv") and not as_json else "ndjson")
    count = 0
    progress = sys.stderr.isatty() and not (file == "-" and sys.stdout.isatty())
    with written(file) as out:
        if form == "csv":
            out.write(csv_row(None))
        cursor: str | None = None
        while True:
            page, cursor = client.audit_page(limit=PAGE, cursor=cursor)
            be_patient(client)
            out.writelines(map(csv_row if form == "csv" else ndjson_row, page))
            count += len(page)
            if progress:
                click.echo(f"{_entries(count)}\r", nl=False, err=True)
            if cursor is None:
                break
    click.echo(_entries(count), err=True)


def _row(entry: "AuditInfo") -> tuple[str, ...]:
    return (
        str(entry.seq),
        show_local(entry.time.replace(microsecond=0)),
        *map(one_line, (entry.namespace, entry.actor, entry.action, entry.object, entry.outcome, entry.source)),
        entry.key_id or "",
    )


def _entries(number: int) -> str:
    return f"{number:,} {'entry' if number == 1 else 'entries'}"
