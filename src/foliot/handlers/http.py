"""`http`: one request to a service. What may pass by itself is tried again: no connection, no answer in time, 408,
425, 429, 5xx; every other answer that was not expected ends the job."""

import asyncio
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Annotated, Any, Literal

import aiohttp
import msgspec
from msgspec import UNSET, Meta, Raw, Struct, UnsetType

from foliot import __version__, clock
from foliot.handlers.payload import bad_payload, read_payload
from foliot.sdk.context import JobContext
from foliot.sdk.errors import Fatal, Retry
from foliot.sdk.handler import Handler
from foliot.wire import to_micros

BODY_KEPT = 256 * 1024
SHOWN_IN_ERROR = 500
DEFAULT_SECONDS = 30.0
LONGEST_WAIT = 24 * 3600.0
RETRIABLE = frozenset({408, 425, 429})
HEADERS_KEPT = ("content-type", "content-length", "date", "etag", "location", "last-modified", "retry-after")


class HttpPayload(Struct, forbid_unknown_fields=True, frozen=True, kw_only=True):
    """`body` is sent as it is where it is text, else as JSON. `expect` lists what counts as success, else 200 to
    299."""

    url: Annotated[str, Meta(min_length=1)]
    method: Literal["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"] = "GET"
    headers: dict[str, str] = {}
    body: Raw | UnsetType = UNSET
    expect: Annotated[list[Annotated[int, Meta(ge=100, le=599)]], Meta(min_length=1)] | UnsetType = UNSET
    timeout: Annotated[float, Meta(gt=0)] = DEFAULT_SECONDS


class HttpCaller:
    """Holds one session for all its jobs; belongs to the loop of the first."""

    def __init__(self) -> None:
        self._session: aiohttp.ClientSession | None = None

    async def run(self, payload: bytes, context: JobContext) -> dict[str, Any]:
        wanted = read_payload(payload, HttpPayload)
        if not wanted.url.startswith(("http://", "https://")):
            raise bad_payload("url", f"{wanted.url!r} is not an address; it must begin with http:// or https://")
        for name, value in wanted.headers.items():
            if not name or any(letter in name + value for letter in "\r\n\0"):
                raise bad_payload("headers", f"{name!r} has a line break or no name")
        body, headers = _body(wanted)
        headers.setdefault("Idempotency-Key", context.idempotency_key)
        try:
            async with (
                asyncio.timeout(wanted.timeout),
                self._open().request(wanted.method, wanted.url, data=body, headers=headers) as response,
            ):
                kept = await _read(response)
                status, received = response.status, response.headers
        except TimeoutError:
            raise Retry(f"{wanted.url} did not answer within {wanted.timeout:g} s", code="timeout") from None
        except (aiohttp.InvalidURL, aiohttp.NonHttpUrlClientError) as error:
            raise bad_payload("url", f"{error} is not an address") from None
        except aiohttp.TooManyRedirects:
            raise Fatal(f"{wanted.url} redirects without end", code="redirects") from None
        except (aiohttp.ClientError, OSError) as error:
            raise Retry(f"{wanted.url}: {str(error) or type(error).__name__}", code="connection") from None
        context.log.info("%s %s answered %d", wanted.method, wanted.url, status)
        _judge(wanted, status, received, kept)
        return {
            "status": status,
            "headers": {name: received[name] for name in HEADERS_KEPT if name in received},
            "body": _shown(received, kept),
        }

    async def close(self) -> None:
        if self._session is not None:
            await self._session.close()
            self._session = None

    def _open(self) -> aiohttp.ClientSession:
        if self._session is None:
            self._session = aiohttp.ClientSession(
                headers={"User-Agent": f"foliot/{__version__}"},
                timeout=aiohttp.ClientTimeout(total=None),
                cookie_jar=aiohttp.DummyCookieJar(),  # one job's cookies are no other's
            )
        return self._session


def http_handler() -> Handler:
    caller = HttpCaller()
    return Handler(name="http", function=caller.run, close=caller.close)


def _body(wanted: HttpPayload) -> tuple[bytes | None, dict[str, str]]:
    headers = dict(wanted.headers)
    if wanted.body is UNSET:
        return None, headers
    raw = bytes(wanted.body)
    if raw.startswith(b'"'):
        return msgspec.json.decode(raw, type=str).encode(), headers
    if not any(name.lower() == "content-type" for name in headers):
        headers["Content-Type"] = "application/json"
    return raw, headers


async def _read(response: aiohttp.ClientResponse) -> bytes:
    """The beginning of the body; a longer one is not read to its end."""
    kept = bytearray()
    async for part in response.content.iter_chunked(64 * 1024):
        kept += part
        if len(kept) >= BODY_KEPT:
            response.close()
            break
    return bytes(kept[:BODY_KEPT])


def _judge(wanted: HttpPayload, status: int, headers: Mapping[str, str], body: bytes) -> None:
    """Return where the answer is a success, else raise what is to be done."""
    expected = 200 <= status < 300 if isinstance(wanted.expect, UnsetType) else status in wanted.expect
    if expected:
        return
    text = body[:SHOWN_IN_ERROR].decode("utf-8", "replace")
    message = f"{wanted.method} {wanted.url} answered {status}" + (f": {text}" if text else "")
    if status in RETRIABLE or status >= 500:
        raise Retry(message, after=retry_after(headers.get("Retry-After"), clock.wall()), code=f"http_{status}")
    raise Fatal(message, code=f"http_{status}")


def retry_after(value: str | None, now: int) -> float | None:
    """Seconds of a Retry-After header: a number, or a date. What can not be read is as if not given; no service may
    put a job off for more than a day."""
    if value is None:
        return None
    value = value.strip()
    if value.isascii() and value.isdigit():
        return min(float(value), LONGEST_WAIT)
    try:
        time: datetime = parsedate_to_datetime(value)
    except ValueError:
        return None
    if time.tzinfo is None:
        time = time.replace(tzinfo=UTC)
    return min(max(0.0, (to_micros(time) - now) / 1_000_000), LONGEST_WAIT)


def _shown(headers: Mapping[str, str], body: bytes) -> Any:
    """JSON as JSON, all else as text."""
    if "json" in headers.get("Content-Type", ""):
        try:
            return msgspec.json.decode(body)
        except msgspec.DecodeError:
            pass
    return body.decode("utf-8", "replace")
