"""Due times as people look at them: in UTC, on the wall, and with the rule that applied."""

from datetime import UTC, datetime, timedelta
from itertools import islice

import msgspec

from foliot.domain.duration import SECOND, Micros
from foliot.domain.timetable.calendar import Calendar, OnHoliday, days_behind, why_closed
from foliot.domain.timetable.due_times import due_times, nominal_walls, timetable_walls
from foliot.domain.timetable.interval import Every
from foliot.domain.timetable.timetable import Timetable
from foliot.domain.timetable.wall_time import Walls
from foliot.domain.timetable.zone import DAY_SECONDS, Day, Wall, date_of, stretches_from, zone

_EPOCH = datetime.fromtimestamp(0, UTC)
_LONGEST_FOLD = 2 * DAY_SECONDS


class PreviewRow(msgspec.Struct, frozen=True, kw_only=True):
    """One due time; `local` has the zone's offset, `note` the DST or holiday rule that applied."""

    time: Micros
    local: str
    note: str | None


def preview(timetable: Timetable, after: Micros, count: int) -> list[PreviewRow]:
    """The next `count` due times after `after`, fewer where there are no more."""
    return [
        PreviewRow(time=due, local=local_time(timetable.timezone, due), note=note_on(timetable, due))
        for due in islice(due_times(timetable, after), count)
    ]


def local_time(zone_name: str, instant: Micros) -> str:
    return (_EPOCH + timedelta(microseconds=instant)).astimezone(zone(zone_name)).isoformat()


def note_on(timetable: Timetable, due: Micros) -> str | None:
    """The rule that made a due time what it is, in words; None where none did."""
    wall, note = _clock_note(timetable, due // SECOND)
    notes = [] if note is None else [note]
    if timetable.calendar is not None and not isinstance(timetable.trigger, Every):
        walls = nominal_walls(timetable)
        notes += _calendar_notes(walls, timetable.calendar, timetable.on_holiday, wall)
    return "; ".join(notes) or None


def _clock_note(timetable: Timetable, instant: int) -> tuple[Wall, str | None]:
    """The wall time that is meant, and what a change of the clock has to do with it."""
    ahead = stretches_from(timetable.timezone, instant)
    stretch = next(ahead)
    wall = instant + stretch.offset
    real = timetable.follows_real_time
    if not real and instant == stretch.start and stretch.peak < wall:
        meant = timetable_walls(timetable).next(stretch.peak)
        if meant is not None and meant < wall:
            return meant, f"{_time(meant)} does not exist on {_date(meant)}: runs at {_time(wall)}"
    if wall < stretch.peak:
        return wall, f"{_time(wall)} happens twice on {_date(wall)}: this is the second"
    for later in ahead:
        if later.start > instant + _LONGEST_FOLD:
            break
        if later.start + later.offset <= wall < later.peak:
            which = "this is the first" if real else "runs the first time"
            return wall, f"{_time(wall)} happens twice on {_date(wall)}: {which}"
    return wall, None


def _calendar_notes(walls: Walls, calendar: Calendar, on_holiday: OnHoliday, wall: Wall) -> list[str]:
    day, time = divmod(wall, DAY_SECONDS)
    behind = [
        other
        for other in days_behind(calendar, on_holiday, day)
        if walls.next(other * DAY_SECONDS + time) == other * DAY_SECONDS + time
    ]
    moved = [f"{_date(other * DAY_SECONDS)}, {why_closed(calendar, other)}" for other in behind if other != day]
    if not moved:
        return []
    return [f"{'stands also for' if day in behind else 'moved from'} {' and '.join(moved)}"]


def _time(wall: Wall) -> str:
    shown = _EPOCH + timedelta(seconds=wall)
    return f"{shown:%H:%M:%S}" if shown.second else f"{shown:%H:%M}"


def _date(wall: Wall) -> str:
    day: Day = wall // DAY_SECONDS
    return f"{date_of(day):%a %Y-%m-%d}"
