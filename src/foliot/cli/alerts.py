"""`foliot alerts`: rules that say when to tell whom."""

from typing import TYPE_CHECKING, Any

import click

from foliot.cli.connection import with_client
from foliot.cli.control import change_each
from foliot.cli.match_options import MATCH_FIELDS, match_given, match_options, match_text
from foliot.cli.show import json_option, one_line, print_fields, print_json, print_table
from foliot.cli.times import DURATION, read_clock, show_exact, show_moment
from foliot.cli.tree import Group

if TYPE_CHECKING:
    from foliot.sdk.client import Client
    from foliot.wire.alerts import RuleInfo

# The words of the API, named here so that help needs no heavy import; a test compares.
KINDS = (
    "failed",
    "exhausted",
    "late",
    "overrun",
    "missed",
    "queue_age",
    "no_worker",
    "worker_lost",
    "node_lost",
    "store",
    "slo",
    "webhook_disabled",
)
RESETTABLE = ("match", "after", "throttle")


@click.group(
    cls=Group,
    default="list",
    aliases={"ls": "list", "get": "show"},
    examples="""
    foliot alerts
    foliot alerts set mail-fails --on failed --queue mail --channel ops
    foliot alerts remove mail-fails
    """,
)
def alerts() -> None:
    """Alert rules: when to tell whom. Without a command it lists them.

    What is wrong now is under 'foliot incidents', where people are told under 'foliot channels'.
    """


@alerts.command(name="list", examples="foliot alerts list\nfoliot alerts list --json")
@json_option
@with_client
def list_(client: "Client", as_json: bool) -> None:
    """List alert rules by name."""
    found = client.alerts()
    if as_json:
        print_json(found)
        return
    print_table(
        ("RULE", "ON", "OF", "AFTER", "CHANNELS", "THROTTLE"),
        [
            (
                each.name,
                ", ".join(each.on),
                match_text(each.match),
                "" if each.after is None else show_exact(each.after),
                one_line(", ".join(each.channels)),
                show_exact(each.throttle),
            )
            for each in found
        ],
        empty="no alert rules; make one with: foliot alerts set NAME --on failed --channel ops",
    )


@alerts.command(examples="foliot alerts show mail-fails\nfoliot alerts show mail-fails --json")
@click.argument("name", metavar="RULE")
@json_option
@with_client
def show(client: "Client", name: str, as_json: bool) -> None:
    """Show one alert rule."""
    found = client.alert(name)
    if as_json:
        print_json(found)
    else:
        print_rule(found)


@alerts.command(
    name="set",
    examples="""
    foliot alerts set mail-fails --on failed --queue mail --channel ops
    foliot alerts set late --on late --after 30s --channel ops --channel pager
    foliot alerts set stuck --on queue_age --after 15m --throttle 1h --channel ops
    foliot alerts set workers --on worker_lost --on no_worker --after 5m --channel ops
    foliot alerts set late --reset match --after 1m
    """,
)
@click.argument("name", metavar="RULE")
@click.option(
    "--on",
    multiple=True,
    type=click.Choice(KINDS),
    metavar="WHAT",
    help=f"When this happens; may repeat. One of {', '.join(KINDS)}.",
)
@match_options
@click.option(
    "--after", type=DURATION, help="How late, how long or how old: for late, overrun, queue_age and no_worker."
)
@click.option("--channel", "channels", multiple=True, metavar="NAME", help="Tell it there; may repeat.")
@click.option("--throttle", type=DURATION, help="While it goes on, tell it again at most this often.  [default: 5m]")
@click.option(
    "--reset",
    multiple=True,
    type=click.Choice(RESETTABLE),
    metavar="FIELD",
    help=f"Set this back to its default; may repeat. One of {', '.join(RESETTABLE)}.",
)
@json_option
@with_client
def set_(client: "Client", name: str, as_json: bool, **given: Any) -> None:
    """Make an alert rule, or change one: what is given.

    It tells once when something begins, again at most once per --throttle while it goes on and there is more of it, and
    once when it is over. --queue, --type, --schedule and --tag together say of which jobs; without them it is of all.
    """
    from foliot.sdk.failures import NotFound

    match = match_given(given)
    fields: dict[str, Any] = {key: given[key] for key in ("after", "throttle") if given[key] is not None}
    fields |= {key: list(dict.fromkeys(given[key])) for key in ("on", "channels") if given[key]}
    if twice := {*given["reset"]} & {*fields, *(("match",) if match else ())}:
        raise click.UsageError(f"{min(twice)} can not be given and reset at once")
    if not (fields or match or given["reset"]):
        raise click.UsageError("set what? Give at least one option, such as --on failed and --channel ops")
    try:
        before = client.alert(name)
    except NotFound:
        if not (given["on"] and given["channels"]):
            raise click.UsageError(
                f"there is no rule {name} yet; to make it, give --on and --channel, such as --on failed --channel ops"
            ) from None
        saved = client.create_alert(name, match=match or None, **fields)
    else:
        fields |= dict.fromkeys(given["reset"])
        if match:  # the API replaces it as a whole
            kept = {key: value for key in MATCH_FIELDS if (value := getattr(before.match, key)) is not None}
            fields["match"] = kept | match
        saved = client.change_alert(name, **fields, if_match=before.version)
    if as_json:
        print_json(saved)
    else:
        print_rule(saved)


@alerts.command(examples="foliot alerts remove mail-fails")
@click.argument("names", nargs=-1, required=True, metavar="RULE...")
@with_client
def remove(client: "Client", names: tuple[str, ...]) -> None:
    """Remove alert rules. What they have opened is told of no more."""
    change_each(names, client.delete_alert, as_json=False, tell=lambda _none: "removed")


def print_rule(rule: "RuleInfo") -> None:
    now = read_clock()
    print_fields(
        (
            ("rule", rule.name),
            ("on", ", ".join(rule.on)),
            ("of", match_text(rule.match) or "all jobs"),
            ("after", None if rule.after is None else show_exact(rule.after)),
            ("channels", one_line(", ".join(rule.channels))),
            ("throttle", f"{show_exact(rule.throttle)} between notices"),
            ("created", show_moment(rule.created_time, now)),
            ("version", str(rule.version)),
        )
    )
