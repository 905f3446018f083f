"""Payloads and what else is private, sealed before it is kept and opened where it is read.

Sealed text is `sealed:1:<key id>:<base64 of nonce and ciphertext>`: AES-256-GCM under a key of its own for each (owner,
kind), made from the one that the id names. So a text given to another row does not open, and no number of jobs brings
random nonces near the count at which two of one key would meet. What is kept is JSON otherwise, which never begins with
the mark: text that is not sealed opens as it is, and sealing can be turned on over what is there.

The first key seals, all of them open. Without keys nothing is sealed, and each call here costs one look.
"""

import hashlib
from binascii import a2b_base64, b2a_base64
from collections.abc import Sequence
from os import urandom
from typing import TYPE_CHECKING, Literal

import msgspec

from foliot.domain.errors import Unreadable
from foliot.domain.job import Job

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

# A template's owner is a schedule, a webhook's, a delivery's and a channel's their own number, of all others
# it is a job.
Kind = Literal["payload", "result", "error", "progress", "template", "webhook", "delivery", "channel"]

MARK = "sealed:1:"
NONCE_BYTES = 12
TAG_BYTES = 16
KEY_ID_LIMIT = 32
HASH_BYTES = 16


class Sealer:
    """`keys` are pairs of id and 32 bytes."""

    def __init__(self, keys: Sequence[tuple[str, bytes]] = ()) -> None:
        self.on = bool(keys)
        self._keys = dict(keys)
        self._newest = keys[0][0] if keys else ""
        self._hash_keys = [_derived(key, b"body hash") for _, key in keys]
        if keys:
            self._cipher = _cipher()

    def seal(self, text: str, owner: int, kind: Kind) -> str:
        if not self.on:
            return text
        bound = _bound(owner, kind)
        nonce = urandom(NONCE_BYTES)
        cipher = self._cipher(_derived(self._keys[self._newest], bound))
        sealed = nonce + cipher.encrypt(nonce, text.encode(), bound)
        return f"{MARK}{self._newest}:{b2a_base64(sealed, newline=False).decode()}"

    def open(self, text: str, owner: int, kind: Kind) -> str:
        """The text as it was before `seal`; `Unreadable` where that can not be."""
        if not text.startswith(MARK):
            return text
        key_id, _, rest = text.removeprefix(MARK).partition(":")
        key = self._keys.get(key_id)
        if key is None:
            raise Unreadable(
                f"the {kind} is sealed with the key {key_id!r}, which this node does not have; "
                "add that key to encryption_keys (FOLIOT_ENCRYPTION_KEYS) and start the node again"
            )
        bound = _bound(owner, kind)
        try:
            sealed = a2b_base64(rest, strict_mode=True)
            cipher = self._cipher(_derived(key, bound))
            return cipher.decrypt(sealed[:NONCE_BYTES], sealed[NONCE_BYTES:], bound).decode()
        except Exception as error:  # of the cipher's own kinds; none of them tells more
            raise Unreadable(
                f"the {kind} does not open with the key {key_id!r}: what is kept was changed or belongs to another "
                "row, or the key of that id is not the one that sealed it"
            ) from error

    def renew(self, text: str, owner: int, kind: Kind) -> str:
        """The same, sealed with the newest key; as it is where it can not be opened, or need not be sealed anew."""
        if not self.on or text.startswith(f"{MARK}{self._newest}:"):
            return text
        try:
            return self.seal(self.open(text, owner, kind), owner, kind)
        except Unreadable:
            return text

    def payload_of(self, job: Job) -> str:
        return self.open(job.payload, job.id, "payload") if job.payload.startswith(MARK) else job.payload

    def seal_job(self, job: Job) -> Job:
        """A job with its payload sealed."""
        return msgspec.structs.replace(job, payload=self.seal(job.payload, job.id, "payload")) if self.on else job

    def room(self, characters: int) -> int:
        """How long text of so many characters can become."""
        if not self.on:
            return characters
        return len(MARK) + KEY_ID_LIMIT + 1 + (4 * characters + NONCE_BYTES + TAG_BYTES + 2) // 3 * 4

    def hash(self, body: bytes) -> bytes:
        """What tells a body from another one. With a key, since whoever reads a plain hash can try small bodies."""
        return _hash(body, self._hash_keys[0] if self.on else b"")

    def older_hashes(self, body: bytes) -> Sequence[bytes]:
        """What `hash` made of the same body under earlier keys, and without any."""
        return [_hash(body, key) for key in (*self._hash_keys[1:], b"")] if self.on else ()


def is_sealed(text: str) -> bool:
    return text.startswith(MARK)


def _cipher() -> "type[AESGCM]":
    """Loaded only where something is sealed."""
    from cryptography.hazmat.primitives.ciphers import aead

    return aead.AESGCM


def _bound(owner: int, kind: Kind) -> bytes:
    return f"foliot:1:{kind}:{owner}".encode()


def _derived(key: bytes, purpose: bytes) -> bytes:
    return hashlib.blake2b(purpose, key=key, digest_size=32).digest()


def _hash(body: bytes, key: bytes) -> bytes:
    return hashlib.blake2b(body, key=key, digest_size=HASH_BYTES).digest()
