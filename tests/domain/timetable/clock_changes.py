"""An oracle for the days on which a clock is changed: it walks through real time minute by minute and does literally
what the page on time says. Nothing of it is shared with the code it judges but the zones themselves."""

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import cache
from importlib.resources import files
from zoneinfo import ZoneInfo

from foliot.domain.timetable.fields import parse_timetable
from foliot.domain.timetable.timetable import Timetable

YEARS = range(2020, 2038)
FULL = bool(os.environ.get("FOLIOT_FULL_TIME_TEST"))  # every case at every change, instead of each in turn
ZONES = sorted((files("tzdata") / "zones").read_text().split())
CREATED = int(datetime(2019, 1, 7, tzinfo=UTC).timestamp()) * 1_000_000
MINUTE, DAY = 60, 86_400
REACH = 2 * DAY if FULL else 26 * 3600
STEP = DAY // 4 if FULL else 2 * DAY

Matches = Callable[[datetime], bool]


@dataclass(frozen=True)
class Case:
    """A timetable and, said in another way, the wall times it means."""

    name: str
    fields: dict[str, object] = field(hash=False)
    matches: Matches
    fixed: bool
    reach: int = REACH  # seconds; how far around a change is looked

    def timetable(self, zone: str) -> Timetable:
        return parse_timetable(created=CREATED, timezone=zone, **self.fields)  # type: ignore[arg-type]


@dataclass(frozen=True, order=True)
class Change:
    """The clock is changed at `instant`, from one offset to the other (the same where it is a day like all others)."""

    instant: int
    offset_before: int
    offset_after: int


def seconds(when: datetime) -> int:
    return int(when.replace(tzinfo=UTC).timestamp())


def local(zone: ZoneInfo, instant: int) -> datetime:
    return datetime.fromtimestamp(instant, zone).replace(tzinfo=None)


def offset(zone: ZoneInfo, instant: int) -> int:
    return int((datetime.fromtimestamp(instant, zone).utcoffset() or timedelta()).total_seconds())


@cache
def load(name: str) -> ZoneInfo:
    with files("tzdata").joinpath("zoneinfo", *name.split("/")).open("rb") as data:
        return ZoneInfo.from_file(data, key=name)


@cache
def changes() -> dict[Change, list[str]]:
    """Every change within the years and the zones that make it. A year in which a zone makes none is there with its
    middle."""
    found: dict[Change, list[str]] = {}
    same: dict[bytes, list[str]] = {}
    for name in ZONES:
        same.setdefault(files("tzdata").joinpath("zoneinfo", *name.split("/")).read_bytes(), []).append(name)
    for names in same.values():
        for change in _changes(names[0]):
            found.setdefault(change, []).extend(names)
    return dict(sorted(found.items()))


def _changes(name: str) -> Iterator[Change]:
    zone = load(name)
    known = offset(zone, seconds(datetime(YEARS[0], 1, 1, tzinfo=UTC)))
    for year in YEARS:
        begin, end = (seconds(datetime(y, 1, 1, tzinfo=UTC)) for y in (year, year + 1))
        found = False
        for step in range(begin, end, STEP):
            if offset(zone, step + STEP) != known:
                hour = next(at for at in range(step, step + STEP, 3600) if offset(zone, at + 3600) != known)
                instant = next(at for at in range(hour, hour + 3601, MINUTE) if offset(zone, at) != known)
                yield Change(instant, known, offset(zone, instant))
                known, found = offset(zone, step + STEP), True
        if not found:
            yield Change(begin + 180 * DAY, known, known)


class Walk:
    """The minutes around a change, each with the wall time that it shows and those that are reached with it: one; after
    a gap all that was left out; none while the wall shows a time again."""

    def __init__(self, zone: str, change: Change) -> None:
        self._change = change
        self._shown: list[tuple[int, datetime]] = []
        self._reached: list[tuple[int, datetime]] = []
        self._known: dict[str, list[int]] = {}
        reached = local(load(zone), change.instant - REACH - MINUTE)
        for instant in range(change.instant - REACH, change.instant + REACH + 1, MINUTE):
            wall = local(load(zone), instant)
            self._shown.append((instant, wall))
            while reached < wall:
                reached += timedelta(minutes=1)
                self._reached.append((instant, reached))

    def due(self, case: Case) -> list[int]:
        """The due instants as the two rules have it."""
        if case.name not in self._known:
            walls = self._reached if case.fixed else self._shown
            found = sorted({instant for instant, wall in walls if case.matches(wall)})
            self._known[case.name] = [at for at in found if abs(at - self._change.instant) <= case.reach]
        return self._known[case.name]


