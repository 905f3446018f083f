"""A token as it is sent (RFC 7519 in the compact form of RFC 7515), read in the one way in which it can be meant.

Readers that differ on what a token says are how tokens are forged: so no padding, no stray bits, no name twice, no
second spelling of an algorithm.
"""

import base64
import binascii
import json
import re
from typing import Any, Never

from msgspec import Struct

from foliot.domain.errors import NotAuthenticated

LONGEST = 16 * 1024
LONGEST_KEY_ID = 256
ALGORITHMS = frozenset({"RS256", "RS384", "RS512", "PS256", "ES256", "ES384", "EdDSA"})

# ID tokens and access tokens. Others that a provider signs, such as those that tell of a logout, are no credentials.
TYPES = frozenset({"jwt", "at+jwt", "application/jwt", "application/at+jwt"})

# A key or the address of one, chosen by whoever made the token; and what would change the meaning of the rest.
REFUSED_HEADERS = frozenset({"jwk", "jku", "x5u", "x5c", "crit", "b64", "cty", "enc", "zip"})

_FORM = re.compile(r"([A-Za-z0-9_-]+)\.([A-Za-z0-9_-]+)\.([A-Za-z0-9_-]+)", re.ASCII)


class Token(Struct, frozen=True, kw_only=True):
    """Read, but not believed yet."""

    algorithm: str
    key_id: str | None
    claims: dict[str, Any]
    signed: bytes
    signature: bytes


def read_token(text: str) -> Token:
    """Raises `NotAuthenticated`."""
    if len(text) > LONGEST:
        raise NotAuthenticated(f"This token is longer than {LONGEST} characters")
    parts = _FORM.fullmatch(text)
    if parts is None:
        raise NotAuthenticated("This is not a signed token")
    try:
        header, claims = _object(parts[1]), _object(parts[2])
        signature = _bytes(parts[3])
    except (ValueError, RecursionError):
        raise NotAuthenticated("This token can not be read") from None
    algorithm, key_id = _check_header(header)
    return Token(
        algorithm=algorithm,
        key_id=key_id,
        claims=claims,
        signed=text[: parts.end(2)].encode(),
        signature=signature,
    )


def _check_header(header: dict[str, Any]) -> tuple[str, str | None]:
    algorithm, key_id, kind = header.get("alg"), header.get("kid"), header.get("typ", "JWT")
    if not isinstance(algorithm, str) or algorithm not in ALGORITHMS:
        raise NotAuthenticated("This token is not signed in a way that is taken")
    if not REFUSED_HEADERS.isdisjoint(header):
        raise NotAuthenticated("This token's header asks for what is not done")
    if not isinstance(kind, str) or kind.lower() not in TYPES:
        raise NotAuthenticated("This is a token for something else than to log in")
    if "kid" in header and not (isinstance(key_id, str) and 0 < len(key_id) <= LONGEST_KEY_ID):
        raise NotAuthenticated("This token does not name a key")
    return algorithm, key_id


def _object(part: str) -> dict[str, Any]:
    value = json.loads(_bytes(part).decode("utf-8"), object_pairs_hook=_without_doubles, parse_constant=_no_constant)
    if not isinstance(value, dict):
        raise ValueError("not an object")
    return value


def _bytes(part: str) -> bytes:
    """The one spelling of some bytes: others leave bits over at the end."""
    try:
        value = base64.urlsafe_b64decode(part + "=" * (-len(part) % 4))
    except binascii.Error as error:
        raise ValueError(str(error)) from None
    if base64.urlsafe_b64encode(value).rstrip(b"=").decode() != part:
        raise ValueError("not the usual spelling")
    return value


def _without_doubles(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a name is there twice")
    return found


def _no_constant(name: str) -> Never:
    raise ValueError(f"{name} is not JSON")
