"""Reading what was sent: counted while it comes, decoded by a decoder made beforehand."""

import asyncio
from collections.abc import Mapping
from typing import Any

import msgspec

from foliot.api.call import Receive
from foliot.api.errors import ClientGone, UnsupportedMediaType
from foliot.api.messages import explain
from foliot.api.nesting import DEPTH_LIMIT, too_deep
from foliot.domain.errors import BadInput, TooLarge
from foliot.wire import BODY_LIMIT

IN_PLACE = 1024 * 1024  # a longer body is looked through on a thread, so that it holds up nobody

_JSON = b"application/json"
_CURL = b"application/x-www-form-urlencoded"  # what `curl -d` says unless told otherwise


class BodyReader:
    """Reads the bodies of one route."""

    def __init__(self, type_: type[msgspec.Struct], *, required: bool) -> None:
        self._type = type_
        self._decode = msgspec.json.Decoder(type_).decode
        self._required = required

    async def read(self, headers: Mapping[bytes, bytes], receive: Receive) -> tuple[Any, bytes]:
        """The decoded body, and the body as it came. Raises `BadInput`, `UnsupportedMediaType`, `ClientGone`."""
        raw = await receive_body(headers, receive)
        if not raw:
            if self._required:
                raise BadInput("A JSON body is needed, and there is none")
            raw = b"{}"
        elif (content_type := headers.get(b"content-type", _JSON)) != _JSON:
            _check_content_type(content_type)
        if b"content-encoding" in headers:
            raise UnsupportedMediaType("Send the body without Content-Encoding")
        try:
            if not raw.isascii():
                str(raw, "utf-8")  # a decoder does not look inside a payload
            decoded = self._decode(raw)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise explain(error, self._type) from None
        if await asyncio.to_thread(too_deep, raw) if len(raw) > IN_PLACE else too_deep(raw):
            raise BadInput(f"The body has lists or objects more than {DEPTH_LIMIT} deep in each other")
        return decoded, raw


async def receive_body(headers: Mapping[bytes, bytes], receive: Receive) -> bytes:
    """The whole body; refused as soon as it is known to be too large, at the latest when it is."""
    announced = headers.get(b"content-length", b"0")
    if announced.isdigit() and int(announced[:20]) > BODY_LIMIT:
        raise _too_large()
    message = await receive()
    if message["type"] == "http.request" and not message.get("more_body", False):
        first: bytes = message.get("body", b"")
        if len(first) > BODY_LIMIT:
            raise _too_large()
        return first
    chunks: list[bytes] = []
    size = 0
    while True:
        if message["type"] == "http.disconnect":
            raise ClientGone
        chunk: bytes = message.get("body", b"")
        size += len(chunk)
        if size > BODY_LIMIT:
            raise _too_large()
        chunks.append(chunk)
        if not message.get("more_body", False):
            return b"".join(chunks)
        message = await receive()


def _too_large() -> TooLarge:
    return TooLarge(f"The body is above {BODY_LIMIT >> 20} MiB; send it in parts")


def _check_content_type(value: bytes) -> None:
    media = value.split(b";", 1)[0].strip().lower()
    if media not in (_JSON, _CURL) and not (media.startswith(b"application/") and media.endswith(b"+json")):
        raise UnsupportedMediaType(
            f"The body came as {media[:100].decode('latin-1')!r}; send it with Content-Type: application/json"
        )
