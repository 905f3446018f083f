"""One request as a handler sees it, and what a handler gives back."""

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, MutableMapping
from typing import Any, Generic, TypeVar

from foliot.domain.access import Caller
from foliot.service import Services

BodyType = TypeVar("BodyType")
QueryType = TypeVar("QueryType")

Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
Header = tuple[bytes, bytes]


class Pages:
    """What is made from the route table and served as it is."""

    __slots__ = ("document", "page")

    def __init__(self, *, document: bytes, page: bytes) -> None:
        self.document = document
        self.page = page


class Call(Generic[BodyType, QueryType]):
    """A request that was let in: the caller is known, body and query are decoded and of the types that its route names.

    `names` are the path's parameters, `headers` have lower-case names, `raw` is the body as it came. `source` is the
    address that it came from, `address` how this node was spoken to.
    """

    __slots__ = (
        "body",
        "caller",
        "csrf_token",
        "headers",
        "names",
        "pages",
        "path",
        "query",
        "query_string",
        "raw",
        "receive",
        "scheme",
        "services",
        "source",
    )

    def __init__(
        self,
        *,
        services: Services,
        pages: Callable[[], Pages],
        caller: Caller,
        path: str,
        names: Mapping[str, str],
        query_string: bytes,
        headers: Mapping[bytes, bytes],
        body: BodyType,
        query: QueryType,
        raw: bytes,
        receive: Receive,
        source: str = "",
        scheme: str = "http",
        csrf_token: str | None = None,
    ) -> None:
        self.services = services
        self.pages = pages
        self.caller = caller
        self.path = path
        self.names = names
        self.query_string = query_string
        self.headers = headers
        self.body = body
        self.query = query
        self.raw = raw
        self.receive = receive
        self.source = source
        self.scheme = scheme
        self.csrf_token = csrf_token

    @property
    def address(self) -> str:
        return f"{self.scheme}://{self.headers.get(b'host', b'').decode('latin-1')}"

    @property
    def secure(self) -> bool:
        return self.scheme == "https"

    @property
    def job_id(self) -> str:
        return self.names["job_id"]

    @property
    def schedule_id(self) -> str:
        return self.names["schedule_id"]

    @property
    def worker_id(self) -> str:
        return self.names["worker_id"]


class Answer:
    """What goes back. `bytes` are written as they are, None is no body, all else becomes JSON; the status is the
    route's unless one is given."""

    __slots__ = ("content_type", "headers", "status", "value")

    def __init__(
        self,
        value: object,
        *,
        status: int | None = None,
        headers: tuple[Header, ...] = (),
        content_type: bytes = b"application/json",
    ) -> None:
        self.value = value
        self.status = status
        self.headers = headers
        self.content_type = content_type


class EventStream:
    """Server-sent events, each chunk written as it comes, until there are no more or the client has gone."""

    __slots__ = ("chunks",)

    def __init__(self, chunks: AsyncIterator[bytes]) -> None:
        self.chunks = chunks


Handler = Callable[[Call[Any, Any]], Awaitable[Answer | EventStream]]
