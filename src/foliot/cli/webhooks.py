"""`foliot webhooks`: who is sent which events, and what became of each message."""

from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, Any

import click

from foliot.cli.connection import with_client
from foliot.cli.control import change_each
from foliot.cli.match_options import MATCH_FIELDS, match_given, match_options, match_text
from foliot.cli.paging import collect, page_options, tell_of_more
from foliot.cli.show import count_text, json_option, one_line, print_fields, print_json, print_table, status_text
from foliot.cli.times import DURATION, TIME, read_clock, show_exact, show_moment, show_relative
from foliot.cli.tree import Command, Group

if TYPE_CHECKING:
    from foliot.sdk.client import Client
    from foliot.wire.webhooks import DeliveryInfo, NewWebhook, WebhookInfo

# The words of the API, named here so that help needs no heavy import; a test compares.
STATES = ("pending", "delivered", "failed")


@click.group(
    cls=Group,
    default="list",
    aliases={"ls": "list", "get": "show"},
    examples="""
    foliot webhooks
    foliot webhooks add https://example.com/hook --event job.failed --queue mail
    foliot webhooks deliveries wh_2x9k4 --state failed
    foliot webhooks redeliver wh_2x9k4 --since -1h
    """,
)
def webhooks() -> None:
    """Webhooks: events sent to an address of yours, signed. Without a command it lists them."""


@webhooks.command(name="list", examples="foliot webhooks list\nfoliot webhooks list --all --json")
@page_options
@json_option
@with_client
def list_(client: "Client", limit: int, everything: bool, as_json: bool) -> None:
    """List webhooks by id, those that are off too."""
    found, more = collect(client.webhook_page, None if everything else limit)
    if as_json:
        print_json(found)
        return
    now = read_clock()
    print_table(
        ("WEBHOOK", "STATUS", "EVENTS", "OF", "URL", "FAILING"),
        [
            (
                each.webhook_id,
                status_text(status_of(each)),
                one_line(", ".join(each.events)),
                match_text(each.match),
                one_line(each.url),
                "" if each.failing_since is None else f"since {show_relative(each.failing_since, now)}",
            )
            for each in found
        ],
        empty="no webhooks; make one with: foliot webhooks add URL --event job.failed",
    )
    if more:
        tell_of_more(len(found), "first")


@webhooks.command(examples="foliot webhooks show wh_2x9k4\nfoliot webhooks show wh_2x9k4 --json")
@click.argument("webhook_id", metavar="WEBHOOK")
@json_option
@with_client
def show(client: "Client", webhook_id: str, as_json: bool) -> None:
    """Show one webhook, all but its secret."""
    found = client.webhook(webhook_id)
    if as_json:
        print_json(found)
    else:
        print_webhook(found)


@webhooks.command(
    examples="""
    foliot webhooks add https://example.com/hook --event job.failed --event job.completed
    foliot webhooks add https://example.com/hook --event 'job.*' --queue mail --give-up-after 12h
    foliot webhooks add https://example.com/hook --event '*' --quiet > secret.txt
    """
)
@click.argument("target", metavar="URL")
@click.option(
    "--event",
    "events",
    multiple=True,
    required=True,
    metavar="EVENT",
    help="Which events: job.failed, 'job.*', '*'; may repeat.",
)
@match_options
@click.option(
    "--give-up-after",
    type=DURATION,
    default="3d",
    show_default=True,
    help="Switch it off once it has failed for so long.",
)
@click.option("-q", "--quiet", is_flag=True, help="Print the secret and nothing else.")
@json_option
@with_client
def add(client: "Client", target: str, quiet: bool, as_json: bool, **given: Any) -> None:
    """Have events sent to an address. The secret that they are signed with is shown this once.

    Each message is a CloudEvent, signed as Standard Webhooks has it, and sent again with growing pauses until the
    address answers with 2xx.
    """
    _check_outputs(quiet=quiet, as_json=as_json)
    made = client.create_webhook(
        target, given["events"], match=match_given(given), give_up_after=given["give_up_after"]
    )
    tell_secret(made, quiet=quiet, as_json=as_json)


