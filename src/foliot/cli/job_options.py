"""What a job asks for, as options: those that `submit` and `schedules create|change` share."""

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from foliot.cli.notify_options import NOTIFY_OPTIONS, notify_body, notify_given

if TYPE_CHECKING:
    from foliot.wire import DependsOn

# The words of the API, named here so that help needs no heavy import; a test compares.
ENDS = ("success", "failure", "any")
HIGHEST_LIMIT = 1_000_000
NEARLY = 0.7  # how alike a word must be to be taken for a mistyped one


class Parent(NamedTuple):
    """A job that must have ended first, and how."""

    job_id: str
    on: str


class ParentParameter(click.ParamType):  # type: ignore[type-arg]
    """A job's id, with `:success`, `:failure` or `:any` behind it. An id may have colons of its own: what ends with
    none of these words is an id as a whole, unless it looks like a slip in one of them."""

    name = "job"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Parent:
        if isinstance(value, Parent):
            return value
        job_id, colon, word = value.rpartition(":")
        if not colon:
            return Parent(value, "success")
        if word in ENDS:
            return Parent(job_id, word)
        import difflib

        if near := difflib.get_close_matches(word, ENDS, n=1, cutoff=NEARLY):
            self.fail(
                f"{value!r}: did you mean {job_id}:{near[0]}? Where that is the whole id, write {value}:success",
                param,
                ctx,
            )
        return Parent(value, "success")


class ConcurrencyParameter(click.ParamType):  # type: ignore[type-arg]
    """`KEY=LIMIT`; the key may have an `=` of its own."""

    name = "key=limit"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[str, int]:
        if isinstance(value, tuple):
            return value
        key, _, limit = value.rpartition("=")
        if not key or not limit.isdecimal() or not 1 <= int(limit) <= HIGHEST_LIMIT:
            self.fail(
                f"{value!r} is no key with its limit, 1 to {HIGHEST_LIMIT:,}; use account-42=1 for one at a time",
                param,
                ctx,
            )
        return key, int(limit)


class AmountParameter(click.ParamType):  # type: ignore[type-arg]
    """`NAME=AMOUNT` of a resource: a number, or one with a unit."""

    name = "name=amount"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[str, float | str]:
        if isinstance(value, tuple):
            return value
        from foliot.domain.errors import BadInput
        from foliot.domain.needs import parse_amounts

        name, equals, text = value.partition("=")
        if not equals:
            self.fail(f"{value!r} is no amount; use cpu=0.5, memory=256Mi or gpu=1", param, ctx)
        try:
            amount: float | str = float(text)
        except ValueError:
            amount = text
        try:
            parse_amounts({name: amount}, "resources")
        except BadInput as error:
            self.fail(f"{value!r}: {error.errors[0].message}; use cpu=0.5, memory=256Mi or gpu=1", param, ctx)
        return name, amount


class LabelParameter(click.ParamType):  # type: ignore[type-arg]
    """`NAME=VALUE` of a label."""

    name = "name=value"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[str, str]:
        if isinstance(value, tuple):
            return value
        name, _, label = value.partition("=")
        if not name or not label:
            self.fail(f"{value!r} is no label; use zone=eu", param, ctx)
        return name, label


PARENT = ParentParameter()
CONCURRENCY = ConcurrencyParameter()
AMOUNT = AmountParameter()
LABEL = LabelParameter()

OPTIONS = (
    click.option(
        "--concurrency",
        type=CONCURRENCY,
        metavar="KEY=LIMIT",
        help="At most so many jobs with this key at once, everywhere; the newest limit given applies.",
    ),
    click.option(
        "--resource",
        "resources",
        multiple=True,
        type=AMOUNT,
        metavar="NAME=AMOUNT",
        help="Hold so much of what its worker has, such as cpu=0.5 or memory=256Mi; may repeat.",
    ),
    click.option(
        "--require",
        "requires",
        multiple=True,
        type=LABEL,
        metavar="NAME=VALUE",
        help="Only on workers with this label, such as zone=eu; may repeat.",
    ),
    click.option(
        "--unique-key", metavar="KEY", help="While a job with this key waits, another one is not taken in beside it."
    ),
    click.option(
        "--fair-key", metavar="KEY", help="Whose share it counts against in a fair queue.  [default: its owner's]"
    ),
    click.option(
        "--secret",
        "secret_fields",
        multiple=True,
        metavar="FIELD",
        help="A part of the payload that no read shows, such as db.password; may repeat.",
    ),
    *NOTIFY_OPTIONS,
)


def job_options(function: Callable[..., None]) -> Callable[..., None]:
    for option in reversed(OPTIONS):
        function = option(function)
    return function


def asked_fields(given: Mapping[str, Any]) -> dict[str, Any]:
    """What was given of these options, as the API's fields."""
    from foliot.wire import ConcurrencyBody

    fields: dict[str, Any] = {}
    if given["concurrency"]:
        key, limit = given["concurrency"]
        fields["concurrency"] = ConcurrencyBody(key=key, limit=limit)
    if given["resources"]:
        fields["resources"] = once(given["resources"], "--resource")
    if given["requires"]:
        fields["requires"] = once(given["requires"], "--require")
    fields |= {name: given[name] for name in ("unique_key", "fair_key") if given[name]}
    if given["secret_fields"]:
        fields["secret_fields"] = list(given["secret_fields"])
    if notify_given(given):
        fields["notify"] = notify_body(given)
    return fields


def parents_of(given: Iterable[Parent]) -> "list[str | DependsOn]":
    """As the API takes them: an id alone means its success."""
    from foliot.wire import DependsOn

    return [each.job_id if each.on == "success" else DependsOn(job_id=each.job_id, on=each.on) for each in given]  # type: ignore[arg-type]


def once(pairs: Iterable[tuple[str, Any]], option: str) -> dict[str, Any]:
    """Names with their values, none of them twice."""
    found: dict[str, Any] = {}
    for name, value in pairs:
        if name in found:
            raise click.UsageError(f"{option} {name} is given twice; give it once")
        found[name] = value
    return found
