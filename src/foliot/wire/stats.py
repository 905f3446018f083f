"""How late jobs were, and how full a queue is, in figures for people and for programs that scale workers."""

from msgspec import Struct


class PercentilesInfo(Struct, frozen=True, kw_only=True):
    """Seconds that half, 90, 99 and 99.9 percent did not exceed, and the most; each at most a quarter too high, never
    too low."""

    p50: float
    p90: float
    p99: float
    p999: float
    max: float


class LatenessInfo(Struct, frozen=True, kw_only=True):
    """How long jobs took from one step to the next: `admit` from due to ready for a worker, `claim` to the worker,
    `start` to its handler, `run` to the end, and `late` from due to the handler. `queue` or `job_type` is null where
    all are added up; a step is null where it is not known of any."""

    queue: str | None
    job_type: str | None
    jobs: int
    late: PercentilesInfo | None
    admit: PercentilesInfo | None
    claim: PercentilesInfo | None
    start: PercentilesInfo | None
    run: PercentilesInfo | None


class DepthInfo(Struct, frozen=True, kw_only=True):
    """How many jobs of a queue wait only for a worker, for the queue itself or for a token, how many run, and for how
    many seconds the one that was due first waits (0 where none does)."""

    queue: str
    waiting: int
    running: int
    oldest_wait: float