@webhooks.command(
    examples="""
    foliot webhooks change wh_2x9k4 --target https://example.com/new
    foliot webhooks change wh_2x9k4 --event 'job.*' --queue mail
    foliot webhooks change wh_2x9k4 --all-jobs
    """
)
@click.argument("webhook_id", metavar="WEBHOOK")
@click.option("--target", metavar="URL", help="Send them there from now on, also what is on its way.")
@click.option("--event", "events", multiple=True, metavar="EVENT", help="Only these from now on; may repeat.")
@match_options
@click.option("--all-jobs", is_flag=True, help="Of all jobs again, whatever was named before.")
@click.option("--give-up-after", type=DURATION, help="Switch it off once it has failed for so long.")
@json_option
@with_client
def change(client: "Client", webhook_id: str, as_json: bool, all_jobs: bool, **given: Any) -> None:
    """Change a webhook: what is given."""
    match = match_given(given)
    if match and all_jobs:
        raise click.UsageError("give --all-jobs, or which jobs, not both")
    fields: dict[str, Any] = {"url": given["target"], "events": given["events"] or None}
    fields = {name: value for name, value in fields.items() if value is not None}
    if given["give_up_after"] is not None:
        fields["give_up_after"] = given["give_up_after"]
    version = None
    if match:  # the API replaces it as a whole
        before = client.webhook(webhook_id)
        kept = {name: value for name in MATCH_FIELDS if (value := getattr(before.match, name)) is not None}
        fields["match"], version = kept | match, before.version
    elif all_jobs:
        fields["match"] = {}
    if not fields:
        raise click.UsageError("change what? Give at least one option, such as --event or --target")
    changed = client.change_webhook(webhook_id, **fields, if_match=version)
    if as_json:
        print_json(changed)
    else:
        print_webhook(changed)


@webhooks.command(examples="foliot webhooks remove wh_2x9k4")
@click.argument("webhook_ids", nargs=-1, required=True, metavar="WEBHOOK...")
@with_client
def remove(client: "Client", webhook_ids: tuple[str, ...]) -> None:
    """Remove webhooks. What is on its way to them is not sent any more."""
    change_each(webhook_ids, client.delete_webhook, as_json=False, tell=lambda _none: "removed")


@webhooks.command(examples="foliot webhooks rotate wh_2x9k4\nfoliot webhooks rotate wh_2x9k4 --overlap 2h --quiet")
@click.argument("webhook_id", metavar="WEBHOOK")
@click.option(
    "--overlap", type=DURATION, default="24h", show_default=True, help="How long it is signed with the one before, too."
)
@click.option("-q", "--quiet", is_flag=True, help="Print the secret and nothing else.")
@json_option
@with_client
def rotate(client: "Client", webhook_id: str, overlap: float | str, quiet: bool, as_json: bool) -> None:
    """Give a webhook a new secret, which is shown this once.

    For --overlap its messages have two signatures, so that the receiver can change over at any moment.
    """
    _check_outputs(quiet=quiet, as_json=as_json)
    tell_secret(client.rotate_webhook(webhook_id, overlap=overlap), quiet=quiet, as_json=as_json)


@webhooks.command(examples="foliot webhooks test wh_2x9k4")
@click.argument("webhook_id", metavar="WEBHOOK")
@json_option
@with_client
def test(client: "Client", webhook_id: str, as_json: bool) -> None:
    """Send a webhook an event of the type foliot.webhook.test."""
    found = client.test_webhook(webhook_id)
    if as_json:
        print_json(found)
    else:
        click.echo(f"sent; see what became of it: foliot webhooks deliveries {found.webhook_id} --limit 1")


@webhooks.command(
    examples="""
    foliot webhooks deliveries wh_2x9k4
    foliot webhooks deliveries wh_2x9k4 --state failed --all --json
    """
)
@click.argument("webhook_id", metavar="WEBHOOK")
@click.option("--state", type=click.Choice(STATES), help="Only those that stand so.")
@page_options
@json_option
@with_client
def deliveries(client: "Client", webhook_id: str, state: Any, limit: int, everything: bool, as_json: bool) -> None:
    """List what was sent to a webhook and what became of it, newest first."""
    page = partial(client.delivery_page, webhook_id, state=state)
    found, more = collect(page, None if everything else limit)
    if as_json:
        print_json(found)
        return
    now = read_clock()
    print_table(
        ("DELIVERY", "EVENT", "STATE", "TRIES", "CREATED", "NEXT TRY", "ANSWER"),
        [
            (
                each.delivery_id,
                one_line(each.event_type),
                status_text(each.state),
                str(each.attempts),
                show_relative(each.created_time, now),
                "" if each.next_try is None else show_relative(each.next_try, now),
                _answer_text(each),
            )
            for each in found
        ],
        empty="nothing was sent to it yet" if state is None else f"none is {state}",
    )
    if more:
        tell_of_more(len(found))


