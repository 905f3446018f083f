"""Requests to the provider: over https, bounded in time and size, and only to where the operator's word reaches."""

from collections.abc import Mapping
from ipaddress import ip_address
from typing import TypeVar

import msgspec
from yarl import URL

from foliot.outbound import AllowList, Answer, BadEntry, OutboundClient, OutboundError

SECONDS = 5.0
MOST_BYTES = 256 * 1024

Shape = TypeVar("Shape")


class ProviderError(Exception):
    """It did not answer, or not with what it should; the message is for the operator's log."""


class Fetch:
    """An issuer on a private network or on this machine is the operator's own choice. Other hosts that the issuer
    names, as some do for their keys, must be public: a provider does not get to look around in our network."""

    def __init__(self, issuer: str) -> None:
        url = _url(issuer)
        self._plain = _is_loopback(url)
        self.check(issuer)
        host = url.raw_host or ""
        try:
            allowed = AllowList.parse(f"[{host}]:{url.port}" if ":" in host else f"{host}:{url.port}")
        except BadEntry as error:
            raise ProviderError(f"{issuer} has no host that can be called: {error}") from None
        self._client = OutboundClient(allowed, agent="foliot-oidc")

    def check(self, address: str) -> str:
        """The address itself, where it may be used. Raises `ProviderError`."""
        url = _url(address)
        if url.scheme != "https" and not (url.scheme == "http" and self._plain and _is_loopback(url)):
            raise ProviderError(f"{address!r} is not an https address")
        if url.user is not None or url.password is not None or url.fragment:
            raise ProviderError(f"{address!r} holds more than an address")
        return address

    async def get(self, address: str, shape: type[Shape]) -> Shape:
        """Raises `ProviderError`."""
        answer = await self._request("GET", address, {"Accept": "application/json"}, None)
        if answer.status != 200:
            raise ProviderError(f"{address} answers with {answer.status}")
        return _read(answer, shape)

    async def post(self, address: str, form: bytes, headers: Mapping[str, str], shape: type[Shape]) -> Shape | None:
        """None where the provider refuses. Raises `ProviderError`."""
        headers = {"Accept": "application/json", "Content-Type": "application/x-www-form-urlencoded", **headers}
        answer = await self._request("POST", address, headers, form)
        if answer.status in (400, 401, 403):
            return None
        if answer.status != 200:
            raise ProviderError(f"{address} answers with {answer.status}")
        return _read(answer, shape)

    async def close(self) -> None:
        await self._client.close()

    async def _request(self, method: str, address: str, headers: Mapping[str, str], body: bytes | None) -> Answer:
        self.check(address)
        try:
            answer = await self._client.request(
                method, address, headers=headers, body=body, seconds=SECONDS, most=MOST_BYTES
            )
        except TimeoutError:
            raise ProviderError(f"{address} did not answer within {SECONDS:g} s") from None
        except OutboundError as error:
            raise ProviderError(str(error)) from None
        if URL(answer.url) != URL(address):  # on the way there may have been one without https
            raise ProviderError(f"{address} redirects to {answer.url!r}, which is not followed")
        if not answer.whole:
            raise ProviderError(f"{address} answers with more than {MOST_BYTES} bytes")
        return answer


def _read(answer: Answer, shape: type[Shape]) -> Shape:
    try:
        return msgspec.json.decode(answer.body, type=shape)
    except (ValueError, RecursionError) as error:  # of msgspec or of UTF-8
        raise ProviderError(f"{answer.url} answers with what it should not: {error}") from None


def _url(address: str) -> URL:
    try:
        url = URL(address)
    except ValueError:
        raise ProviderError(f"{address!r} is not an address") from None
    if not url.host:
        raise ProviderError(f"{address!r} is not an address")
    return url


def _is_loopback(url: URL) -> bool:
    host = url.host or ""
    if host == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False
