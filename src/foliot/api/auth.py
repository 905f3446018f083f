"""Who is calling, and whether they may: by the key that came with the request, or a browser's session."""

import hmac
from collections.abc import Mapping

import msgspec

from foliot.api.session import shown_session
from foliot.domain.access import ADMIN, ANYBODY, Caller, Permission
from foliot.domain.errors import Forbidden, NotAuthenticated
from foliot.service.access import Access

_SCHEME = b"bearer "
_READING = ("GET", "HEAD", "OPTIONS")


class Entry(msgspec.Struct, frozen=True):
    """A caller that was let in; `csrf_token` is what a browser's changes must carry."""

    caller: Caller
    csrf_token: str | None = None


class Door:
    """Nobody gets by without saying who they are. The node's own admin key is good even where the store is not."""

    def __init__(self, access: Access, admin_key: str) -> None:
        if not admin_key:
            raise ValueError("an empty admin key would let everybody in")
        self._access = access
        self._admin_key = admin_key.encode()

    async def enter(self, headers: Mapping[bytes, bytes], method: str, permission: Permission, *, source: str) -> Entry:
        """Raises `NotAuthenticated`, `Forbidden`, `TooMany`."""
        if permission == "none":
            return Entry(ANYBODY)
        entry = await self._known(headers, method, source)
        if not entry.caller.may(permission):
            role = entry.caller.role
            raise Denied(
                entry.caller, f"the role {role} may not do this; it needs one with the permission {permission!r}"
            )
        return entry

    async def _known(self, headers: Mapping[bytes, bytes], method: str, source: str) -> Entry:
        authorization = headers.get(b"authorization")
        if authorization is not None:
            if authorization[: len(_SCHEME)].lower() != _SCHEME:
                raise NotAuthenticated("Only keys are taken: Authorization: Bearer <key>")
            return Entry(await self._by_key(authorization[len(_SCHEME) :].strip(), source))
        shown = shown_session(headers)
        if shown is None:
            raise NotAuthenticated("Send a key: Authorization: Bearer <key>")
        caller, csrf_token = await self._access.by_session(shown, source)
        if method not in _READING and not hmac.compare_digest(headers.get(b"x-csrf-token", b""), csrf_token.encode()):
            raise Denied(caller, "A change by a browser must carry X-CSRF-Token, as GET /api/v1/session tells it")
        return Entry(caller, csrf_token)

    async def _by_key(self, key: bytes, source: str) -> Caller:
        """A comparison takes as long for a nearly right key as for a wrong one."""
        if hmac.compare_digest(key, self._admin_key):
            return msgspec.structs.replace(ADMIN, source=source)
        return await self._access.by_key(key.decode("latin-1"), source)


class Denied(Forbidden):
    """Known, but not allowed; worth a word in the audit log."""

    def __init__(self, caller: Caller, detail: str) -> None:
        super().__init__(detail)
        self.caller = caller
