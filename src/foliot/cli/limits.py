"""`foliot limits`: concurrency keys, who holds a token and who waits for one."""

from typing import TYPE_CHECKING

import click

from foliot.cli.connection import with_client
from foliot.cli.job_options import HIGHEST_LIMIT
from foliot.cli.paging import collect, page_options, tell_of_more
from foliot.cli.show import json_option, plain, print_fields, print_json, print_table, some
from foliot.cli.tree import Group

if TYPE_CHECKING:
    from foliot.sdk.client import Client

NAMES_SHOWN = 3


@click.group(
    cls=Group,
    default="list",
    aliases={"ls": "list", "get": "show"},
    examples="""
    foliot limits
    foliot limits show account-42
    foliot limits set account-42 3
    """,
)
def limits() -> None:
    """Concurrency keys: how many jobs at once, who holds a token, who waits. Without a command it lists them."""


@limits.command(name="list", examples="foliot limits list\nfoliot limits list --all --json")
@page_options
@json_option
@with_client
def list_(client: "Client", limit: int, everything: bool, as_json: bool) -> None:
    """List concurrency keys by name.

    HELD counts the jobs that run or only lack a worker, WAITING those that are due and wait for one of these to end.
    """
    found, more = collect(client.limit_page, None if everything else limit)
    if as_json:
        print_json(found)
        return
    print_table(
        ("KEY", "LIMIT", "HELD", "WAITING", "HOLDERS", "WAITERS"),
        [
            (
                plain(each.key),
                f"{each.limit:,}",
                f"{each.held:,}",
                f"{each.waiting:,}",
                some(each.holders, NAMES_SHOWN, each.held),
                some(each.waiters, NAMES_SHOWN, each.waiting),
            )
            for each in found
        ],
        empty="no concurrency keys; a job names one with: foliot submit JOB_TYPE --concurrency account-42=1",
    )
    if more:
        tell_of_more(len(found), "first")


@limits.command(examples="foliot limits show account-42")
@click.argument("name", metavar="KEY")
@json_option
@with_client
def show(client: "Client", name: str, as_json: bool) -> None:
    """Show one concurrency key, with the jobs that hold a token or wait for one, up to 100 of each."""
    found = client.limit(name)
    if as_json:
        print_json(found)
        return
    print_fields(
        (
            ("key", plain(found.key)),
            ("limit", f"{found.limit:,} at once"),
            ("held", f"{found.held:,}"),
            ("waiting", f"{found.waiting:,}"),
            ("holders", some(found.holders, len(found.holders), found.held) or None),
            ("waiters", some(found.waiters, len(found.waiters), found.waiting) or None),
        )
    )


@limits.command(name="set", examples="foliot limits set account-42 3")
@click.argument("name", metavar="KEY")
@click.argument("limit", type=click.IntRange(1, HIGHEST_LIMIT))
@json_option
@with_client
def set_(client: "Client", name: str, limit: int, as_json: bool) -> None:
    """Let at most LIMIT jobs with this key be under way at once, from now on.

    Where it is raised, those that wait are let in; where it is lowered, nobody is thrown out. A job that names another
    limit later sets that.
    """
    found = client.set_limit(name, limit)
    if as_json:
        print_json(found)
    else:
        click.echo(f"{plain(found.key)} {found.limit:,} at once, {found.held:,} held, {found.waiting:,} waiting")
