"""`foliot worker`: runs the jobs of a program, or those that come built in."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import click

from foliot.cli.connection import Connection, find_connection, with_options
from foliot.cli.exits import NO_NODE, WrongUse
from foliot.cli.job_options import AMOUNT, LABEL
from foliot.cli.serve import settings_options
from foliot.cli.target import load_app
from foliot.cli.times import DURATION
from foliot.cli.tree import Command

if TYPE_CHECKING:
    from foliot.sdk.app import Foliot
    from foliot.sdk.handler import Handler
    from foliot.wire import ScheduleBody


@click.command(
    cls=Command,
    examples="""
    foliot worker myapp:app
    foliot worker myapp:app --concurrency 50 --queues mail,reports --url https://foliot.example.org
    foliot worker myapp:app --resource cpu=4 --resource memory=8Gi --resource gpu=1 --label zone=eu
    foliot worker --builtin --http-allow intranet.example.org --http-allow localhost:8080
    foliot worker --builtin --allow-command /usr/bin/rsync --allow-command backup.sh --command-user backup
    """,
)
@click.argument("target", required=False, metavar="[MODULE:APP]")
@click.option("--builtin", is_flag=True, help="Run the built-in job types (echo, http, command) instead of an app's.")
@click.option("--allow-commands", is_flag=True, help="With --builtin: run ANY program (job type 'command').")
@settings_options("allow_command", "command_user", "http_allow")
@click.option("--concurrency", type=click.IntRange(min=1), default=20, show_default=True, help="How many jobs at once.")
@click.option("--queues", metavar="A,B", default="", help="Only jobs of these queues.  [default: of all]")
@click.option(
    "--resource",
    "resources",
    multiple=True,
    type=AMOUNT,
    metavar="NAME=AMOUNT",
    help="Offer so much of anything countable, such as cpu=4, memory=8Gi or gpu=1; may repeat.  [FOLIOT_RESOURCES]",
)
@click.option(
    "--label",
    "labels",
    multiple=True,
    type=LABEL,
    metavar="NAME=VALUE",
    help="Say what this worker is, for jobs that require it, such as zone=eu; may repeat.  [FOLIOT_LABELS]",
)
@click.option("--name", metavar="NAME", help="What to call this worker.  [default: host and process]")
@click.option("--grace", type=DURATION, default="30s", show_default=True, help="How long jobs may go on when stopped.")
@with_options
@click.pass_context
def worker(
    ctx: click.Context,
    /,
    target: str | None,
    builtin: bool,
    allow_commands: bool,
    allow_command: str | None,
    command_user: str | None,
    http_allow: str | None,
    concurrency: int,
    queues: str,
    resources: Sequence[tuple[str, float | str]],
    labels: Sequence[tuple[str, str]],
    name: str | None,
    grace: float | str,
    url: str | None,
    key: str | None,
    data_dir: str | None,
) -> None:
    """Run jobs: those of the app that MODULE:APP names, with the current directory importable.

    It takes what fits from the node, runs it, and reports back until it is told to stop: on the first Ctrl-C or SIGTERM
    it takes nothing more and lets what runs end within --grace; what is then left goes back to the queue. Where no
    --url is given, the app's own address and key are used. The schedules that the app declares are made, or changed
    where they differ, when the worker starts; none is deleted.

    What runs at once never holds more than the worker offers: --concurrency slots, and of each --resource what is said
    here or in FOLIOT_RESOURCES (cpu=4,memory=8Gi). A job that asks for a resource or a label that is not offered goes
    to other workers.
    """
    if bool(target) == builtin:
        raise click.UsageError("whose jobs? Name an app, as in: foliot worker myapp:app, or say --builtin")
    permitted = {
        "allow_commands": allow_commands or None,
        "allow_command": allow_command,
        "command_user": command_user,
        "http_allow": http_allow,
    }
    for option, value in permitted.items():
        if value is not None and not builtin:
            raise click.UsageError(f"--{option.replace('_', '-')} goes with --builtin")
    from foliot.settings import load_settings

    settings = load_settings(permitted)
    handlers: Mapping[str, Handler]
    schedules: Sequence[ScheduleBody] = ()
    connection = find_connection(url, key, data_dir)
    if target:
        app = load_app(target)
        handlers, schedules = app.handlers, app.schedules
        if not handlers:
            raise WrongUse(f"{target} has no jobs; make one by writing @app.job above a function")
        if not url:
            connection = _connection_of(app, target, connection, key)
    else:
        from foliot.handlers import load_handlers
        from foliot.handlers.permissions import permissions_of

        handlers = load_handlers(permissions_of(settings))
    from foliot.domain.duration import SECOND, parse_duration
    from foliot.main.telemetry import start_logs, start_traces
    from foliot.worker.program import REFUSED, run_worker
    from foliot.worker.worker import Worker

    made = Worker(
        connection.url,
        connection.key,
        handlers,
        name=name,
        queues=[queue.strip() for queue in queues.split(",") if queue.strip()],
        concurrency=concurrency,
        resources=settings.worker_resources | dict(resources),
        labels=settings.worker_labels | dict(labels),
        grace=parse_duration(grace, "grace") / SECOND,
        trust=connection.trust,
    )
    start_logs(settings)
    start_traces(settings, service="foliot-worker")
    code = run_worker(made, schedules)
    ctx.exit(NO_NODE if code == REFUSED else code)


def _connection_of(app: "Foliot", target: str, found: Connection, key: str | None) -> Connection:
    """The app's own node where it names one; else the one that every command finds."""
    from foliot.sdk.location import DEFAULT_URL

    if app.embedded:
        raise WrongUse(f"{target} runs its jobs itself, in {app.url}; a worker needs a node: give its --url")
    if app.url == DEFAULT_URL:
        return found
    return Connection(url=app.url, key=key or app.key or "", trust=found.trust)
