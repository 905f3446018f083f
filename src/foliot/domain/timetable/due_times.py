"""The due times of a timetable: the next, the previous, all in a range, and how many a range holds.

Nothing here costs more the longer a schedule was away. `every` is arithmetic, a cron is arithmetic and a look at each
day, a rule is looked up near the instant asked for; only the exact count of a rule's due times is made one by one, and
ends at a limit.
"""

import hashlib
from collections.abc import Iterator
from functools import lru_cache
from typing import assert_never

import msgspec

from foliot.domain.duration import SECOND, Micros
from foliot.domain.timetable.calendar import Calendar, OnOpenDays, daily_on_open_days, is_closed
from foliot.domain.timetable.cron import Cron, DailyTimes, cron_walls
from foliot.domain.timetable.interval import Every, count_beats, next_beat, previous_beat
from foliot.domain.timetable.recurrence import Recurrence, rule_walls
from foliot.domain.timetable.timetable import Timetable
from foliot.domain.timetable.wall_time import HORIZON_DAYS, Walls, count_instants, next_instant, previous_instant
from foliot.domain.timetable.zone import DAY_SECONDS, Day, Stretch, stretches_back_from, stretches_from

COUNT_LIMIT = 10_000
LATEST: Micros = 1 << 62


class Tally(msgspec.Struct, frozen=True, kw_only=True):
    """What a range holds: how many due times, whether that is all of them (else there are at least so many), and the
    first and last."""

    count: int
    exact: bool
    first: Micros | None
    last: Micros | None


