"""The record of what happened, as the store keeps it beside the changes themselves, and how far somebody has read it.

A transaction that changes jobs writes one `Batch` with all its changes of status. Batches are numbered by the one who
writes them: a *writer* has one transaction under way at a time, so that its numbers grow in the order of its commits,
which those of a sequence that many share would not. A reader keeps the last number of every writer, its `Position`: a
batch that is committed late is the next of its writer, and never behind a mark that went past it.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from heapq import heappop, heappush
from itertools import pairwise

import msgspec

from foliot.domain.duration import Micros
from foliot.domain.ids import JobKey, WorkerKey
from foliot.domain.status import STATUSES

_HIGHEST = (1 << 63) - 1
_LONGEST = 20_000  # characters of a position's text


class Entry(msgspec.Struct, frozen=True, array_like=True):
    """A job has changed its status: where it stands from then on. `status` is a number of `STATUSES`, in their order;
    `started` is the claim's time until the worker says better; `reason` is that of an end."""

    id: JobKey
    lane_id: int  # the job's own
    status: int
    version: int
    attempt: int
    counted: int
    worker: WorkerKey | None = None
    started: Micros | None = None
    reason: str | None = None


class Happening(msgspec.Struct, frozen=True, kw_only=True):
    """Something else that happened: `kind` as in `schedule.missed`, `subject` whom it concerns, `data` JSON text.
    It is everybody's where it has no namespace."""

    kind: str
    subject: str
    namespace: str | None = None
    data: str = "{}"


class Batch(msgspec.Struct, frozen=True, kw_only=True):
    """What one transaction wrote. Where a reader asked for a few statuses only and none of them is in it, `entries` are
    left out."""

    writer: int
    number: int
    time: Micros
    entries: Sequence[Entry] = ()
    happenings: Sequence[Happening] = ()


class Position(msgspec.Struct, frozen=True, kw_only=True):
    """How far somebody has read: of each writer in `seen` up to that number; of one that is not there all, where it is
    below `floor` (it has written its last), else nothing. Of the next batch of the writer `within` the first `skip`
    events are read as well. `time` is that of the newest batch read."""

    floor: int = 0
    seen: Mapping[int, int] = {}
    time: Micros = 0
    within: int = 0
    skip: int = 0

    def covers(self, batch: Batch) -> bool:
        """Whether all of it is read."""
        last = self.seen.get(batch.writer)
        return batch.writer < self.floor if last is None else batch.number <= last

    def after(self, batch: Batch) -> "Position":
        apart = self.skip and batch.writer != self.within  # another writer's batch is still read in part
        return Position(
            floor=self.floor,
            seen={**self.seen, batch.writer: batch.number},
            time=max(self.time, batch.time),
            within=self.within if apart else 0,
            skip=self.skip if apart else 0,
        )

    def inside(self, batch: Batch, events: int) -> "Position":
        """Before the batch, but for its first `events`."""
        time = max(self.time, batch.time)
        return msgspec.structs.replace(self, within=batch.writer, skip=events, time=time)

    def skipped(self, batch: Batch) -> int:
        """How many of its first events are read, where it is the next of its writer."""
        return self.skip if batch.writer == self.within else 0

    def text(self) -> str:
        """As a word that a client keeps."""
        marks = "-".join(f"{writer:x}.{number:x}" for writer, number in sorted(self.seen.items()))
        inside = f"_{self.within:x}.{self.skip:x}" if self.skip else ""
        return f"{self.floor:x}_{self.time:x}_{marks}{inside}"


def read_position(text: str) -> Position | None:
    """The position behind a word, or None where it is none of ours."""
    parts = text.split("_")
    if len(text) > _LONGEST or len(parts) not in (3, 4):
        return None
    marks = [_pair(mark) for mark in parts[2].split("-")] if parts[2] else []
    inside = _pair(parts[3]) if len(parts) == 4 else (0, 0)
    floor, time = _number(parts[0]), _number(parts[1])
    if floor is None or time is None or inside is None:
        return None
    seen = dict(mark for mark in marks if mark is not None)
    if len(seen) != len(marks):
        return None
    return Position(floor=floor, seen=seen, time=time, within=inside[0], skip=inside[1])


def mask_of(statuses: Sequence[str]) -> int:
    """A bit for each status: which entries a reader asks for."""
    return sum(1 << STATUSES.index(status) for status in set(statuses))


ALL_STATUSES = mask_of(STATUSES)


def in_order(batches: Sequence[Batch]) -> Sequence[Batch]:
    """The same batches, each writer's as they are, so that what happened to a job is told in the order of its versions.
    Numbers of different writers are of different clocks: two of them may stand the wrong way round by as much as those
    are apart."""
    versions: dict[JobKey, int] = {}
    for batch in batches:
        for entry in batch.entries:
            if versions.get(entry.id, -1) > entry.version:
                return _sorted_by_cause(batches)
            versions[entry.id] = entry.version
    return batches


def _sorted_by_cause(batches: Sequence[Batch]) -> list[Batch]:
    """Each batch after those that it follows from: the one before it of its writer, and those with its jobs' earlier
    versions. There is such an order, that of the commits; of several the one nearest to that given."""
    lines: dict[tuple[str, int], list[tuple[int, int]]] = {}  # of a writer or a job: versions and places
    for place, batch in enumerate(batches):
        lines.setdefault(("writer", batch.writer), []).append((batch.number, place))
        for entry in batch.entries:
            lines.setdefault(("job", entry.id), []).append((entry.version, place))
    followers: list[set[int]] = [set() for _ in batches]
    for line in lines.values():
        line.sort()
        for (_, earlier), (_, later) in pairwise(line):
            if earlier != later:
                followers[earlier].add(later)
    waits_for = Counter(later for each in followers for later in each)
    free = [place for place in range(len(batches)) if not waits_for[place]]
    ordered = []
    while free:
        place = heappop(free)
        ordered.append(batches[place])
        for later in followers[place]:
            waits_for[later] -= 1
            if not waits_for[later]:
                heappush(free, later)
    return ordered


def _pair(text: str) -> tuple[int, int] | None:
    first, dot, second = text.partition(".")
    one, other = _number(first), _number(second)
    return None if not dot or one is None or other is None else (one, other)


def _number(text: str) -> int | None:
    if not text or len(text) > 16 or not set(text) <= set("0123456789abcdef"):
        return None
    number = int(text, 16)
    return number if number <= _HIGHEST else None