def _weekday(*days: int) -> Matches:
    return lambda wall: wall.weekday() in days


def _at(*times: tuple[int, int]) -> Matches:
    return lambda wall: (wall.hour, wall.minute) in times


def _both(one: Matches, other: Matches) -> Matches:
    return lambda wall: one(wall) and other(wall)


def _is_last_of_month(wall: datetime) -> bool:
    return (wall + timedelta(days=1)).month != wall.month


NEAR = 8 * 3600
_START = {"start_time": CREATED}

CASES = [
    Case("02:30", {"cron": "30 2 * * *"}, _at((2, 30)), fixed=True),
    Case("02:00", {"cron": "0 2 * * *"}, _at((2, 0)), fixed=True),
    Case("midnight", {"cron": "@daily"}, _at((0, 0)), fixed=True),
    Case("23:59", {"cron": "59 23 * * *"}, _at((23, 59)), fixed=True),
    Case("quarters", {"cron": "15,45 0-3 * * *"}, lambda wall: wall.hour < 4 and wall.minute in (15, 45), fixed=True),
    Case("each hour by number", {"cron": "30 0-23 * * *"}, lambda wall: wall.minute == 30, fixed=True),
    Case("Sundays", {"cron": "30 1,2,3 * * SUN"}, _both(_weekday(6), _at((1, 30), (2, 30), (3, 30))), fixed=True),
    Case("weekdays", {"cron": "0 9 * * 1-5"}, _both(_weekday(0, 1, 2, 3, 4), _at((9, 0))), fixed=True),
    Case("last of month", {"cron": "5 0 L * *"}, _both(_is_last_of_month, _at((0, 5))), fixed=True),
    Case("@hourly", {"cron": "@hourly"}, lambda wall: wall.minute == 0, fixed=False),
    Case("*/15", {"cron": "*/15 * * * *"}, lambda wall: wall.minute % 15 == 0, fixed=False, reach=NEAR),
    Case("every minute of 2", {"cron": "* 2 * * *"}, lambda wall: wall.hour == 2, fixed=False, reach=NEAR),
    Case(
        "hour with a star",
        {"cron": "30 */2 * * *"},
        lambda wall: wall.hour % 2 == 0 and wall.minute == 30,
        fixed=False,
    ),
    Case(
        "a star in a list",
        {"cron": "10,*/20 0-3 * * *"},
        lambda wall: wall.hour < 4 and wall.minute % 20 in (0, 10) and wall.minute not in (30, 50),
        fixed=False,
    ),
    Case("rrule daily", {"rrule": "FREQ=DAILY;BYHOUR=2;BYMINUTE=30;BYSECOND=0", **_START}, _at((2, 30)), fixed=True),
    Case(
        "rrule weekly",
        {"rrule": "FREQ=WEEKLY;BYDAY=SU,MO;BYHOUR=0,1,2,3;BYMINUTE=0;BYSECOND=0", **_START},
        _both(_weekday(6, 0), _at((0, 0), (1, 0), (2, 0), (3, 0))),
        fixed=True,
    ),
    Case(
        "rrule hourly",
        {"rrule": "FREQ=HOURLY;BYMINUTE=30;BYSECOND=0", **_START},
        lambda wall: wall.minute == 30,
        fixed=True,
    ),
    Case(
        "closed on Saturday, next",
        {"cron": "30 2 * * SAT", "calendar": {"weekend": ["sat"]}, "on_holiday": "next"},
        _both(_weekday(6), _at((2, 30))),
        fixed=True,
    ),
    Case(
        "closed on Monday and Tuesday, previous",
        {"cron": "0 0,2 * * *", "calendar": {"weekend": ["mon", "tue"]}, "on_holiday": "previous"},
        _both(_weekday(2, 3, 4, 5, 6), _at((0, 0), (2, 0))),
        fixed=True,
    ),
    Case(
        "closed on Sunday, skip",
        {"cron": "*/30 * * * *", "calendar": {"weekend": ["sun"]}},
        _both(_weekday(0, 1, 2, 3, 4, 5), lambda wall: wall.minute % 30 == 0),
        fixed=False,
        reach=NEAR,
    ),
    Case(
        "rrule moved",
        {
            "rrule": "FREQ=DAILY;BYHOUR=1,2;BYMINUTE=15;BYSECOND=0",
            "calendar": {"weekend": ["fri", "sat"]},
            "on_holiday": "next",
            **_START,
        },
        _both(_weekday(6, 0, 1, 2, 3), _at((1, 15), (2, 15))),
        fixed=True,
    ),
]
