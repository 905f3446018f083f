"""What is measured, and what is wanted: of one node and one worker process on a two-core machine, all durable."""

from typing import Final, Literal

import msgspec

Verdict = Literal["goal met", "mark met", "not met", ""]


class Mark(msgspec.Struct, frozen=True):
    """A figure's name, unit and direction; `mark` is the first step, `goal` what we want in the end."""

    key: str
    label: str
    unit: str
    lower_is_better: bool
    mark: float | None = None
    goal: float | None = None

    def verdict(self, value: float) -> Verdict:
        if self.mark is None and self.goal is None:
            return ""
        if self.goal is not None and self._reaches(value, self.goal):
            return "goal met"
        if self.mark is not None and self._reaches(value, self.mark):
            return "mark met"
        return "not met"

    def _reaches(self, value: float, wanted: float) -> bool:
        return value <= wanted if self.lower_is_better else value >= wanted


MARKS: Final = (
    Mark("submit_single", "submit, one a request, 64 connections", "jobs/s", False, 4000, 8000),
    Mark("submit_single_node", "… processor time of the node", "µs/job", True),
    Mark("submit_single_p50", "… answer, p50", "ms", True),
    Mark("submit_single_p99", "… answer, p99", "ms", True, 25, 15),
    Mark("submit_batch", "submit, 1,000 a request", "jobs/s", False, 20_000, 50_000),
    Mark("submit_batch_node", "… processor time of the node", "µs/job", True),
    Mark("sdk", "submit by the SDK, 100 tasks", "jobs/s", False, None, 10_000),
    Mark("drain", "drain of a backlog", "jobs/s", False, 10_000, 25_000),
    Mark("drain_node", "… processor time of the node", "µs/job", True),
    Mark("drain_worker", "… processor time of the worker", "µs/job", True),
    Mark("drain_database", "… processor time of the database server", "µs/job", True),
    Mark("bytes", "a completed job in the database", "bytes", True),
    Mark("node_after", "node after the drain", "MiB", True),
    Mark("worker_after", "worker after the drain", "MiB", True),
    Mark("steady_rate", "steady flow at half of the drain", "jobs/s", False),
    Mark("steady_p50", "… submit → start, p50", "ms", True),
    Mark("steady_p99", "… submit → start, p99", "ms", True, None, 20),
    Mark("idle_p50", "submit → start on an idle system, p50", "ms", True, 4, 2),
    Mark("idle_p99", "… p99", "ms", True, 12, 4),
    Mark("late_p50", "lateness at 200 due/s, p50", "ms", True, None, 1),
    Mark("late_p90", "… p90", "ms", True),
    Mark("late_p99", "… p99", "ms", True, 10, 3),
    Mark("late_most", "… the latest", "ms", True, None, 10),
    Mark("node_waiting", "node with the waiting jobs", "MiB", True, 120, 75),
    Mark("waiting_node", "… its processor time at rest", "%", True, 1, 0.3),
    Mark("waiting_database", "… of the database server", "%", True),
    Mark("burst_first", "many due at one second: the first start after it", "ms", True, 10, 3),
    Mark("burst_last", "… the last", "ms", True),
    Mark("burst_rate", "… starts a second", "jobs/s", False, 10_000, 25_000),
    Mark("burst_high", "… a `high` job handed in among them, submit → start", "ms", True),
    Mark("burst_queued", "… those queued at that moment waited on for", "ms", True),
    Mark("burst_passed", "… so many of them it went before", "%", False, 50, 90),
    Mark("minute_p50", "lateness at 100,000 due in a minute, p50", "ms", True, None, 1),
    Mark("minute_p90", "… p90", "ms", True),
    Mark("minute_p99", "… p99", "ms", True, 10, 3),
    Mark("minute_most", "… the latest", "ms", True, None, 10),
    Mark("minute_over", "… the last start after the minute was over", "ms", True),
    Mark("schedules_p50", "lateness of 200 schedules, each second, p50", "ms", True, None, 1),
    Mark("schedules_p90", "… p90", "ms", True),
    Mark("schedules_p99", "… p99", "ms", True, 10, 3),
    Mark("schedules_most", "… the latest", "ms", True, None, 10),
    Mark("queues_plain", "drain of a plain backlog beside those under rules", "jobs/s", False),
    Mark("queues_keys", "… with 10,000 concurrency keys, of plain", "%", False, 70),
    Mark("queues_lanes", "… with 100 lanes, of plain", "%", False, 70),
    Mark("queues_fair", "… policy `fair`, 1,000 fair keys, of plain", "%", False),
    Mark("queues_fifo", "… policy `fifo`, of plain", "%", False),
    Mark("queues_places", "… with a `max_concurrency` that is not reached, of plain", "%", False),
    Mark("queues_rate", "… with a rate that is not reached, of plain", "%", False),
    Mark("graphs_p50", "end of the last parent → start of its child, p50", "ms", True),
    Mark("graphs_p99", "… p99", "ms", True, 10),
    Mark("graphs_most", "… the longest", "ms", True),
    Mark("watch_drain", "drain while watched, of one without a record", "%", False, 90),
    Mark("watch_submit", "… submit, 1,000 a request", "%", False, 90),
    Mark("watch_single", "… submit, one a request", "%", False, 90),
    Mark("events_p50", "change → subscriber (on another node, where there can be one), p50", "ms", True),
    Mark("events_p99", "… p99", "ms", True, 50),
    Mark("events_most", "… the latest", "ms", True),
    Mark("start", "foliot serve to its first answer", "s", True, 1.5, 0.7),
    Mark("start_new", "… on an empty database", "s", True),
    Mark("node_idle", "node at rest", "MiB", True, 90, 70),
    Mark("worker_idle", "worker at rest", "MiB", True, 60, 45),
    Mark("cpu_idle", "processor time at rest, node + worker", "%", True, 1, 0.3),
    Mark("cpu_database", "… of the database server", "%", True),
)
BY_KEY: Final = {mark.key: mark for mark in MARKS}


class Reading(msgspec.Struct, frozen=True):
    """A figure as measured, and the bare limit where there is one."""

    key: str
    value: float
    bare: float | None = None

    @property
    def share(self) -> float | None:
        """How near the limit it comes: 1 is as good as the bare statements."""
        if not self.bare or not self.value:
            return None
        return self.bare / self.value if BY_KEY[self.key].lower_is_better else self.value / self.bare


class Findings(msgspec.Struct, kw_only=True):
    """What one measure brings back."""

    readings: list[Reading] = []
    spreads: dict[str, list[float]] = {}  # milliseconds, by title
    notes: list[str] = []
