"""No signature at all, or one that is checked in another way than it should be."""

import json
from typing import Any

import jwt
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from tests.oidc.attacks.attacker import Attacker, Attacks, each

NONE = ("none", "None", "NONE", "nOnE", "none ", " none", "none\0", "ｎｏｎｅ", "", "null")  # noqa: RUF001
NO_TEXT: tuple[object, ...] = (0, True, [], ["RS256"], {"alg": "none"})


def attacks() -> Attacks:
    yield from each("no signature, alg", NONE, lambda a, v: f"{a.rsa.unsigned(header=a.rsa.header(alg=v))}.")
    yield from each("some signature, alg", NONE, lambda a, v: f"{a.rsa.unsigned(header=a.rsa.header(alg=v))}.AAAA")
    yield from each("a good signature, alg", (*NONE, *NO_TEXT), lambda a, v: a.rsa.with_header(alg=v))
    yield "alg null", lambda a: a.raw(header=b'{"alg":null}')
    yield "no alg", lambda a: a.rsa.with_header(alg=None)
    yield from _public_as_secret()
    yield from each(
        "alg",
        ("rs256", "RS256 ", "RS256\0", "RЅ256", "SHA256withRSA"),  # noqa: RUF001
        lambda a, v: a.rsa.with_header(alg=v),
    )
    yield from each("a key for RS256 signs", ("PS256", "RS384", "RS512"), _by_rsa)
    yield from each("an RSA key, alg", ("ES256", "ES384", "EdDSA"), lambda a, v: a.rsa.with_header(alg=v))
    yield from each("an EC key, alg", ("RS256", "ES384", "ES256K", "EdDSA"), lambda a, v: a.ec.with_header(alg=v))
    yield "another hash than said", lambda a: a.rsa.signed(algorithm="RS384")


def _public_as_secret() -> Attacks:
    yield from each("HMAC with the PEM,", ("HS256", "HS384", "HS512"), lambda a, v: a.mac(_pem(a), v))
    yield "HMAC with the PEM, no line at the end", lambda a: a.mac(_pem(a).strip())
    yield "HMAC with the PKCS1 PEM", lambda a: a.mac(_public(a).public_bytes(Encoding.PEM, PublicFormat.PKCS1))
    yield "HMAC with the DER", lambda a: a.mac(_public(a).public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo))
    yield "HMAC with the JWK", lambda a: a.mac(json.dumps(a.rsa.key).encode())
    yield "HMAC with the JWK, sorted", lambda a: a.mac(json.dumps(a.rsa.key, sort_keys=True).encode())
    yield "HMAC with the modulus", lambda a: a.mac(a.rsa.key["n"].encode())
    yield "HMAC with the key's id", lambda a: a.mac(a.rsa.key["kid"].encode())
    yield from each("HMAC with", (b"", b"secret"), lambda a, v: a.mac(v))
    yield "RS256 said, HMAC with the PEM", lambda a: a.rsa.unsigned() + "." + a.mac(_pem(a)).split(".")[2]


def _by_rsa(a: Attacker, algorithm: str) -> str:
    return a.rsa.signed(a.rsa.unsigned(header=a.rsa.header(alg=algorithm)), algorithm=algorithm)


def _public(a: Attacker) -> Any:
    return jwt.PyJWK(a.rsa.key).key


def _pem(a: Attacker) -> bytes:
    return bytes(_public(a).public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo))
