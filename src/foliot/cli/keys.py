"""`foliot keys`: API keys, made, looked at, given a new secret, revoked."""

from datetime import datetime
from typing import TYPE_CHECKING, Any

import click

from foliot.cli.connection import with_client
from foliot.cli.control import change_each
from foliot.cli.encryption_key import new_encryption_key
from foliot.cli.exits import Failed, NotFound
from foliot.cli.paging import collect, page_options, tell_of_more
from foliot.cli.show import json_option, one_line, print_fields, print_json, print_table, some, status_text
from foliot.cli.times import DURATION, TIME, read_clock, show_exact, show_moment, show_relative
from foliot.cli.tree import Group

if TYPE_CHECKING:
    from foliot.sdk.client import Client
    from foliot.wire import KeyInfo, NewKey

# The roles of the domain, named here so that help needs no heavy import; a test compares.
ROLES = ("viewer", "submitter", "operator", "admin", "worker")
NAMES_SHOWN = 3


@click.group(
    cls=Group,
    default="list",
    aliases={"ls": "list", "get": "show"},
    examples="""
    foliot keys
    foliot keys create ci --role submitter --queue builds --expires +90d
    export FOLIOT_KEY=$(foliot keys create mailer --role worker --quiet)
    foliot keys rotate ci --overlap 2h
    foliot keys revoke ci
    """,
)
def keys() -> None:
    """API keys: who may call, and what each of them may do. Without a command it lists them."""


keys.add_command(new_encryption_key)


@keys.command(name="list", examples="foliot keys list\nfoliot keys list --all --json")
@page_options
@json_option
@with_client
def list_(client: "Client", limit: int, everything: bool, as_json: bool) -> None:
    """List API keys by id, those that were revoked or have expired too.

    With the node's own admin key it lists those of all namespaces.
    """
    found, more = collect(client.key_page, None if everything else limit)
    if as_json:
        print_json(found)
        return
    now = read_clock()
    print_table(
        ("KEY ID", "NAME", "ROLE", "NAMESPACE", "REACHES", "STATUS", "EXPIRES", "LAST USED"),
        [
            (
                each.key_id,
                one_line(each.name),
                each.role,
                each.namespace,
                reach_text(each.queues, each.job_types, NAMES_SHOWN),
                status_text(status_of(each, now)),
                "" if each.expires is None else show_relative(each.expires, now),
                "never" if each.last_used is None else show_relative(each.last_used, now),
            )
            for each in found
        ],
        empty="no keys; make one with: foliot keys create NAME --role submitter",
    )
    if more:
        tell_of_more(len(found), "first")


@keys.command(
    examples="""
    foliot keys create ci --role submitter --queue builds --expires +90d
    foliot keys create team-a --role admin --namespace team-a
    export FOLIOT_KEY=$(foliot keys create mailer --role worker --quiet)
    """
)
@click.argument("name")
@click.option("--role", required=True, type=click.Choice(ROLES), help="What it may do.")
@click.option(
    "--namespace", metavar="NAME", help="Which namespace it is for; another only with the node's own admin key."
)
@click.option("--queue", "queues", multiple=True, metavar="QUEUE", help="It reaches only this queue; may repeat.")
@click.option("--type", "job_types", multiple=True, metavar="TYPE", help="Only this job type; may repeat.")
@click.option("--expires", type=TIME, help="Until when it is good: a time, or +90d from now.  [default: for ever]")
@click.option("-q", "--quiet", is_flag=True, help="Print the key and nothing else.")
@json_option
@with_client
def create(client: "Client", name: str, quiet: bool, as_json: bool, **given: Any) -> None:
    """Make an API key. It is shown this once: nobody can read it again later.

    A viewer reads, a submitter also hands in jobs, an operator also changes and holds jobs, schedules and queues, an
    admin also manages keys; a worker reads, takes jobs and reports what became of them. NAME is who the jobs and the
    audit log say it was.
    """
    _check_outputs(quiet=quiet, as_json=as_json)
    tell_key(client.create_key(name, given.pop("role"), **given), quiet=quiet, as_json=as_json)


@keys.command(examples="foliot keys show ci\nfoliot keys show 4k9w2m7c1x8v5b3n --json")
@click.argument("name", metavar="KEY")
@json_option
@with_client
def show(client: "Client", name: str, as_json: bool) -> None:
    """Show an API key, by its id or its name; all but its secret."""
    found = find_key(client, name)
    if as_json:
        print_json(found)
    else:
        print_key(found)


