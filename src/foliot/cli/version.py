"""`foliot version`."""

import click

from foliot import __version__
from foliot.cli.tree import Command


@click.command(cls=Command, examples="foliot version")
def version() -> None:
    """Print the version of this program."""
    click.echo(__version__)
