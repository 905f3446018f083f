"""Who makes them: somebody who knows all that is public, and has keys of their own."""

import functools
import hashlib
import hmac
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from jwt import get_algorithm_by_name

from tests.oidc.provider import Key
from tests.oidc.tokens import Mint, encode

EVIL_KEYS = "/evil/jwks"  # the attacker's keys, at the provider's own address: nothing else would keep us from them


class Attacker:
    """`rsa` and `ec` make tokens that the provider really signs: what is wrong with those is in what they say. At
    `canary` and at `evil` nobody should ever ask."""

    def __init__(self, own: Key, rsa: Mint, ec: Mint, canary: str) -> None:
        self.own = own
        self.rsa = rsa
        self.ec = ec
        self.canary = canary
        self.evil = f"{rsa.process.issuer}{EVIL_KEYS}"

    def forge(self, **header: Any) -> str:
        """Signed with the attacker's own key."""
        unsigned = self.rsa.unsigned(header=self.rsa.header(**header))
        return f"{unsigned}.{encode(get_algorithm_by_name('RS256').sign(unsigned.encode(), self.own.private))}"

    def mac(self, secret: bytes, algorithm: str = "HS256", **header: Any) -> str:
        """Signed with something public, as if it was a secret."""
        unsigned = self.rsa.unsigned(header=self.rsa.header(alg=algorithm, **header))
        digest = {"HS256": hashlib.sha256, "HS384": hashlib.sha384, "HS512": hashlib.sha512}[algorithm]
        return f"{unsigned}.{encode(hmac.new(secret, unsigned.encode(), digest).digest())}"

    def raw(self, *, header: bytes | None = None, claims: bytes | None = None) -> str:
        """Signed by the provider, whatever it is."""
        return self.rsa.signed(self.rsa.unsigned(header=header, claims=claims))

    def claims_with(self, text: str) -> str:
        """Signed by the provider, with a piece of JSON added to the claims."""
        return self.raw(claims=json.dumps(self.rsa.claims())[:-1].encode() + b"," + text.encode() + b"}")

    def claims_without(self, name: str, text: str = "") -> str:
        """Signed by the provider, with a claim taken out and a piece of JSON put in."""
        claims = json.dumps(self.rsa.claims(**{name: None}))
        return self.raw(claims=(claims[:-1] + (f",{text}" if text else "") + "}").encode())

    def parts(self) -> list[str]:
        return self.rsa.token().split(".")

    def ecdsa(self, r: int, s: int) -> str:
        return f"{self.ec.unsigned()}.{encode(r.to_bytes(32, 'big') + s.to_bytes(32, 'big'))}"


Attack = Callable[[Attacker], str]
Attacks = Iterator[tuple[str, Attack]]


def each(label: str, values: Iterable[Any], make: Callable[[Attacker, Any], str]) -> Attacks:
    """One for each value, told by it; or by its name, where they have names."""
    named = values.items() if isinstance(values, Mapping) else ((repr(value)[:40], value) for value in values)
    for name, value in named:
        yield f"{label} {name}", functools.partial(_made, make, value)


def _made(make: Callable[[Attacker, Any], str], value: Any, attacker: Attacker) -> str:
    return make(attacker, value)
