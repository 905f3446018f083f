"""Which jobs: the options that `jobs ls` and the commands on many jobs share."""

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any

import click

from foliot.cli.times import TIME

if TYPE_CHECKING:
    from foliot.wire import FilterBody

# `waiting` is every state before running. Named here, so that help needs no heavy import; a test compares.
STATUSES = (
    "waiting",
    "scheduled",
    "blocked",
    "queued",
    "running",
    "retrying",
    "paused",
    "completed",
    "failed",
    "cancelled",
)

OPTIONS = (
    click.option(
        "--status",
        multiple=True,
        type=click.Choice(STATUSES),
        metavar="STATUS",
        help=f"In this status; may repeat. One of {', '.join(STATUSES)}; waiting is all before running.",
    ),
    click.option("--type", "job_type", metavar="JOB_TYPE", help="Of this job type."),
    click.option("--queue", metavar="QUEUE", help="In this queue."),
    click.option("--owner", metavar="OWNER", help="Of this owner."),
    click.option("--tag", multiple=True, metavar="TAG", help="With this tag; may repeat."),
    click.option("--schedule", "schedule_id", metavar="SCHEDULE_ID", help="Runs of this schedule."),
    click.option("--due-after", type=TIME, help="Due at or after this time (RFC 3339, local, or -2h)."),
    click.option("--due-before", type=TIME, help="Due before this time (RFC 3339, local, or +2h)."),
)
NAMES = ("status", "job_type", "queue", "owner", "tag", "schedule_id", "due_after", "due_before")


def filter_options(function: Callable[..., None]) -> Callable[..., None]:
    return OPTIONS[0](other_filter_options(function))


def other_filter_options(function: Callable[..., None]) -> Callable[..., None]:
    """All but the status, for a command that knows it."""
    for option in reversed(OPTIONS[1:]):
        function = option(function)
    return function


def given_filter(options: Mapping[str, Any]) -> dict[str, Any]:
    """What was given of the filter, as the API's words."""
    found = {}
    for name in NAMES:
        value = options[name]
        if value:
            found[name] = list(value) if isinstance(value, tuple) else value
    return found


def filter_words(options: Mapping[str, Any]) -> list[str]:
    """What was given, as it would be typed for another command."""
    words = []
    for name, value in given_filter(options).items():
        option = {"job_type": "--type", "schedule_id": "--schedule"}.get(name, f"--{name.replace('_', '-')}")
        for each in value if isinstance(value, list) else [value]:
            words += [option, each.isoformat() if isinstance(each, datetime) else each]
    return words


def filter_body(options: Mapping[str, Any]) -> "FilterBody":
    from foliot.wire import FilterBody

    return FilterBody(**given_filter(options))
