"""The ASGI application: finds the route, lets the caller in, reads, calls the handler, writes one answer.

There are no layers between the server and a handler: all that a request needs is prepared from the route table when the
application is made. A static path is one look into a dict; a path with parameters is matched by its shape.
"""

import itertools
import logging
import re
import secrets
from collections.abc import Callable, Mapping, MutableMapping, Sequence
from functools import cache
from typing import Any

from foliot.api.auth import Denied, Door
from foliot.api.body import BodyReader
from foliot.api.call import Answer, Call, EventStream, Pages, Receive, Send
from foliot.api.connection import while_connected
from foliot.api.docs_page import make_page
from foliot.api.errors import ClientGone, Internal, MethodNotAllowed, problem
from foliot.api.headers import check_consistency, request_id
from foliot.api.openapi import make_document
from foliot.api.query import QueryReader
from foliot.api.routes import ROUTES, Route
from foliot.clock import monotonic
from foliot.domain.access import Caller, Permission
from foliot.domain.errors import FoliotError, Forbidden, NotFound
from foliot.service import Services
from foliot.telemetry import logs
from foliot.telemetry.counters import count
from foliot.wire import ChannelBody, KeyBody, ManyBody, NamespaceBody, RuleBody, ScheduleBody, encode

LOG = logging.getLogger("foliot.api")
ACCESS = logging.getLogger("foliot.access")

# A parameter is an id; whatever could not be one finds nothing, and never reaches a store.
_PARAMETER = r"[A-Za-z0-9._:@-]{1,128}"
_WIDE = r"[^/\x00-\x1f]{1,200}"  # what may come into being by being named: the call tells what a name must be
_PARAMETERS = {
    "key": r"[^\x00-\x1f]{1,200}",  # as `KeyName` has it; a slash, too, may be part of one
    "queue": _WIDE,
    "job_type": _WIDE,
}

_ALWAYS = ((b"cache-control", b"no-store"), (b"x-content-type-options", b"nosniff"))
_EVENTS = (b"content-type", b"text/event-stream")


class Prepared:
    """A route and what its requests need, made once."""

    __slots__ = ("audited", "body", "is_open", "name", "query", "route")

    def __init__(self, route: Route) -> None:
        self.route = route
        self.name = f"{route.method} {route.path}"
        self.is_open = route.permission == "none"
        self.audited = route.audited
        self.body = BodyReader(route.body, required=route.body_required) if route.body else None
        self.query = QueryReader(route.query)


Methods = dict[str, Prepared]
Found = tuple[Prepared | None, str, dict[str, str]]


