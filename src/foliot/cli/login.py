"""`foliot login`: lets a browser in."""

from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import click

from foliot.cli.connection import with_client
from foliot.cli.show import json_option, print_json
from foliot.cli.times import read_clock, show_span
from foliot.cli.tree import Command

if TYPE_CHECKING:
    from foliot.sdk.client import Client


@click.command(
    cls=Command, examples="foliot login\nfoliot login --no-open\nfoliot login --url https://foliot.example.org"
)
@click.option("--no-open", is_flag=True, help="Print the link instead of opening a browser.")
@json_option
@with_client
def login(client: "Client", no_open: bool, as_json: bool) -> None:
    """Log a browser in by a link that is good once and for a short time, as the caller whose key is used here.

    Who opens the link first is let in: hand it to nobody else. With --json it is printed, too.
    """
    import msgspec

    link = client.login_link()
    # At the address by which it was reached from here, not at the one that the node believes to have.
    address = f"{client.url}/login?{urlsplit(link.url).query}"
    left = show_span(max(0, (link.expires - read_clock()).total_seconds()))
    if as_json:
        print_json(msgspec.structs.replace(link, url=address))
    elif no_open:
        click.echo(address)
        click.echo(f"good for one browser, once, for {left}", err=True)
    elif _opened(address):
        click.echo(f"opened in the browser; the link is good once, for {left}", err=True)
    else:
        click.echo(address)
        click.echo(f"no browser could be opened here; open the link yourself: it is good once, for {left}", err=True)


def _opened(address: str) -> bool:
    import webbrowser

    try:
        return webbrowser.open(address)
    except webbrowser.Error:
        return False
