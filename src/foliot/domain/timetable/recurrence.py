"""RFC 5545 recurrence rules, read and unrolled by python-dateutil.

dateutil unrolls a rule from its start. Here the start is first moved on by whole intervals, so that a rule costs the
same in its tenth year as on its first day, and then by whole cycles of 400 years, after which the calendar repeats:
near the last year that dateutil knows, a rule that matches nothing ends soon instead of after eight thousand years.
A rule by hours, minutes or seconds is split in two, its times and its days, so that days without a run are not walked
through second by second.
"""

from collections.abc import Iterator
from datetime import UTC, datetime
from functools import lru_cache
from typing import cast

import msgspec
from dateutil.rrule import rrule, rrulestr

from foliot.domain.duration import SECOND, Micros
from foliot.domain.errors import BadInput
from foliot.domain.timetable.wall_time import HORIZON_DAYS, Walls, count_one_by_one, first_instant, never_fires
from foliot.domain.timetable.zone import DAY_SECONDS, Wall, wall_of

LONGEST = 512
LARGEST_COUNT = 10_000
LARGEST_INTERVAL = 1_000_000
FREQUENCIES = ("SECONDLY", "MINUTELY", "HOURLY", "DAILY", "WEEKLY", "MONTHLY", "YEARLY")
_SECONDS = {"SECONDLY": 1, "MINUTELY": 60, "HOURLY": 3600, "DAILY": DAY_SECONDS, "WEEKLY": 7 * DAY_SECONDS}
_MONTHS = {"MONTHLY": 1, "YEARLY": 12}
_WITHIN_A_DAY = ("SECONDLY", "MINUTELY", "HOURLY")
_DAY_PARTS = ("BYMONTH", "BYMONTHDAY", "BYYEARDAY", "BYDAY", "WKST")
_CYCLE = 146_097 * DAY_SECONDS  # 400 years
_LAST_YEAR = 9999
_FIRST_WINDOW, _GROWTH = 4, 8


class Recurrence(msgspec.Struct, frozen=True, tag="rrule"):
    """`rule` is as given, without UNTIL, which is `until`; `anchor` is DTSTART as a wall time."""

    rule: str
    anchor: Wall
    until: Micros | None = None


