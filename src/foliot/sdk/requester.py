"""One call to a node: sent with the key, repeated while there is patience, its answer read as the wire's type."""

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from typing import Self, TypeVar
from urllib.parse import parse_qs, urlencode, urlsplit

import msgspec

from foliot import wire
from foliot.sdk.patience import patiently
from foliot.sdk.transport import Answer, HttpTransport, Transport
from foliot.wire import BASE_PATH

T = TypeVar("T")
Key = str | Callable[[], str | None] | None  # itself, or how to find it when it is needed
Query = Sequence[tuple[str, str]]

PATIENCE_SECONDS = 30.0


class Requester:
    """The ways out that all methods of a client share."""

    def __init__(
        self,
        url: str = "http://127.0.0.1:7070",
        key: Key = None,
        *,
        patience: float = PATIENCE_SECONDS,
        transport: Transport | None = None,
    ) -> None:
        self.url = url
        self.patience = patience
        self._transport = transport if transport is not None else HttpTransport(url)
        self._key = key

    async def request(
        self,
        method: str,
        path: str,
        body: bytes | None = None,
        headers: Mapping[str, str] | None = None,
        *,
        again: bool = True,
    ) -> Answer:
        """Any call: `path` follows /api/v1. Raises the error that an answer of 300 or more is. With `again` it is
        repeated while there is patience; without, only where the request can not have arrived."""
        sent = {**self.headers, **(headers or {})}
        if body is not None:
            sent["Content-Type"] = "application/json"
        return await patiently(
            lambda: self._transport.call(method, BASE_PATH + path, body, sent), seconds=self.patience, again=again
        )

    @property
    def transport(self) -> Transport:
        return self._transport

    @property
    def headers(self) -> Mapping[str, str]:
        """What every call carries."""
        if callable(self._key):
            self._key = self._key() or self._key
        return {"Authorization": f"Bearer {self._key}"} if isinstance(self._key, str) and self._key else {}

    async def close(self) -> None:
        if (close := getattr(self._transport, "close", None)) is not None:
            await close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *raised: object) -> None:
        await self.close()

    async def _ask(
        self,
        answer: type[T],
        method: str,
        path: str,
        body: wire.Body | None = None,
        *,
        if_match: int | None = None,
        key: str | None = None,
        again: bool = True,
    ) -> T:
        """`key` is sent as the Idempotency-Key."""
        headers = {} if if_match is None else {"If-Match": f'"{if_match}"'}
        if key is not None:
            headers["Idempotency-Key"] = key
        _, _, text = await self.request(method, path, None if body is None else wire.encode(body), headers, again=again)
        return msgspec.json.decode(text, type=answer)

    async def _page(
        self, kind: type[T], path: str, query: Query = (), *, limit: int, cursor: str | None
    ) -> tuple[list[T], str | None]:
        """One page of a list, and the cursor of the next one."""
        asked = [*query, ("limit", str(limit)), *([("cursor", cursor)] if cursor else [])]
        _, headers, body = await self.request("GET", f"{path}?{urlencode(asked)}")
        return msgspec.json.decode(body, type=list[kind]), _next_cursor(headers.get("link", ""))  # type: ignore[valid-type]

    async def _pages(
        self, kind: type[T], path: str, query: Query = (), *, limit: int | None, page_size: int
    ) -> AsyncIterator[T]:
        """All of a list, page by page as they are wanted; at most `limit`."""
        cursor, left = None, limit
        while left is None or left > 0:
            size = page_size if left is None else min(page_size, left)
            found, cursor = await self._page(kind, path, query, limit=size, cursor=cursor)
            for item in found[:left]:
                yield item
            left = None if left is None else left - len(found)
            if cursor is None:
                return


def _next_cursor(link: str) -> str | None:
    """The cursor in `Link: <…?cursor=…>; rel="next"`."""
    for part in link.split(","):
        address, _, rest = part.partition(">")
        if 'rel="next"' in rest:
            cursor = parse_qs(urlsplit(address.strip(" <")).query).get("cursor")
            return cursor[0] if cursor else None
    return None
