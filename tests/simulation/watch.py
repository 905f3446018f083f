"""What must hold at every moment, counted from what workers start and end, never from the store's own tables."""

from collections import Counter, defaultdict
from collections.abc import Iterable
from itertools import combinations
from typing import Any

import msgspec

from foliot.domain.duration import SECOND, Micros, parse_duration
from foliot.domain.rate import RateLimit, after_starts, may_start
from tests.simulation.scenario import KEY, KEY_LIMIT, OFFERS, RULES, Offer, Task

RATES = {
    queue: RateLimit(limit=rate["limit"], per=parse_duration(rate["per"], "per"), burst=rate["burst"])
    for queue, rules in RULES.items()
    if (rate := rules.get("rate_limit"))
}


class Start(msgspec.Struct, frozen=True, kw_only=True):
    """A job that a worker has begun; it ends `task.lasts` later."""

    task: Task
    worker: str
    time: float

    @property
    def wait(self) -> float:
        return self.time - self.task.arrives


class Sight(msgspec.Struct, frozen=True, kw_only=True):
    """After a moment: how many of each party wait, and how many have started since the beginning. A party is a queue,
    or a tenant of the fair queue."""

    waiting: Counter[str]
    started: Counter[str]


class Watch:
    def __init__(self) -> None:
        self.starts: list[Start] = []
        self.sights: list[Sight] = []
        self.most: Counter[str] = Counter()  # at once: of a queue, of the concurrency key, of a worker's resource
        self.idle: list[str] = []  # a worker stood idle though a job waited that it could have run
        self.out_of_order: list[str] = []
        self._waiting: dict[int, Task] = {}
        self._held: dict[str, Counter[str]] = defaultdict(Counter)
        self._running: Counter[str] = Counter()
        self._beats = dict.fromkeys(RATES, 0)
        self._begun: list[Task] = []  # at this moment

    def wait(self, task: Task) -> None:
        self._waiting[task.number] = task

    def start(self, task: Task, worker: Offer, time: float) -> None:
        del self._waiting[task.number]
        self._begun.append(task)
        self.starts.append(Start(task=task, worker=worker.name, time=time))
        self._count(task, worker, 1)
        if (rate := RATES.get(task.queue)) is not None:
            self._beats[task.queue] = after_starts(rate, self._beats[task.queue], _micros(time), 1)

    def end(self, task: Task, worker: Offer) -> None:
        self._count(task, worker, -1)

    def check(self, time: float) -> None:
        """The moment is over: nobody was given any more."""
        for task in self._waiting.values():
            for begun in self._begun:
                if _line(task) is not None and _line(task) == _line(begun) and _turn(task) < _turn(begun):
                    self.out_of_order.append(f"{time}: {begun.job_id} went before {task.job_id}")
        for task in {repr(task.kind): task for task in self._waiting.values()}.values():
            if self._allowed(task, time):
                self.idle += [f"{time}: {offer.name}, {task.job_id}" for offer in OFFERS if self._fits(task, offer)]
        started = self.sights[-1].started if self.sights else Counter()
        self.sights.append(
            Sight(waiting=_parties(self._waiting.values()), started=started + _parties(self._begun)),
        )
        self._begun.clear()

    def _count(self, task: Task, worker: Offer, sign: int) -> None:
        held = self._held[worker.name]
        for name, amount in task.holds.items():
            held[name] += sign * round(amount)
            self.most |= Counter({f"{worker.name} {name}": held[name]})
        for party in filter(None, (task.queue, task.key)):
            self._running[party] += sign
            self.most |= Counter({party: self._running[party]})

    def _allowed(self, task: Task, time: float) -> bool:
        """Whether no limit stands against it. Jobs of the concurrency key need the same, so that whoever has the token
        fits where this one does."""
        most = RULES[task.queue].get("max_concurrency")
        rate = RATES.get(task.queue)
        return (
            (most is None or self._running[task.queue] < most)
            and (task.key is None or self._running[task.key] < KEY_LIMIT)
            and (rate is None or may_start(rate, self._beats[task.queue], _micros(time)) > 0)
        )

    def _fits(self, task: Task, offer: Offer) -> bool:
        held = self._held[offer.name]
        return (
            (not offer.queues or task.queue in offer.queues)
            and task.requires.items() <= offer.labels.items()
            and all(held[name] + amount <= offer.resources.get(name, 0) for name, amount in task.holds.items())
        )


def most_in(times: list[float], length: float) -> int:
    """The most starts in any stretch of that length, both ends included."""
    exact = sorted(_micros(time) for time in times)
    return max(sum(0 <= other - one <= _micros(length) for other in exact) for one in exact)


def unfairness(sights: list[Sight], weights: dict[str, float]) -> dict[tuple[str, str], float]:
    """For each two parties: how far, at most, one got ahead of the other in any stretch of moments in which jobs of
    both waited. What a party got is its starts by its weight."""
    found: dict[tuple[str, str], float] = {}
    for pair in combinations(weights, 2):
        one, other = pair
        least = most = None
        for sight in sights:
            if not (sight.waiting[one] and sight.waiting[other]):
                least = most = None
                continue
            ahead = sight.started[one] / weights[one] - sight.started[other] / weights[other]
            least = ahead if least is None else min(least, ahead)
            most = ahead if most is None else max(most, ahead)
            found[pair] = max(found.get(pair, 0.0), most - least)
    return found


def limits() -> dict[str, float]:
    """What `Watch.most` may reach."""
    found: dict[str, float] = {KEY: KEY_LIMIT}
    found |= {queue: rules["max_concurrency"] for queue, rules in RULES.items() if "max_concurrency" in rules}
    found |= {f"{offer.name} {name}": amount for offer in OFFERS for name, amount in offer.resources.items()}
    return found


def _parties(tasks: Iterable[Task]) -> Counter[str]:
    return Counter(name for task in tasks for name in (task.queue, f"tenant {task.fair_key}") if name != "tenant None")


def _line(task: Task) -> tuple[Any, ...] | None:
    """Jobs that stand in one line. Who waits for the concurrency key's token stands in another until it has it."""
    return None if task.key else (task.kind, task.fair_key)


def _turn(task: Task) -> tuple[float, ...]:
    """Who is next in a line: the smallest."""
    rules = RULES[task.queue]
    if rules.get("policy", "priority") in ("fifo", "fair"):
        return task.arrives, task.number
    if "aging" in rules:
        return task.arrives + (9 - task.priority) * parse_duration(rules["aging"], "aging") / SECOND, task.number
    return -task.priority, task.arrives, task.number


def _micros(time: float) -> Micros:
    return round(time * SECOND)
