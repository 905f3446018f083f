"""A schedule as the engine holds it, and the ledger of its due times: each ends with one verdict.

`domain.firing` decides what becomes of a due time; here are the values it works on. All times are microseconds since
1970. A run is a job named after its schedule and due time, so that one due time can never become two jobs.
"""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from enum import IntEnum
from typing import Literal, get_args

import msgspec

from foliot.domain.duration import HOUR, Micros
from foliot.domain.ids import JobKey, ScheduleKey
from foliot.domain.timetable.timetable import Timetable

Overlap = Literal["skip", "queue", "replace", "allow"]
CatchUp = Literal["none", "latest", "all"]
OVERLAPS: tuple[Overlap, ...] = get_args(Overlap)
CATCH_UPS: tuple[CatchUp, ...] = get_args(CatchUp)

MOST_AT_ONCE = 1000  # the highest max_concurrency
STANDING_LIMIT = 1000  # how many waiting due times, and how many runs under way, a `Standing` shows

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class Verdict(IntEnum):
    """What became of a due time; the numbers are those of the store and never change."""

    RAN = 1
    SKIPPED = 2
    CAUGHT_UP = 3
    BACKFILLED = 4
    MISSED = 5
    EXPIRED = 6


WITH_JOB = (Verdict.RAN, Verdict.CAUGHT_UP, Verdict.BACKFILLED)


class Plan(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """When a schedule's runs are due, and what happens when they meet each other or were missed."""

    timetable: Timetable
    overlap: Overlap = "skip"
    max_concurrency: int = 1
    catch_up: CatchUp = "latest"
    catch_up_window: Micros = HOUR


class Schedule(msgspec.Struct, frozen=True, kw_only=True):
    """A schedule and how far it has come: every due time before `next_due` is in the ledger, none from it on (unless it
    was backfilled). `version` grows with every change, also with each firing; `edition` only when somebody changes the
    schedule. Both start at 1."""

    id: ScheduleKey
    namespace: str
    name: str
    definition: str  # JSON: the fields as they were given, the job's among them
    plan: Plan
    owner: str
    created: Micros
    changed: Micros
    paused: bool = False
    next_due: Micros | None
    runs: int = 0  # due times that became or will become a job; those of backfills do not count
    backfill_limit: int = 0  # how many runs of its backfill at once; 0 when no due time of one waits
    version: int = 1
    edition: int = 1


class Run(msgspec.Struct, frozen=True, kw_only=True):
    """A row of the ledger: one due time, or `count` of them from `due` to `until` that share a verdict. Without a
    verdict it waits for room, and will be `promised`."""

    due: Micros
    until: Micros
    count: int = 1
    exact: bool = True  # else there were at least `count`
    verdict: Verdict | None
    promised: Verdict
    reason: str | None = None
    decided: Micros


class Standing(msgspec.Struct, frozen=True, kw_only=True):
    """A schedule with its runs under way, as one snapshot: what a decision is made from. `under_way` are those outside
    of a backfill, oldest first; `backfilling` counts the others. Of `waiting`, those of a backfill come last, each half
    by due time. Both lists end at `STANDING_LIMIT`."""

    schedule: Schedule
    under_way: Sequence[JobKey] = ()
    backfilling: int = 0
    waiting: Sequence[Run] = ()


def run_name(schedule_name: str, due: Micros) -> str:
    """The job_id of a run: `<schedule_id>@<due time in UTC>`, with a fraction only where there is one."""
    time = (_EPOCH + timedelta(microseconds=due)).replace(tzinfo=None)
    return f"{schedule_name}@{time.isoformat(timespec='auto')}Z"
