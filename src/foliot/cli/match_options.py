"""Which jobs a rule or a webhook is about, as options and in words."""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import click

from foliot.cli.show import one_line

if TYPE_CHECKING:
    from foliot.wire.alerts import MatchBody
    from foliot.wire.webhooks import WebhookMatch

# The fields of the API with the words for them; a test compares.
MATCH_FIELDS = {"queue": "queue", "job_type": "type", "schedule_id": "schedule", "tag": "tag"}

OPTIONS = (
    click.option("--queue", metavar="QUEUE", help="Only of jobs of this queue."),
    click.option("--type", "job_type", metavar="TYPE", help="Only of this job type."),
    click.option("--schedule", "schedule_id", metavar="SCHEDULE_ID", help="Only of runs of this schedule."),
    click.option("--tag", metavar="TAG", help="Only of jobs with this tag."),
)


def match_options(function: Callable[..., None]) -> Callable[..., None]:
    for option in reversed(OPTIONS):
        function = option(function)
    return function


def match_given(given: Mapping[str, Any]) -> dict[str, str]:
    return {name: given[name] for name in MATCH_FIELDS if given[name] is not None}


def match_text(match: "MatchBody | WebhookMatch") -> str:
    """Empty where it is of all jobs."""
    told = ((word, getattr(match, name)) for name, word in MATCH_FIELDS.items())
    return one_line(", ".join(f"{word} {value}" for word, value in told if value is not None))
