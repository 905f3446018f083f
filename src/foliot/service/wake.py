"""Hints inside a process: who listens learns at once that there may be something to do. Hints are not truth: a lost one
costs a short poll, never a job. A node passes its own hints on to the other nodes, and theirs to its listeners."""

from collections.abc import Callable, Collection, Sequence

from foliot.domain.duration import Micros
from foliot.domain.ids import JobKey, ScheduleKey, WorkerKey
from foliot.store.base import Timing


class Wake:
    """All kinds of hint. `tell` is false for hints that came from another node."""

    def __init__(self) -> None:
        self.on_ready: list[Callable[[Collection[int], bool], None]] = []
        self.on_due: list[Callable[[Micros, JobKey | None, bool], None]] = []
        self.on_fire: list[Callable[[Micros, ScheduleKey | None, bool], None]] = []
        self.on_freed: list[Callable[[Collection[ScheduleKey]], None]] = []
        self.on_tokens: list[Callable[[Collection[int]], None]] = []
        self.on_release: list[Callable[[], None]] = []
        self.on_place: list[Callable[[Collection[int], bool], None]] = []
        self.on_rules: list[Callable[[bool], None]] = []
        self.on_stop: list[Callable[[WorkerKey, bool], None]] = []
        self.on_deadline: list[Callable[[Micros], None]] = []
        self.on_log: list[Callable[[Collection[JobKey]], None]] = []
        self.on_change: list[Callable[[bool], None]] = []
        self.on_timings: list[Callable[[Sequence[Timing]], None]] = []

    def ready(self, lane_ids: Collection[int], *, tell: bool = True) -> None:
        """These lanes have ready jobs."""
        for listener in self.on_ready:
            listener(lane_ids, tell)

    def due(self, time: Micros, key: JobKey | None = None, *, tell: bool = True) -> None:
        """A job is due at `time`."""
        for listener in self.on_due:
            listener(time, key, tell)

    def fire(self, time: Micros, key: ScheduleKey | None = None, *, tell: bool = True) -> None:
        """A schedule is due at `time`."""
        for listener in self.on_fire:
            listener(time, key, tell)

    def freed(self, keys: Collection[ScheduleKey]) -> None:
        """Runs of these schedules have ended, or due times of theirs have come to wait."""
        for listener in self.on_freed:
            listener(keys)

    def tokens(self, limit_ids: Collection[int]) -> None:
        """These concurrency keys may have a token and somebody who waits for it."""
        for listener in self.on_tokens:
            listener(limit_ids)

    def release(self) -> None:
        """Jobs have ended on which others depend."""
        for listener in self.on_release:
            listener()

    def place(self, queue_ids: Collection[int], *, tell: bool = True) -> None:
        """These queues, of which only so many jobs may run at once, may have a place."""
        for listener in self.on_place:
            listener(queue_ids, tell)

    def rules(self, *, tell: bool = True) -> None:
        """Somebody has changed the rules of a queue, or holds a job type, or lets it go."""
        for listener in self.on_rules:
            listener(tell)

    def change(self, *, tell: bool = True) -> None:
        """Jobs have changed their status, or something else was recorded."""
        for listener in self.on_change:
            listener(tell)

    def stop(self, worker: WorkerKey, *, tell: bool = True) -> None:
        """A worker has something to stop, or was told to drain, or is gone."""
        for listener in self.on_stop:
            listener(worker, tell)

    def timings(self, timings: Sequence[Timing]) -> None:
        """Attempts have ended their jobs."""
        for listener in self.on_timings:
            listener(timings)

    def deadline(self, time: Micros) -> None:
        """A job must have started by `time`."""
        for listener in self.on_deadline:
            listener(time)

    def logged(self, keys: Collection[JobKey]) -> None:
        """These jobs have new log lines, or a new status."""
        for listener in self.on_log:
            listener(keys)
