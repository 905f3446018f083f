"""`foliot whoami`: who the node takes this key for."""

import click

from foliot.cli.connection import find_connection, with_options
from foliot.cli.keys import reach_text
from foliot.cli.show import json_option, one_line, print_fields, print_json
from foliot.cli.tree import Command


@click.command(cls=Command, examples="foliot whoami\nfoliot whoami --key fk_… --json")
@json_option
@with_options
def whoami(as_json: bool, url: str | None, key: str | None, data_dir: str | None) -> None:
    """Show who the node takes you for, what that caller may do, and where the key was found."""
    connection = find_connection(url, key, data_dir)
    with connection.use() as client:
        found = client.whoami()
    if as_json:
        print_json(found)
        return
    print_fields(
        (
            ("name", one_line(found.name)),
            ("role", found.role),
            ("may", ", ".join(found.permissions)),
            ("namespace", found.namespace),
            ("reaches", reach_text(found.queues, found.job_types) or "all of it"),
            ("node", connection.url),
            ("key from", connection.origin),
        )
    )