@webhooks.command(
    examples="""
    foliot webhooks redeliver wh_2x9k4
    foliot webhooks redeliver wh_2x9k4 --since -1h
    foliot webhooks redeliver wh_2x9k4 d_2x9k5 d_2x9k6
    """
)
@click.argument("webhook_id", metavar="WEBHOOK")
@click.argument("delivery_ids", nargs=-1, metavar="[DELIVERY]...")
@click.option("--since", type=TIME, help="Only of events since then: a time, or -1h.")
@json_option
@with_client
def redeliver(
    client: "Client", webhook_id: str, delivery_ids: tuple[str, ...], since: datetime | None, as_json: bool
) -> None:
    """Send once more, now: the deliveries named, else all that failed."""
    if delivery_ids and since is not None:
        raise click.UsageError("give deliveries or --since, not both")
    if delivery_ids:
        again = partial(client.redeliver, webhook_id)
        change_each(delivery_ids, again, as_json=as_json, tell=lambda delivery: delivery.state)
        return
    answer = client.redeliver_failed(webhook_id, since=since)
    if as_json:
        print_json(answer)
    else:
        click.echo(f"{count_text(answer.redelivered, 'message')} on the way again")


def _switch(name: str, text: str) -> click.Command:
    @click.command(name=name, cls=Command, help=text, examples=f"foliot webhooks {name} wh_2x9k4")
    @click.argument("webhook_ids", nargs=-1, required=True, metavar="WEBHOOK...")
    @json_option
    @with_client
    def command(client: "Client", webhook_ids: tuple[str, ...], as_json: bool) -> None:
        change_each(webhook_ids, getattr(client, f"{name}_webhook"), as_json=as_json, tell=status_of)

    return command


webhooks.add_command(
    _switch(
        "enable",
        "Switch webhooks on again, whatever they were off for.\n\n"
        "Events from now on are sent; 'foliot webhooks redeliver' sends those that failed before.",
    )
)
webhooks.add_command(_switch("disable", "Switch webhooks off: they are sent nothing until they are enabled."))


def status_of(webhook: "WebhookInfo") -> str:
    if not webhook.enabled:
        return "off" if webhook.off_reason in (None, "switched_off") else f"off, {webhook.off_reason}"
    return "active" if webhook.failing_since is None else "failing"


def print_webhook(webhook: "WebhookInfo") -> None:
    now = read_clock()
    failing = webhook.failing_since
    print_fields(
        (
            ("webhook", webhook.webhook_id),
            ("status", status_text(status_of(webhook))),
            ("url", one_line(webhook.url)),
            ("events", one_line(", ".join(webhook.events))),
            ("of", match_text(webhook.match) or "all jobs"),
            ("gives up", f"after failing for {show_exact(webhook.give_up_after)}"),
            ("failing", None if failing is None else f"since {show_moment(failing, now)}"),
            ("created", f"{show_moment(webhook.created_time, now)} by {one_line(webhook.created_by)}"),
            ("version", str(webhook.version)),
        )
    )


def tell_secret(made: "NewWebhook", *, quiet: bool, as_json: bool) -> None:
    """With the secret in a line of its own, which no terminal breaks in two."""
    if as_json:
        print_json(made)
    elif quiet:
        click.echo(made.secret)
    else:
        print_webhook(made)
        click.echo(f"\n{made.secret}\n")
        click.echo("the secret is shown only this once: its receiver needs it to check the signatures", err=True)


def _answer_text(delivery: "DeliveryInfo") -> str:
    parts = (None if delivery.last_status is None else str(delivery.last_status), delivery.last_error)
    return one_line(" ".join(part for part in parts if part))


def _check_outputs(*, quiet: bool, as_json: bool) -> None:
    if quiet and as_json:
        raise click.UsageError("give --quiet or --json, not both")
