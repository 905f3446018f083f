"""The provider: where its parts are, and the keys it signs with."""

import asyncio
import logging
from typing import Any

from msgspec import Struct

from foliot.clock import Clock
from foliot.domain.duration import MINUTE, SECOND, Micros
from foliot.domain.errors import Unavailable
from foliot.oidc.fetch import Fetch, ProviderError
from foliot.oidc.signing_key import SigningKey, UnusableKey, read_key
from foliot.oidc.token import Token

REFRESH = 5 * MINUTE  # after so long the keys are asked for again
LIFETIME = 15 * MINUTE  # and for so long they are good while the provider does not answer
PAUSE = 10 * SECOND  # between two questions, whoever makes us ask
MOST_KEYS = 100

log = logging.getLogger("foliot.oidc")


class Metadata(Struct, frozen=True, kw_only=True):
    """What is used of a provider's description of itself (OpenID Connect Discovery 1.0)."""

    issuer: str
    jwks_uri: str
    authorization_endpoint: str = ""
    token_endpoint: str = ""
    scopes_supported: tuple[str, ...] = ()
    token_endpoint_auth_methods_supported: tuple[str, ...] = ("client_secret_basic",)
    authorization_response_iss_parameter_supported: bool = False


class _KeySet(Struct, frozen=True):
    keys: list[dict[str, Any]]


class _Known(Struct, frozen=True, kw_only=True):
    metadata: Metadata
    keys: tuple[SigningKey, ...]
    read: Micros


class Provider:
    """Raises `ProviderError` where the issuer is no address that may be used."""

    def __init__(self, issuer: str, clock: Clock) -> None:
        self.issuer = issuer
        self.fetch = Fetch(issuer)
        self._clock = clock
        self._known: _Known | None = None
        self._asked: Micros | None = None
        self._asking: asyncio.Task[None] | None = None

    async def metadata(self) -> Metadata:
        """Raises `Unavailable`."""
        await self._renew()
        return self._good().metadata

    async def has_signed(self, token: Token) -> bool:
        """Whether a key of the provider fits the token. One that is not known may be new: then they are asked for
        again, at most once in `PAUSE`. Raises `Unavailable`."""
        await self._renew(token.key_id)
        keys = [key for key in self._good().keys if token.algorithm in key.algorithms]
        if token.key_id is not None:
            keys = [key for key in keys if key.key_id == token.key_id]
        elif len(keys) != 1:  # which one is meant would be a guess
            return False
        return any(key.has_signed(token) for key in keys)

    async def close(self) -> None:
        if self._asking is not None:
            self._asking.cancel()
            await asyncio.wait([self._asking])
        await self.fetch.close()

    def _knows(self, key_id: str | None) -> bool:
        if self._known is None or self._age() >= LIFETIME:
            return False
        return key_id is None or any(key.key_id == key_id for key in self._known.keys)

    def _age(self) -> Micros:
        """Of what is known; as old as can be where nothing is, or where the clock was set back since."""
        if self._known is None or (age := self._clock.now() - self._known.read) < 0:
            return LIFETIME
        return age

    def _good(self) -> _Known:
        if self._known is None or self._age() >= LIFETIME:
            raise Unavailable(
                "the identity provider does not answer; its tokens can not be checked", retry_after=PAUSE // SECOND
            )
        return self._known

    async def _renew(self, key_id: str | None = None) -> None:
        """Ask once for all who want it, and wait only where what is known is not enough. A caller who goes away does
        not end the question: others could be kept out by doing so again and again."""
        known = self._knows(key_id)
        if known and self._age() < REFRESH:
            return
        now = self._clock.now()
        if self._asking is None and (self._asked is None or not 0 <= now - self._asked < PAUSE):
            self._asked = now
            self._asking = asyncio.create_task(self._ask(now))
        if self._asking is not None and not known:
            await asyncio.shield(self._asking)

    async def _ask(self, now: Micros) -> None:
        try:
            self._known = await self._read(now)
        except ProviderError as error:
            log.warning("the identity provider can not be used: %s", error)
        finally:
            self._asking = None

    async def _read(self, now: Micros) -> _Known:
        well_known = f"{self.issuer.rstrip('/')}/.well-known/openid-configuration"
        metadata = await self.fetch.get(well_known, Metadata)
        if metadata.issuer != self.issuer:
            raise ProviderError(f"{well_known} is of the issuer {metadata.issuer!r}, not {self.issuer!r}")
        for address in (metadata.jwks_uri, metadata.authorization_endpoint, metadata.token_endpoint):
            if address:
                self.fetch.check(address)
        found = await self.fetch.get(metadata.jwks_uri, _KeySet)
        keys: list[SigningKey] = []
        for jwk in found.keys[:MOST_KEYS]:
            try:
                keys.append(read_key(jwk))
            except UnusableKey as error:
                log.debug("the identity provider's key %r is not used: %s", jwk.get("kid"), error)
        if not keys:
            raise ProviderError(f"{metadata.jwks_uri} holds no key that can be used")
        return _Known(metadata=metadata, keys=tuple(keys), read=now)
