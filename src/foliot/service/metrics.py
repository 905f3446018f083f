"""What `/metrics` tells, and how full a queue is. What is asked of the store does not grow with the number of jobs: it
has tallies by lane, the first of those that wait is found through an index, and the rest was counted as it happened."""

from collections import Counter, defaultdict
from collections.abc import Mapping

from foliot.clock import Clock, wall
from foliot.domain.access import Caller
from foliot.domain.duration import SECOND
from foliot.domain.errors import NotFound
from foliot.domain.ids import JOB, NODE, show
from foliot.domain.job import Lane, QueueName, State
from foliot.domain.lateness import Histogram
from foliot.service.lateness import MOST, SHOWN, Instance, Lateness
from foliot.service.rates import Rate
from foliot.store.base import Store
from foliot.telemetry.counters import counted
from foliot.telemetry.families import FAMILIES, Buckets, Example, Reading, Sample
from foliot.telemetry.label_sets import OTHER, LabelSets
from foliot.wire import DepthInfo

QUEUED, RUNNING = "queued", "running"
PREFIX = "foliot_"
COUNTED = ("http_requests", "events", "subscribers_dropped", "webhook_deliveries", "notices")

Labels = tuple[str, ...]


class Depth:
    """The lanes that somebody reaches and how many jobs are in each, by status."""

    def __init__(self, lanes: Mapping[int, Lane], jobs: Mapping[tuple[int, str], int]) -> None:
        self.lanes = lanes
        self.jobs = jobs

    @property
    def waiting(self) -> list[int]:
        """Lanes of which jobs wait for nothing but their turn."""
        return sorted(lane_id for lane_id, status in self.jobs if status == QUEUED)


