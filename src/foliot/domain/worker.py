"""A worker as the engine holds it, and what it may be given."""

import msgspec

from foliot.domain.duration import Micros
from foliot.domain.ids import WorkerKey
from foliot.domain.job import Lane
from foliot.domain.needs import SLOT, in_thousandths, read_needs


class Worker(msgspec.Struct, frozen=True, kw_only=True):
    """Who is there, with what. Its lease runs until `until`; what it holds is lost after that. Empty `queues` or
    `job_types` mean every one. `resources` is all it has when it runs nothing; one that does not say how many slots
    that is takes as many as each of its calls asks for, so that the simplest worker needs to offer nothing."""

    id: WorkerKey
    namespace: str
    name: str
    queues: tuple[str, ...] = ()
    job_types: tuple[str, ...] = ()
    resources: dict[str, float] = {}
    labels: dict[str, str] = {}
    since: Micros
    seen: Micros
    until: Micros
    draining: bool = False

    def serves(self, lane: Lane) -> bool:
        """Whether it could ever run a job of the lane: as if it ran nothing now."""
        return (
            lane.namespace == self.namespace
            and (not self.queues or lane.queue in self.queues)
            and (not self.job_types or lane.job_type in self.job_types)
            and (self.resources.get(SLOT, 1) >= 1 if not lane.needs else self._suits(lane.needs))
        )

    def offer(self, name: str) -> int | None:
        """How much it has of a resource, in thousandths; None where there is no telling."""
        amount = self.resources.get(name)
        if amount is None:
            return None if name == SLOT else 0
        return in_thousandths(amount)

    def _suits(self, text: str) -> bool:
        needs = read_needs(text)
        if any(self.labels.get(name) != value for name, value in needs.labels):
            return False
        offers = ((self.offer(name), amount) for name, amount in needs.amounts)
        return all(offered is None or offered >= amount for offered, amount in offers)
