"""Every zone, every year from 2020 to 2037: what is due around each change of the clock is what the oracle says.

In the usual run each change of each zone is asked one case after the other in turn; with FOLIOT_FULL_TIME_TEST set,
every case at every change.
"""

from collections import Counter
from datetime import UTC, datetime, timedelta
from itertools import pairwise

import pytest

from foliot.domain.timetable.due_times import due_times, next_after, previous_at_or_before, tally
from foliot.domain.timetable.fields import parse_timetable
from tests.domain.timetable.clock_changes import (
    CASES,
    CREATED,
    FULL,
    YEARS,
    ZONES,
    Case,
    Walk,
    changes,
    load,
    local,
    seconds,
)

GROUPS = 24
SECOND = 1_000_000


def check(case: Case, zone: str, instant: int, expected: list[int]) -> None:
    timetable = case.timetable(zone)
    begin, end = (instant - case.reach) * SECOND - 1, (instant + case.reach) * SECOND
    wanted = [at * SECOND for at in expected]
    assert list(due_times(timetable, begin, end)) == wanted, (case.name, zone, instant)
    counted = tally(timetable, begin, end)
    assert (counted.count, counted.exact) == (len(wanted), True), (case.name, zone, instant)
    for minutes in range(-95, 200, 35):  # also asked from within a gap or a fold
        here = (instant + minutes * 60) * SECOND
        ahead = [due for due in wanted if due > here]
        if ahead:
            assert next_after(timetable, here) == ahead[0], (case.name, zone, instant, minutes)
        assert tally(timetable, here, end).count == len(ahead), (case.name, zone, instant, minutes)
    for later, due in pairwise([end + 1, *reversed(wanted)]):
        assert previous_at_or_before(timetable, later - 1) == due, (case.name, zone, instant)


@pytest.mark.timeout(1800 if FULL else 20)
@pytest.mark.parametrize("group", range(GROUPS))
def test_what_is_due_around_a_change_of_the_clock(group: int) -> None:
    asked, zones, real = 0, set[str](), 0
    for turn, (change, names) in list(enumerate(changes().items()))[group::GROUPS]:
        walk = Walk(names[0], change)
        for number, zone in enumerate(names):
            for case in CASES if FULL else [CASES[(turn + number) % len(CASES)]]:
                check(case, zone, change.instant, walk.due(case))
                asked += 1
        zones |= set(names)
        real += len(names) * (change.offset_before != change.offset_after)
    print(f"{len(zones)} zones, {real} changes of the clock in {YEARS[0]} to {YEARS[-1]}, {asked} cases")
    assert asked > real > 0


def test_every_zone_is_asked_in_every_year() -> None:
    years = Counter(zone for names in changes().values() for zone in names)
    assert sorted(years) == ZONES
    assert min(years.values()) >= len(YEARS)


KINDS = [
    ("Europe/Madrid", seconds(datetime(2027, 3, 28, 1, tzinfo=UTC))),
    ("Europe/Madrid", seconds(datetime(2027, 10, 31, 1, tzinfo=UTC))),
    ("America/Santiago", seconds(datetime(2027, 9, 5, 4, tzinfo=UTC))),
    ("America/Santiago", seconds(datetime(2027, 4, 4, 3, tzinfo=UTC))),
    ("Australia/Lord_Howe", seconds(datetime(2027, 10, 2, 15, 30, tzinfo=UTC))),
    ("Australia/Lord_Howe", seconds(datetime(2027, 4, 3, 15, tzinfo=UTC))),
    ("Antarctica/Troll", seconds(datetime(2027, 3, 28, 1, tzinfo=UTC))),
    ("Antarctica/Troll", seconds(datetime(2027, 10, 31, 1, tzinfo=UTC))),
]
BY_SECONDS = [
    ("30 30 0-2 * * *", lambda wall: wall.hour < 3 and wall.minute == 30 and wall.second == 30, True),
    ("*/20 0 0,1,2 * * *", lambda wall: wall.hour < 3 and wall.minute == 0 and wall.second % 20 == 0, True),
    ("* 59 1,23 * * *", lambda wall: wall.hour in (1, 23) and wall.minute == 59, True),
    ("15 */30 * * * *", lambda wall: wall.minute % 30 == 0 and wall.second == 15, False),
    ("*/10 * 2 * * *", lambda wall: wall.hour == 2 and wall.second % 10 == 0, False),
]


@pytest.mark.parametrize(("expression", "matches", "fixed"), BY_SECONDS, ids=[case[0] for case in BY_SECONDS])
@pytest.mark.parametrize(("zone", "when"), KINDS, ids=lambda value: str(value))
def test_the_same_rules_hold_to_the_second(expression, matches, fixed: bool, zone: str, when: int) -> None:
    begin, end = when - 3 * 3600, when + 4 * 3600
    expected, reached = [], local(load(zone), begin - 1)
    for instant in range(begin, end):
        wall = local(load(zone), instant)
        wanted = not fixed and matches(wall)
        while fixed and reached < wall:
            reached += timedelta(seconds=1)
            wanted = wanted or matches(reached)
        if wanted:
            expected.append(instant * SECOND)
    timetable = parse_timetable(created=CREATED, cron=expression, timezone=zone)
    assert list(due_times(timetable, begin * SECOND - 1, end * SECOND - 1)) == expected
    assert tally(timetable, begin * SECOND - 1, end * SECOND - 1).count == len(expected)


@pytest.mark.parametrize("every", ["7m", "1h", "90m"])
@pytest.mark.parametrize(("zone", "when"), KINDS, ids=lambda value: str(value))
def test_every_takes_no_notice_of_the_clock(every: str, zone: str, when: int) -> None:
    change = when * SECOND
    timetable = parse_timetable(created=CREATED, every=every, timezone=zone)
    found = list(due_times(timetable, change - 6 * 3600 * SECOND, change + 6 * 3600 * SECOND))
    steps = {later - earlier for earlier, later in pairwise(found)}
    assert len(found) >= 8
    assert steps == {timetable.trigger.interval}  # type: ignore[union-attr]


@pytest.mark.parametrize(("zone", "when"), KINDS, ids=lambda value: str(value))
def test_every_with_a_calendar_leaves_out_closed_days_of_the_wall(zone: str, when: int) -> None:
    begin, end = when - 2 * 86_400, when + 2 * 86_400
    timetable = parse_timetable(created=CREATED, every="7m", timezone=zone, calendar={"weekend": ["sun"]})
    beats = range(CREATED // SECOND + 420, end, 420)
    expected = [at * SECOND for at in beats if at >= begin and local(load(zone), at).weekday() != 6]
    assert list(due_times(timetable, begin * SECOND - 1, end * SECOND - 1)) == expected
    assert tally(timetable, begin * SECOND - 1, end * SECOND - 1).count == len(expected)
    for earlier, later in pairwise(expected):
        assert previous_at_or_before(timetable, later - 1) == earlier
