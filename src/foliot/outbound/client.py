"""The HTTP client for addresses of others."""

import asyncio
import logging
import socket
import zlib
from base64 import b64encode
from collections.abc import Mapping
from contextvars import Context, ContextVar
from typing import Any

import aiohttp
from aiohttp.abc import AbstractResolver
from msgspec import Struct
from yarl import URL

from foliot.outbound.address import WORDS, Address, kind_of, read_address
from foliot.outbound.allow_list import OPENED_BY_NAME, AllowList
from foliot.outbound.body import CHUNK, read_beginning
from foliot.outbound.errors import AddressNotAllowed, BadAddress, NoAnswer, OutboundError, RedirectRefused
from foliot.outbound.redirect import SCHEMES, STATUSES, Step, next_step

REDIRECTS = 10
HEADER_BYTES = 8 * 1024  # of each header, and of the status line
HEADERS = 128

_log = logging.getLogger("foliot.outbound")


class Answer(Struct, frozen=True, kw_only=True):
    """The last of its redirects. `body` is cut where it is not `whole`; the keys of `headers` are found in any case."""

    url: str
    status: int
    headers: Mapping[str, str]
    body: bytes
    whole: bool


class _Destination:
    """The host that a request goes to, and what became of its addresses."""

    def __init__(self, host: str, port: int) -> None:
        self.host = host
        self.port = port
        self.refused: AddressNotAllowed | None = None


_destination: ContextVar[_Destination] = ContextVar("destination")


class OutboundClient:
    """Holds connections for reuse; belongs to the loop of its first request. `resolver` looks names up, the system's
    where none is given."""

    def __init__(self, allowed: AllowList, *, agent: str, resolver: AbstractResolver | None = None) -> None:
        self._allowed = allowed
        self._agent = agent
        self._resolver = resolver
        self._session: aiohttp.ClientSession | None = None

    async def request(
        self,
        method: str,
        url: str,
        *,
        headers: Mapping[str, str],
        body: bytes | None,
        seconds: float,
        most: int,
        follow: bool = True,
    ) -> Answer:
        """Raises `OutboundError`, or `TimeoutError` after `seconds` for all of it. Of the answer's body up to `most`
        bytes are kept. Without `follow` a redirect is an answer like any other."""
        step = _first_step(method, url, headers, body)
        async with asyncio.timeout(seconds):
            for _ in range(REDIRECTS + 1):
                outcome = await self._take(step, most, follow=follow)
                if isinstance(outcome, Answer):
                    return outcome
                step = outcome
        raise RedirectRefused(f"{url_shown(url)} redirects more than {REDIRECTS} times")

    async def close(self) -> None:
        if self._session is not None:
            await self._session.close()
            self._session = None

    async def _take(self, step: Step, most: int, *, follow: bool) -> Answer | Step:
        """Its answer, or the step that it redirects to."""
        destination = _Destination(step.url.raw_host or "", step.url.port or 0)
        _destination.set(destination)
        try:
            async with self._open().request(
                step.method, step.url, data=step.body, headers=step.headers, allow_redirects=False
            ) as response:
                location = response.headers.get("Location")
                if follow and response.status in STATUSES and location is not None:
                    response.close()
                    return next_step(step, response.status, location)
                parts = response.content.iter_chunked(CHUNK)
                kept, whole = await read_beginning(parts, response.headers.get("Content-Encoding", ""), most)
                if not whole:
                    response.close()
                return Answer(
                    url=str(step.url), status=response.status, headers=response.headers, body=kept, whole=whole
                )
        except OutboundError:
            raise
        except (aiohttp.InvalidURL, UnicodeError) as error:
            raise BadAddress(f"{str(step.url)!r} is not an address ({error})") from None
        except (aiohttp.ClientError, OSError, zlib.error) as error:
            if destination.refused is not None:
                raise destination.refused from None
            raise NoAnswer(f"{step.url}: {str(error) or type(error).__name__}") from None

    def _open(self) -> aiohttp.ClientSession:
        if self._session is None:
            self._session = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(
                    resolver=self._resolver, socket_factory=self._make_socket, use_dns_cache=False
                ),
                headers={"User-Agent": self._agent, "Accept-Encoding": "gzip, deflate"},
                timeout=aiohttp.ClientTimeout(total=None),
                cookie_jar=aiohttp.DummyCookieJar(),  # one call's cookies are no other's
                trust_env=False,
                auto_decompress=False,
                max_line_size=HEADER_BYTES,
                max_field_size=HEADER_BYTES,
                max_headers=HEADERS,
            )
        return self._session

    def _make_socket(self, found: tuple[Any, ...]) -> socket.socket:
        """Called for each address that is about to be connected to, and the only way to a socket: here the address
        is the one that the kernel will be given."""
        family, type_, protocol, _, (host, port, *_) = found
        destination = _destination.get()
        address = read_address(host)
        if address is None or not self._allowed.permits(destination.host, address, port):
            destination.refused = refusal(destination.host, address, port)
            what = destination.refused.what
            # For the operator. Outside the job's context, since what is logged inside goes to the job's own log.
            Context().run(_log.warning, "a call of %s:%d was refused: %s is %s", destination.host, port, host, what)
            raise PermissionError("refused")
        return socket.socket(family=family, type=type_, proto=protocol)


def url_shown(url: str) -> str:
    """For logs and messages: without credentials, in one line."""
    try:
        return str(URL(url).with_user(None))
    except ValueError:
        return repr(url.rpartition("@")[2])


def read_url(text: str) -> URL:
    """Raises `BadAddress` where it can not be called by anybody."""
    try:
        url = URL(text)
    except ValueError as error:
        raise BadAddress(f"{url_shown(text)} is not an address ({error})") from None
    if url.scheme not in SCHEMES or not url.host:
        raise BadAddress(f"{url_shown(text)} is not an address; it must begin with http:// or https:// and a host")
    return url


def _first_step(method: str, text: str, headers: Mapping[str, str], body: bytes | None) -> Step:
    url = read_url(text)
    headers = dict(headers)
    if url.user is not None or url.password is not None:
        if any(name.lower() == "authorization" for name in headers):
            raise BadAddress("credentials are in the address and in the header Authorization; say them once")
        pair = f"{url.user or ''}:{url.password or ''}".encode()
        headers["Authorization"] = f"Basic {b64encode(pair).decode()}"
    return Step(method=method, url=url.with_user(None).with_fragment(None), headers=headers, body=body)


def refusal(host: str, address: Address | None, port: int) -> AddressNotAllowed:
    """Why `address`, to which `host` leads, is not called."""
    kind = None if address is None else kind_of(address)
    what = WORDS[kind] if kind else "no address"
    name = _bracketed(host)
    listable = kind in OPENED_BY_NAME or read_address(host) is not None
    return AddressNotAllowed(name, port, what, entry=f"{name}:{port}" if listable else "its address")


def _bracketed(host: str) -> str:
    return f"[{host}]" if ":" in host else host
