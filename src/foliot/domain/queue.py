"""A queue's own rules: in which order its jobs go, how many at once, how many in a time, and how it shares workers with
other queues. A queue nobody has set anything for has the defaults."""

from collections.abc import Iterable
from typing import Literal, assert_never

import msgspec

from foliot.domain.duration import Micros
from foliot.domain.job import Lane, QueueName
from foliot.domain.rank import AGING, FAIR, FIFO
from foliot.domain.rate import RateLimit, may_start, next_start

Policy = Literal["fifo", "priority", "fair"]


class QueueRules(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """As users set them. `aging` is how long a wait is worth one step of priority; it and `weights` (by fair key)
    count under the policy that they belong to."""

    policy: Policy = "priority"
    aging: Micros | None = None
    weight: float = 1.0
    weights: dict[str, float] = {}
    max_concurrency: int | None = None
    rate_limit: RateLimit | None = None

    @property
    def limited(self) -> bool:
        """Whether a claim has to look at the queue."""
        return self.max_concurrency is not None or self.rate_limit is not None


DEFAULT_RULES = QueueRules()


class Queue(msgspec.Struct, frozen=True, kw_only=True):
    """A queue: its number, its rules, whether it is held. `version` grows with each change by a user; `ordered` is the
    version that last changed the order of jobs."""

    queue_id: int
    namespace: str
    name: str
    version: int = 1
    ordered: int = 1
    paused: bool = False
    rules: QueueRules = DEFAULT_RULES

    @property
    def ordering(self) -> str:
        """Of the lanes whose jobs are in order; see `domain.rank`."""
        match self.rules.policy:
            case "fifo":
                return FIFO
            case "fair":
                return f"{FAIR}{self.ordered}"
            case "priority":
                return "" if self.rules.aging is None else f"{AGING}{self.rules.aging}"
            case _:
                assert_never(self.rules.policy)


def changes_order(before: QueueRules, after: QueueRules) -> bool:
    """Whether jobs that wait have to be put in order anew."""
    if after.policy == "fair":
        return before.policy != "fair" or before.weights != after.weights
    return (before.policy, before.aging) != (after.policy, after.aging)


class Room(msgspec.Struct, frozen=True, kw_only=True):
    """What a queue's limits allow now: `running` of its jobs run (None where nobody has to count), the rate's next
    beat."""

    rules: QueueRules
    running: int | None = None
    next_beat: int = 0

    def full(self) -> bool:
        most = self.rules.max_concurrency
        return most is not None and self.running is not None and self.running >= most

    def starts(self, now: Micros) -> int | None:
        """How many may start now; None where there is no limit."""
        allowed: list[int] = []
        if self.rules.max_concurrency is not None:
            allowed.append(max(0, self.rules.max_concurrency - (self.running or 0)))
        if self.rules.rate_limit is not None:
            allowed.append(may_start(self.rules.rate_limit, self.next_beat, now))
        return min(allowed, default=None)

    def wait_until(self, now: Micros) -> Micros | None:
        """When the rate lets the next one start; None where it does now."""
        rate = self.rules.rate_limit
        if rate is None or may_start(rate, self.next_beat, now):
            return None
        return next_start(rate, self.next_beat)


class QueueBook:
    """What a node knows of queues and job types that are not left to the defaults, by a look at them not long ago."""

    def __init__(self, queues: Iterable[Queue] = (), held_types: Iterable[tuple[str, str]] = ()) -> None:
        self._queues: dict[QueueName, Queue] = {(queue.namespace, queue.name): queue for queue in queues}
        self._held_types = frozenset(held_types)  # namespace and job type

    def queue(self, lane: Lane) -> Queue | None:
        return self._queues.get(lane.line)

    def held(self, lane: Lane) -> bool:
        """Whether nothing of the lane may start: its queue or its job type is paused."""
        queue = self.queue(lane)
        return (queue is not None and queue.paused) or (lane.namespace, lane.job_type) in self._held_types

    def in_order(self, lane: Lane) -> bool:
        """Whether jobs stand in the lane as their queue's policy asks."""
        queue = self.queue(lane)
        return lane.ordering == ("" if queue is None else queue.ordering)

    def weight(self, name: QueueName) -> float:
        queue = self._queues.get(name)
        return 1.0 if queue is None else queue.rules.weight
