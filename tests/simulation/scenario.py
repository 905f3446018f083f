"""What is simulated: ten workers, six queues with rules of their own, a thousand jobs. Times are seconds since the
beginning, in tenths, so that jobs meet at the same moments."""

from collections.abc import Callable, Iterator
from random import Random
from typing import Any

import msgspec

SEED = 4
JOBS = 1000
KEY = "ledger"
KEY_LIMIT = 2


class Offer(msgspec.Struct, frozen=True, kw_only=True):
    """A worker: what it has, and which queues it serves (none named: all)."""

    name: str
    resources: dict[str, float]
    labels: dict[str, str] = {}
    queues: tuple[str, ...] = ()


class Task(msgspec.Struct, frozen=True, kw_only=True):
    """A job to come. Numbers are in the order in which jobs are handed in."""

    number: int
    queue: str
    arrives: float
    lasts: float
    priority: int = 5
    fair_key: str | None = None
    key: str | None = None  # a concurrency key, of KEY_LIMIT
    resources: dict[str, float] = {}
    requires: dict[str, str] = {}

    @property
    def job_id(self) -> str:
        return f"{self.queue}-{self.number}"

    @property
    def holds(self) -> dict[str, float]:
        """What it takes of its worker while it runs."""
        return {"slot": 1} | self.resources

    @property
    def kind(self) -> tuple[Any, ...]:
        """Jobs of one kind need exactly the same, so that their order is their queue's."""
        return self.queue, self.key, sorted(self.resources.items()), sorted(self.requires.items())


RULES: dict[str, dict[str, Any]] = {
    "mail": {"policy": "fifo", "weight": 3},
    "tenants": {"policy": "fair", "weights": {"a": 2}},
    "default": {},
    "reports": {"aging": "30s"},
    "partner": {"rate_limit": {"limit": 10, "per": "10s", "burst": 5}},
    "database": {"max_concurrency": 3},
}
_PLAIN = {"slot": 4.0, "cpu": 4.0}
OFFERS = (
    *(Offer(name=f"plain-{number}", resources=_PLAIN) for number in range(1, 6)),
    Offer(name="eu-1", resources=_PLAIN, labels={"zone": "eu"}),
    Offer(name="gpu-1", resources={"slot": 2, "cpu": 8, "gpu": 1}),
    Offer(name="gpu-2", resources={"slot": 2, "cpu": 8, "gpu": 1}),
    Offer(name="reports-1", resources={"slot": 3, "cpu": 6}, queues=("reports",)),
    Offer(name="limits-1", resources={"slot": 3}, queues=("partner", "database")),
)


class Dice:
    """Only what Python promises to keep the same over its versions."""

    def __init__(self, seed: int) -> None:
        self._random = Random(seed)

    def between(self, low: float, high: float) -> float:
        """In whole tenths."""
        return round(low + (high - low) * self._random.random(), 1)

    def pick(self, *choices: Any) -> Any:
        return choices[int(self._random.random() * len(choices))]


def tasks() -> list[Task]:
    """All jobs, in the order in which they are handed in."""
    dice = Dice(SEED)
    makers: tuple[tuple[int, Callable[[Dice], dict[str, Any]]], ...] = (
        (220, _mail),
        (200, lambda dice: _tenant(dice, "a", begin=0, over=5)),
        (60, lambda dice: _tenant(dice, "b", begin=10, over=20)),
        (60, lambda dice: _tenant(dice, "c", begin=40, over=60)),
        (160, _default),
        (120, _report),
        (110, _partner),
        (70, _database),
    )
    found = [fields for count, make in makers for fields in _repeat(count, make, dice)]
    found.sort(key=lambda fields: fields["arrives"])
    return [Task(number=number, **fields) for number, fields in enumerate(found)]


def _repeat(count: int, make: Callable[[Dice], dict[str, Any]], dice: Dice) -> Iterator[dict[str, Any]]:
    return (make(dice) for _ in range(count))


def _mail(dice: Dice) -> dict[str, Any]:
    """A steady flow of short ones."""
    return {"queue": "mail", "arrives": dice.between(0, 200), "lasts": dice.between(1, 5)}


def _tenant(dice: Dice, fair_key: str, *, begin: float, over: float) -> dict[str, Any]:
    """Tenant a hands in a lot at once, b and c come later with a few."""
    arrives = dice.between(begin, begin + over)
    return {"queue": "tenants", "arrives": arrives, "lasts": dice.between(4, 10), "fair_key": fair_key}


def _default(dice: Dice) -> dict[str, Any]:
    fields = {"queue": "default", "arrives": dice.between(0, 180), "lasts": dice.between(2, 9)}
    return fields | {"priority": dice.pick(2, 5, 5, 8)}


def _report(dice: Dice) -> dict[str, Any]:
    """Large ones: of some a few may run at once, some need a device that few workers have, some a place."""
    fields = {"queue": "reports", "arrives": dice.between(0, 160), "lasts": dice.between(5, 15)}
    needs: dict[str, Any] = dice.pick(
        {"resources": {"cpu": 2}},
        {"resources": {"cpu": 1}, "key": KEY},
        {"resources": {"cpu": 1, "gpu": 1}},
        {"resources": {"cpu": 2}, "requires": {"zone": "eu"}},
    )
    return fields | {"priority": dice.pick(2, 5, 8)} | needs


def _partner(dice: Dice) -> dict[str, Any]:
    """A backlog, and more of it later."""
    return {"queue": "partner", "arrives": dice.pick(2, 2, 150), "lasts": dice.between(1, 3)}


def _database(dice: Dice) -> dict[str, Any]:
    return {"queue": "database", "arrives": dice.between(20, 60), "lasts": dice.between(4, 12)}
