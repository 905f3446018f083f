"""The audit log: who did what to which object, from where. Entries are only added, each with a hash over itself and the
one before, so that one that was changed, taken out or put in later does not fit any more."""

import hashlib
from collections.abc import Iterable

import msgspec

from foliot.domain.duration import Micros

FIRST = b"\x00" * 32


class AuditEntry(msgspec.Struct, frozen=True, kw_only=True):
    """`action` is the call's method and path with the names of its parameters, `object` what they were; `outcome` is
    what became of it. No body and no secret is ever in it."""

    seq: int = 0
    time: Micros
    namespace: str
    actor: str
    key_id: str | None = None
    action: str
    object: str = ""
    source: str = ""
    request_id: str = ""
    outcome: str = "asked"
    hash: bytes = b""


_encode = msgspec.json.Encoder(order="deterministic").encode


def chained(entries: Iterable[AuditEntry], *, seq: int, previous: bytes) -> list[AuditEntry]:
    """Entries as they follow the one of number `seq` whose hash is `previous`."""
    made: list[AuditEntry] = []
    for entry in entries:
        seq += 1
        numbered = msgspec.structs.replace(entry, seq=seq, hash=b"")
        previous = _hash(numbered, previous)
        made.append(msgspec.structs.replace(numbered, hash=previous))
    return made


def first_break(entries: Iterable[AuditEntry], *, seq: int = 0, previous: bytes = FIRST) -> int | None:
    """The number at which a chain is broken; None where all of it fits."""
    for entry in entries:
        seq += 1
        if entry.seq != seq or entry.hash != _hash(msgspec.structs.replace(entry, hash=b""), previous):
            return seq
        previous = entry.hash
    return None


def _hash(entry: AuditEntry, previous: bytes) -> bytes:
    return hashlib.sha256(previous + _encode(entry)).digest()
