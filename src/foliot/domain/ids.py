"""64-bit, time-ordered ids (a snowflake) and how they are shown.

    40 bits milliseconds since 2025 · 4 bits shard · 8 bits node · 11 bits sequence      (63 bits, never negative)

Ids of one node grow strictly. A node number is leased, so that two nodes never share one, and a maker starts above the
`floor` it is given, so that a clock set back makes no id twice. More than 2,048 ids within a millisecond borrow from
the next: ids may run ahead of the clock by a few milliseconds, never behind an earlier id.
"""

from typing import NewType

JobKey = NewType("JobKey", int)
WorkerKey = NewType("WorkerKey", int)
ScheduleKey = NewType("ScheduleKey", int)

EPOCH_MS = 1_735_689_600_000  # 2025-01-01T00:00:00Z
SHARD_BITS, NODE_BITS, SEQUENCE_BITS = 4, 8, 11
SHARDS, NODES = 1 << SHARD_BITS, 1 << NODE_BITS
_TIME_SHIFT = SHARD_BITS + NODE_BITS + SEQUENCE_BITS
_SEQUENCE_MASK = (1 << SEQUENCE_BITS) - 1

JOB, WORKER, NODE, LOG, SCHEDULE = "j_", "w_", "n_", "l_", "s_"


class IdMaker:
    """Makes the ids of one node. The only state is the last id made."""

    def __init__(self, *, node: int, shard: int = 0, floor: int = 0) -> None:
        if not 0 <= node < NODES:
            raise ValueError(f"node number {node} is not within 0 to {NODES - 1}")
        if not 0 <= shard < SHARDS:
            raise ValueError(f"shard number {shard} is not within 0 to {SHARDS - 1}")
        self.node = node
        self._origin = (shard << (NODE_BITS + SEQUENCE_BITS)) | (node << SEQUENCE_BITS)
        self._slot = (floor >> _TIME_SHIFT) + 1 << SEQUENCE_BITS if floor else 0
        self.last = floor

    def take(self, count: int, now: int) -> list[int]:
        """`count` new ids, ascending, none at or below any made before. `now` in microseconds."""
        slot = max(self._slot, (now // 1000 - EPOCH_MS) << SEQUENCE_BITS)
        self._slot = slot + count
        origin = self._origin
        made = [
            ((s >> SEQUENCE_BITS) << _TIME_SHIFT) | origin | (s & _SEQUENCE_MASK) for s in range(slot, slot + count)
        ]
        self.last = made[-1] if made else self.last
        return made

    def one(self, now: int) -> int:
        return self.take(1, now)[0]


def time_of(key: int) -> int:
    """The microsecond at which an id was made, to the millisecond."""
    return ((key >> _TIME_SHIFT) + EPOCH_MS) * 1000


def first_of(time: int) -> int:
    """The smallest id that could have been made at `time` (microseconds): bounds of an id range."""
    return max(0, time // 1000 - EPOCH_MS) << _TIME_SHIFT


def show(prefix: str, key: int) -> str:
    """An id as people see it: sorts as the number does."""
    return f"{prefix}{key:016x}"


def parse(prefix: str, text: str) -> int | None:
    """The number behind a shown id, or None where `text` is not one of ours."""
    digits = text[len(prefix) :]
    if not text.startswith(prefix) or len(digits) != 16 or not set(digits) <= set("0123456789abcdef"):
        return None
    key = int(digits, 16)
    return key if key < 1 << 63 else None


def show_token(key: int, nonce: int) -> str:
    """What a worker shows to prove that it holds an attempt: the job's id and the claim's nonce."""
    return f"{key:016x}{nonce:016x}"


def parse_token(token: str) -> tuple[int, int] | None:
    """The job's id and the nonce, or None where `token` is not one of ours. One for each report: kept quick."""
    try:
        both = int.from_bytes(bytes.fromhex(token))
    except ValueError:
        return None
    return (both >> 64, both & _NONCE_MASK) if len(token) == 32 and both < _BEYOND else None


_NONCE_MASK = (1 << 64) - 1
_BEYOND = 1 << 127