def parse_rrule(text: str, *, start: Micros | None, created: Micros, timezone: str) -> Recurrence:
    """A rule that starts at `start`, or else with the first whole second after its creation."""
    parts = _parts(text)
    anchor = wall_of(timezone, created // SECOND + 1 if start is None else -(-start // SECOND))
    until = parts.pop("UNTIL", None)
    if until is not None and "COUNT" in parts:
        raise _bad("has both UNTIL and COUNT; give one of them")
    recurrence = Recurrence(_join(parts), anchor, None if until is None else _until(until, timezone))
    try:
        found = rule_walls(recurrence).next(anchor)  # part of what is wrong dateutil finds only when it unrolls a rule
    except (ValueError, OverflowError) as problem:
        raise _bad(f"{str(problem).rstrip('.')}; see RFC 5545, section 3.3.10") from None
    if found is None:
        raise never_fires("rrule")
    return recurrence


class RuleWalls:
    """The wall times of one dateutil rule without COUNT."""

    def __init__(self, rule: str, anchor: Wall) -> None:
        parts = dict(pair.split("=") for pair in rule.split(";"))
        interval = int(parts.get("INTERVAL", 1))
        self._anchor = anchor
        self._seconds = interval * _SECONDS.get(parts["FREQ"], 0)
        self._months = interval * _MONTHS.get(parts["FREQ"], 0)
        self._rule = cast(rrule, rrulestr(rule, dtstart=_naive(anchor)))

    def next(self, wall: Wall) -> Wall | None:
        for found in self._unroll(self._steps_before(wall)):
            if found >= wall:
                return found if found - wall <= HORIZON_DAYS * DAY_SECONDS else None
        return None

    def previous(self, wall: Wall) -> Wall | None:
        steps, window = self._steps_before(wall), _FIRST_WINDOW
        latest = None
        while wall >= self._anchor and latest is None:
            begin = max(0, steps - window)
            for found in self._unroll(begin):
                if found > wall:
                    break
                latest = found
            if begin == 0:
                break
            window *= _GROWTH
        return latest

    def count(self, first: Wall, beyond: Wall, limit: int) -> int:
        total = 0
        for found in self._unroll(self._steps_before(first)):
            if found >= beyond or total >= limit:
                break
            total += found >= first
        return total

    def _steps_before(self, wall: Wall) -> int:
        """How many whole intervals the start may be moved on without passing `wall`."""
        if self._seconds:
            return max(0, (wall - self._anchor) // self._seconds)
        begin, end = _naive(self._anchor), _naive(max(wall, self._anchor))
        months = (end.year - begin.year) * 12 + end.month - begin.month - 1
        return max(0, months // self._months)

    def _unroll(self, steps: int) -> Iterator[Wall]:
        """All from the start on, moved on by `steps` intervals, or by less where a month has no such day."""
        start = self._start(steps)
        while start is None:
            steps -= 1
            start = self._start(steps)
        cycles = (_LAST_YEAR - HORIZON_DAYS // 365 - start.year) // 400
        shift = cycles * _CYCLE
        for found in self._rule.replace(dtstart=start.replace(year=start.year + cycles * 400)):
            yield _wall(found) - shift

    def _start(self, steps: int) -> datetime | None:
        if self._seconds:
            return _naive(self._anchor + steps * self._seconds)
        begin = _naive(self._anchor)
        years, month = divmod(begin.month - 1 + steps * self._months, 12)
        try:
            return begin.replace(year=begin.year + years, month=month + 1)
        except ValueError:
            return None


class OnDays:
    """The times of one rule on the days of another."""

    def __init__(self, times: RuleWalls, days: RuleWalls) -> None:
        self._times, self._days = times, days

    def next(self, wall: Wall) -> Wall | None:
        horizon = wall + HORIZON_DAYS * DAY_SECONDS
        found = self._times.next(wall)
        while found is not None and found <= horizon:
            today = found - found % DAY_SECONDS
            day = self._days.next(today)
            if day == today:
                return found
            found = None if day is None else self._times.next(day)
        return None

    def previous(self, wall: Wall) -> Wall | None:
        found = self._times.previous(wall)
        while found is not None:
            today = found - found % DAY_SECONDS
            day = self._days.previous(today)
            if day == today:
                return found
            found = None if day is None else self._times.previous(day + DAY_SECONDS - 1)
        return None

    def count(self, first: Wall, beyond: Wall, limit: int) -> int:
        return count_one_by_one(self, first, beyond, limit)


class Counted:
    """The first so many of other wall times: up to `last`."""

    def __init__(self, walls: Walls, anchor: Wall, count: int) -> None:
        self._walls = walls
        last, wall = anchor - 1, walls.next(anchor)
        while wall is not None and count > 0:
            last, wall, count = wall, walls.next(wall + 1), count - 1
        self._last = last

    def next(self, wall: Wall) -> Wall | None:
        found = self._walls.next(wall)
        return None if found is None or found > self._last else found

    def previous(self, wall: Wall) -> Wall | None:
        return self._walls.previous(min(wall, self._last))

    def count(self, first: Wall, beyond: Wall, limit: int) -> int:
        return self._walls.count(first, min(beyond, self._last + 1), limit)


@lru_cache(maxsize=1024)
def rule_walls(recurrence: Recurrence) -> Walls:
    """The wall times of a rule; UNTIL is an instant and not looked at here."""
    parts = dict(pair.split("=") for pair in recurrence.rule.split(";"))
    count = parts.pop("COUNT", None)
    day_parts = {name: parts.pop(name) for name in _DAY_PARTS if name in parts and parts["FREQ"] in _WITHIN_A_DAY}
    times = RuleWalls(_join(parts), recurrence.anchor)
    walls: Walls = times
    if day_parts:
        midnight = recurrence.anchor - recurrence.anchor % DAY_SECONDS
        walls = OnDays(times, RuleWalls(_join({"FREQ": "DAILY", **day_parts}), midnight))
    return walls if count is None else Counted(walls, recurrence.anchor, int(count))


def _join(parts: dict[str, str]) -> str:
    return ";".join(f"{name}={value}" for name, value in parts.items())


def _parts(text: str) -> dict[str, str]:
    """The parts by name. What they mean is dateutil's to judge; refused here is what it would read without an end."""
    value = text.strip().upper().removeprefix("RRULE:").rstrip(";")
    if len(value) > LONGEST:
        raise _bad(f"longer than {LONGEST} characters")
    if ":" in value or len(value.split()) != 1:
        raise _bad("give one rule like FREQ=WEEKLY;BYDAY=MO; its start is start_time, in timezone")
    pairs = [pair.partition("=") for pair in value.split(";")]
    parts = {name: given for name, _, given in pairs}
    if len(parts) < len(pairs) or not all(parts.values()):
        raise _bad("each part is NAME=value, and comes once")
    if parts.get("FREQ") not in FREQUENCIES:
        raise _bad(f"FREQ is one of {', '.join(FREQUENCIES)}")
    for name, largest in (("INTERVAL", LARGEST_INTERVAL), ("COUNT", LARGEST_COUNT)):
        given = parts.get(name, "1")
        if not (given.isascii() and given.isdigit() and 1 <= int(given) <= largest):
            raise _bad(f"{name} is a whole number from 1 to {largest}")
    if "BYEASTER" in parts:
        raise _bad("BYEASTER is not of RFC 5545")
    if parts["FREQ"] not in _MONTHS and any(sign.isdigit() for sign in parts.get("BYDAY", "")):
        raise _bad("BYDAY with a number, like -1FR, goes with FREQ=MONTHLY or FREQ=YEARLY")
    if parts["FREQ"] in _WITHIN_A_DAY and (refused := {"BYSETPOS", "BYWEEKNO"} & parts.keys()):
        raise _bad(f"{refused.pop()} goes with FREQ=DAILY or longer")
    return parts


def _until(text: str, timezone: str) -> Micros:
    """UNTIL as an instant, which is still allowed: in UTC, as a wall time, or as a date, all of it."""
    for form in ("%Y%m%dT%H%M%SZ", "%Y%m%dT%H%M%S", "%Y%m%d"):
        try:
            when = _wall(datetime.strptime(text, form).replace(tzinfo=UTC))
        except ValueError:
            continue
        if form.endswith("Z"):
            return when * SECOND
        if form == "%Y%m%d":
            return first_instant(timezone, when + DAY_SECONDS) * SECOND - 1
        return first_instant(timezone, when) * SECOND
    raise _bad("UNTIL is a time like 20271224T090000Z, or a date like 20271224, which is then included")


def _bad(message: str) -> BadInput:
    return BadInput.at("rrule", message)


def _naive(wall: Wall) -> datetime:
    return datetime.fromtimestamp(wall, UTC).replace(tzinfo=None)


def _wall(when: datetime) -> Wall:
    return int(when.replace(tzinfo=UTC).timestamp())
