"""Who is next within a lane: every policy is one number, the smallest goes first."""

from foliot.domain.duration import Micros
from foliot.domain.ids import JobKey

_PRIORITY_SHIFT = 56  # microseconds since 1970 stay below 2**56 until the year 4253


def rank(priority: int, due: Micros) -> int:
    """Policy `priority`: the higher priority first, then the earlier due time. Fits in a signed 64-bit integer."""
    return ((9 - priority) << _PRIORITY_SHIFT) | min(max(due, 0), (1 << _PRIORITY_SHIFT) - 1)


Turn = tuple[int, JobKey]  # (rank, id): the order within a lane
