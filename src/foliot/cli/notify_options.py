"""Whom to tell of what becomes of a job, and how many are to start in time: options that jobs, schedules and queues
share, and how they are read back."""

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import click

from foliot.cli.show import one_line
from foliot.cli.times import DURATION, show_exact

if TYPE_CHECKING:
    from foliot.wire.alerts import NotifyBody, NotifyInfo, ObjectiveBody, ObjectiveInfo

# The words and bounds of the API, named here so that help needs no heavy import; a test compares.
NOTIFY_WORDS = ("failed", "exhausted", "late", "slo")
NOBODY = "none"
LOWEST_TARGET, HIGHEST_TARGET = 50, 99.999  # percent
_OBJECTIVE = re.compile(r"(\d{1,2}(?:\.\d{1,6})?)\s?% within (\S+)(?: over (\S+))?", re.ASCII)

Given = Mapping[str, Any]


class ObjectiveParameter(click.ParamType):  # type: ignore[type-arg]
    """`99% within 1s over 7d`: target, within, over."""

    name = "objective"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> dict[str, Any]:
        if isinstance(value, dict):
            return value
        match = _OBJECTIVE.fullmatch(value.strip())
        if match is None or not LOWEST_TARGET <= float(match[1]) <= HIGHEST_TARGET:
            self.fail(
                f'{value!r} is no objective; use "99% within 1s over 7d", with {LOWEST_TARGET} to {HIGHEST_TARGET} %',
                param,
                ctx,
            )
        found = {"target": round(float(match[1]) / 100, 8), "within": DURATION.convert(match[2], param, ctx)}
        return found | ({"over": DURATION.convert(match[3], param, ctx)} if match[3] else {})


NOTIFY_OPTIONS = (
    click.option(
        "--notify-on",
        multiple=True,
        type=click.Choice((*NOTIFY_WORDS, NOBODY)),
        metavar="WHAT",
        help=f"Tell somebody when this happens; may repeat. One of {', '.join(NOTIFY_WORDS)}, or {NOBODY}.",
    ),
    click.option("--late-after", type=DURATION, help="With late: so long after it was due, while it has not started."),
    click.option(
        "--channel",
        "notify_channels",
        multiple=True,
        metavar="NAME",
        help="Tell it there: a name of 'foliot channels'; may repeat.",
    ),
)
OBJECTIVE_OPTION = click.option(
    "--objective",
    type=ObjectiveParameter(),
    metavar="TEXT",
    help='How many are to start in time: "99% within 1s over 7d". Told of with --notify-on slo.',
)


def notify_given(given: Given) -> bool:
    return bool(given["notify_on"] or given["notify_channels"] or given["late_after"] is not None)


def notify_body(given: Given, before: "NotifyInfo | None" = None) -> "NotifyBody":
    """The API replaces it as a whole: what was not given stays as it was `before`."""
    from foliot.wire.alerts import NotifyBody

    words = list(given["notify_on"])
    if NOBODY in words:
        if len(words) > 1 or given["notify_channels"] or given["late_after"] is not None:
            raise click.UsageError(f"--notify-on {NOBODY} goes with nothing else: nobody is told")
        return NotifyBody(on=[])
    on: Any = list(dict.fromkeys(words)) or (before.on if before else [])
    if not on:
        raise click.UsageError("tell of what? Give --notify-on too, such as --notify-on failed")
    late_after = given["late_after"] if given["late_after"] is not None else before.late_after if before else None
    if given["late_after"] is not None and "late" not in on:
        raise click.UsageError("--late-after goes with --notify-on late")
    channels = list(dict.fromkeys(given["notify_channels"])) or (before.channels if before else [])
    return NotifyBody(on=on, late_after=late_after if "late" in on else None, channels=channels)


def objective_body(given: Mapping[str, Any]) -> "ObjectiveBody":
    from foliot.wire.alerts import ObjectiveBody

    return ObjectiveBody(**given)


def notify_text(notify: "NotifyInfo | None") -> str | None:
    """`failed, late after 30s; to ops`; None where nothing is said."""
    if notify is None:
        return None
    late = "" if notify.late_after is None else f" after {show_exact(notify.late_after)}"
    words = [f"{word}{late}" if word == "late" else word for word in notify.on]
    to = f"; to {', '.join(notify.channels)}" if notify.channels else ""
    return one_line(", ".join(words) + to) if words else "nobody"


def objective_text(objective: "ObjectiveInfo | None") -> str | None:
    if objective is None:
        return None
    share = f"{objective.target * 100:.6g}"
    return f"{share}% within {show_exact(objective.within)} over {show_exact(objective.over)}"
