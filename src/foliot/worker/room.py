"""What a worker offers, and how much of it is left while jobs run."""

from collections.abc import Iterable, Mapping

from foliot.domain.errors import BadInput
from foliot.domain.needs import PLAIN, SLOT, UNIT, holds, parse_amounts, parse_offer, show_amounts
from foliot.wire import AssignedJob

Amounts = tuple[tuple[str, int], ...]

_PLAIN_RESOURCES = show_amounts(PLAIN.amounts)


def offer_of(concurrency: int, resources: Mapping[str, float | str]) -> dict[str, int]:
    """In thousandths. Raises `BadInput` where an amount makes no sense; slots are what `concurrency` says."""
    if SLOT in resources:
        raise BadInput.at(f"resources.{SLOT}", "is what the worker's concurrency says")
    return {SLOT: concurrency * UNIT} | parse_offer(resources, "resources")


def amounts_of(job: AssignedJob) -> Amounts:
    """What a job holds while it runs."""
    if job.resources == _PLAIN_RESOURCES:
        return PLAIN.amounts
    return tuple(parse_amounts(job.resources, "resources").items())


class Room:
    """An account: what was taken is given back once."""

    def __init__(self, offer: Mapping[str, int]) -> None:
        self._offer = offer
        self._left = dict(offer)

    def holds(self, amounts: Amounts) -> bool:
        return holds(self._left, amounts)

    def could_hold(self, amounts: Amounts) -> bool:
        """If nothing else ran."""
        return holds(self._offer, amounts)

    def take(self, amounts: Amounts) -> None:
        for name, amount in amounts:
            self._left[name] = self._left.get(name, 0) - amount

    def give_back(self, amounts: Amounts) -> None:
        for name, amount in amounts:
            self._left[name] += amount

    def left(self, promised: Iterable[Amounts]) -> dict[str, int]:
        """What can be asked for when what is `promised` has had its part: nothing, where no slot is left."""
        left = dict(self._left)
        for amounts in promised:
            for name, amount in amounts:
                left[name] = left.get(name, 0) - amount
        return {name: amount for name, amount in left.items() if amount > 0} if left[SLOT] > 0 else {}