def next_after(timetable: Timetable, after: Micros, *, runs: int = 0) -> Micros | None:
    """The first due time after `after`; None where there is none any more. `runs` is how many runs there were."""
    if timetable.max_runs is not None and runs >= timetable.max_runs:
        return None
    first = after + 1 if timetable.start is None else max(after + 1, timetable.start)
    trigger = timetable.trigger
    if not isinstance(trigger, Every):
        found = _instant(
            next_instant(timetable_walls(timetable), timetable.timezone, -(-first // SECOND), fixed=_fixed(timetable))
        )
    elif timetable.calendar is None:
        found = next_beat(trigger, first)
    else:
        found = _next_open_beat(trigger, timetable, timetable.calendar, first)
    return None if found is None or found > _bound(timetable) else found


def previous_at_or_before(timetable: Timetable, at: Micros) -> Micros | None:
    """The last due time at or before `at`."""
    last = min(at, _bound(timetable))
    trigger = timetable.trigger
    if not isinstance(trigger, Every):
        found = _instant(
            previous_instant(timetable_walls(timetable), timetable.timezone, last // SECOND, fixed=_fixed(timetable))
        )
    elif timetable.calendar is None:
        found = previous_beat(trigger, last)
    else:
        found = _previous_open_beat(trigger, timetable, timetable.calendar, last)
    return None if found is None or found < (timetable.start or 0) else found


def due_times(timetable: Timetable, after: Micros, until: Micros | None = None, *, runs: int = 0) -> Iterator[Micros]:
    """The due times after `after` up to and including `until`, in order, one at a time."""
    due = next_after(timetable, after, runs=runs)
    while due is not None and (until is None or due <= until):
        yield due
        runs += 1
        due = next_after(timetable, due, runs=runs)


def tally(timetable: Timetable, after: Micros, until: Micros, *, limit: int = COUNT_LIMIT) -> Tally:
    """The due times after `after` up to and including `until`, without going through them. `max_runs` is not looked
    at: which of them become runs is for the caller to say."""
    first, last = next_after(timetable, after), previous_at_or_before(timetable, until)
    if first is None or last is None or first > last:
        return Tally(count=0, exact=True, first=None, last=None)
    trigger = timetable.trigger
    if not isinstance(trigger, Every):
        count = count_instants(
            timetable_walls(timetable),
            timetable.timezone,
            first // SECOND,
            last // SECOND,
            limit + 1,
            fixed=_fixed(timetable),
        )
    elif timetable.calendar is None:
        count = count_beats(trigger, first, last)
    else:
        count = _count_open_beats(trigger, timetable, timetable.calendar, first, last)
    exact = not isinstance(trigger, Recurrence) or count <= limit
    return Tally(count=count if exact else limit, exact=exact, first=first, last=last)


def jitter_of(timetable: Timetable, schedule_id: str, due: Micros) -> Micros:
    """How much later than its due time a run starts: from zero to `jitter`, the same on every node and every time."""
    digest = hashlib.blake2b(f"{schedule_id}@{due}".encode(), digest_size=8).digest()
    return int.from_bytes(digest) % (timetable.jitter + 1)


def nominal_walls(timetable: Timetable) -> Walls:
    """The wall times before a calendar is looked at. `every` has none."""
    match timetable.trigger:
        case Cron():
            return cron_walls(timetable.trigger)
        case Recurrence():
            return rule_walls(timetable.trigger)
        case Every():
            raise TypeError("every follows real time and has no wall times")
        case _:
            assert_never(timetable.trigger)


@lru_cache(maxsize=4096)
def timetable_walls(timetable: Timetable) -> Walls:
    """The wall times that are due, each once the calendar has moved it. `every` has none."""
    walls = nominal_walls(timetable)
    if timetable.calendar is None:
        return walls
    if isinstance(walls, DailyTimes):
        return daily_on_open_days(walls, timetable.calendar, timetable.on_holiday)
    return OnOpenDays(walls, timetable.calendar, timetable.on_holiday)


def _fixed(timetable: Timetable) -> bool:
    return not timetable.follows_real_time


def _instant(seconds: int | None) -> Micros | None:
    return None if seconds is None else seconds * SECOND


def _bound(timetable: Timetable) -> Micros:
    """The last instant that is allowed."""
    until = timetable.trigger.until if isinstance(timetable.trigger, Recurrence) else None
    return min(LATEST if until is None else until, LATEST if timetable.end is None else timetable.end)


def _next_open_beat(every: Every, timetable: Timetable, calendar: Calendar, first: Micros) -> Micros | None:
    first = max(first, every.first)
    for begin, beyond in _open_spans(timetable.timezone, calendar, first // SECOND):
        beat = next_beat(every, max(first, begin * SECOND))
        if beat < beyond * SECOND:
            return beat
    return None


def _previous_open_beat(every: Every, timetable: Timetable, calendar: Calendar, last: Micros) -> Micros | None:
    for begin, beyond in _open_spans_back(timetable.timezone, calendar, last // SECOND):
        beat = previous_beat(every, min(last, beyond * SECOND - 1))
        if beat is None or beat >= begin * SECOND:
            return beat
    return None


def _count_open_beats(every: Every, timetable: Timetable, calendar: Calendar, first: Micros, last: Micros) -> int:
    total = 0
    for begin, beyond in _open_spans(timetable.timezone, calendar, first // SECOND):
        if begin * SECOND > last:
            break
        total += count_beats(every, max(first, begin * SECOND), min(last, beyond * SECOND - 1))
    return total


def _open_spans(zone_name: str, calendar: Calendar, first: int) -> Iterator[tuple[int, int]]:
    """The open days from the instant `first` on, each as instants: its first, and the first after it. A day on which
    the clock is changed comes in pieces."""
    for stretch in stretches_from(zone_name, first):
        begin = (max(first, stretch.start) + stretch.offset) // DAY_SECONDS
        for day in range(begin, (stretch.end - 1 + stretch.offset) // DAY_SECONDS + 1):
            if day * DAY_SECONDS > first + HORIZON_DAYS * DAY_SECONDS:
                return
            if not is_closed(calendar, day):
                yield _span(stretch, day)


def _open_spans_back(zone_name: str, calendar: Calendar, last: int) -> Iterator[tuple[int, int]]:
    for stretch in stretches_back_from(zone_name, last):
        end = (min(last, stretch.end - 1) + stretch.offset) // DAY_SECONDS
        for day in range(end, (stretch.start + stretch.offset) // DAY_SECONDS - 1, -1):
            if not is_closed(calendar, day):
                yield _span(stretch, day)


def _span(stretch: Stretch, day: Day) -> tuple[int, int]:
    begin = day * DAY_SECONDS - stretch.offset
    return max(stretch.start, begin), min(stretch.end, begin + DAY_SECONDS)
