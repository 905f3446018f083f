"""`foliot queues`: their rules, how full they are, and holding them."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click

from foliot.cli.connection import with_client
from foliot.cli.control import change_each
from foliot.cli.notify_options import notify_text, objective_text
from foliot.cli.paging import collect, page_options, tell_of_more
from foliot.cli.queue_options import idle_rules, limits_text, policy_text, queue_options, set_fields, shares_text
from foliot.cli.show import count_text, json_option, print_fields, print_json, print_table, status_text
from foliot.cli.times import show_exact, show_span
from foliot.cli.tree import Command, Group

if TYPE_CHECKING:
    from foliot.sdk.client import Client
    from foliot.wire import QueueInfo

MOST_COUNTED = 100_000  # waiting jobs: there the node stops


@click.group(
    cls=Group,
    default="list",
    aliases={"ls": "list", "get": "show"},
    examples="""
    foliot queues
    foliot queues set mail --policy fair --share tenant-a=3 --max-concurrency 10
    foliot queues pause mail
    """,
)
def queues() -> None:
    """Queues: who is next, how many at once, how full they are. Without a command it lists them."""


@queues.command(name="list", examples="foliot queues list\nfoliot queues list --all --json")
@page_options
@json_option
@with_client
def list_(client: "Client", limit: int, everything: bool, as_json: bool) -> None:
    """List queues by name.

    WAITING counts the jobs that only lack a worker or the queue's own leave, OLDEST is how long the one that was due
    first waits.
    """
    found, more = collect(client.queue_page, None if everything else limit)
    if as_json:
        print_json(found)
        return
    print_table(
        ("QUEUE", "POLICY", "WEIGHT", "WAITING", "RUNNING", "OLDEST", "LIMITS", "PAUSED"),
        [
            (
                each.queue,
                policy_text(each),
                f"{each.weight:g}",
                _waiting_text(each),
                f"{each.running:,}",
                "" if each.oldest_wait is None else show_span(each.oldest_wait),
                limits_text(each),
                status_text("paused") if each.paused else "",
            )
            for each in found
        ],
        empty="no queues; one comes into being with its first job: foliot submit JOB_TYPE --queue mail",
    )
    if more:
        tell_of_more(len(found), "first")


@queues.command(examples="foliot queues show mail\nfoliot queues show mail --json")
@click.argument("name", metavar="QUEUE")
@json_option
@with_client
def show(client: "Client", name: str, as_json: bool) -> None:
    """Show one queue: its rules and how full it is."""
    found = client.queue(name)
    if as_json:
        print_json(found)
        return
    print_fields(
        (
            ("queue", found.queue),
            ("status", status_text("paused" if found.paused else "active")),
            ("policy", found.policy),
            ("aging", None if found.aging is None else f"{show_exact(found.aging)} for a step of priority"),
            ("weight", f"{found.weight:g}"),
            ("shares", shares_text(found) or None),
            ("limits", limits_text(found) or None),
            ("notify", notify_text(found.notify)),
            ("objective", objective_text(found.objective)),
            ("waiting", _waiting_text(found)),
            ("running", f"{found.running:,}"),
            ("oldest", None if found.oldest_wait is None else f"waits for {show_span(found.oldest_wait)}"),
            ("version", str(found.version)),
        )
    )


@queues.command(
    name="set",
    examples="""
    foliot queues set mail --policy fair --share tenant-a=3 --share tenant-b=0.5
    foliot queues set mail --max-concurrency 10 --rate 100/1s --burst 20
    foliot queues set reports --policy priority --aging 10m --weight 2
    foliot queues set mail --notify-on failed --notify-on late --late-after 30s --channel ops
    foliot queues set mail --objective "99% within 1s over 7d" --notify-on slo --channel ops
    foliot queues set mail --reset rate_limit --reset max_concurrency
    """,
)
@click.argument("name", metavar="QUEUE")
@queue_options
@json_option
@with_client
def set_(client: "Client", name: str, as_json: bool, **given: Any) -> None:
    """Set a queue's rules: what is given, from now on.

    Jobs that wait already are put in the new order; nobody that runs is thrown out. A share of 1 is what every fair key
    has that is not named. A queue that is new comes into being.
    """
    fields, version = set_fields(given, lambda: _present(client, name))
    found = client.set_queue(name, **fields, if_match=version)
    if as_json:
        print_json(found)
        return
    told = (
        policy_text(found),
        f"weight {found.weight:g}",
        limits_text(found),
        shares_text(found),
        f"tells of {notify}" if (notify := notify_text(found.notify)) else None,
        objective_text(found.objective),
    )
    click.echo(f"{found.queue} {'; '.join(filter(None, told))}")
    if idle := idle_rules(found):
        click.echo(idle, err=True)


def _present(client: "Client", name: str) -> "QueueInfo | None":
    from foliot.sdk.failures import NotFound

    try:
        return client.queue(name)
    except NotFound:
        return None


def _waiting_text(info: "QueueInfo") -> str:
    return f"{info.waiting:,}" + (" or more" if info.waiting >= MOST_COUNTED else "")


def _hold(name: str, text: str, examples: str) -> click.Command:
    @click.command(name=name, cls=Command, help=text, examples=examples)
    @click.argument("names", nargs=-1, required=True, metavar="QUEUE...")
    @json_option
    @with_client
    def command(client: "Client", names: tuple[str, ...], as_json: bool) -> None:
        change: Callable[[str], QueueInfo] = getattr(client, f"{name}_queue")
        change_each(names, change, as_json=as_json, tell=held_text)

    return command


def held_text(info: "QueueInfo") -> str:
    """Tells where a pause has made the queue, which may be a slip in its name: one that jobs have made is at version 2
    once it is paused."""
    new = info.paused and info.version == 1 and not (info.waiting or info.running)
    word = "paused" if info.paused else "active"
    return f"{word}, {count_text(info.waiting)} waiting, {info.running:,} running{'; it is a new queue' if new else ''}"


for each in (
    _hold(
        "pause",
        "Start nothing of these queues until they are resumed.\n\n"
        "What runs goes on, and they still take jobs in. 'foliot why' tells those that wait of it.",
        "foliot queues pause mail",
    ),
    _hold("resume", "Let paused queues go on.", "foliot queues resume mail"),
):
    queues.add_command(each)
