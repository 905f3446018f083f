"""Signatures that are of something else, broken, or of numbers that fit everything."""

from collections.abc import Callable

from tests.oidc.attacks.attacker import Attacker, Attacks, each
from tests.oidc.tokens import encode, encode_json

ORDER = 0xFFFFFFFF00000000FFFFFFFFFFFFFFFFBCE6FAADA7179E84F3B9CAC2FC632551  # of P-256
PSYCHIC = ((0, 0), (ORDER, ORDER), (0, 1), (1, 0), (1, 1), (ORDER, 1), (1, ORDER))
CHANGES: dict[str, Callable[[bytes], bytes]] = {
    "first bit flipped": lambda s: bytes([s[0] ^ 0x80]) + s[1:],
    "a bit in the middle flipped": lambda s: s[:100] + bytes([s[100] ^ 1]) + s[101:],
    "last bit flipped": lambda s: s[:-1] + bytes([s[-1] ^ 1]),
    "cut": lambda s: s[:-1],
    "longer": lambda s: s + b"\0",
    "longer before": lambda s: b"\0" + s,
    "twice": lambda s: s * 2,
    "zeros": lambda s: bytes(len(s)),
    "ones": lambda s: b"\xff" * len(s),
    "the number one": lambda s: bytes(len(s) - 1) + b"\1",
}


def attacks() -> Attacks:
    yield "stripped", lambda a: f"{a.rsa.unsigned()}."
    yield from each("RSA,", CHANGES, _changed)
    yield "of another token", lambda a: f"{a.rsa.unsigned()}.{a.rsa.token(groups=['staff']).split('.')[2]}"
    yield (
        "claims changed after",
        lambda a: ".".join([a.parts()[0], encode_json(a.rsa.claims(groups=["ops", "dev"])), a.parts()[2]]),
    )
    yield "header changed after", lambda a: ".".join([encode_json(a.rsa.header(typ="at+jwt")), *a.parts()[1:]])
    yield "of only the claims", lambda a: f"{a.rsa.unsigned()}.{encode(a.rsa.signature(a.parts()[1]))}"
    yield from each("psychic", PSYCHIC, lambda a, v: a.ecdsa(*v))
    yield "ECDSA as DER of zeros", lambda a: f"{a.ec.unsigned()}.{encode(bytes.fromhex('3006020100020100'))}"
    yield "ECDSA, half of it", lambda a: f"{a.ec.unsigned()}.{encode(a.ec.signature(a.ec.unsigned())[:32])}"
    yield "ECDSA, nothing of it", lambda a: f"{a.ec.unsigned()}."


def _changed(a: Attacker, change: Callable[[bytes], bytes]) -> str:
    unsigned = a.rsa.unsigned()
    return f"{unsigned}.{encode(change(a.rsa.signature(unsigned)))}"
