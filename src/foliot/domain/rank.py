"""Who is next within a queue: every policy is one number, the smallest goes first.

Jobs become ready with the rank of the policy `priority`, in the lane as it was submitted. In a queue with another
policy they are then put in order: moved to a lane of the same kind with that `ordering`, where ranks are what the
policy makes them. So what makes jobs ready knows of no policy, and a change of policy is the same move.

- `` (priority): the higher priority first, then the earlier due time.
- `aging:N`: the due time, and N microseconds later for each step of priority below the highest.
- `fifo`: the due time.
- `fair:N`: start-time fair queueing. Each fair key has its own time, which a job moves on by `COST / weight`; a job's
  rank is where its key's time stands, and at least where the queue's time stands, which is the rank of what started
  last. So who was away gets no more than its share, and who comes new does not wait behind a long line of others. N is
  the version of the queue that set the weights.
"""

from collections.abc import Iterable

from foliot.domain.duration import Micros
from foliot.domain.ids import JobKey

_PRIORITY_SHIFT = 56  # microseconds since 1970 stay below 2**56 until the year 4253
_LATEST = (1 << _PRIORITY_SHIFT) - 1
FAIR = "fair:"
AGING = "aging:"
FIFO = "fifo"
COST = 1 << 20

Turn = tuple[int, JobKey]  # (rank, id): the order within a lane


def rank(priority: int, due: Micros, ordering: str = "") -> int:
    """For every ordering but `fair`. Fits in a signed 64-bit integer."""
    when = min(max(due, 0), _LATEST)
    if not ordering:
        return ((9 - priority) << _PRIORITY_SHIFT) | when
    return when + (9 - priority) * int(ordering.removeprefix(AGING)) if ordering.startswith(AGING) else when


def cost(weight: float) -> int:
    """How far a job moves its key's time on."""
    return max(1, round(COST / weight))


def fair_ranks(keys: Iterable[str], times: dict[str, int], now: int, costs: dict[str, int]) -> list[int]:
    """The ranks of jobs of these fair keys, in this order. `times` is where each key's time stands (those it does not
    name stand at `now`, the queue's time) and is moved on; `costs` are those that are not `COST`."""
    ranks = []
    for key in keys:
        begin = max(times.get(key, now), now)
        ranks.append(begin)
        times[key] = begin + costs.get(key, COST)
    return ranks
