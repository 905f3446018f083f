"""How a job is to be run: what may be said with `@app.job`, with `options(…)` and beside a submit's arguments."""

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from functools import lru_cache
from typing import Any, TypedDict

import msgspec
from msgspec import Raw

from foliot.domain.duration import parse_duration
from foliot.domain.errors import BadInput
from foliot.domain.needs import parse_needs
from foliot.domain.priority import parse_priority
from foliot.sdk.parents import ParentsLike, read_parents, show_parents
from foliot.wire import ConcurrencyBody, RetryBody, SubmitBody
from foliot.wire.alerts import NotifyBody

DurationLike = float | str | timedelta
RetryLike = RetryBody | Mapping[str, Any] | Sequence[DurationLike] | int
ConcurrencyLike = ConcurrencyBody | Mapping[str, Any] | tuple[str, int]
ResourcesLike = Mapping[str, float | str]
NotifyLike = NotifyBody | Mapping[str, Any]


class Options(TypedDict, total=False):
    """`at` (aware) or `delay` says when, `deadline` by when it must have started, `timeout` how long one attempt may
    take. `retry` is a policy as in the API, just the number of attempts, or a list of the waits between them.

    `resources` are held while it runs, `requires` are labels that its worker must have. Of a `concurrency` key, (key,
    limit), at most so many run at once; while a job with a `unique_key` waits, a submit gives that one; a `fair_key` is
    whose share of a fair queue it counts against. Each of the three may be a function of the job's arguments, by
    their names. `secret_fields` are arguments, or parts of them as in `db.password`, that no read shows. `depends_on`
    are jobs or their ids, or pairs of one and "success", "failure" or "any". `notify` tells people of what becomes of
    it: `{"on": ["failed", "late"], "late_after": "30s", "channels": ["ops"]}`. None is the default."""

    at: datetime | None
    delay: DurationLike | None
    priority: int | str | None
    queue: str | None
    job_id: str | None
    tags: Sequence[str] | None
    deadline: datetime | None
    timeout: DurationLike | None
    retry: RetryLike | None
    owner: str | None
    resources: ResourcesLike | None
    requires: Mapping[str, str] | None
    concurrency: ConcurrencyLike | Callable[..., ConcurrencyLike | None] | None
    unique_key: str | Callable[..., str | None] | None
    fair_key: str | Callable[..., str | None] | None
    secret_fields: Sequence[str] | None
    depends_on: ParentsLike | None
    notify: NotifyLike | None


DERIVED = ("concurrency", "unique_key", "fair_key")  # those that may be a function of the arguments
OPTION_NAMES = frozenset(Options.__annotations__)


def submit_body(job_type: str, payload: Raw, options: Mapping[str, Any], results_of: Iterable[str] = ()) -> SubmitBody:
    """The job to hand in, which depends on those whose results are among its arguments; TypeError or ValueError, naming
    the option, where one can not be meant."""
    fields: dict[str, Any] = {"payload": payload}
    for name, value in options.items():
        if name not in OPTION_NAMES:
            raise TypeError(f"there is no option {name!r}; the options are {', '.join(sorted(OPTION_NAMES))}")
        if value is not None:
            fields["schedule_time" if name == "at" else name] = _read(name, value)
    if "schedule_time" in fields and "delay" in fields:
        raise ValueError("at and delay both say when; give one of them")
    if results_of or "depends_on" in fields:
        fields["depends_on"] = show_parents(read_parents(options.get("depends_on") or (), results_of))
    return SubmitBody(job_type=job_type, **fields)


def derive(options: Mapping[str, Any], values: Callable[[], Mapping[str, Any]]) -> Mapping[str, Any]:
    """The options of one job, those that are functions replaced by what they give for its arguments."""
    derived = {name: options[name] for name in DERIVED if callable(options.get(name))}
    if not derived:
        return options
    given = values()
    return {**options, **{name: function(**_taken(function, given)) for name, function in derived.items()}}


def check_options(job_type: str, options: Mapping[str, Any], parameters: Iterable[str]) -> None:
    """Refuses at once what a node would refuse at every submit. `parameters` are the job function's."""
    for name in DERIVED:
        if callable(options.get(name)) and (unknown := _wanted(options[name])[1] - frozenset(parameters)):
            raise TypeError(f"{job_type}: {name} asks for {', '.join(sorted(unknown))}, which the job does not take")
    fixed = {name: value for name, value in options.items() if not (name in DERIVED and callable(value))}
    body = submit_body(job_type, Raw(b"{}"), fixed)
    try:
        msgspec.json.decode(msgspec.json.encode(body), type=SubmitBody)
    except msgspec.ValidationError as error:
        raise ValueError(f"{job_type}: {error}") from None