@keys.command(
    examples="""
    foliot keys rotate ci
    foliot keys rotate ci --overlap 2h --quiet
    """
)
@click.argument("name", metavar="KEY")
@click.option(
    "--overlap", type=DURATION, default="24h", show_default=True, help="How long the secret before stays good."
)
@click.option("-q", "--quiet", is_flag=True, help="Print the key and nothing else.")
@json_option
@with_client
def rotate(client: "Client", name: str, overlap: float | str, quiet: bool, as_json: bool) -> None:
    """Give an API key, by its id or its name, a new secret, which is shown this once.

    The secret before stays good for --overlap, so that callers can change over one by one; one from a rotation before
    that ends at once. With --overlap 0 all others end now.
    """
    _check_outputs(quiet=quiet, as_json=as_json)
    rotated = client.rotate_key(find_key(client, name).key_id, overlap=overlap)
    tell_key(rotated, quiet=quiet, as_json=as_json)
    if not (quiet or as_json):
        from foliot.domain.duration import SECOND, parse_duration

        left = parse_duration(overlap, "overlap") / SECOND
        click.echo(
            f"the secret before is good for another {show_exact(left)}" if left else "no secret before is good now",
            err=True,
        )


@keys.command(examples="foliot keys revoke ci\nfoliot keys revoke 4k9w2m7c1x8v5b3n --json")
@click.argument("names", nargs=-1, required=True, metavar="KEY...")
@json_option
@with_client
def revoke(client: "Client", names: tuple[str, ...], as_json: bool) -> None:
    """End API keys for good, by their ids or names, on every node within 5 seconds.

    Browsers that were let in by one of them are let out. Its name can be given to a new key.
    """
    change_each(
        names,
        lambda name: client.revoke_key(find_key(client, name).key_id),
        as_json=as_json,
        tell=lambda _info: "revoked",
    )


def find_key(client: "Client", text: str) -> "KeyInfo":
    """The key of that id, or else the one of that name that was not revoked. Of a whole key only the id is sent."""
    from foliot.domain.credential import parse_key
    from foliot.sdk.failures import NotFound as NoSuchKey

    parsed = parse_key(text)
    try:
        return client.key(parsed[0] if parsed else text)
    except NoSuchKey:
        if parsed:
            raise
    named = [each for each in client.all_keys(page_size=1000) if each.name == text and each.revoked is None]
    if not named:
        raise NotFound(f"there is no key {text!r}, neither by id nor by name; foliot keys lists them")
    if len(named) > 1:
        ids = ", ".join(f"{each.key_id} (in {each.namespace})" for each in named)
        raise Failed(f"several keys are called {text!r}; name one by its id: {ids}")
    return named[0]


def status_of(key: "KeyInfo", now: datetime) -> str:
    if key.revoked is not None:
        return "revoked"
    return "expired" if key.expires is not None and key.expires <= now else "active"


def reach_text(queues: list[str], job_types: list[str], most: int = 100) -> str:
    """What a key was narrowed to; empty where it reaches its whole namespace."""
    parts = (("queue", queues), ("type", job_types))
    return "; ".join(
        f"{word}{'s' if len(names) > 1 else ''} {one_line(some(names, most))}" for word, names in parts if names
    )


def print_key(key: "KeyInfo") -> None:
    now = read_clock()
    print_fields(
        (
            ("key id", key.key_id),
            ("name", one_line(key.name)),
            ("status", status_text(status_of(key, now))),
            ("role", key.role),
            ("namespace", key.namespace),
            ("reaches", reach_text(key.queues, key.job_types) or "all of it"),
            ("created", f"{show_moment(key.created_time, now)} by {one_line(key.created_by)}"),
            ("expires", "never" if key.expires is None else show_moment(key.expires, now)),
            ("last used", "never" if key.last_used is None else show_moment(key.last_used, now)),
            ("revoked", None if key.revoked is None else show_moment(key.revoked, now)),
        )
    )


def tell_key(made: "NewKey", *, quiet: bool, as_json: bool) -> None:
    """With the key in a line of its own, which no terminal breaks in two."""
    if as_json:
        print_json(made)
    elif quiet:
        click.echo(made.key)
    else:
        print_key(made)
        click.echo(f"\n{made.key}\n")
        click.echo("the key is shown only this once: keep it now, where only who needs it can read it", err=True)


def _check_outputs(*, quiet: bool, as_json: bool) -> None:
    if quiet and as_json:
        raise click.UsageError("give --quiet or --json, not both")
