"""Who is calling: by an API key, a token of an identity provider, or a browser's session.

What was looked up is remembered for `FRESH`, so that a key that is revoked on another node is refused here within that
time. Wrong keys are counted by where they come from: who shows many is made to wait, before the store is asked.
"""

import hmac
from collections.abc import Mapping
from typing import Protocol, TypeVar

import msgspec

from foliot.clock import Clock
from foliot.domain.access import ANYBODY, Caller
from foliot.domain.credential import ApiKey, hash_of, new_secret, parse_key
from foliot.domain.duration import MINUTE, SECOND, Micros
from foliot.domain.errors import Forbidden, NotAuthenticated, NotFound, TooMany
from foliot.store.base import AccessStore, Session

FRESH = 4 * SECOND
MOST_REMEMBERED = 100_000
MOST_FAILURES = 100  # from one address
FAILURES_SPAN = MINUTE
LINK_LIFE = 2 * MINUTE
LOGIN_LIFE = 10 * MINUTE
SESSION_LIFE = 12 * 60 * MINUTE
CSRF = b"foliot csrf"


Key = TypeVar("Key")
Value = TypeVar("Value")


class Tokens(Protocol):
    """Reads the tokens of an identity provider."""

    async def caller(self, token: str) -> Caller:
        """Raises `NotAuthenticated`, or `Unavailable` where the provider does not answer."""
        ...


class BrowserLogin(Protocol):
    """Lets a browser log in at an identity provider."""

    async def begin(self) -> tuple[str, str]:
        """Where to send the browser, and what to keep for its return. Raises `Unavailable`."""
        ...

    async def finish(self, query: Mapping[str, str], kept: str) -> Caller:
        """Who came back. Raises `NotAuthenticated`, `Unavailable`."""
        ...


class Identity(Protocol):
    """An identity provider, as far as a node speaks with it."""

    @property
    def verifier(self) -> Tokens: ...

    @property
    def login(self) -> BrowserLogin | None: ...

    async def close(self) -> None: ...


