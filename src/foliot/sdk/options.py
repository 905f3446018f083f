"""How a job is to be run: what may be said with `@app.job`, with `options(…)` and beside a submit's arguments."""

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, TypedDict

import msgspec
from msgspec import Raw

from foliot.domain.duration import parse_duration
from foliot.domain.errors import BadInput
from foliot.domain.priority import parse_priority
from foliot.wire import RetryBody, SubmitBody

DurationLike = float | str | timedelta
RetryLike = RetryBody | Mapping[str, Any] | int


class Options(TypedDict, total=False):
    """`at` (aware) or `delay` says when, `deadline` by when it must have started, `timeout` how long one attempt may
    take. `retry` is a policy as in the API, or just the number of attempts. None is the default."""

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


OPTION_NAMES = frozenset(Options.__annotations__)


def submit_body(job_type: str, payload: Raw, options: Mapping[str, Any]) -> SubmitBody:
    """The job to hand in; TypeError or ValueError, naming the option, where one can not be meant."""
    fields: dict[str, Any] = {"payload": payload}
    for name, value in options.items():
        if name not in OPTION_NAMES:
            raise TypeError(f"there is no option {name!r}; the options are {', '.join(sorted(OPTION_NAMES))}")
        if value is not None:
            fields["schedule_time" if name == "at" else name] = _read(name, value)
    if "schedule_time" in fields and "delay" in fields:
        raise ValueError("at and delay both say when; give one of them")
    return SubmitBody(job_type=job_type, **fields)


def check_options(job_type: str, options: Mapping[str, Any]) -> None:
    """Refuses at once what a node would refuse at every submit."""
    body = submit_body(job_type, Raw(b"{}"), options)
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
        case "tags":
            if isinstance(value, str):
                raise TypeError(f"tags is a list of words, not one string: {value!r}")
            return list(value)
    return value


def _retry(value: RetryLike) -> RetryBody:
    given = {"max_attempts": value} if isinstance(value, int) else value
    try:
        return msgspec.convert(given, RetryBody)
    except msgspec.ValidationError as error:
        raise ValueError(f"retry: {error}") from None


def _refused(parse: Callable[..., object], *value: Any) -> None:
    """Lets the domain's own rule speak, as the kind of error that a wrong argument is in Python."""
    try:
        parse(*value)
    except BadInput as error:
        raise ValueError(error.detail) from None
    except TypeError:
        raise TypeError(f"{value[0]!r} is of the wrong type") from None
