"""A queue's rules, as the options of `queues set` and as people read them."""

import re
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import click

from foliot.cli.job_options import HIGHEST_LIMIT, once
from foliot.cli.notify_options import NOTIFY_OPTIONS, OBJECTIVE_OPTION, notify_body, notify_given, objective_body
from foliot.cli.show import plain, some
from foliot.cli.times import DURATION, show_exact

if TYPE_CHECKING:
    from foliot.wire import QueueInfo, RateLimitInfo

# The words and bounds of the API, named here so that help needs no heavy import; a test compares.
POLICIES = ("fifo", "priority", "fair")
RESETTABLE = ("policy", "aging", "weight", "weights", "max_concurrency", "rate_limit", "notify", "objective")
LOWEST_WEIGHT, HIGHEST_WEIGHT = 0.001, 1000
SHARES_SHOWN = 20

_RATE = re.compile(r"(\d{1,9})/(\d.*|us|ms|s|m|h|d)", re.ASCII)
Given = Mapping[str, Any]


class RateParameter(click.ParamType):  # type: ignore[type-arg]
    """`100/1s`: so many starts in a time; `100/s` is the same."""

    name = "rate"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[int, float | str]:
        if isinstance(value, tuple):
            return value
        match = _RATE.fullmatch(value)
        if match is None or not 1 <= int(match[1]) <= HIGHEST_LIMIT:
            self.fail(f"{value!r} is no rate; use 100/1s or 5000/1h, with 1 to {HIGHEST_LIMIT:,} starts", param, ctx)
        per = match[2] if match[2][0].isdecimal() else f"1{match[2]}"
        return int(match[1]), DURATION.convert(per, param, ctx)


class ShareParameter(click.ParamType):  # type: ignore[type-arg]
    """`KEY=WEIGHT` of a fair key, which may have an `=` of its own."""

    name = "key=weight"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[str, float]:
        if isinstance(value, tuple):
            return value
        key, _, text = value.rpartition("=")
        try:
            weight = float(text)
        except ValueError:
            weight = 0
        if not key or not LOWEST_WEIGHT <= weight <= HIGHEST_WEIGHT:
            self.fail(
                f"{value!r} is no fair key with its weight, {LOWEST_WEIGHT} to {HIGHEST_WEIGHT:,}; use tenant-a=3",
                param,
                ctx,
            )
        return key, weight


OPTIONS = (
    click.option(
        "--policy",
        type=click.Choice(POLICIES),
        help="Who is next: who was due first, who has the highest priority, or each fair key in turn."
        "  [default: priority]",
    ),
    click.option("--aging", type=DURATION, help="With the policy priority: so long a wait is worth one step of it."),
    click.option(
        "--weight",
        type=click.FloatRange(LOWEST_WEIGHT, HIGHEST_WEIGHT),
        metavar="N",
        help="How much of a worker that serves several queues goes to this one.  [default: 1]",
    ),
    click.option(
        "--share",
        "shares",
        multiple=True,
        type=ShareParameter(),
        metavar="KEY=WEIGHT",
        help="With the policy fair: this fair key's share; may repeat. The other keys keep theirs.  [default: 1]",
    ),
    click.option(
        "--max-concurrency",
        type=click.IntRange(1, HIGHEST_LIMIT),
        metavar="N",
        help="How many of its jobs at once, on all workers together.  [default: any number]",
    ),
    click.option(
        "--rate",
        type=RateParameter(),
        metavar="N/TIME",
        help="How many starts in a time: 100/1s.  [default: any number]",
    ),
    click.option(
        "--burst",
        type=click.IntRange(0, HIGHEST_LIMIT),
        metavar="N",
        help="With a rate: so many more at once after a quiet time.  [default: 0]",
    ),
    *NOTIFY_OPTIONS,
    OBJECTIVE_OPTION,
    click.option(
        "--reset",
        multiple=True,
        type=click.Choice(RESETTABLE),
        metavar="FIELD",
        help=f"Set this back to its default; may repeat. One of {', '.join(RESETTABLE)}.",
    ),
)


def queue_options(function: Callable[..., None]) -> Callable[..., None]:
    for option in reversed(OPTIONS):
        function = option(function)
    return function


def set_fields(given: Given, present: "Callable[[], QueueInfo | None]") -> tuple[dict[str, Any], int | None]:
    """What the client's `set_queue` is given, and the version that it was made from: None where none had to be read.
    The API replaces shares, the rate and whom to tell as a whole, so that to change a part of one, what is there now is
    filled up."""
    fields = {name: given[name] for name in ("policy", "aging", "weight", "max_concurrency") if given[name] is not None}
    shares = once(given["shares"], "--share")
    rate, burst = given["rate"], given["burst"]
    if given["objective"] is not None:
        fields["objective"] = objective_body(given["objective"])
    telling = notify_given(given)
    named = {
        *fields,
        *(("weights",) if shares else ()),
        *(() if rate is burst is None else ("rate_limit",)),
        *(("notify",) if telling else ()),
    }
    if twice := named & {*given["reset"]}:
        raise click.UsageError(f"{min(twice)} can not be given and reset at once")
    if not (named or given["reset"]):
        raise click.UsageError("set what? Give at least one option, such as --policy or --max-concurrency")
    fields |= dict.fromkeys(given["reset"])
    if not shares and not telling and (rate is None) == (burst is None):
        if rate is not None:
            fields["rate_limit"] = (*rate, burst)
        return fields, None
    info = present()
    if telling:
        fields["notify"] = notify_body(given, info.notify if info else None)
    if shares:
        merged = {**(info.weights if info else {}), **shares}
        fields["weights"] = {key: weight for key, weight in merged.items() if weight != 1}
    if "rate_limit" in named:
        fields["rate_limit"] = _rate(rate, burst, info.rate_limit if info else None)
    return fields, info.version if info else None


def _rate(
    rate: tuple[int, float | str] | None, burst: int | None, before: "RateLimitInfo | None"
) -> tuple[int, float | str, int]:
    if rate is None and before is None:
        raise click.UsageError("--burst goes with a rate; give --rate too, such as --rate 100/1s")
    limit, per = rate or (before.limit, before.per)  # type: ignore[union-attr]
    return limit, per, burst if burst is not None else before.burst if before else 0


def policy_text(info: "QueueInfo") -> str:
    aged = info.policy == "priority" and info.aging is not None
    return f"{info.policy}, aging {show_exact(info.aging or 0)}" if aged else info.policy


def limits_text(info: "QueueInfo") -> str:
    """Empty where there is none."""
    told = [] if info.max_concurrency is None else [f"{info.max_concurrency:,} at once"]
    if (rate := info.rate_limit) is not None:
        told.append(f"{rate.limit:,} per {show_exact(rate.per)}" + (f", burst {rate.burst:,}" if rate.burst else ""))
    return "; ".join(told)


def shares_text(info: "QueueInfo") -> str:
    return plain(some([f"{key}={weight:g}" for key, weight in info.weights.items()], SHARES_SHOWN))


def idle_rules(info: "QueueInfo") -> str | None:
    """What is set and does nothing under the queue's policy."""
    if info.policy != "priority" and info.aging is not None:
        return f"aging counts under the policy priority; this queue's is {info.policy}"
    if info.policy != "fair" and info.weights:
        return f"shares count under the policy fair; this queue's is {info.policy}"
    return None