class Metrics:
    def __init__(
        self, store: Store, clock: Clock, lateness: Lateness, node: int, *, submitted: Rate, started: Rate
    ) -> None:
        self._store = store
        self._clock = clock
        self._lateness = lateness
        self._node = node
        self._submitted = submitted
        self._started = started
        self._queues = LabelSets(MOST)

    async def depth(self, queue: str, caller: Caller) -> DepthInfo:
        """How full a queue is. One that nobody has used yet is empty, so that whoever scales workers by it need not
        wait for its first job."""
        if caller.queues and queue not in caller.queues:
            raise NotFound(f"there is no queue {queue!r} that this key reaches")
        depth = await self._depth(caller, queue=queue)
        oldest = await self._oldest(depth)
        return DepthInfo(
            queue=queue,
            waiting=_of_status(depth, QUEUED),
            running=_of_status(depth, RUNNING),
            oldest_wait=max(oldest.values(), default=0.0),
        )

    async def collect(self, caller: Caller) -> list[Reading]:
        """All that the caller may see: of its namespace, of those queues and job types that it reaches. The node's own
        admin key sees all namespaces, and the process and the store besides."""
        readings = [*await self._of_jobs(caller), *self._of_runs(caller), *await self._of_workers(caller)]
        readings += await self._of_nodes()
        if caller.root:
            readings += [*_of_process(), *await self._of_store()]
        return readings

    async def _of_jobs(self, caller: Caller) -> list[Reading]:
        depth = await self._depth(caller)
        jobs: Counter[Labels] = Counter()
        oldest: dict[Labels, float] = {}
        for (lane_id, status), count in depth.jobs.items():
            names = self._names(depth.lanes[lane_id].line)
            jobs[*names, status] += count
            oldest.setdefault(names, 0.0)
        for lane_id, wait in (await self._oldest(depth)).items():
            names = self._names(depth.lanes[lane_id].line)
            oldest[names] = max(oldest[names], wait)
        return [
            _reading("foliot_jobs", jobs),
            _reading("foliot_oldest_wait_seconds", oldest),
            _reading("foliot_jobs_submitted", self._by_queue(self._submitted.lanes, caller)),
            _reading("foliot_jobs_started", self._by_queue(self._started.lanes, caller)),
        ]

    def _of_runs(self, caller: Caller) -> list[Reading]:
        ended: Counter[Labels] = Counter()
        late: list[Sample] = []
        run: list[Sample] = []
        for key, phases in sorted(self._lateness.since_start().items()):
            if not _sees(caller, Lane(*key)):
                continue
            for state, count in phases.states.items():
                ended[key[0], key[1], State(state).name.lower()] += count
            late.append(Sample(key, _buckets(phases.late, self._lateness.instances(key))))
            run.append(Sample(key, _buckets(phases.run, {})))
        return [
            _reading("foliot_jobs_ended", ended),
            Reading(FAMILIES["foliot_start_lateness_seconds"], late),
            Reading(FAMILIES["foliot_run_seconds"], run),
        ]

    async def _of_workers(self, caller: Caller) -> list[Reading]:
        now = self._clock.now()
        workers: Counter[Labels] = Counter()
        slots: dict[Labels, float] = defaultdict(float)
        for worker in await self._store.enrolled(None if caller.root else caller.namespace):
            status = "lost" if worker.until <= now else "draining" if worker.draining else "alive"
            workers[worker.namespace, status] += 1
            slots[worker.namespace,] += worker.resources.get("slot", 0) if status == "alive" else 0
        return [_reading("foliot_workers", workers), _reading("foliot_worker_slots", slots)]

    async def _of_nodes(self) -> list[Reading]:
        now = self._clock.now()
        nodes: Counter[Labels] = Counter({("alive",): 0, ("lost",): 0})
        itself: dict[Labels, float] = {}
        for node in await self._store.nodes():
            nodes["alive" if node.until > now else "lost",] += 1
            if node.number == self._node:
                itself[show(NODE, node.number), node.version, self._store.kind] = 1
        return [
            _reading("foliot_nodes", nodes),
            _reading("foliot_node", itself),
            _reading("foliot_clock_offset_seconds", {(): (now - wall()) / SECOND}),
        ]

    async def _of_store(self) -> list[Reading]:
        facts = await self._store.facts()
        return [
            _reading("foliot_store_fact", {(fact.name,): fact.value for fact in facts}),
            _reading("foliot_store_trouble", {(fact.name,): int(bool(fact.trouble)) for fact in facts}),
        ]

    async def _depth(self, caller: Caller, *, queue: str | None = None) -> Depth:
        lanes: dict[int, Lane] = {}
        jobs: dict[tuple[int, str], int] = {}
        for lane_id, status, count in await self._store.depths():
            lane = self._store.lane(lane_id)
            if lane is not None and queue in (None, lane.queue) and _sees(caller, lane, whole=queue is None):
                lanes[lane_id] = lane
                jobs[lane_id, status] = count
        return Depth(lanes, jobs)

    async def _oldest(self, depth: Depth) -> dict[int, float]:
        """For how many seconds the job of each lane waits that was due first."""
        now = self._clock.now()
        if not depth.waiting:
            return {}
        waits: dict[int, float] = defaultdict(float)
        for waiter in await self._store.waiters(depth.waiting, now, 1):
            waits[waiter.lane_id] = max(waits[waiter.lane_id], (now - waiter.due) / SECOND)
        return waits

    def _by_queue(self, lanes: Mapping[int, int], caller: Caller) -> Counter[Labels]:
        counts: Counter[Labels] = Counter()
        for lane_id, count in lanes.items():
            lane = self._store.lane(lane_id)
            if lane is not None and _sees(caller, lane):
                counts[self._names(lane.line)] += count
        return counts

    def _names(self, line: QueueName) -> QueueName:
        return line if self._queues.holds(*line) else (line[0], OTHER)


def _sees(caller: Caller, lane: Lane, *, whole: bool = True) -> bool:
    """Whether a caller is shown jobs of a lane; the admin key all, where `whole`."""
    return (whole and caller.root) or caller.reaches(lane)


def _of_status(depth: Depth, status: str) -> int:
    return sum(count for (_, each), count in depth.jobs.items() if each == status)


def _reading(name: str, values: Mapping[Labels, float]) -> Reading:
    return Reading(FAMILIES[name], [Sample(labels, value) for labels, value in sorted(values.items())])


def _of_process() -> list[Reading]:
    """What the process has counted; what has no labels is told from the start."""
    readings = []
    for name in COUNTED:
        start: dict[Labels, float] = {} if FAMILIES[PREFIX + name].labels else {(): 0}
        readings.append(_reading(PREFIX + name, start | counted(name)))
    return readings


def _buckets(histogram: Histogram, instances: Mapping[int, Instance]) -> Buckets:
    examples = [_example(instances.get(place)) for place in range(len(SHOWN) + 1)]
    return Buckets(
        at_most=[
            (bound / SECOND, count, example)
            for bound, count, example in zip(SHOWN, histogram.at_most(SHOWN), examples, strict=False)
        ],
        beyond=examples[-1],
        sum=histogram.sum / SECOND,
        count=histogram.total,
    )


def _example(instance: Instance | None) -> Example | None:
    if instance is None:
        return None
    return Example(show(JOB, instance.id), instance.late / SECOND, instance.time / SECOND)
