"""A worker as the engine holds it, and what it may be given."""

import msgspec

from foliot.domain.duration import Micros
from foliot.domain.ids import WorkerKey
from foliot.domain.job import Lane


class Worker(msgspec.Struct, frozen=True, kw_only=True):
    """Who is there, with what. Its lease runs until `until`; what it holds is lost after that. Empty `queues` or
    `job_types` mean every one."""

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
        return (
            lane.namespace == self.namespace
            and (not self.queues or lane.queue in self.queues)
            and (not self.job_types or lane.job_type in self.job_types)
        )
