"""`foliot workers`: who is there, doing what."""

from typing import TYPE_CHECKING

import click

from foliot.cli.connection import with_client
from foliot.cli.show import bar, json_option, print_json, print_table, status_text
from foliot.cli.times import read_clock, show_relative
from foliot.cli.tree import Group

if TYPE_CHECKING:
    from foliot.sdk.client import Client
    from foliot.wire import WorkerInfo

COLUMNS = ("WORKER", "NAME", "STATUS", "LOAD", "OFFERS", "QUEUES", "JOB TYPES", "SINCE", "SEEN")


@click.group(
    cls=Group,
    default="ls",
    aliases={"list": "ls"},
    examples="""
    foliot workers
    foliot workers ls --json
    foliot workers drain w_7f3k
    """,
)
def workers() -> None:
    """Show the workers, or take one out of service. Without a command it lists them."""


@workers.command(examples="foliot workers ls")
@json_option
@with_client
def ls(client: "Client", as_json: bool) -> None:
    """List the workers with their load."""
    found = client.workers()
    if as_json:
        print_json(found)
        return
    now = read_clock()
    print_table(
        COLUMNS,
        [
            (
                worker.worker_id,
                worker.name,
                status_text(worker.status),
                load_text(worker),
                offer_text(worker),
                ", ".join(worker.queues) or "all",
                ", ".join(worker.job_types) or "all",
                show_relative(worker.since, now),
                show_relative(worker.last_seen, now),
            )
            for worker in found
        ],
        empty="no workers; start one with: foliot worker myapp:app",
    )


@workers.command(examples="foliot workers drain w_7f3k")
@click.argument("worker_id")
@with_client
def drain(client: "Client", worker_id: str) -> None:
    """Let a worker finish what it runs and give it nothing more; then it leaves."""
    client.drain_worker(worker_id)
    click.echo(f"{worker_id} draining")


def load_text(worker: "WorkerInfo") -> str:
    slots = worker.resources.get("slot", 0)
    running = len(worker.running)
    return f"{bar(running / slots if slots else 0)} {running}/{slots:g}"


def offer_text(worker: "WorkerInfo") -> str:
    """What it has besides slots, and what it says of itself; as the options of `foliot worker` have it."""
    resources = [f"{name}={_amount_text(amount)}" for name, amount in worker.resources.items() if name != "slot"]
    return ", ".join(resources + [f"{name}={value}" for name, value in worker.labels.items()])


def _amount_text(amount: float) -> str:
    for unit, size in (("Gi", 2**30), ("Mi", 2**20)):
        if amount and amount % size == 0:
            return f"{amount // size:g}{unit}"
    return f"{amount:.16g}"
