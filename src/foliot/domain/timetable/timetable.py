"""When the runs of a schedule are due, as plain values: a trigger, its zone, bounds and calendar.

`fields` makes one from the fields of the API, `due_times` says what is due, `describe` says it in words.
"""

from typing import assert_never

import msgspec

from foliot.domain.duration import Micros
from foliot.domain.timetable.calendar import Calendar, OnHoliday
from foliot.domain.timetable.cron import Cron
from foliot.domain.timetable.interval import Every
from foliot.domain.timetable.recurrence import Recurrence

Trigger = Cron | Every | Recurrence


class Timetable(msgspec.Struct, frozen=True, kw_only=True, cache_hash=True, omit_defaults=True):
    """Due times lie from `start` to `end`, both included, and end after `max_runs` runs. `jitter` moves a run's start,
    never its due time."""

    trigger: Trigger
    timezone: str = "UTC"
    start: Micros | None = None
    end: Micros | None = None
    max_runs: int | None = None
    jitter: Micros = 0
    calendar: Calendar | None = None
    on_holiday: OnHoliday = "skip"

    @property
    def follows_real_time(self) -> bool:
        """Whether the clock's changes are followed as they come; else each wall time is due once. Where a calendar
        moves runs to another day, what is moved is a wall time."""
        match self.trigger:
            case Every():
                return True
            case Cron():
                return self.trigger.follows_real_time and (self.calendar is None or self.on_holiday == "skip")
            case Recurrence():
                return False
            case _:
                assert_never(self.trigger)
