"""What a token must say besides its signature: from whom it is, for whom, and for when."""

from collections.abc import Mapping
from typing import Any

from foliot.domain.duration import DAY, MINUTE, SECOND, Micros
from foliot.domain.errors import NotAuthenticated

SKEW = MINUTE  # how far the provider's clock may be from ours
LONGEST_LIFE = 31 * DAY  # a token can not be revoked
LONGEST_SUBJECT = 255
_LAST_SECOND = 1 << 40


def check_issuer(claims: Mapping[str, Any], issuer: str) -> None:
    """Raises `NotAuthenticated`."""
    if claims.get("iss") != issuer:
        raise NotAuthenticated("This token is of another issuer")


def check_audience(claims: Mapping[str, Any], audience: str) -> None:
    """Raises `NotAuthenticated`."""
    if audience not in audiences(claims):
        raise NotAuthenticated("This token is for somebody else")


def audiences(claims: Mapping[str, Any]) -> list[str]:
    """Empty where anything but text is in it."""
    given = claims.get("aud")
    values: list[Any] = given if isinstance(given, list) else [given]
    return values if all(isinstance(value, str) for value in values) else []


def check_times(claims: Mapping[str, Any], now: Micros) -> None:
    """`exp` and `iat` must be there; `nbf` holds where it is, since most providers leave it out. Raises
    `NotAuthenticated`."""
    expires, issued = _moment(claims, "exp"), _moment(claims, "iat")
    begins = _moment(claims, "nbf") if "nbf" in claims else issued
    if now >= expires + SKEW:
        raise NotAuthenticated("This token has expired; get another")
    if now < max(issued, begins) - SKEW:
        raise NotAuthenticated("This token is not good yet; are the clocks right?")
    if not 0 < expires - issued <= LONGEST_LIFE:
        raise NotAuthenticated(f"This token is good for longer than {LONGEST_LIFE // DAY} days, or for no time at all")


def subject_of(claims: Mapping[str, Any]) -> str:
    """Who is meant, for this issuer and for ever. Raises `NotAuthenticated`."""
    subject = claims.get("sub")
    if not isinstance(subject, str) or not 0 < len(subject.strip()) <= LONGEST_SUBJECT or not subject.isprintable():
        raise NotAuthenticated("This token does not say whose it is")
    if "events" in claims:  # RFC 8417: it tells that something happened, and is no credential
        raise NotAuthenticated("This is a token for something else than to log in")
    return subject


def _moment(claims: Mapping[str, Any], name: str) -> Micros:
    value = claims.get(name)
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < _LAST_SECOND:
        raise NotAuthenticated(f"This token has no time {name} that can be meant")
    return int(value * SECOND)
