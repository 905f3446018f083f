"""`foliot namespaces`: who shares nothing with whom, and what each of them may use."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click

from foliot.cli.connection import with_client
from foliot.cli.show import json_option, print_json, print_table
from foliot.cli.times import read_clock, show_relative
from foliot.cli.tree import Group

if TYPE_CHECKING:
    from foliot.sdk.client import Client
    from foliot.wire import NamespaceInfo

# The bounds of the API, named here so that help needs no heavy import; a test compares.
QUOTAS = {
    "submits_per_second": (1, 1_000_000, "How many jobs may be handed in a second."),
    "payload_bytes_per_second": (1024, 1 << 40, "How many bytes of payload a second."),
    "live_jobs": (1, 1_000_000_000, "How many jobs that have not ended there may be."),
}


def quota_options(function: Callable[..., None]) -> Callable[..., None]:
    for name, (lowest, highest, text) in reversed(QUOTAS.items()):
        flag = f"--{name.replace('_', '-')}"
        function = click.option(flag, type=click.IntRange(lowest, highest), metavar="N", help=text)(function)
    return function


@click.group(
    cls=Group,
    default="list",
    aliases={"ls": "list"},
    examples="""
    foliot namespaces
    foliot namespaces create team-a --submits-per-second 500 --live-jobs 100000
    foliot namespaces set team-a --reset live_jobs
    """,
)
def namespaces() -> None:
    """Namespaces: jobs, queues, schedules and keys of one are not there for another. Without a command it lists them.

    Only the node's own admin key makes, changes and deletes them.
    """


@namespaces.command(name="list", examples="foliot namespaces list\nfoliot namespaces list --json")
@json_option
@with_client
def list_(client: "Client", as_json: bool) -> None:
    """List namespaces with what they may use; where nothing stands there is no limit.

    Without the node's own admin key it is the caller's own.
    """
    found = client.namespaces()
    if as_json:
        print_json(found)
        return
    now = read_clock()
    print_table(
        ("NAMESPACE", "SUBMITS A SECOND", "PAYLOAD BYTES A SECOND", "LIVE JOBS", "CREATED"),
        [
            (each.name, *(_number(getattr(each, quota)) for quota in QUOTAS), show_relative(each.created_time, now))
            for each in found
        ],
        empty="no namespaces",
    )


@namespaces.command(
    examples="""
    foliot namespaces create team-a
    foliot namespaces create team-b --submits-per-second 500 --live-jobs 100000
    """
)
@click.argument("name")
@quota_options
@json_option
@with_client
def create(client: "Client", name: str, as_json: bool, **given: int | None) -> None:
    """Make a namespace. Its first key is made with: foliot keys create NAME --role admin --namespace NAMESPACE.

    What goes beyond a quota is turned away with a 429, and programs that use the SDK wait and try again.
    """
    made = client.create_namespace(name, **{quota: value for quota, value in given.items() if value is not None})
    _tell(made, as_json=as_json)


@namespaces.command(
    name="set",
    examples="""
    foliot namespaces set team-a --submits-per-second 1000
    foliot namespaces set team-a --payload-bytes-per-second 10485760 --reset live_jobs
    """,
)
@click.argument("name")
@quota_options
@click.option(
    "--reset",
    multiple=True,
    type=click.Choice(tuple(QUOTAS)),
    metavar="QUOTA",
    help=f"Take this limit away; may repeat. One of {', '.join(QUOTAS)}.",
)
@json_option
@with_client
def set_(client: "Client", name: str, reset: tuple[str, ...], as_json: bool, **given: int | None) -> None:
    """Set what a namespace may use: what is given, on every node within 5 seconds."""
    fields: dict[str, Any] = {quota: value for quota, value in given.items() if value is not None}
    if twice := fields.keys() & {*reset}:
        raise click.UsageError(f"{min(twice)} can not be given and reset at once")
    if not (fields or reset):
        raise click.UsageError("set what? Give at least one option, such as --live-jobs")
    _tell(client.set_quotas(name, **fields, **dict.fromkeys(reset)), as_json=as_json)


@namespaces.command(examples="foliot namespaces delete team-a")
@click.argument("name")
@json_option
@with_client
def delete(client: "Client", name: str, as_json: bool) -> None:
    """Delete a namespace that is empty: no job was ever in it, no schedule is, and its keys are revoked."""
    client.delete_namespace(name)
    if as_json:
        print_json({"name": name, "deleted": True})
    else:
        click.echo(f"{name} deleted")


def _tell(info: "NamespaceInfo", *, as_json: bool) -> None:
    if as_json:
        print_json(info)
        return
    set_here = [
        f"{quota.replace('_', ' ')} {value:,}" for quota in QUOTAS if (value := getattr(info, quota)) is not None
    ]
    click.echo(f"{info.name} {', '.join(set_here) or 'no limits'}")


def _number(value: int | None) -> str:
    return "" if value is None else f"{value:,}"
