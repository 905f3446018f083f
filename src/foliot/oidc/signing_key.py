"""A provider's public key, and the signatures that it may be used for."""

from collections.abc import Mapping
from typing import Any

import jwt
from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePublicKey
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey
from jwt.algorithms import Algorithm
from msgspec import Struct

from foliot.oidc.token import Token

RSA_BITS = range(2048, 8192 + 1)  # shorter ones can be broken, longer ones take long

_RSA = ("RS256", "RS384", "RS512", "PS256")
_CURVES = {"secp256r1": "ES256", "secp384r1": "ES384"}
_FIRST = {"RSA": "RS256", "EC": "ES256", "OKP": "EdDSA"}  # any algorithm of the kind reads the keys of all

PublicKey = RSAPublicKey | EllipticCurvePublicKey | Ed25519PublicKey


class UnusableKey(ValueError):
    """Says why."""


class SigningKey(Struct, frozen=True, kw_only=True):
    """`algorithms` are those that the key's own kind allows: one kind of key is never used as another."""

    key_id: str | None
    algorithms: tuple[str, ...]
    public: PublicKey

    def has_signed(self, token: Token) -> bool:
        if token.algorithm not in self.algorithms:
            return False
        try:
            return _algorithm(token.algorithm).verify(token.signed, self.public, token.signature)
        except (InvalidSignature, ValueError):
            return False


def read_key(jwk: Mapping[str, Any]) -> SigningKey:
    """A key as the provider publishes it (RFC 7517). Raises `UnusableKey`."""
    kind, key_id = jwk.get("kty"), jwk.get("kid")
    if not isinstance(kind, str) or kind not in _FIRST:
        raise UnusableKey("not a public key of a kind that is used")
    if "d" in jwk:
        raise UnusableKey("its private half is published with it: whoever reads it can sign")
    operations = jwk.get("key_ops")
    if jwk.get("use", "sig") != "sig" or not (
        operations is None or (isinstance(operations, list) and "verify" in operations)
    ):
        raise UnusableKey("not for signatures")
    if not (key_id is None or isinstance(key_id, str)):
        raise UnusableKey("its id is no text")
    try:
        public = _algorithm(_FIRST[kind]).from_jwk(dict(jwk))
    except (jwt.PyJWTError, UnsupportedAlgorithm, ValueError, TypeError, KeyError, AttributeError) as error:
        raise UnusableKey(f"can not be read ({type(error).__name__})") from None
    able = _able(public)
    wanted = jwk.get("alg")
    algorithms = able if wanted is None else tuple(name for name in able if name == wanted)
    if not algorithms:
        raise UnusableKey("not of a kind, size or algorithm that is used")
    return SigningKey(key_id=key_id, algorithms=algorithms, public=public)


def _able(public: object) -> tuple[str, ...]:
    match public:
        case RSAPublicKey():
            return _RSA if public.key_size in RSA_BITS else ()
        case EllipticCurvePublicKey():
            return (_CURVES[public.curve.name],) if public.curve.name in _CURVES else ()
        case Ed25519PublicKey():
            return ("EdDSA",)
        case _:
            return ()


def _algorithm(name: str) -> Algorithm:
    return jwt.get_algorithm_by_name(name)
