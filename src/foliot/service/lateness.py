"""How late jobs were: counted here as they end, kept by the minute, added up over all nodes when somebody asks.

What a node counted in a minute is one row for each queue and job type, written every few seconds and replaced until the
minute is over: a node that dies takes the last seconds with it and no more. Only attempts that ended their job count;
those that are tried again do not.
"""

import asyncio
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Literal

import msgspec

from foliot.clock import Clock
from foliot.domain.access import Caller
from foliot.domain.duration import DAY, HOUR, MINUTE, SECOND, Micros
from foliot.domain.errors import BadInput, FoliotError
from foliot.domain.ids import JobKey
from foliot.domain.job import Lane
from foliot.domain.lateness import Histogram, Phases, read_phases
from foliot.store.base import LatenessRow, Store, Timing
from foliot.telemetry.label_sets import OTHER, LabelSets
from foliot.wire import LatenessInfo, PercentilesInfo

By = Literal["queue", "job_type", "both"]
Key = tuple[str, str, str]  # namespace, queue, job type

MOST = 500  # queues and job types that are told apart
FOLD_AT = 1000  # timings: about a millisecond's work
OPEN_FOR = 2 * MINUTE  # so long after its beginning a minute may still be written again
SLICE = HOUR  # is read at once
BREATH = 500  # rows between two moments for others
LONGEST = 31 * DAY
SHOWN = tuple(
    round(seconds * SECOND)
    for seconds in (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 900, 3600)
)
"""The bounds of the histograms that are shown to outside, all of them of `domain.lateness.BOUNDS`."""


class Instance(msgspec.Struct, frozen=True):
    """A job as an example of how late."""

    id: JobKey
    late: Micros
    time: Micros


