"""Tokens as a provider makes them, and every part of them as somebody else would like it."""

import base64
import json
from typing import Any

from tests.oidc.process import ProviderProcess

AUDIENCE = "https://jobs.example"


def encode(value: bytes) -> str:
    return base64.urlsafe_b64encode(value).rstrip(b"=").decode()


def encode_json(value: object) -> str:
    return encode(json.dumps(value).encode())


class Mint:
    """Makes tokens that the provider has signed. `claims` and `header` say what differs from a good one, where None
    takes something out; bytes for a whole part are put in as they are."""

    def __init__(self, process: ProviderProcess, *, now: int, key: dict[str, Any] | None = None) -> None:
        self.process = process
        self.now = now
        self.key = process.jwks()[-1] if key is None else key

    def claims(self, **changes: Any) -> dict[str, Any]:
        good = {
            "iss": self.process.issuer,
            "aud": AUDIENCE,
            "sub": "248289761001",
            "preferred_username": "alice",
            "groups": ["staff", "ops"],
            "iat": self.now - 10,
            "nbf": self.now - 10,
            "exp": self.now + 300,
        }
        return {name: value for name, value in (good | changes).items() if value is not None}

    def header(self, **changes: Any) -> dict[str, Any]:
        good = {"alg": self.key["alg"], "kid": self.key["kid"], "typ": "JWT"}
        return {name: value for name, value in (good | changes).items() if value is not None}

    def unsigned(self, *, header: Any = None, claims: Any = None) -> str:
        parts = (self.header() if header is None else header, self.claims() if claims is None else claims)
        return ".".join(encode(part) if isinstance(part, bytes) else encode_json(part) for part in parts)

    def signed(self, unsigned: str | None = None, *, algorithm: str | None = None) -> str:
        text = self.unsigned() if unsigned is None else unsigned
        return f"{text}.{encode(self.signature(text, algorithm=algorithm))}"

    def signature(self, unsigned: str, *, algorithm: str | None = None) -> bytes:
        algorithm = algorithm or self.key["alg"]
        return self.process.sign(unsigned.encode(), key_id=self.key["kid"], algorithm=algorithm)

    def token(self, **claims: Any) -> str:
        return self.signed(self.unsigned(claims=self.claims(**claims)))

    def with_header(self, **header: Any) -> str:
        return self.signed(self.unsigned(header=self.header(**header)))
