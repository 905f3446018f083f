"""Reads the beginning of an answer, unpacked, and never more of it than asked for: a few compressed kilobytes may
stand for gigabytes."""

import zlib
from collections.abc import AsyncIterator
from typing import Protocol

CHUNK = 64 * 1024
MEMBERS = 1000  # gzips in one answer: each costs more time than its few bytes are worth

_GZIP = 16 + zlib.MAX_WBITS


class Unpacker(Protocol):
    def add(self, data: bytes, room: int) -> bytes:
        """At most `room` bytes; what follows them is lost."""
        ...


async def read_beginning(parts: AsyncIterator[bytes], encoding: str, most: int) -> tuple[bytes, bool]:
    """Up to `most` bytes, and whether that is all. Raises `zlib.error`. Of a compressed answer not much more than
    `most` is taken from the wire either: packed is shorter, and an answer may unpack to nothing for ever."""
    unpacker = _unpacker(encoding)
    kept = bytearray()
    taken = 0
    async for part in parts:
        taken += len(part)
        kept += unpacker.add(part, most + 1 - len(kept))
        if len(kept) > most or taken > most + CHUNK:
            return bytes(kept[:most]), False
    return bytes(kept), True


def _unpacker(encoding: str) -> Unpacker:
    match encoding.strip().lower():
        case "gzip" | "x-gzip":
            return _Gzip()
        case "deflate":
            return _Deflate()
        case _:  # nobody asked for it: handed on as it came
            return _Plain()


class _Plain:
    def add(self, data: bytes, room: int) -> bytes:
        return data[:room]


class _Gzip:
    """May be several, one after the other."""

    def __init__(self) -> None:
        self._inner = zlib.decompressobj(_GZIP)
        self._members = 1

    def add(self, data: bytes, room: int) -> bytes:
        found = bytearray()
        while data and len(found) < room:
            if self._inner.eof:
                if not data.strip(b"\0"):  # padding
                    break
                self._members += 1
                if self._members > MEMBERS:
                    raise zlib.error(f"more than {MEMBERS} gzips in one answer")
                self._inner = zlib.decompressobj(_GZIP)
            found += self._inner.decompress(data, room - len(found))
            data = self._inner.unused_data
        return bytes(found)


class _Deflate:
    """With the frame that it should have, or without, as some send it."""

    def __init__(self) -> None:
        self._inner: zlib._Decompress | None = None

    def add(self, data: bytes, room: int) -> bytes:
        if not data or room <= 0:
            return b""
        if self._inner is None:
            framed = data[0] & 0x0F == 8
            self._inner = zlib.decompressobj(zlib.MAX_WBITS if framed else -zlib.MAX_WBITS)
        return self._inner.decompress(data, room)
