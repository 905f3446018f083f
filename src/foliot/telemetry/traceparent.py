"""W3C's `traceparent`: which trace something belongs to, as it goes over the wire and is kept with a job.

`00-<32 hex: trace>-<16 hex: span>-<2 hex: flags>`. What is not one is treated as if nothing had been sent, as the
standard asks. `tracestate`, which vendors add, is not carried on.
"""

import re
from hashlib import sha256

_FORM = re.compile(r"([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-[^\n]*)?")
_NO_VERSION = "ff"
_KNOWN_FLAGS = 0x03  # sampled, and that the trace's id is random; others must not be sent on
SAMPLED = 0x01


def parse(sent: bytes | str | None) -> str | None:
    """The header as we send it on; None where there is none, or what there is makes no sense. A version to come may
    say more at the end, which is left out."""
    if sent is None:
        return None
    text = sent.decode("latin-1") if isinstance(sent, bytes) else sent
    found = _FORM.fullmatch(text.strip(" \t"))
    if found is None:
        return None
    version, trace, span, flags, more = found.groups()
    if version == _NO_VERSION or (version == "00" and more is not None) or not trace.strip("0") or not span.strip("0"):
        return None
    return f"00-{trace}-{span}-{int(flags, 16) & _KNOWN_FLAGS:02x}"


def show(trace_id: int, span_id: int, flags: int) -> str:
    return f"00-{trace_id:032x}-{span_id:016x}-{flags & _KNOWN_FLAGS:02x}"


def split(traceparent: str) -> tuple[int, int, int]:
    """Trace, span and flags of one that `parse` or `show` gave."""
    return int(traceparent[3:35], 16), int(traceparent[36:52], 16), int(traceparent[53:], 16)


def run_span(key: str, attempt: int) -> int:
    """The id of the span in which an attempt runs: of its job's own key and its number, so that whoever knows these,
    the next attempt or a dependent, can link to it without having been told."""
    return int.from_bytes(sha256(f"{key} {attempt}".encode()).digest()[:8]) or 1


def of_run(traceparent: str, key: str, attempt: int) -> str:
    """The context of the span in which an attempt of a job of this trace runs, or ran."""
    trace_id, _, flags = split(traceparent)
    return show(trace_id, run_span(key, attempt), flags)
