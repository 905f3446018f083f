"""The part of an address after `?`: typed like a body, and as strict."""

import re
from typing import Annotated, Any, TypeVar
from urllib.parse import parse_qsl, urlencode

import msgspec
from msgspec import UNSET, Meta, UnsetType, field, inspect

from foliot.api.messages import bad_value, members
from foliot.domain.errors import BadInput
from foliot.wire import (
    LIST_LIMIT,
    PREVIEW_LIMIT,
    Body,
    Count,
    FilterBody,
    JobType,
    Owner,
    PreviewBody,
    QueueName,
    Tag,
    Time,
)

Limit = Annotated[int, Meta(ge=1, le=LIST_LIMIT, description="how many at most")]
Cursor = Annotated[
    str, Meta(max_length=200, description="where the page begins; taken from the Link header of the one before")
]

Value = TypeVar("Value")

_SPACE_FOR_PLUS = re.compile(r" (?=\d\d:\d\d\Z)")
_MOST_PARAMETERS = 1000


class JobsQuery(Body, frozen=True, kw_only=True):
    """Which jobs; `status` and `tag` may be given more than once."""

    status: Annotated[list[str], Meta(description="any of these; waiting is every status before running")] = field(
        default_factory=list
    )
    job_type: JobType | UnsetType = UNSET
    queue: QueueName | UnsetType = UNSET
    owner: Owner | UnsetType = UNSET
    tag: Annotated[list[Tag], Meta(description="all of these")] = field(default_factory=list)
    schedule_id: Owner | UnsetType = UNSET
    start_time: Annotated[Time, Meta(description="schedule_time from then on")] | UnsetType = UNSET
    end_time: Annotated[Time, Meta(description="schedule_time before then")] | UnsetType = UNSET
    due_after: Annotated[Time, Meta(description="the same as start_time")] | UnsetType = UNSET
    due_before: Annotated[Time, Meta(description="the same as end_time")] | UnsetType = UNSET
    limit: Limit = 50
    cursor: Cursor | UnsetType = UNSET

    def filter(self) -> FilterBody:
        return FilterBody(
            status=self.status or None,
            job_type=given(self.job_type),
            queue=given(self.queue),
            owner=given(self.owner),
            tag=self.tag or None,
            schedule_id=given(self.schedule_id),
            start_time=given(self.start_time),
            end_time=given(self.end_time),
            due_after=given(self.due_after),
            due_before=given(self.due_before),
        )


class PageQuery(Body, frozen=True, kw_only=True):
    """Which part of a list."""

    limit: Limit = 50
    cursor: Cursor | UnsetType = UNSET


class LogsQuery(Body, frozen=True, kw_only=True):
    """Which lines of a log."""

    after: Annotated[str, Meta(description="a log_id: only later lines")] | UnsetType = UNSET
    level: (
        Annotated[str, Meta(description="DEBUG, INFO, WARNING or ERROR: only lines of that level or worse")] | UnsetType
    ) = UNSET
    limit: Limit = LIST_LIMIT


class PreviewQuery(Body, frozen=True, kw_only=True):
    """The trigger of a schedule; exactly one of `cron`, `every` and `rrule`."""

    cron: Annotated[str, Meta(description="5 fields, or 6 with seconds first, or @daily and its kin")] | UnsetType = (
        UNSET
    )
    every: Annotated[str, Meta(description="seconds, or like 250ms, 30s, 5m, 2h, 1d")] | UnsetType = UNSET
    rrule: Annotated[str, Meta(description="RFC 5545, such as FREQ=MONTHLY;BYDAY=-1FR")] | UnsetType = UNSET
    timezone: Annotated[str, Meta(description="an IANA time zone; UTC unless given")] | UnsetType = UNSET
    start_time: Annotated[Time, Meta(description="from then on; unless given from now on")] | UnsetType = UNSET
    end_time: Annotated[Time, Meta(description="until then")] | UnsetType = UNSET
    max_runs: Annotated[Count, Meta(description="how many runs there are in all")] | UnsetType = UNSET
    count: Annotated[int, Meta(ge=1, le=PREVIEW_LIMIT, description="how many to show at most")] = 10

    def body(self) -> PreviewBody:
        return PreviewBody(
            cron=given(self.cron),
            every=None if self.every is UNSET else _number_or_text(self.every),
            rrule=given(self.rrule),
            timezone=given(self.timezone),
            start_time=given(self.start_time),
            end_time=given(self.end_time),
            max_runs=given(self.max_runs),
            count=self.count,
        )


def given(value: Value | UnsetType) -> Value | None:
    """None where a parameter was not given."""
    return None if value is UNSET else value


class QueryReader:
    """Reads the parameters of one route; without a type it takes none."""

    def __init__(self, type_: type[msgspec.Struct] | None) -> None:
        self._type = type_
        fields = msgspec.structs.fields(type_) if type_ else ()
        kinds = {each.encode_name: {type(kind) for kind in members(inspect.type_info(each.type))} for each in fields}
        self._names = sorted(kinds)
        self._repeatable = {name for name, kind in kinds.items() if inspect.ListType in kind}
        self._numbers = {name for name, kind in kinds.items() if inspect.IntType in kind}
        self._times = {name for name, kind in kinds.items() if inspect.DateTimeType in kind}
        self._default = type_() if type_ else None

    def read(self, query_string: bytes) -> Any:
        """The decoded parameters. Raises `BadInput` for one that is unknown, repeated, empty or wrong."""
        if not query_string:
            return self._default
        values: dict[str, Any] = {}
        for name, text in parse(query_string):
            if name not in self._names:
                allowed = f"; there are {', '.join(self._names)}" if self._names else ""
                raise BadInput.at(name, f"there is no such query parameter{allowed}")
            if not text:
                raise BadInput.at(name, "is empty; give a value or leave it out")
            if name in self._repeatable:
                values.setdefault(name, []).append(text)
            elif name in values:
                raise BadInput.at(name, "may be given only once")
            else:
                values[name] = self._value(name, text)
        if self._type is None:
            return None
        try:
            return msgspec.convert(values, self._type)
        except msgspec.ValidationError as error:
            raise bad_value(str(error), self._type) from None

    def _value(self, name: str, text: str) -> Any:
        if name in self._numbers:
            return int(text) if re.fullmatch(r"-?[0-9]{1,100}", text) else text
        if name in self._times:
            return _SPACE_FOR_PLUS.sub("+", text)  # what an unescaped + of an offset has become
        return text


def _number_or_text(text: str) -> float | str:
    """A duration as a body would have it: what is a number there is a number here."""
    try:
        return float(text)
    except ValueError:
        return text


def parse(query_string: bytes) -> list[tuple[str, str]]:
    try:
        return parse_qsl(
            query_string.decode("ascii"), keep_blank_values=True, errors="strict", max_num_fields=_MOST_PARAMETERS
        )
    except ValueError:  # not ASCII, not UTF-8 behind the percent signs, or far too many
        raise BadInput("The query is not valid: use UTF-8, percent-encoded") from None


def next_link(path: str, query_string: bytes, **changed: str) -> tuple[bytes, bytes]:
    """A `Link` header to the next page: the same address with some parameters set anew."""
    kept = [(name, value) for name, value in parse(query_string) if name not in changed]
    return b"link", f'<{path}?{urlencode(kept + list(changed.items()))}>; rel="next"'.encode()
