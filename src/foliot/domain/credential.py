"""API keys: what a caller shows, and what is kept of it.

A key is `fk_`, the key's id and a secret of 256 random bits. Only a hash of the secret is kept. One pass of SHA-256 is
enough: a secret of that size can not be guessed from its hash, however fast hashes are made. (Slow hashes are for
passwords that people choose.)
"""

import hashlib
import hmac
import re
import secrets

import msgspec

from foliot.domain.access import Caller, Role
from foliot.domain.duration import Micros

PREFIX = "fk_"
_KEY = re.compile(r"fk_([a-z0-9]{16})_([A-Za-z0-9_-]{43})", re.ASCII)
_ALPHABET = "abcdefghijklmnopqrstuvwxyz0123456789"


class ApiKey(msgspec.Struct, frozen=True, kw_only=True):
    """An API key as it is kept. Until `old_until` the secret before the last rotation is good as well. A revoked key
    stays, so that it can be told from one that never was."""

    key_id: str
    namespace: str
    name: str
    role: Role
    queues: tuple[str, ...] = ()
    job_types: tuple[str, ...] = ()
    hash: bytes
    old_hash: bytes | None = None
    old_until: Micros = 0
    created: Micros
    created_by: str = ""
    expires: Micros | None = None
    last_used: Micros | None = None
    revoked: Micros | None = None

    def opens(self, secret: str, now: Micros) -> bool:
        """Whether the secret is this key's. Takes equally long for every wrong one."""
        given = hash_of(secret)
        old = self.old_hash if self.old_hash is not None and now < self.old_until else self.hash
        return hmac.compare_digest(given, self.hash) | hmac.compare_digest(given, old)

    def good(self, now: Micros) -> bool:
        """Whether it is neither revoked nor expired."""
        return self.revoked is None and (self.expires is None or now < self.expires)

    def caller(self, source: str = "") -> Caller:
        return Caller(
            name=self.name,
            namespace=self.namespace,
            role=self.role,
            queues=self.queues,
            job_types=self.job_types,
            key_id=self.key_id,
            source=source,
        )


def new_key_id() -> str:
    return "".join(secrets.choice(_ALPHABET) for _ in range(16))


def new_secret() -> str:
    return secrets.token_urlsafe(32)


def hash_of(secret: str) -> bytes:
    return hashlib.sha256(secret.encode()).digest()


def show_key(key_id: str, secret: str) -> str:
    return f"{PREFIX}{key_id}_{secret}"


def parse_key(text: str) -> tuple[str, str] | None:
    """The id and the secret of a key; None where it has not a key's form."""
    match = _KEY.fullmatch(text)
    return None if match is None else (match[1], match[2])