class Application:
    def __init__(self, services: Services, door: Door, routes: Sequence[Route]) -> None:
        self._services = services
        self._door = door
        self._static: dict[str, Methods] = {}
        self._shapes: dict[str, tuple[re.Pattern[str], Methods]] = {}
        for route in routes:
            if "{" in route.path:
                _, methods = self._shapes.setdefault(route.path, (shape(route.path), {}))
            else:
                methods = self._static.setdefault(route.path, {})
            methods[route.method] = Prepared(route)
        self._open = frozenset(route.path for route in routes if route.permission == "none")
        self._request_prefix = secrets.token_hex(4)
        self._requests = itertools.count(1)
        self._pages: Callable[[], Pages] = cache(lambda: _make_pages(routes))

    async def __call__(self, scope: Mapping[str, Any], receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await _not_http(scope, receive, send)
            return
        headers = dict(scope["headers"])
        ours = request_id(headers) or b"%s-%x" % (self._request_prefix.encode(), next(self._requests))
        before = logs.REQUEST.get()
        logs.REQUEST.set(ours.decode("ascii"))
        try:
            if ACCESS.isEnabledFor(logging.DEBUG):
                send = _noting(scope, send)
            await self._serve(scope, headers, ours, receive, send)
        finally:
            logs.REQUEST.set(before)

    async def _serve(
        self, scope: Mapping[str, Any], headers: Mapping[bytes, bytes], ours: bytes, receive: Receive, send: Send
    ) -> None:
        status = 200
        found = self._find(scope["path"], "GET" if scope["method"] == "HEAD" else scope["method"])
        answer: Answer | EventStream
        try:
            status, answer = await self._answer(scope, headers, receive, ours, found)
        except ClientGone:
            return
        except FoliotError as error:
            answer = problem(error, ours.decode("ascii"))
        except Exception:
            known = ours.decode("ascii")
            LOG.exception("request %s: %s %a failed", known, scope["method"], scope["path"])
            answer = problem(Internal(known), known)
        shown = 200 if isinstance(answer, EventStream) else answer.status or status
        count("http_requests", found[0].name if found[0] else "none", f"{shown // 100}xx")
        if isinstance(answer, EventStream):
            await _stream(scope, answer, ours, receive, send)
        else:
            await _write(answer, status, ours, send, head=scope["method"] == "HEAD")

    async def _answer(
        self, scope: Mapping[str, Any], headers: Mapping[bytes, bytes], receive: Receive, ours: bytes, place: Found
    ) -> tuple[int, Answer | EventStream]:
        path, method = scope["path"], scope["method"]
        source = scope["client"][0] if scope.get("client") else ""
        found, allow, names = place
        permission: Permission = "none" if path in self._open else found.route.permission if found else "known"
        try:
            entry = await self._door.enter(headers, method, permission, source=source)
        except Denied as denied:
            await self._note(denied.caller, found, names, None, ours, "denied")
            raise
        caller = entry.caller
        if permission == "work" and scope.get("foliot.tls_subject", "") is None:
            raise Forbidden("Workers must show a client certificate here: FOLIOT_CLIENT_CERT and FOLIOT_CLIENT_KEY")
        if found is None:
            if not allow:
                raise NotFound(f"there is nothing at {path[:200]!r}; /docs lists all paths")
            if method == "OPTIONS":
                return 204, Answer(None, headers=((b"allow", allow.encode()),))
            raise MethodNotAllowed(method, allow)
        query = None
        if not found.is_open:
            query = found.query.read(scope["query_string"])
            check_consistency(headers)
        body, raw = await found.body.read(headers, receive) if found.body else (None, b"")
        call: Call[Any, Any] = Call(
            services=self._services,
            pages=self._pages,
            caller=caller,
            path=path,
            names=names,
            query_string=scope["query_string"],
            headers=headers,
            body=body,
            query=query,
            raw=raw,
            receive=receive,
            source=source,
            scheme=scope.get("scheme", "http"),
            csrf_token=entry.csrf_token,
        )
        if not found.audited:
            return found.route.status, await found.route.handler(call)
        await self._note(caller, found, names, body, ours, "asked")
        try:
            return found.route.status, await found.route.handler(call)
        except FoliotError as error:
            await self._note(caller, found, names, body, ours, f"refused: {error.code}")
            raise

    async def _note(
        self, caller: Caller, found: Prepared | None, names: Mapping[str, str], body: object, ours: bytes, outcome: str
    ) -> None:
        """A word in the audit log, before what it tells is done. Bodies are left out, since they may hold secrets, all
        but what a call was for."""
        if found is None or not found.audited:
            return
        subject = " ".join(f"{name}={value}" for name, value in names.items())
        match body:
            case ManyBody():
                subject = encode(body.filter).decode()
            case KeyBody():
                subject = f"name={body.name} role={body.role} namespace={body.namespace or caller.namespace}"
            case NamespaceBody() | RuleBody() | ChannelBody():
                subject = f"name={body.name}"
            case ScheduleBody():
                subject = f"schedule_id={body.schedule_id or ''}"
        await self._services.audit.note(
            caller,
            f"{found.route.method} {found.route.path}",
            subject=subject,
            request_id=ours.decode("ascii"),
            outcome=outcome,
        )

    def _find(self, path: str, method: str) -> Found:
        """The route, or None and the methods that would do (none where nothing is there). A static path and a shape may
        share an address: `POST /jobs/cancel` cancels many, `GET /jobs/cancel` reads the job of that name."""
        static = self._static.get(path)
        if static is not None and method in static:
            return static[method], "", {}
        allowed = set(static or ())
        for pattern, methods in self._shapes.values():
            if match := pattern.fullmatch(path):
                if method in methods:
                    return methods[method], "", match.groupdict()
                allowed |= methods.keys()
        if "GET" in allowed:
            allowed.add("HEAD")
        return None, ", ".join(sorted(allowed | {"OPTIONS"})) if allowed else "", {}


def create_app(services: Services, *, admin_key: str) -> Application:
    """The HTTP API over `services`, for any ASGI server. The admin key may do everything; it must not be empty."""
    return Application(services, Door(services.access, admin_key), ROUTES)


def shape(path: str) -> re.Pattern[str]:
    """What a path with `{parameters}` matches."""
    return re.compile(
        re.sub(
            r"\\\{(\w+)\\\}",
            lambda name: f"(?P<{name[1]}>{_PARAMETERS.get(name[1], _PARAMETER)})",
            re.escape(path),
        )
    )


def _make_pages(routes: Sequence[Route]) -> Pages:
    document = make_document(routes)
    return Pages(document=encode(document), page=make_page(routes, document))


def _noting(scope: Mapping[str, Any], send: Send) -> Send:
    """Writes a line when the answer is complete. Its query is left out: it may tell what nobody else is to know."""
    begun = monotonic()
    status = 0

    async def noted(message: MutableMapping[str, Any]) -> None:
        nonlocal status
        status = message.get("status", status)
        await send(message)
        if message["type"] == "http.response.body" and not message.get("more_body"):
            took = (monotonic() - begun) / 1000
            ACCESS.debug("%s %a %d in %.1f ms", scope["method"], scope["path"], status, took)

    return noted


async def _write(answer: Answer, status: int, ours: bytes, send: Send, *, head: bool) -> None:
    value = answer.value
    content = b"" if value is None else value if isinstance(value, bytes) else encode(value)
    status = answer.status or status
    headers = [*answer.headers, *_ALWAYS, (b"x-request-id", ours)]
    if status != 204:
        headers.append((b"content-length", b"%d" % len(content)))
    if value is not None:
        headers.append((b"content-type", answer.content_type))
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": b"" if head else content})


async def _stream(scope: Mapping[str, Any], answer: EventStream, ours: bytes, receive: Receive, send: Send) -> None:
    await send({"type": "http.response.start", "status": 200, "headers": [_EVENTS, *_ALWAYS, (b"x-request-id", ours)]})
    if scope["method"] != "HEAD":
        try:
            await while_connected(receive, _write_chunks(answer, send))
        except ClientGone:
            return
        except (
            FoliotError
        ) as error:  # the status is sent: all that is left is to end, and the client goes on from there
            LOG.warning("request %s: the stream ended early: %s", ours.decode("ascii"), error.detail)
        except Exception:
            LOG.exception("request %s: the stream failed", ours.decode("ascii"))
    await send({"type": "http.response.body", "body": b""})


async def _write_chunks(answer: EventStream, send: Send) -> None:
    async for chunk in answer.chunks:
        await send({"type": "http.response.body", "body": chunk, "more_body": True})


async def _not_http(scope: Mapping[str, Any], receive: Receive, send: Send) -> None:
    """A server's start and stop are acknowledged; whoever opens a node also opens and closes its services. A websocket
    is refused."""
    if scope["type"] == "lifespan":
        while (await receive())["type"] == "lifespan.startup":
            await send({"type": "lifespan.startup.complete"})
        await send({"type": "lifespan.shutdown.complete"})
    else:
        await receive()
        await send({"type": "websocket.close", "code": 1000})
