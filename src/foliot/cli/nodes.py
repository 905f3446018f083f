"""`foliot nodes`: the nodes that share the database."""

from typing import TYPE_CHECKING

import click

from foliot.cli.connection import with_client
from foliot.cli.show import json_option, print_json, print_table, status_text
from foliot.cli.times import read_clock, show_relative
from foliot.cli.tree import Command

if TYPE_CHECKING:
    from foliot.sdk.client import Client


@click.command(cls=Command, examples="foliot nodes\nfoliot nodes --json")
@json_option
@with_client
def nodes(client: "Client", as_json: bool) -> None:
    """List the nodes."""
    found = client.nodes()
    if as_json:
        print_json(found)
        return
    now = read_clock()
    print_table(
        ("NODE", "NAME", "STATUS", "VERSION", "SINCE", "SEEN"),
        [
            (
                node.node_id,
                node.name,
                status_text("alive" if node.alive else "lost"),
                node.version,
                show_relative(node.since, now),
                show_relative(node.last_seen, now),
            )
            for node in found
        ],
        empty="no nodes",
    )
