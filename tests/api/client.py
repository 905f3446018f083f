"""An HTTP client that calls an ASGI application inside the process, as a server would."""

import asyncio
from collections.abc import Mapping
from typing import Any
from urllib.parse import unquote

import msgspec

KEY = "an-admin-key-for-tests"
UNSENT = object()


class Response(msgspec.Struct):
    status: int
    headers: dict[str, str]
    body: bytes

    def json(self) -> Any:
        return msgspec.json.decode(self.body)


class Request:
    """A request under way: `hang_up` is the client going away, `messages` is what came back so far."""

    def __init__(self, app: Any, scope: dict[str, Any], chunks: list[bytes], *, whole: bool) -> None:
        self._endless = scope["path"].rstrip("/").endswith("/events")
        self._is_left = False
        self._chunks = chunks
        self._whole = whole
        self._gone = asyncio.Event()
        self.messages: asyncio.Queue[Any] = asyncio.Queue()
        self.task = asyncio.create_task(app(scope, self._receive, self._send))

    async def _receive(self) -> dict[str, Any]:
        if self._chunks:
            chunk = self._chunks.pop(0)
            return {"type": "http.request", "body": chunk, "more_body": bool(self._chunks) or not self._whole}
        await self._gone.wait()
        return {"type": "http.disconnect"}

    async def _send(self, message: Any) -> None:
        await self.messages.put(message)
        if self._endless and self.messages.qsize() > 1 and self._is_left:
            self.hang_up()

    def hang_up(self) -> None:
        self._gone.set()

    async def response(self) -> Response:
        """What came back; a stream that does not end by itself is left after its first chunk."""
        self._is_left = True
        await self.task
        start, *parts = [self.messages.get_nowait() for _ in range(self.messages.qsize())]
        headers = {name.decode(): value.decode() for name, value in start["headers"]}
        return Response(start["status"], headers, b"".join(part["body"] for part in parts))


class AsgiClient:
    def __init__(self, app: Any, key: str | None = KEY) -> None:
        self.app = app
        self._key = key

    def start(
        self,
        method: str,
        target: str,
        json: object = UNSENT,
        *,
        content: bytes | list[bytes] = b"",
        headers: Mapping[str, str] | None = None,
        whole: bool = True,
    ) -> Request:
        path, _, query = target.partition("?")
        sent = {"content-type": "application/json"} if json is not UNSENT or content else {}
        if self._key is not None:
            sent["authorization"] = f"Bearer {self._key}"
        sent |= headers or {}
        body = msgspec.json.encode(json) if json is not UNSENT else content
        scope = {
            "type": "http",
            "method": method,
            "path": unquote(path),
            "query_string": query.encode(),
            "headers": [(name.lower().encode(), value.encode()) for name, value in sent.items() if value != "(none)"],
        }
        return Request(self.app, scope, body if isinstance(body, list) else [body], whole=whole)

    async def request(self, method: str, target: str, *args: Any, **options: Any) -> Response:
        return await self.start(method, target, *args, **options).response()

    async def get(self, target: str, **options: Any) -> Response:
        return await self.request("GET", target, **options)

    async def post(self, target: str, *args: Any, **options: Any) -> Response:
        return await self.request("POST", target, *args, **options)
