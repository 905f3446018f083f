"""`foliot channels`: where people are told."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from foliot.cli.connection import with_client
from foliot.cli.control import change_each
from foliot.cli.exits import Failed, WrongUse
from foliot.cli.show import json_option, one_line, print_json, print_table
from foliot.cli.times import read_clock, show_relative
from foliot.cli.tree import Group

if TYPE_CHECKING:
    from foliot.sdk.client import Client


@click.group(
    cls=Group,
    default="list",
    aliases={"ls": "list"},
    examples="""
    foliot channels
    foliot channels set ops --url-file slack.url
    foliot channels test ops
    """,
)
def channels() -> None:
    """Channels: where people are told, one address of Apprise each. Without a command it lists them."""


@channels.command(name="list", examples="foliot channels list\nfoliot channels list --json")
@json_option
@with_client
def list_(client: "Client", as_json: bool) -> None:
    """List channels by name. Of an address only the kind is shown."""
    found = client.channels()
    if as_json:
        print_json(found)
        return
    now = read_clock()
    print_table(
        ("CHANNEL", "ADDRESS", "CREATED"),
        [(each.name, one_line(each.url), show_relative(each.created_time, now)) for each in found],
        empty="no channels; make one with: foliot channels set NAME --url-file FILE",
    )


@channels.command(
    name="set",
    examples="""
    foliot channels set ops --url-file slack.url
    foliot channels set pager - < pagerduty.url
    foliot channels set team slack://TokenA/TokenB/TokenC/team
    """,
)
@click.argument("name", metavar="CHANNEL")
@click.argument("address", metavar="[URL]", required=False)
@click.option(
    "--url-file",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Read the address from the first line of a file.",
)
@json_option
@with_client
def set_(client: "Client", name: str, address: str | None, url_file: Path | None, as_json: bool) -> None:
    """Make a channel, or give one another address.

    URL is an address of Apprise: slack://…, mailto://…, pagerduty://…, tgram://…, json://… and many more. It holds
    secrets, is kept sealed where the node has keys for it, and is never shown again. So that it does not stay in the
    shell's history either, give --url-file, or - as the URL and the address on stdin.
    """
    from foliot.sdk.failures import NotFound

    if (address is None) == (url_file is None):
        raise click.UsageError("give the address as URL, as - with the address on stdin, or with --url-file")
    if address is None or address == "-":
        address = _first_line(url_file)
    try:
        saved = client.change_channel(name, address)
    except NotFound:
        saved = client.create_channel(name, address)
    if as_json:
        print_json(saved)
    else:
        click.echo(f"{saved.name} {one_line(saved.url)}")
        click.echo(f"see that it arrives: foliot channels test {saved.name}", err=True)


@channels.command(examples="foliot channels remove ops")
@click.argument("names", nargs=-1, required=True, metavar="CHANNEL...")
@with_client
def remove(client: "Client", names: tuple[str, ...]) -> None:
    """Remove channels."""
    change_each(names, client.delete_channel, as_json=False, tell=lambda _none: "removed")


@channels.command(examples="foliot channels test ops")
@click.argument("name", metavar="CHANNEL")
@json_option
@with_client
def test(client: "Client", name: str, as_json: bool) -> None:
    """Send a notice that says it is a test, now. Ends with 1 where it does not go out."""
    tested = client.test_channel(name)
    if as_json:
        print_json(tested)
    if not tested.sent:
        raise Failed(f"{name} was not told: {one_line(tested.error or 'no reason was given')}")
    if not as_json:
        click.echo(f"{name} was told")


def _first_line(file: Path | None) -> str:
    where = "stdin" if file is None or str(file) == "-" else str(file)
    try:
        with click.open_file("-" if file is None else str(file), encoding="utf-8") as stream:
            line = str(stream.readline()).strip()
    except (OSError, UnicodeDecodeError) as error:
        raise WrongUse(f"{where} can not be read: {getattr(error, 'strerror', None) or error}") from None
    if not line:
        raise WrongUse(f"{where} has no address in its first line")
    return line
