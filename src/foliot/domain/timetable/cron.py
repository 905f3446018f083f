"""Cron expressions. cronsim reads them and says which days they mean; the times of a day are the same on each of them,
so that finding and counting are arithmetic and need no steps from run to run."""

from bisect import bisect_left
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from functools import lru_cache

import msgspec
from cronsim import CronSim, CronSimError

from foliot.domain.errors import BadInput
from foliot.domain.timetable.wall_time import HORIZON_DAYS
from foliot.domain.timetable.zone import DAY_SECONDS, Day, Wall, date_of

NAMES = {
    "@hourly": "0 * * * *",
    "@daily": "0 0 * * *",
    "@weekly": "0 0 * * 0",
    "@monthly": "0 0 1 * *",
    "@yearly": "0 0 1 1 *",
}
LONGEST = 256
_ANY_TIME = datetime.fromtimestamp(0, UTC).replace(tzinfo=None)  # cronsim wants one; only its reading is used


class Cron(msgspec.Struct, frozen=True, tag="cron"):
    """Five fields, or six with the seconds first; an `@` name is kept as what it stands for."""

    expression: str

    @property
    def follows_real_time(self) -> bool:
        minute, hour = self.expression.split()[-5:-3]
        return "*" in minute or "*" in hour


def parse_cron(text: str) -> Cron:
    expression = NAMES.get(text.strip().lower(), text.strip())
    if expression.startswith("@"):
        raise BadInput.at("cron", f"{text[:32]!r} is not a known name; use one of {', '.join(NAMES)}")
    if len(expression) > LONGEST:
        raise BadInput.at("cron", f"longer than {LONGEST} characters; split it into several schedules")
    fields = expression.split()
    if len(fields) not in (5, 6):
        raise BadInput.at(
            "cron",
            f"has {len(fields)} fields; use 5 (minute, hour, day of month, month, day of week) or 6 with seconds first",
        )
    try:
        _read(" ".join(fields))
    except CronSimError as problem:
        if _can_be_read([*fields[:-2], "*", fields[-1]]):
            raise BadInput.at("cron", "can never fire: none of its months has such a day") from None
        raise BadInput.at(
            "cron",
            f"{str(problem).lower()}; fields take numbers, names (JAN, MON), *, lists (1,3), ranges (1-5) and steps "
            "(*/5), the day of month L and LW, the day of week 5L and MON#2",
        ) from None
    return Cron(" ".join(fields))


class DailyTimes:
    """The same times of day on each of some days, as `Walls`."""

    def __init__(
        self, runs_on: Callable[[Day], bool], hours: Sequence[int], minutes: Sequence[int], seconds: Sequence[int]
    ) -> None:
        self.runs_on = runs_on
        self._hours, self._minutes, self._seconds = sorted(hours), sorted(minutes), sorted(seconds)
        self._each_hour = len(minutes) * len(seconds)
        self.each_day = len(hours) * self._each_hour

    def on(self, runs_on: Callable[[Day], bool]) -> "DailyTimes":
        """The same times on other days."""
        return DailyTimes(runs_on, self._hours, self._minutes, self._seconds)

    def next(self, wall: Wall) -> Wall | None:
        first, time = divmod(wall, DAY_SECONDS)
        if self.runs_on(first) and (place := self._before(time)) < self.each_day:
            return first * DAY_SECONDS + self._time(place)
        for day in range(first + 1, first + HORIZON_DAYS):
            if self.runs_on(day):
                return day * DAY_SECONDS + self._time(0)
        return None

    def previous(self, wall: Wall) -> Wall | None:
        last, time = divmod(wall, DAY_SECONDS)
        if self.runs_on(last) and (place := self._before(time + 1)) > 0:
            return last * DAY_SECONDS + self._time(place - 1)
        for day in range(last - 1, max(last - HORIZON_DAYS, -1), -1):
            if self.runs_on(day):
                return day * DAY_SECONDS + self._time(self.each_day - 1)
        return None

    def count(self, first: Wall, beyond: Wall, limit: int) -> int:
        """Exact, whatever the limit: it costs a look at each day."""
        day, time = divmod(first, DAY_SECONDS)
        last, last_time = divmod(beyond, DAY_SECONDS)
        whole_days = sum(self.runs_on(each) for each in range(day, last))
        total = whole_days * self.each_day
        if time and self.runs_on(day):
            total -= self._before(time)
        if last_time and self.runs_on(last):
            total += self._before(last_time)
        return total

    def _before(self, time: int) -> int:
        """How many times of a day lie before `time`."""
        hour, minute, second = time // 3600, time // 60 % 60, time % 60
        place = bisect_left(self._hours, hour)
        total = place * self._each_hour
        if hour in self._hours[place : place + 1]:
            place = bisect_left(self._minutes, minute)
            total += place * len(self._seconds)
            if minute in self._minutes[place : place + 1]:
                total += bisect_left(self._seconds, second)
        return total

    def _time(self, place: int) -> int:
        hour, rest = divmod(place, self._each_hour)
        minute, second = divmod(rest, len(self._seconds))
        return self._hours[hour] * 3600 + self._minutes[minute] * 60 + self._seconds[second]


@lru_cache(maxsize=4096)
def cron_walls(cron: Cron) -> DailyTimes:
    """The wall times of an expression that was parsed before."""
    read = _read(cron.expression)

    def runs_on(day: Day) -> bool:
        date = date_of(day)
        return date.month in read.months and read.match_day(date)

    return DailyTimes(runs_on, list(read.hours), list(read.minutes), list(read.seconds))


def explain_cron(cron: Cron) -> str:
    """cronsim's own words for an expression."""
    return _read(cron.expression).explain()


def _read(expression: str) -> CronSim:
    return CronSim(expression, _ANY_TIME)


def _can_be_read(fields: list[str]) -> bool:
    try:
        _read(" ".join(fields))
    except CronSimError:
        return False
    return True
