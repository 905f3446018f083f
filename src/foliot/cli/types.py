"""`foliot types`: job types that are held, in whatever queue their jobs are."""

from collections.abc import Callable
from typing import TYPE_CHECKING

import click

from foliot.cli.connection import with_client
from foliot.cli.control import change_each
from foliot.cli.show import json_option, print_json, print_table, status_text
from foliot.cli.tree import Command, Group

if TYPE_CHECKING:
    from foliot.sdk.client import Client
    from foliot.wire import JobTypeInfo


@click.group(
    cls=Group,
    default="list",
    aliases={"ls": "list"},
    examples="""
    foliot types
    foliot types pause report
    foliot types resume report
    """,
)
def types() -> None:
    """Hold a job type, in whatever queue its jobs are. Without a command it lists those that are paused."""


@types.command(name="list", examples="foliot types list\nfoliot types list --json")
@json_option
@with_client
def list_(client: "Client", as_json: bool) -> None:
    """List the job types that are paused, by name."""
    found = client.paused_types()
    if as_json:
        print_json(found)
        return
    print_table(
        ("TYPE", "STATUS"),
        [(each.job_type, status_text("paused")) for each in found],
        empty="no job type is paused",
    )


def _hold(name: str, text: str, examples: str) -> click.Command:
    @click.command(name=name, cls=Command, help=text, examples=examples)
    @click.argument("job_types", nargs=-1, required=True, metavar="JOB_TYPE...")
    @json_option
    @with_client
    def command(client: "Client", job_types: tuple[str, ...], as_json: bool) -> None:
        change: Callable[[str], JobTypeInfo] = getattr(client, f"{name}_type")
        change_each(job_types, change, as_json=as_json, tell=lambda each: "paused" if each.paused else "active")

    return command


for each in (
    _hold(
        "pause",
        "Start no job of these types until they are resumed.\n\n"
        "What runs goes on, and more of them may be submitted. 'foliot why' tells those that wait of it.",
        "foliot types pause report",
    ),
    _hold("resume", "Let paused job types go on.", "foliot types resume report"),
):
    types.add_command(each)