class Access:
    def __init__(self, store: AccessStore, clock: Clock, identity: Identity | None = None) -> None:
        self._store = store
        self._clock = clock
        self._tokens = None if identity is None else identity.verifier
        self._login = None if identity is None else identity.login
        self._keys: dict[str, tuple[ApiKey | None, Micros]] = {}
        self._sessions: dict[bytes, tuple[Session | None, Micros]] = {}
        self._used: dict[str, Micros] = {}
        self._identity = identity
        self.failures = Failures(clock)
        self._logins = Failures(clock)  # that were begun

    async def by_key(self, text: str, source: str) -> Caller:
        """The caller behind what came as a bearer. Raises `NotAuthenticated`, or `TooMany` where too many wrong ones
        came from there."""
        try:
            parsed = parse_key(text)
            if parsed is None and self._tokens is not None and text.count(".") == 2:
                self.failures.check(source)
                return msgspec.structs.replace(await self._tokens.caller(text), source=source)
            if parsed is None:
                self.failures.check(source)
                raise NotAuthenticated("This key is not known")
            return await self._by_api_key(*parsed, source)
        except NotAuthenticated:
            self.failures.add(source)
            raise

    async def by_session(self, shown: str, source: str) -> tuple[Caller, str]:
        """The caller behind a browser's cookie, and the token that its changes must carry."""
        digest, now = hash_of(shown), self._clock.now()
        found, read = self._sessions.get(digest, (None, 0))
        if now - read >= FRESH:
            if found is None:  # who was let in before is not kept out by others of the same address
                self.failures.check(source)
            found = await self._store.session(digest, now)
            _remember(self._sessions, digest, (found, now))
        if found is None or found.once or found.until <= now or not await self._still_good(found.caller):
            self.failures.check(source)
            self.failures.add(source)
            raise NotAuthenticated("This session is over; log in again")
        return msgspec.structs.replace(found.caller, source=source), csrf_token(shown)

    async def login_link(self, caller: Caller) -> tuple[str, Micros]:
        """A code that lets one browser in, once, as this caller; and until when. Only for keys: what ends by itself,
        a session or a token, must not make itself longer."""
        if caller.key_id is None and not caller.root:
            raise Forbidden("a link is made with a key; log in at the identity provider instead: /auth/login")
        until = self._clock.now() + LINK_LIFE
        code = new_secret()
        await self._store.add_session(Session(hash=hash_of(code), caller=caller, until=until, once=True))
        return code, until

    async def use_link(self, code: str, source: str) -> str:
        """What the browser is to show from now on."""
        self.failures.check(source)
        found = await self._store.session(hash_of(code), self._clock.now())
        if found is None or not found.once or found.data or not await self._still_good(found.caller):
            self.failures.add(source)
            raise NotAuthenticated("This link was used before or is too old; make another with: foliot login")
        return await self.begin_session(found.caller)

    async def begin_login(self, source: str) -> tuple[str, str]:
        """Where to send a browser that is to log in at the identity provider, and what it is to show on its return."""
        self._logins.check(source)
        self._logins.add(source)
        address, kept = await self._provider_login().begin()
        shown = new_secret()
        until = self._clock.now() + LOGIN_LIFE
        begun = Session(hash=hash_of(shown), caller=ANYBODY, until=until, once=True, data=kept)
        await self._store.add_session(begun)
        return address, shown

    async def finish_login(self, shown: str | None, query: Mapping[str, str], source: str) -> str:
        """What the browser, back from the identity provider, is to show from now on."""
        self.failures.check(source)
        login = self._provider_login()
        begun = None if shown is None else await self._store.session(hash_of(shown), self._clock.now())
        try:
            if begun is None or not begun.data:
                raise NotAuthenticated("This login was not begun by this browser, or too long ago; begin again")
            caller = await login.finish(query, begun.data)
        except NotAuthenticated:
            self.failures.add(source)
            raise
        return await self.begin_session(caller)

    def _provider_login(self) -> BrowserLogin:
        if self._login is None:
            raise NotFound("no identity provider is set up for browsers; use: foliot login")
        return self._login

    async def begin_session(self, caller: Caller) -> str:
        shown = new_secret()
        until = self._clock.now() + SESSION_LIFE
        await self._store.add_session(Session(hash=hash_of(shown), caller=caller, until=until))
        return shown

    async def end_session(self, shown: str) -> None:
        self._sessions.pop(hash_of(shown), None)
        await self._store.end_session(hash_of(shown))

    def forget_key(self, key_id: str) -> None:
        """It was changed: look it up again."""
        self._keys.pop(key_id, None)
        self._sessions.clear()

    async def close(self) -> None:
        if self._identity is not None:
            await self._identity.close()

    async def note_uses(self) -> None:
        """Keep when keys were last used."""
        used, self._used = self._used, {}
        if used:
            await self._store.touch_keys(used)

    async def _by_api_key(self, key_id: str, secret: str, source: str) -> Caller:
        key = await self._key(key_id, source)
        now = self._clock.now()
        if key is None or not key.opens(secret, now):
            self.failures.check(source)
            raise NotAuthenticated("This key is not known")
        if not key.good(now):
            raise NotAuthenticated("This key was revoked" if key.revoked is not None else "This key has expired")
        self._used[key_id] = now
        return key.caller(source)

    async def _key(self, key_id: str, source: str) -> ApiKey | None:
        now = self._clock.now()
        found, read = self._keys.get(key_id, (None, 0))
        if now - read >= FRESH:
            if found is None:
                self.failures.check(source)
            found = (await self._store.api_keys([key_id])).get(key_id)
            _remember(self._keys, key_id, (found, now))
        return found

    async def _still_good(self, caller: Caller) -> bool:
        if caller.key_id is None:
            return True
        key = await self._key(caller.key_id, caller.source)
        return key is not None and key.good(self._clock.now())


class Failures:
    """Wrong keys, or what else should be rare, by the address they came from."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._counts: dict[str, tuple[int, Micros]] = {}

    def add(self, source: str) -> None:
        now = self._clock.now()
        count, since = self._counts.get(source, (0, now))
        if now - since >= FAILURES_SPAN:
            count, since = 0, now
        _remember(self._counts, source, (count + 1, since))

    def check(self, source: str) -> None:
        """Raises `TooMany`."""
        count, since = self._counts.get(source, (0, 0))
        left = since + FAILURES_SPAN - self._clock.now()
        if count >= MOST_FAILURES and left > 0:
            raise TooMany("too many wrong keys or logins came from here; wait a moment", retry_after=left // SECOND + 1)


def csrf_token(shown: str) -> str:
    """Known to who may read an answer, not to who can only make the browser send a request."""
    return hmac.digest(shown.encode(), CSRF, "sha256").hex()


def _remember(table: dict[Key, Value], key: Key, value: Value) -> None:
    """Bounded: what was not asked for the longest goes first."""
    table.pop(key, None)
    table[key] = value
    if len(table) > MOST_REMEMBERED:
        del table[next(iter(table))]
