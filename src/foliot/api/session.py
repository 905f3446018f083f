"""The cookies by which a browser is known. A page of another site can not read them, and the browser does not send the
session with what such a page asks for; over TLS they are bound to this host."""

import re
from collections.abc import Mapping

from foliot.api.call import Header
from foliot.domain.duration import SECOND
from foliot.service.access import LOGIN_LIFE, SESSION_LIFE

SESSION, LOGIN = b"foliot_session", b"foliot_login"
_HOST = b"__Host-"
_SHOWN = re.compile(rb"[A-Za-z0-9_-]{43}")


def shown_session(headers: Mapping[bytes, bytes]) -> str | None:
    """What a browser that is logged in shows; None where it shows nothing that could be ours."""
    return _shown(headers, SESSION)


def shown_login(headers: Mapping[bytes, bytes]) -> str | None:
    """What a browser shows that is back from the identity provider."""
    return _shown(headers, LOGIN)


def set_cookie(shown: str, *, secure: bool) -> Header:
    return _cookie(SESSION, shown, SESSION_LIFE // SECOND, b"Strict", secure=secure)


def clear_cookie(*, secure: bool) -> Header:
    return _cookie(SESSION, "", 0, b"Strict", secure=secure)


def login_cookie(shown: str, *, secure: bool) -> Header:
    """Sent also when the provider's page sends the browser back here."""
    return _cookie(LOGIN, shown, LOGIN_LIFE // SECOND, b"Lax", secure=secure)


def _shown(headers: Mapping[bytes, bytes], wanted: bytes) -> str | None:
    for part in headers.get(b"cookie", b"").split(b";"):
        name, _, value = part.strip().partition(b"=")
        if name in (wanted, _HOST + wanted) and _SHOWN.fullmatch(value):
            return value.decode("ascii")
    return None


def _cookie(name: bytes, value: str, seconds: int, same_site: bytes, *, secure: bool) -> Header:
    prefix, mark = (_HOST, b"; Secure") if secure else (b"", b"")
    text = b"%s%s=%s; Path=/; Max-Age=%d; HttpOnly; SameSite=%s%s"
    return b"set-cookie", text % (prefix, name, value.encode("ascii"), seconds, same_site, mark)
