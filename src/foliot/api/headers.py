"""What may be asked by header: conditions, keys against doing a thing twice, and how fresh a read must be."""

import re
from collections.abc import Mapping

from foliot.domain.errors import BadInput

_ETAG = re.compile(rb'"([1-9][0-9]{0,17})"')
_REQUEST_ID = re.compile(rb"[\x20-\x7e]{1,128}")
_REQUEST_KEY = re.compile(rb"[\x20-\x7e]{1,255}")


def etag(version: int) -> tuple[bytes, bytes]:
    return b"etag", b'"%d"' % version


def if_match(headers: Mapping[bytes, bytes]) -> int | None:
    """The version that a write insists on; None where any will do."""
    value = headers.get(b"if-match")
    if value is None or value == b"*":
        return None
    found = _ETAG.fullmatch(value)
    if found is None:
        raise BadInput.at("If-Match", 'must be one ETag as a read of the job gave it, like "3", or *')
    return int(found[1])


def request_key(headers: Mapping[bytes, bytes]) -> str | None:
    """The `Idempotency-Key`, where one was sent."""
    value = headers.get(b"idempotency-key")
    if value is None:
        return None
    if _REQUEST_KEY.fullmatch(value) is None:
        raise BadInput.at("Idempotency-Key", "must be 1 to 255 printable ASCII characters")
    return value.decode("ascii")


def check_consistency(headers: Mapping[bytes, bytes]) -> None:
    """Every read is strict today, which is what `eventual` allows too."""
    if headers.get(b"consistency", b"strict") not in (b"strict", b"eventual"):
        raise BadInput.at("Consistency", "must be strict or eventual")


def request_id(headers: Mapping[bytes, bytes]) -> bytes | None:
    """The caller's own id of its request, where it can be shown in a header and a log line."""
    value = headers.get(b"x-request-id")
    return value if value is not None and _REQUEST_ID.fullmatch(value) else None


def wants_events(headers: Mapping[bytes, bytes]) -> bool:
    return b"text/event-stream" in headers.get(b"accept", b"").lower()
