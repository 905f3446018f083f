"""How a command finds its node and its key, and what it says when it can not."""

import functools
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from foliot.cli.exits import NoNode

if TYPE_CHECKING:
    from foliot.sdk.client import Client

PATIENCE_SECONDS = 60.0


@dataclass(frozen=True, kw_only=True)
class Connection:
    """Where the node is, and the key to show it; empty where none was found."""

    url: str
    key: str

    def open(self) -> "Client":
        from foliot.sdk.client import Client

        return Client(self.url, key=self.key or None, patience=0)


def be_patient(client: "Client") -> None:
    """For a command that takes long: once a node has answered, its restart is waited out. Before that nobody wants to
    wait for a wrong address."""
    client.aio.patience = PATIENCE_SECONDS


def find_connection(
    url: str | None = None,
    key: str | None = None,
    data_dir: str | None = None,
    environ: Mapping[str, str] | None = None,
) -> Connection:
    """What was given, else FOLIOT_*, else foliot.toml, else a node on this machine.

    The key in the data directory is this machine's administrator's. It is shown only to a node on this machine, or
    where the data directory was named on the command line, so that `--url` of somebody else's server does not hand it
    out.
    """
    from foliot.sdk.location import KEY_FILE, is_loopback
    from foliot.settings import load_settings

    environ = os.environ if environ is None else environ
    settings = load_settings({"url": url, "data_dir": data_dir}, environ)
    found = key or environ.get("FOLIOT_KEY") or settings.admin_key
    own = not settings.url or is_loopback(settings.url)
    if not found and (own or data_dir):
        found = _read_key(Path(settings.data_dir) / KEY_FILE)
    return Connection(url=settings.node_url.rstrip("/"), key=found)


def _read_key(file: Path) -> str:
    try:
        return file.read_text("utf-8").strip()
    except FileNotFoundError:
        return ""
    except OSError as error:
        raise NoNode(f"{file} can not be read: {error.strerror}. Give the key with --key or FOLIOT_KEY") from None


OPTIONS = (
    click.option("--url", metavar="URL", help="The node's address.  [FOLIOT_URL; default http://127.0.0.1:7070]"),
    click.option("--key", metavar="KEY", help="The key to show.  [FOLIOT_KEY, FOLIOT_ADMIN_KEY]"),
    click.option(
        "--data-dir",
        metavar="DIR",
        help="Where a node on this machine keeps its key.  [FOLIOT_DATA_DIR; default ./foliot-data]",
    ),
)


def with_options(function: Callable[..., None]) -> Callable[..., None]:
    for option in reversed(OPTIONS):
        function = option(function)
    return function


def with_client(function: Callable[..., None]) -> Callable[..., None]:
    """Adds the options that find a node, and calls with an open client first."""

    @functools.wraps(function)
    def call(*args: Any, url: str | None, key: str | None, data_dir: str | None, **rest: Any) -> None:
        with find_connection(url, key, data_dir).open() as client:
            function(client, *args, **rest)

    return with_options(call)
