"""How a command finds its node and its key, and what it says when it can not."""

import functools
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from foliot.cli.exits import NoNode

if TYPE_CHECKING:
    from foliot.sdk.client import Client
    from foliot.sdk.tls import Trust

PATIENCE_SECONDS = 60.0


@dataclass(frozen=True, kw_only=True)
class Connection:
    """Where the node is, the key to show it (empty where none was found), whom to trust where it is `https`, and where
    the key was found, in words."""

    url: str
    key: str = field(repr=False)
    trust: "Trust"
    origin: str = ""

    def open(self) -> "Client":
        from foliot.sdk.client import Client

        return Client(self.url, key=self.key or None, patience=0, trust=self.trust)

    @contextmanager
    def use(self) -> "Iterator[Client]":
        """An open client. Where the node refuses the key, the error says which one that was and what to do next."""
        from foliot.domain.errors import FoliotError

        try:
            with self.open() as client:
                yield client
        except FoliotError as error:
            hint = self._hint(error.code)
            if hint is None:
                raise
            raise NoNode(f"{error.detail.rstrip('.')}. {hint}") from None

    def _hint(self, code: str) -> str | None:
        found = f"The key came from {self.origin}"
        match code:
            case "not-authenticated" if not self.key:
                return "No key was found: give one with --key or FOLIOT_KEY, or name the node's --data-dir"
            case "not-authenticated":
                return f"{found}; give a good one with --key or FOLIOT_KEY"
            case "forbidden":
                return f"{found}; 'foliot whoami' tells what it may do. Give another with --key or FOLIOT_KEY"
            case _:
                return None


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
    from foliot.sdk.tls import Trust
    from foliot.settings import load_settings

    environ = os.environ if environ is None else environ
    settings = load_settings({"url": url, "data_dir": data_dir}, environ)
    file = Path(settings.data_dir) / KEY_FILE
    config = environ.get("FOLIOT_CONFIG") or "foliot.toml"
    origin, found = next(
        (
            (name, value)
            for name, value in (
                ("--key", key),
                ("FOLIOT_KEY", environ.get("FOLIOT_KEY")),
                ("FOLIOT_ADMIN_KEY", environ.get("FOLIOT_ADMIN_KEY")),
                (f"admin_key in {config}", settings.admin_key),
            )
            if value
        ),
        (str(file), ""),
    )
    own = not settings.url or is_loopback(settings.url)
    if not found and (own or data_dir):
        found = _read_key(file)
    trust = Trust(ca_file=settings.ca_file, client_cert=settings.client_cert, client_key=settings.client_key)
    return Connection(url=settings.node_url.rstrip("/"), key=found, trust=trust, origin=origin)


def _read_key(file: Path) -> str:
    from foliot.sdk.location import ReadableByOthers, read_key_file

    try:
        return read_key_file(file)
    except ReadableByOthers as error:
        raise NoNode(str(error)) from None
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
        with find_connection(url, key, data_dir).use() as client:
            function(client, *args, **rest)

    return with_options(call)
