"""How a call reaches a node: over HTTP, or inside the process.

A transport makes one try and says what came of it; patience lives in the client. It raises `Unreachable` where no
answer came, and hands back whatever answer there was.
"""

import asyncio
import os
import ssl
from collections.abc import AsyncIterator, Mapping
from typing import Literal, Protocol, runtime_checkable

import aiohttp

from foliot import __version__
from foliot.sdk.failures import Unreachable, refusal
from foliot.sdk.tls import Trust, tls_for

Answer = tuple[int, Mapping[str, str], bytes]
Headers = Mapping[str, str]

CONNECT_SECONDS = 5.0
ANSWER_SECONDS = 30.0
SILENCE_SECONDS = 60.0  # a stream says something at least every 15 s
CONNECTIONS = 100
KEEP_SECONDS = 4.0  # below the five after which many servers hang up: a call on such a connection is lost


class Transport(Protocol):
    """`path` is all that follows the host, query included; header names of an answer are in lower case."""

    async def call(self, method: str, path: str, body: bytes | None, headers: Headers) -> Answer: ...


@runtime_checkable
class StreamingTransport(Transport, Protocol):
    """One that can also follow an answer that does not end."""

    def stream(self, path: str, headers: Headers) -> AsyncIterator[bytes]: ...


class HttpTransport:
    """Over HTTP with kept connections. Belongs to the event loop of its first call. Without `trust` an `https` address
    is trusted as the environment has it; raises `UnusableFiles` where that can not be."""

    def __init__(self, url: str, trust: Trust | None = None) -> None:
        self._url = url.rstrip("/")
        self._tls = tls_for(url, trust)
        self._session: aiohttp.ClientSession | None = None

    async def call(self, method: str, path: str, body: bytes | None, headers: Headers) -> Answer:
        try:
            async with self._open().request(
                method, self._url + path, data=body, headers=headers, allow_redirects=False, ssl=self._ssl
            ) as response:
                answer = await response.read()
                return response.status, _lower(response.headers), answer
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise self._unreachable(error) from error

    async def stream(self, path: str, headers: Headers) -> AsyncIterator[bytes]:
        timeout = aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_SECONDS, sock_read=SILENCE_SECONDS)
        try:
            async with self._open().get(
                self._url + path, headers=headers, timeout=timeout, allow_redirects=False, ssl=self._ssl
            ) as response:
                if response.status != 200:
                    raise refusal(response.status, _lower(response.headers), await response.read())
                async for chunk in response.content.iter_any():
                    yield chunk
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise self._unreachable(error) from error

    async def close(self) -> None:
        if self._session is not None:
            await self._session.close()
            self._session = None
            await asyncio.sleep(0)  # lets the sockets' own callbacks run before a loop is closed

    def _open(self) -> aiohttp.ClientSession:
        if self._session is None:
            self._session = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(limit=CONNECTIONS, keepalive_timeout=KEEP_SECONDS),
                timeout=aiohttp.ClientTimeout(total=ANSWER_SECONDS, sock_connect=CONNECT_SECONDS),
                headers={"User-Agent": f"foliot-python/{__version__}"},
            )
        return self._session

    @property
    def _ssl(self) -> ssl.SSLContext | Literal[True]:
        """Asked for at every call: certificates are renewed while programs run."""
        return True if self._tls is None else self._tls.context or True

    def _unreachable(self, error: Exception) -> Unreachable:
        if isinstance(error, aiohttp.ClientConnectorCertificateError):
            return Unreachable(f"{self._url} is not trusted: {why_not_trusted(error)}", sent=False)
        sent = not isinstance(error, aiohttp.ClientConnectorError | aiohttp.ConnectionTimeoutError)
        what = _plain(error)
        if sent:
            return Unreachable(f"{self._url} did not answer: {what}", sent=True)
        return Unreachable(f"no node at {self._url} ({what}); start one with: foliot serve", sent=False)


def why_not_trusted(error: aiohttp.ClientConnectorCertificateError) -> str:
    found = error.certificate_error
    reason = found.verify_message if isinstance(found, ssl.SSLCertVerificationError) else str(found)
    return f"{reason.rstrip('.')}. Where an authority of your own vouches for it, name its file in FOLIOT_CA_FILE"


def _plain(error: Exception) -> str:
    """Why, without the client library's own words where the system has one."""
    system = getattr(error, "os_error", error)
    if isinstance(system, OSError) and system.errno and system.errno > 0:
        return os.strerror(system.errno).lower()
    return str(error) or type(error).__name__


def _lower(headers: Mapping[str, str]) -> dict[str, str]:
    return {name.lower(): value for name, value in headers.items()}
