"""When a failed attempt is tried again. Jitter is a stable hash of job and attempt, not a fresh throw of dice."""

import hashlib
from typing import Literal, assert_never

import msgspec

from foliot.domain.duration import HOUR, SECOND, Micros

Backoff = Literal["exponential", "linear", "fixed"]
OnLost = Literal["retry", "fail"]


class Retry(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A job's retry policy, times in microseconds. `delays`, where given, stands instead of the backoff; its last entry
    repeats."""

    max_attempts: int = 3
    backoff: Backoff = "exponential"
    initial: Micros = SECOND
    max: Micros = HOUR
    jitter: float = 0.2
    delays: tuple[Micros, ...] = ()
    on_lost: OnLost = "retry"
    max_lost: int = 3


DEFAULT = Retry()


def wait_before_retry(retry: Retry, *, failures: int, seed: int) -> Micros:
    """How long to wait after the `failures`-th counted failure (1 is the first). The jitter goes both ways around the
    capped backoff, so that jobs which failed together stay apart at the cap, too."""
    if retry.delays:
        return retry.delays[min(failures, len(retry.delays)) - 1]
    match retry.backoff:
        case "fixed":
            base = retry.initial
        case "linear":
            base = retry.initial * failures
        case "exponential":
            base = retry.initial << min(failures - 1, 62)
        case _:
            assert_never(retry.backoff)
    base = min(base, retry.max)
    return base + round(base * retry.jitter * (2 * _fraction(seed, failures) - 1))


def _fraction(seed: int, failures: int) -> float:
    """A number in [0, 1), the same for the same job and failure on every node."""
    digest = hashlib.blake2b(f"{seed}/{failures}".encode(), digest_size=8).digest()
    return int.from_bytes(digest) / (1 << 64)