def _read(name: str, value: Any) -> Any:
    match name:
        case "at" | "deadline":
            if not isinstance(value, datetime) or value.tzinfo is None:
                raise ValueError(
                    f"{name} must be a datetime with a time zone, as in datetime.now(UTC); it is {value!r}"
                )
            return value
        case "delay" | "timeout":
            seconds = value.total_seconds() if isinstance(value, timedelta) else value
            _refused(parse_duration, seconds, name)
            return seconds
        case "priority":
            _refused(parse_priority, value)
        case "retry":
            return _retry(value)
        case "resources":
            _refused(parse_needs, value, None)
            return dict(value)
        case "concurrency" | "unique_key" | "fair_key" if callable(value):
            raise TypeError(f"{name} can be a function only where the job's own function is known, for its arguments")
        case "concurrency":
            return _concurrency(value)
        case "notify":
            return read_notify(value)
        case "tags" | "secret_fields":
            if isinstance(value, str):
                raise TypeError(f"{name} is a list of words, not one string: {value!r}")
            return list(value)
    return value


def _retry(value: RetryLike) -> RetryBody:
    given: Any = value
    if isinstance(value, int):
        given = {"max_attempts": value}
    elif isinstance(value, Sequence) and not isinstance(value, str):
        given = {"max_attempts": len(value) + 1, "delays": value}
    if isinstance(given, Mapping):
        given = {name: _seconds(each) for name, each in given.items()}
    try:
        made = msgspec.convert(given, RetryBody)
    except msgspec.ValidationError as error:
        raise ValueError(f"retry: {error}") from None
    for name, durations in (("initial", [made.initial]), ("max", [made.max]), ("delays", made.delays)):
        for each in durations:
            _refused(parse_duration, each, f"retry.{name}")
    return made


def _seconds(value: Any) -> Any:
    if isinstance(value, list | tuple):
        return [_seconds(each) for each in value]
    return value.total_seconds() if isinstance(value, timedelta) else value


def _concurrency(value: Any) -> ConcurrencyBody:
    if isinstance(value, tuple):
        if len(value) != 2:
            raise ValueError(f"concurrency: {value!r} is not a key and its limit")
        value = {"key": value[0], "limit": value[1]}
    try:
        return msgspec.convert(value, ConcurrencyBody)
    except msgspec.ValidationError as error:
        raise ValueError(f"concurrency: {error}") from None


def read_notify(value: NotifyLike) -> NotifyBody:
    """ValueError where it can not be meant."""
    given = {name: _seconds(each) for name, each in value.items()} if isinstance(value, Mapping) else value
    try:
        made = msgspec.convert(given, NotifyBody)
    except msgspec.ValidationError as error:
        raise ValueError(f"notify: {error}") from None
    if made.late_after is not None:
        _refused(parse_duration, made.late_after, "notify.late_after")
    return made


@lru_cache(maxsize=256)
def _wanted(function: Callable[..., Any]) -> tuple[frozenset[str], frozenset[str], bool]:
    """The arguments that a function can be given by name, those of them that it needs, and whether it takes any."""
    parameters = inspect.signature(function).parameters.values()
    if any(each.kind is each.POSITIONAL_ONLY for each in parameters):
        raise TypeError(f"{function!r} is given the job's arguments by name; it must not take any by place only")
    named = [each for each in parameters if each.kind in (each.POSITIONAL_OR_KEYWORD, each.KEYWORD_ONLY)]
    needed = frozenset(each.name for each in named if each.default is each.empty)
    return frozenset(each.name for each in named), needed, any(each.kind is each.VAR_KEYWORD for each in parameters)


def _taken(function: Callable[..., Any], values: Mapping[str, Any]) -> Mapping[str, Any]:
    named, _, takes_any = _wanted(function)
    return values if takes_any else {name: value for name, value in values.items() if name in named}


def _refused(parse: Callable[..., object], *value: Any) -> None:
    """Lets the domain's own rule speak, as the kind of error that a wrong argument is in Python."""
    try:
        parse(*value)
    except BadInput as error:
        raise ValueError(error.detail) from None
    except TypeError:
        raise TypeError(f"{value[0]!r} is of the wrong type") from None
