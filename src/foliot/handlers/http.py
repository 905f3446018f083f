"""`http`: one request to a service. What may pass by itself is tried again: no connection, no answer in time, 408,
425, 429, 5xx; every other answer that was not expected ends the job. Called are public addresses and what the worker
was told to allow."""

import re
from collections.abc import Mapping
from typing import Annotated, Any, Literal

import msgspec
from aiohttp.abc import AbstractResolver
from msgspec import UNSET, Meta, Raw, Struct, UnsetType

from foliot import __version__, clock
from foliot.handlers.payload import bad_payload, read_payload
from foliot.outbound import (
    AddressNotAllowed,
    AllowList,
    BadAddress,
    NoAnswer,
    OutboundClient,
    RedirectRefused,
    retry_after,
)
from foliot.outbound.client import url_shown
from foliot.sdk.context import JobContext
from foliot.sdk.errors import Fatal, Retry
from foliot.sdk.handler import Handler
from foliot.telemetry import tracing

BODY_KEPT = 256 * 1024
SHOWN_IN_ERROR = 500
DEFAULT_SECONDS = 30.0
MOST_SECONDS = 3600.0
RETRIABLE = frozenset({408, 425, 429})
HEADERS_KEPT = ("content-type", "content-length", "date", "etag", "location", "last-modified", "retry-after")
# They say where a request ends and who is on its way: a payload that could set them could hide a second request.
NOT_FOR_PAYLOADS = frozenset(
    {
        "connection",
        "content-length",
        "expect",
        "host",
        "keep-alive",
        "proxy-authorization",
        "proxy-connection",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
    }
)

_HEADER_NAME = re.compile(r"^[A-Za-z0-9!#$%&'*+.^_`|~-]+\Z")
_CONTROLS = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f]")
_HEADER_VALUE = re.compile(r"^[^\x00-\x08\x0a-\x1f\x7f]*\Z")


class HttpPayload(Struct, forbid_unknown_fields=True, frozen=True, kw_only=True):
    """`body` is sent as it is where it is text, else as JSON. `expect` lists what counts as success, else 200 to
    299."""

    url: Annotated[str, Meta(min_length=1)]
    method: Literal["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"] = "GET"
    headers: dict[str, str] = {}
    body: Raw | UnsetType = UNSET
    expect: Annotated[list[Annotated[int, Meta(ge=100, le=599)]], Meta(min_length=1)] | UnsetType = UNSET
    timeout: Annotated[float, Meta(gt=0, le=MOST_SECONDS)] = DEFAULT_SECONDS


class HttpCaller:
    def __init__(self, client: OutboundClient) -> None:
        self._client = client

    async def run(self, payload: bytes, context: JobContext) -> dict[str, Any]:
        wanted = read_payload(payload, HttpPayload)
        _check_headers(wanted.headers)
        body, headers = _body(wanted)
        headers.setdefault("Idempotency-Key", context.idempotency_key)
        trace = tracing.current()
        if trace is not None and not any(name.lower() == "traceparent" for name in headers):
            headers["traceparent"] = trace
        shown = url_shown(wanted.url)
        try:
            answer = await self._client.request(
                wanted.method, wanted.url, headers=headers, body=body, seconds=wanted.timeout, most=BODY_KEPT
            )
        except TimeoutError:
            raise Retry(f"{shown} did not answer within {wanted.timeout:g} s", code="timeout") from None
        except BadAddress as error:
            raise bad_payload("url", str(error)) from None
        except AddressNotAllowed as error:
            raise Fatal(
                f"{error}, which jobs may not call. If they should, list {error.entry} on the worker, "
                "with --http-allow or FOLIOT_HTTP_ALLOW",
                code="address_not_allowed",
            ) from None
        except RedirectRefused as error:
            raise Fatal(str(error), code="redirects") from None
        except NoAnswer as error:
            raise Retry(str(error), code="connection") from None
        context.log.info("%s %s answered %d", wanted.method, shown, answer.status)
        _judge(wanted, answer.status, answer.headers, answer.body)
        return {
            "status": answer.status,
            "headers": {name: answer.headers[name] for name in HEADERS_KEPT if name in answer.headers},
            "body": _shown(answer.headers, answer.body),
        }


def http_handler(allowed: AllowList, resolver: AbstractResolver | None = None) -> Handler:
    client = OutboundClient(allowed, agent=f"foliot/{__version__}", resolver=resolver)
    return Handler(name="http", function=HttpCaller(client).run, close=client.close)


def _check_headers(headers: Mapping[str, str]) -> None:
    for name, value in headers.items():
        if not _HEADER_NAME.match(name) or not _HEADER_VALUE.match(value):
            raise bad_payload("headers", f"{name!r} is no name of a header, or its value has a line break in it")
        if name.lower() in NOT_FOR_PAYLOADS:
            raise bad_payload("headers", f"{name} is set by the worker, from the address and the body")


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


def _judge(wanted: HttpPayload, status: int, headers: Mapping[str, str], body: bytes) -> None:
    """Return where the answer is a success, else raise what is to be done."""
    expected = 200 <= status < 300 if isinstance(wanted.expect, UnsetType) else status in wanted.expect
    if expected:
        return
    text = body[:SHOWN_IN_ERROR].decode("utf-8", "replace")
    message = f"{wanted.method} {url_shown(wanted.url)} answered {status}" + (f": {text}" if text else "")
    if status in RETRIABLE or status >= 500:
        raise Retry(message, after=retry_after(headers.get("Retry-After"), clock.wall()), code=f"http_{status}")
    raise Fatal(message, code=f"http_{status}")


def _shown(headers: Mapping[str, str], body: bytes) -> Any:
    """JSON as JSON, all else as text."""
    if "json" in headers.get("Content-Type", ""):
        try:
            return msgspec.json.decode(body)
        except (msgspec.DecodeError, RecursionError):
            pass
    # A control character would take six in the result, and what was kept would no longer fit into it.
    return _CONTROLS.sub("\N{REPLACEMENT CHARACTER}", body.decode("utf-8", "replace"))