class Lateness:
    def __init__(self, store: Store, clock: Clock, node: int) -> None:
        self._store = store
        self._clock = clock
        self._node = node
        self._pending: list[Sequence[Timing]] = []
        self._size = 0
        self._open: dict[Micros, dict[Key, Phases]] = {}  # by minute, those that may be written again
        self._unwritten: set[tuple[Micros, Key]] = set()
        self._past: dict[Key, Phases] = {}  # of the minutes that are over
        self._first_open: Micros = 0
        self._earlier: dict[tuple[Micros, Key], Phases] | None = None  # by whoever had this node's number before
        self._kinds, self._queues = LabelSets(MOST), LabelSets(MOST)
        self._instances: dict[Key, dict[int, Instance]] = {}

    def take(self, timings: Sequence[Timing]) -> None:
        """Attempts that ended their jobs; counted a little later, many at once."""
        self._pending.append(timings)
        self._size += len(timings)
        if self._size >= FOLD_AT:
            self._fold()

    async def flush(self) -> None:
        """Write what was counted since the last time."""
        self._fold()
        if self._earlier is None:
            self._earlier = await self._kept_before()
        writing, self._unwritten = self._unwritten, set()
        try:
            if writing:
                await self._store.add_lateness([self._row(minute, key) for minute, key in sorted(writing)])
        except BaseException:
            self._unwritten |= writing
            raise
        self._close()

    async def close(self) -> None:
        """Write what is left, where that can be done."""
        with suppress(FoliotError):
            await self.flush()

    async def read(self, namespace: str | None, since: Micros, until: Micros) -> dict[Key, Phases]:
        """What all nodes counted in the minutes from that of `since` on and before `until`, of one namespace or all."""
        self._fold()
        own = {(minute, key): phases for minute, kinds in self._open.items() for key, phases in kinds.items()}
        found: dict[Key, Phases] = defaultdict(Phases)
        start = since // MINUTE * MINUTE
        while start < until:
            rows = await self._store.lateness(namespace, start, min(until, start + SLICE))
            for number, row in enumerate(rows):
                key = (row.namespace, row.queue, row.job_type)
                if row.node != self._node or (row.minute, key) not in own:
                    found[key].merge(read_phases(row.counts))
                if number % BREATH == BREATH - 1:
                    await asyncio.sleep(0)
            start += SLICE
        for (minute, key), phases in own.items():
            if since // MINUTE * MINUTE <= minute < until and namespace in (None, key[0]):
                found[key].merge(phases)
                found[key].merge((self._earlier or {}).get((minute, key), Phases()))
        return found

    async def percentiles(
        self,
        caller: Caller,
        *,
        since: Micros | None = None,
        until: Micros | None = None,
        queue: str | None = None,
        job_type: str | None = None,
        by: By = "both",
    ) -> list[LatenessInfo]:
        """Of the last hour unless told otherwise; by queue, by job type or by both, in order of their names."""
        until = self._clock.now() + 1 if until is None else until
        since = until - HOUR if since is None else since
        if since > until:
            raise BadInput.at("since", "must not be after `until`")
        if until - since > LONGEST:
            raise BadInput.at("since", "at most 31 days before `until`")
        groups: dict[tuple[str, str], Phases] = defaultdict(Phases)
        for key, phases in (await self.read(caller.namespace, since, until)).items():
            _, own_queue, own_type = key
            if queue in (None, own_queue) and job_type in (None, own_type) and caller.reaches(Lane(*key)):
                groups["" if by == "job_type" else own_queue, "" if by == "queue" else own_type].merge(phases)
        return [_info(*names, phases) for names, phases in sorted(groups.items())]

    def since_start(self) -> dict[Key, Phases]:
        """What this node has counted since it started."""
        self._fold()
        found: dict[Key, Phases] = defaultdict(Phases)
        for kinds in (self._past, *self._open.values()):
            for key, phases in kinds.items():
                found[key].merge(phases)
        return found

    def instances(self, key: Key) -> Mapping[int, Instance]:
        """Recent jobs of a kind, by the place in `SHOWN` of the bucket that each is in."""
        return self._instances.get(key, {})

    def _fold(self) -> None:
        batches, self._pending, self._size = self._pending, [], 0
        groups: dict[tuple[Micros, int], list[Timing]] = defaultdict(list)
        for timings in batches:
            minute = max(timings[0].ended // MINUTE * MINUTE, self._first_open)
            for timing in timings:
                groups[minute, timing.lane_id].append(timing)
        for (minute, lane_id), runs in groups.items():
            lane = self._store.lane(lane_id)
            if lane is not None:  # else nobody here has met one of its jobs, and whose they are is not known
                key = self._key(lane)
                self._open.setdefault(minute, {}).setdefault(key, Phases()).add_many(runs)
                self._unwritten.add((minute, key))
                self._keep_instances(key, runs)

    def _key(self, lane: Lane) -> Key:
        """Under which names a lane is counted. Where there are too many kinds, its queue is still told apart from
        others as long as there are not too many of these either."""
        if self._kinds.holds(lane.namespace, lane.queue, lane.job_type):
            return lane.namespace, lane.queue, lane.job_type
        return lane.namespace, lane.queue if self._queues.holds(*lane.line) else OTHER, OTHER

    def _keep_instances(self, key: Key, runs: Sequence[Timing]) -> None:
        """Of a batch the last one, and the latest in starting: the buckets that many fall into show a recent job, and
        those that few do show that one."""
        kept = self._instances.setdefault(key, {})
        for run in (runs[-1], max(runs, key=_late)) if len(runs) > 1 else runs:
            if run.id is not None:
                kept[bisect_left(SHOWN, _late(run))] = Instance(run.id, max(0, _late(run)), run.ended)

    async def _kept_before(self) -> dict[tuple[Micros, Key], Phases]:
        """What stands under this node's number already: it was given back and taken again within a minute or two."""
        since = self._clock.now() // MINUTE * MINUTE - OPEN_FOR
        return {
            (row.minute, (row.namespace, row.queue, row.job_type)): read_phases(row.counts)
            for row in await self._store.lateness(None, since, since + OPEN_FOR + MINUTE)
            if row.node == self._node
        }

    def _row(self, minute: Micros, key: Key) -> LatenessRow:
        phases = self._open[minute][key]
        if self._earlier and (minute, key) in self._earlier:
            phases = Phases.sum([self._earlier[minute, key], phases])
        namespace, queue, job_type = key
        return LatenessRow(
            minute=minute, node=self._node, namespace=namespace, queue=queue, job_type=job_type, counts=phases.text()
        )

    def _close(self) -> None:
        """Minutes that are over and written are kept only as a part of the whole."""
        self._first_open = max(self._first_open, self._clock.now() // MINUTE * MINUTE - OPEN_FOR + MINUTE)
        late = {minute for minute, _ in self._unwritten}
        for minute in [minute for minute in self._open if minute < self._first_open and minute not in late]:
            for key, phases in self._open.pop(minute).items():
                self._past.setdefault(key, Phases()).merge(phases)


def _late(timing: Timing) -> Micros:
    return (timing.claimed if timing.started is None else timing.started) - timing.due


def _info(queue: str, job_type: str, phases: Phases) -> LatenessInfo:
    return LatenessInfo(
        queue=queue or None,
        job_type=job_type or None,
        jobs=phases.late.total,
        late=_percentiles(phases.late),
        admit=_percentiles(phases.admit),
        claim=_percentiles(phases.claim),
        start=_percentiles(phases.start),
        run=_percentiles(phases.run),
    )


def _percentiles(histogram: Histogram) -> PercentilesInfo | None:
    p50, p90, p99, p999 = (histogram.quantile(share) for share in (0.5, 0.9, 0.99, 0.999))
    if p50 is None or p90 is None or p99 is None or p999 is None:
        return None
    return PercentilesInfo(
        p50=p50 / SECOND, p90=p90 / SECOND, p99=p99 / SECOND, p999=p999 / SECOND, max=histogram.highest / SECOND
    )
