"""The node as the worker sees it: a few calls over HTTP, each with the outcomes that matter here."""

import asyncio
import ssl
from collections.abc import AsyncIterator

import aiohttp
import msgspec

from foliot import __version__
from foliot.domain.access import MATRIX, ROLES
from foliot.sdk.tls import Trust, tls_for
from foliot.sdk.transport import Transport, why_not_trusted
from foliot.wire import BASE_PATH, ExchangeAnswer, ExchangeBody, Problem, RegisterBody, Registered, encode

CONNECT_SECONDS = 5.0
ANSWER_SECONDS = 15.0
# Below the five seconds after which servers close a connection that nobody uses: a call on a closed one is a failed
# call.
KEEP_SECONDS = 4.0
WHOLE_BODY = 512 * 1024  # a longer one is sent in parts, so that it does not hold up the loop
PART = 64 * 1024
LONGEST_WAIT_SECONDS = 60.0  # whatever a Retry-After says: as long as wrong keys from an address are held against it

_registered = msgspec.json.Decoder(Registered).decode
_answer = msgspec.json.Decoder(ExchangeAnswer).decode
_problem = msgspec.json.Decoder(Problem).decode


class Unreachable(Exception):
    """No answer, or one that says to come back later. What became of the call is unknown. `wait` is for how many
    seconds a node that was asked too much wants to be left alone."""

    def __init__(self, message: str, *, wait: float = 0.0) -> None:
        super().__init__(message)
        self.wait = wait


class LeaseLost(Exception):
    """The node does not know this worker any more: stop what runs and register anew."""


class WorkerRefused(Exception):
    """The node will not have this worker; trying again can not help. The message says why and what to do."""


class CallRefused(Exception):
    """The node understood the call and can not take what is in it."""


class Node:
    """Belongs to the loop on which it is used first. `transport` carries the calls where the node is in this
    process; `trust` is for an `https` address, and the environment's where it is not given. Raises `UnusableFiles`."""

    def __init__(self, url: str, key: str, transport: Transport | None = None, trust: Trust | None = None) -> None:
        self.url = url.rstrip("/") or "the node"
        self.transport = transport
        self._tls = None if transport is not None else tls_for(url, trust)
        self.headers = {"Content-Type": "application/json", "User-Agent": f"foliot-worker/{__version__}"}
        if key:
            self.headers["Authorization"] = f"Bearer {key}"
        self._session: aiohttp.ClientSession | None = None

    @property
    def tls(self) -> ssl.SSLContext | None:
        """For the next connection; None where the system's trust will do. Certificates are renewed while workers
        run."""
        return None if self._tls is None else self._tls.context

    async def register(self, body: RegisterBody) -> Registered:
        try:
            return _registered(await self._call("POST", "/workers", encode(body), ANSWER_SECONDS))
        except (CallRefused, LeaseLost) as error:
            raise WorkerRefused(f"{self.url} does not take this worker: {error}") from None

    async def exchange(self, worker_id: str, body: ExchangeBody, patience: float) -> ExchangeAnswer:
        return _answer(await self._call("POST", exchange_path(worker_id), encode(body), body.wait + patience))

    async def leave(self, worker_id: str) -> None:
        await self._call("DELETE", f"/workers/{worker_id}", b"", CONNECT_SECONDS)

    async def close(self) -> None:
        if self._session is not None:
            await self._session.close()

    async def _call(self, method: str, path: str, body: bytes, seconds: float) -> bytes:
        try:
            async with asyncio.timeout(seconds):
                if self.transport is not None:
                    status, headers, answer = await self.transport.call(method, BASE_PATH + path, body, self.headers)
                    wait = headers.get("retry-after")
                else:
                    status, wait, answer = await self._request(method, BASE_PATH + path, body)
        except TimeoutError:
            raise Unreachable(f"{self.url} did not answer within {seconds:g} s") from None
        check(status, answer, self.url, wait)
        return answer

    async def _request(self, method: str, path: str, body: bytes) -> tuple[int, str | None, bytes]:
        if self._session is None:
            connector = aiohttp.TCPConnector(keepalive_timeout=KEEP_SECONDS)
            timeout = aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_SECONDS)
            self._session = aiohttp.ClientSession(connector=connector, headers=self.headers, timeout=timeout)
        data = body if len(body) <= WHOLE_BODY else _in_parts(body)
        try:
            async with self._session.request(
                method, self.url + path, data=data, allow_redirects=False, ssl=self.tls or True
            ) as response:
                return response.status, response.headers.get("Retry-After"), await response.read()
        except TimeoutError:
            raise
        except aiohttp.InvalidURL:
            raise WorkerRefused(f"{self.url!r} is not an address; use http://host:port") from None
        except aiohttp.ClientConnectorCertificateError as error:
            raise Unreachable(f"{self.url} is not trusted: {why_not_trusted(error)}") from None
        except (aiohttp.ClientError, OSError) as error:
            raise Unreachable(f"{self.url} can not be reached: {str(error) or type(error).__name__}") from None


async def _in_parts(body: bytes) -> AsyncIterator[bytes]:
    for start in range(0, len(body), PART):
        yield body[start : start + PART]


def exchange_path(worker_id: str) -> str:
    return f"/workers/{worker_id}/exchange"


def decode_answer(data: bytes) -> ExchangeAnswer:
    return _answer(data)


def check(status: int, answer: bytes, url: str, retry_after: str | None) -> None:
    """Raise what the status means, unless it is success."""
    if 200 <= status < 300:
        return
    detail = _detail(answer) or f"HTTP status {status}"
    if status == 401:
        told = detail.rstrip(".")
        raise WorkerRefused(f"{url} does not accept the key: {told}. Give a valid one with FOLIOT_KEY or --key")
    if status == 403:
        able = " or ".join(role for role in ROLES if "work" in MATRIX[role])
        told = detail.rstrip(".")
        raise WorkerRefused(f"{url} does not let this worker in: {told}. It takes a key of the role {able}")
    if status in (404, 410):
        raise LeaseLost(detail)
    if status == 429:
        raise Unreachable(f"{url} was asked too much: {detail}", wait=_seconds(retry_after))
    if status in (408, 425) or status >= 500:
        raise Unreachable(f"{url} answered {status}: {detail}")
    raise CallRefused(detail)


def _seconds(text: str | None) -> float:
    return min(float(text), LONGEST_WAIT_SECONDS) if text and text.isascii() and text.isdigit() else 0.0


def _detail(answer: bytes) -> str:
    try:
        problem = _problem(answer)
    except msgspec.MsgspecError:
        return ""
    fields = "; ".join(f"{field.field}: {field.message}" for field in problem.errors)
    return f"{problem.detail} ({fields})" if fields and fields not in problem.detail else problem.detail
