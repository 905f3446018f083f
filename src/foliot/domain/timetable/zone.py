"""Time zones: which wall time a zone shows at an instant, as stretches of one offset each.

The zones are those of the `tzdata` package, never the machine's own, so that every node works out the same due times.
Instants and wall times are whole seconds here: an instant since 1970 in UTC, a wall time (`Wall`) as if the clock on
the wall showed UTC. A zone's time is a sequence of `Stretch`es; where the clock is put forward, wall times are left
out between two of them (a gap), where it is put back, wall times come again (a fold).
"""

import difflib
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from functools import cache, lru_cache
from importlib.resources import files
from zoneinfo import ZoneInfo

import msgspec

from foliot.domain.errors import BadInput

Wall = int
Day = int  # days since 1970-01-01, of a wall time
DAY_SECONDS = 86_400
FIRST_YEAR, LAST_YEAR = 1970, 3050  # due times lie within; a start is allowed until 2999
_LOOK_BACK = 2 * DAY_SECONDS  # longer than any clock was ever put back
_ONE_SECOND = timedelta(seconds=1)
_DAY_ZERO = date(1970, 1, 1).toordinal()


class Stretch(msgspec.Struct, frozen=True):
    """From `start` until before `end` a zone is `offset` seconds ahead of UTC. `peak` is the wall time that had been
    reached before: less than the first of this stretch after a gap, more after a fold, else the same."""

    start: int
    end: int
    offset: int
    peak: Wall


@cache
def zone_names() -> frozenset[str]:
    return frozenset((files("tzdata") / "zones").read_text("utf-8").split())


@cache
def zone(name: str) -> ZoneInfo:
    with files("tzdata").joinpath("zoneinfo", *name.split("/")).open("rb") as data:
        return ZoneInfo.from_file(data, key=name)


def parse_zone(name: str) -> str:
    """The name of a zone that there is."""
    if name in zone_names():
        return name
    near = difflib.get_close_matches(name[:64], zone_names(), n=1)
    hint = f"did you mean {near[0]!r}?" if near else 'use one like "Europe/Madrid" or "UTC"'
    raise BadInput.at("timezone", f"{name[:64]!r} is not an IANA time zone; {hint}")


def wall_of(zone_name: str, instant: int) -> Wall:
    """What the clock on the wall shows at an instant."""
    return instant + offset_of(zone_name, instant)


def offset_of(zone_name: str, instant: int) -> int:
    """How many seconds a zone is ahead of UTC at an instant."""
    return (datetime.fromtimestamp(instant, zone(zone_name)).utcoffset() or timedelta()) // _ONE_SECOND


def date_of(day: Day) -> date:
    return date.fromordinal(day + _DAY_ZERO)


def day_of(when: date) -> Day:
    return when.toordinal() - _DAY_ZERO


@lru_cache(maxsize=8192)
def stretches(zone_name: str, year: int) -> tuple[Stretch, ...]:
    """The stretches of one year of UTC, without a hole. A change of offset is looked for from day to day and then
    halved down to its second."""
    begin, end = _new_year(year), _new_year(year + 1)
    found: list[Stretch] = []
    start = begin - _LOOK_BACK
    offset = offset_of(zone_name, start)
    peak = start + offset
    for step in range(start, end, DAY_SECONDS):
        beyond = min(step + DAY_SECONDS, end - 1)
        if offset_of(zone_name, beyond) != offset:
            change = _first_change(zone_name, step, beyond, offset)
            found.append(Stretch(start, change, offset, peak))
            peak = max(peak, change + offset)
            start, offset = change, offset_of(zone_name, change)
    found.append(Stretch(start, end, offset, peak))
    return tuple(_cut(stretch, begin) for stretch in found if stretch.end > begin)


def stretches_from(zone_name: str, instant: int) -> Iterator[Stretch]:
    """The stretch of an instant and all later ones."""
    for year in range(max(_year_of(instant), FIRST_YEAR), LAST_YEAR + 1):
        for stretch in stretches(zone_name, year):
            if stretch.end > instant:
                yield stretch


def stretches_back_from(zone_name: str, instant: int) -> Iterator[Stretch]:
    """The stretch of an instant and all earlier ones, the latest first."""
    for year in range(min(_year_of(instant), LAST_YEAR), FIRST_YEAR - 1, -1):
        for stretch in reversed(stretches(zone_name, year)):
            if stretch.start <= instant:
                yield stretch


def _cut(stretch: Stretch, begin: int) -> Stretch:
    """A stretch that goes on over New Year, from New Year on."""
    if stretch.start >= begin:
        return stretch
    return Stretch(begin, stretch.end, stretch.offset, max(stretch.peak, begin + stretch.offset))


def _first_change(zone_name: str, low: int, high: int, offset: int) -> int:
    """The first second in (low, high] with another offset than `offset`, which is that of `low`."""
    while high - low > 1:
        middle = (low + high) // 2
        if offset_of(zone_name, middle) == offset:
            low = middle
        else:
            high = middle
    return high


def _new_year(year: int) -> int:
    return (date(year, 1, 1).toordinal() - _DAY_ZERO) * DAY_SECONDS


def _year_of(instant: int) -> int:
    within = min(max(instant, _new_year(FIRST_YEAR) - 1), _new_year(LAST_YEAR + 1))
    return datetime.fromtimestamp(within, UTC).year
