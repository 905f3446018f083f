"""How deep the lists and objects of a body lie in each other.

Payloads are not decoded on their way through: they are handed to workers in other languages, whose parsers give up, or
fall over, at some depth. So the depth is bounded where a body comes in, without decoding it: piece by piece, strings
are cut away, then all that is no bracket; the innermost pairs are peeled off a few times, which leaves next to nothing
of usual bodies; and what is left is added up, unless it could not reach the limit even if all of it opened.
"""

from itertools import accumulate

DEPTH_LIMIT = 100
PIECE = 64 * 1024
PEELS = 4

_OPEN, _CLOSE = b"\x01", b"\xff"  # one and minus one, as signed bytes
_PAIR = _OPEN + _CLOSE
_SIGNS = bytes.maketrans(b"[{]}", _OPEN * 2 + _CLOSE * 2)
_OTHERS = bytes(set(range(256)) - set(b"[{]}"))


def too_deep(json: bytes) -> bool:
    """Whether anything in it lies deeper than `DEPTH_LIMIT`. `json` must be valid."""
    if json.count(b"[") + json.count(b"{") <= DEPTH_LIMIT:
        return False
    depth = start = quotes = 0
    while start < len(json):
        piece = json[start : start + PIECE]
        if piece.endswith(b"\\") and (len(piece) - len(piece.rstrip(b"\\"))) % 2:
            piece = json[start : start + PIECE + 1]  # not without what it escapes
        start += len(piece)
        if b"\\" in piece:
            piece = piece.replace(b"\\\\", b"").replace(b'\\"', b"")
        parts = piece.split(b'"')
        steps = b"".join(parts[quotes % 2 :: 2]).translate(_SIGNS, _OTHERS)
        quotes += len(parts) - 1
        opened = steps.count(_OPEN)
        if depth + opened > DEPTH_LIMIT and _peak(steps, DEPTH_LIMIT - depth) > DEPTH_LIMIT - depth:
            return True
        depth += 2 * opened - len(steps)
    return False


def _peak(steps: bytes, room: int) -> int:
    """The highest sum on the way, exact where it is above `room`."""
    rest = steps
    for _ in range(PEELS):
        rest = rest.replace(_PAIR, b"")
    highest = PEELS + rest.count(_OPEN)
    return highest if highest <= room else max(accumulate(memoryview(steps).cast("b")))
