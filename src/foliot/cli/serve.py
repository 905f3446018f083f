"""`foliot serve`: a node."""

import errno
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import click

from foliot.cli.exits import Failed
from foliot.cli.tree import Command


def settings_options(*names: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """The options of the settings named. None has a default here: what is not given is looked for in the environment
    and in the file, and only `foliot.settings` knows the defaults."""

    def add(function: Callable[..., None]) -> Callable[..., None]:
        for name in reversed(names):
            function = _OPTIONS[name](function)
        return function

    return add


def joined(_context: click.Context, _option: click.Parameter, words: Sequence[str]) -> str | None:
    """An option that may repeat, as the settings have it: in one text, with commas between."""
    return ",".join(words) or None


_OPTIONS = {
    "host": click.option("--host", metavar="ADDRESS", help="Where to listen.  [FOLIOT_HOST; default 127.0.0.1]"),
    "port": click.option("--port", type=int, help="Which port; 0 takes a free one.  [FOLIOT_PORT; default 7070]"),
    "database": click.option(
        "--database",
        metavar="URL",
        help="postgresql://user@host/name or sqlite:///path.  [FOLIOT_DATABASE; default SQLite in the data directory]",
    ),
    "data_dir": click.option(
        "--data-dir",
        metavar="DIR",
        help="Where the key and the SQLite database are kept.  [FOLIOT_DATA_DIR; default foliot-data]",
    ),
    "worker": click.option(
        "--worker/--no-worker",
        default=None,
        help="With or without the worker for the built-in job types.  [FOLIOT_WORKER; default with]",
    ),
    "worker_concurrency": click.option(
        "--worker-concurrency",
        type=int,
        metavar="N",
        help="How many jobs that worker runs at once.  [FOLIOT_WORKER_CONCURRENCY; default 20]",
    ),
    "processes": click.option(
        "--processes",
        type=int,
        metavar="N",
        help="How many node processes share the port; more than one needs PostgreSQL.  [FOLIOT_PROCESSES; default 1]",
    ),
    "tls_cert": click.option(
        "--tls-cert",
        metavar="FILE",
        help="The certificate to show, with those that vouch for it, as PEM.  [FOLIOT_TLS_CERT; default no TLS]",
    ),
    "tls_key": click.option("--tls-key", metavar="FILE", help="Its key, as PEM.  [FOLIOT_TLS_KEY]"),
    "tls_client_ca": click.option(
        "--tls-client-ca",
        metavar="FILE",
        help="Workers must show a certificate that one of these vouches for.  [FOLIOT_TLS_CLIENT_CA; default none]",
    ),
    "insecure": click.option(
        "--insecure/--no-insecure",
        default=None,
        help="Whether to listen beyond this machine without TLS.  [FOLIOT_INSECURE; default no]",
    ),
    "allow_commands": click.option(
        "--allow-commands/--no-allow-commands",
        default=None,
        help="Whether the built-in worker may run ANY program (job type 'command').  "
        "[FOLIOT_ALLOW_COMMANDS; default no]",
    ),
    "allow_command": click.option(
        "--allow-command",
        multiple=True,
        callback=joined,
        metavar="PROGRAM",
        help="A program that it may run, by name or path; may repeat.  [FOLIOT_ALLOW_COMMAND; default none]",
    ),
    "command_user": click.option(
        "--command-user",
        metavar="NAME",
        help="The user that programs run as; must be said where this one is root.  "
        "[FOLIOT_COMMAND_USER; default this one]",
    ),
    "http_allow": click.option(
        "--http-allow",
        multiple=True,
        callback=joined,
        metavar="WHERE",
        help="What 'http' jobs may call besides public addresses: a network, host or host:port; may repeat.  "
        "[FOLIOT_HTTP_ALLOW; default nothing]",
    ),
    "config": click.option(
        "--config",
        metavar="FILE",
        envvar="FOLIOT_CONFIG",
        type=click.Path(path_type=Path),
        help="The file of settings.  [FOLIOT_CONFIG; default foliot.toml where there is one]",
    ),
}


@click.command(
    cls=Command,
    examples="""
    foliot serve
    foliot serve --host 0.0.0.0 --tls-cert node.pem --tls-key node.key --data-dir /var/lib/foliot
    foliot serve --database postgresql://foliot@db/foliot --processes 4 --no-worker
    foliot serve --http-allow 10.0.0.0/8 --http-allow intranet.example.org --allow-command rsync
    """,
)
@settings_options(
    "host",
    "port",
    "database",
    "data_dir",
    "worker",
    "worker_concurrency",
    "processes",
    "tls_cert",
    "tls_key",
    "tls_client_ca",
    "insecure",
    "allow_commands",
    "allow_command",
    "command_user",
    "http_allow",
    "config",
)
@click.pass_context
def serve(ctx: click.Context, /, config: Path | None, **given: Any) -> None:
    """Start a node: API and scheduler in one process.

    Without options it keeps everything in SQLite in ./foliot-data and runs the built-in job types itself. A setting is
    taken from the command line, else from its FOLIOT_* variable, else from foliot.toml. Where no key is set, the first
    start makes one and writes it to admin.key in the data directory.
    """
    from foliot.settings import load_settings

    settings = load_settings(given, file=config)
    from foliot import main
    from foliot.domain.errors import FoliotError

    try:
        code = main.serve(settings)
    except FoliotError as error:
        raise Failed(error.detail) from None
    except OSError as error:
        raise Failed(_explain(error, settings.data_dir)) from None
    ctx.exit(code)


def _explain(error: OSError, data_dir: str) -> str:
    """What the system refused, and what to do next."""
    match error.errno:
        case errno.ENOSPC | errno.EDQUOT:
            return f"the disk that holds {data_dir} is full: make room, or choose another place with --data-dir"
        case errno.EACCES | errno.EROFS | errno.EPERM:
            return f"{error.filename or data_dir} can not be written: choose another place with --data-dir"
        case _:
            where = f"{error.filename}: " if error.filename else ""
            return f"the node could not start: {where}{error.strerror or error}"
