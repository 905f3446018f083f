"""What the head of a request may be. Whatever two readers could understand differently is refused: that is how a
request is smuggled past a proxy that was to check it."""

from collections.abc import Sequence
from http import HTTPStatus
from typing import NamedTuple

from foliot.api.errors import TYPE_PREFIX
from foliot.wire import Problem, encode

TARGET_LIMIT = 16 * 1024
HEAD_LIMIT = 32 * 1024
HEADER_COUNT = 100

_ONCE = frozenset(
    (
        b"authorization",
        b"content-length",
        b"content-type",
        b"cookie",
        b"expect",
        b"host",
        b"idempotency-key",
        b"if-match",
        b"transfer-encoding",
        b"x-csrf-token",
    )
)


class Refusal(NamedTuple):
    """Why a request gets no further than the connection it came on."""

    status: int
    code: str
    detail: str

    def body(self) -> bytes:
        title = HTTPStatus(self.status).phrase
        return encode(Problem(type=TYPE_PREFIX + self.code, title=title, status=self.status, detail=self.detail))


TOO_LONG_HEAD = Refusal(431, "too-large", f"At most {HEADER_COUNT} headers and {HEAD_LIMIT} bytes of them are taken")


def check_head(method: bytes, version: str, headers: Sequence[tuple[bytes, bytes]], upgrade: bool) -> Refusal | None:
    """What is wrong with it; names of headers are in lower case. The parser has refused what is no HTTP, two lengths,
    and a length beside a transfer encoding."""
    if len(headers) > HEADER_COUNT:
        return TOO_LONG_HEAD
    if version not in ("1.0", "1.1"):
        return Refusal(505, "bad-input", "HTTP/1.1 is spoken here")
    if method == b"CONNECT":
        return _bad("CONNECT is for proxies, and this is none")
    found = dict(headers)
    if len(found) != len(headers) and (twice := _twice(headers)):
        return _bad(f"The header {twice.decode('ascii')} may be sent once")
    if version == "1.1" and b"host" not in found:
        return _bad("The header host is missing")
    coding = found.get(b"transfer-encoding")
    if coding is not None and (version != "1.1" or coding.lower() != b"chunked"):
        return _bad("The only transfer encoding is chunked, in HTTP/1.1")
    if upgrade and (coding is not None or found.get(b"content-length", b"0").strip(b"0")):
        return _bad("A request that asks for another protocol can not have a body")
    return None


def size_of(headers: Sequence[tuple[bytes, bytes]]) -> int:
    """In bytes, as they were sent."""
    return sum(len(name) + len(value) + 4 for name, value in headers)


def _twice(headers: Sequence[tuple[bytes, bytes]]) -> bytes | None:
    seen: set[bytes] = set()
    for name, _ in headers:
        if name in seen and name in _ONCE:
            return name
        seen.add(name)
    return None


def _bad(detail: str) -> Refusal:
    return Refusal(400, "bad-input", detail)
