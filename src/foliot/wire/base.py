"""What all messages stand on: limits, names, times, and the base of every body."""

from datetime import UTC, datetime, timedelta
from typing import Annotated

import msgspec
from msgspec import Meta, Struct

BASE_PATH = "/api/v1"
PAYLOAD_LIMIT = 256 * 1024
RESULT_LIMIT = 1024 * 1024
BATCH_LIMIT = 10_000
BODY_LIMIT = 32 * 1024 * 1024
LIST_LIMIT = 1000
LOG_LINE_LIMIT = 16 * 1024
PREVIEW_LIMIT = 1000

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


_EARLIEST = (datetime.min.replace(tzinfo=UTC) - _EPOCH) // _MICROSECOND
_LATEST = (datetime.max.replace(tzinfo=UTC) - _EPOCH) // _MICROSECOND


def to_micros(time: datetime) -> int:
    """Microseconds since 1970. An offset may put a time of the year 1 or 9999 outside of what UTC can show; it is
    moved to the edge, so that whatever was taken in can be shown again."""
    return min(max((time - _EPOCH) // _MICROSECOND, _EARLIEST), _LATEST)


def to_time(micros: int) -> datetime:
    return _EPOCH + timedelta(microseconds=micros)


JobId = Annotated[
    str, Meta(pattern=r"^(?!\.{1,2}\Z)[A-Za-z0-9._:@-]{1,128}\Z", description="1–128 of A–Z a–z 0–9 . _ : @ -")
]
ScheduleId = Annotated[
    str, Meta(pattern=r"^(?!\.{1,2}\Z)[A-Za-z0-9._:@-]{1,96}\Z", description="1–96 of A–Z a–z 0–9 . _ : @ -")
]
JobType = Annotated[
    str, Meta(pattern=r"^(?!\.{1,2}\Z)[A-Za-z0-9._:-]{1,128}\Z", description="1–128 of A–Z a–z 0–9 . _ : -")
]
QueueName = Annotated[
    str, Meta(pattern=r"^(?!\.{1,2}\Z)[A-Za-z0-9._-]{1,64}\Z", description="1–64 of A–Z a–z 0–9 . _ -")
]
KeyName = Annotated[str, Meta(min_length=1, max_length=200, pattern=r"^[^\x00-\x1f]*\Z")]
Tag = Annotated[str, Meta(min_length=1, max_length=128, pattern=r"^[^\x00-\x1f]*\Z")]
Owner = Annotated[str, Meta(min_length=1, max_length=128, pattern=r"^[^\x00-\x1f]*\Z")]
Time = Annotated[datetime, Meta(tz=True, description="RFC 3339 with an offset")]
Duration = Annotated[float | str, Meta(description='seconds, or "250ms", "30s", "5m", "2h", "1d"')]
Priority = Annotated[int | str, Meta(description='"high" (8), "medium" (5), "low" (2), or 0–9; 9 runs first')]


class Body(Struct, forbid_unknown_fields=True, kw_only=True, frozen=True):
    """Base of everything that is sent in."""


encode = msgspec.json.Encoder().encode
