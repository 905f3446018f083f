"""What is due per minute: as many as there are, at a cost that does not grow with them."""

from collections import Counter
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from foliot.domain.duration import DAY, HOUR, MINUTE, SECOND
from foliot.domain.timetable import forecast
from foliot.domain.timetable.due_times import due_times
from foliot.domain.timetable.forecast import per_minute
from tests.domain.timetable.timetables import NOW, at, table

TABLES: list[dict[str, Any]] = [
    {"every": "100ms", "start_time": NOW + 30 * MINUTE + 1},
    {"every": "7s"},
    {"every": "90s", "end_time": NOW + HOUR},
    {"every": "25s", "calendar": {"country": "ES"}, "timezone": "Europe/Madrid"},
    {"cron": "*/5 * * * * *"},
    {"cron": "0,59 */7 * * * *", "timezone": "Asia/Kolkata"},
    {"cron": "30 2 * * *", "timezone": "Europe/Madrid"},
    {"cron": "10,20 15-45 2 * * *", "timezone": "Europe/Madrid"},
    {"rrule": "FREQ=SECONDLY;INTERVAL=20;BYDAY=FR,SU", "start_time": NOW},
]
CLOCK_CHANGES = [at("2027-03-28T00:30"), at("2027-10-31T00:30")]


@pytest.mark.parametrize("fields", TABLES, ids=str)
@settings(max_examples=25)
@given(
    since=st.sampled_from([NOW, *CLOCK_CHANGES]).flatmap(lambda near: st.integers(near, near + HOUR)),
    length=st.integers(0, 90 * MINUTE),
    max_runs=st.none() | st.integers(1, 900),
    runs=st.integers(0, 300),
)
def test_each_minute_has_as_many_as_going_through_them_finds(
    fields: dict[str, Any], since: int, length: int, max_runs: int | None, runs: int
) -> None:
    timetable = table(**fields, max_runs=max_runs)
    one_by_one = due_times(timetable, since - 1, since + length - 1, runs=runs)
    expected = Counter(due // MINUTE * MINUTE for due in one_by_one)
    assert per_minute(timetable, since, since + length, runs=runs) == expected


@pytest.mark.parametrize("fields", [{"every": "100ms"}, {"cron": "* * * * * *", "timezone": "Europe/Madrid"}], ids=str)
def test_a_day_of_a_dense_timetable_takes_a_few_looks_a_minute(
    fields: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    looks: Counter[str] = Counter()
    for name in ("next_after", "tally"):
        monkeypatch.setattr(forecast, name, _counted(looks, name))
    found = per_minute(table(**fields), NOW + DAY, NOW + 2 * DAY)
    assert len(found) == 1440
    assert set(found.values()) == ({600} if "every" in fields else {60})
    assert looks == {"next_after": 1 + 2 * 1440, "tally": 1440}


def test_a_sparse_timetable_takes_one_look_a_due_time(monkeypatch: pytest.MonkeyPatch) -> None:
    looks: Counter[str] = Counter()
    for name in ("next_after", "tally"):
        monkeypatch.setattr(forecast, name, _counted(looks, name))
    found = per_minute(table(cron="0 */6 * * *"), NOW, NOW + DAY)
    assert found == {NOW + hours * HOUR: 1 for hours in (0, 6, 12, 18)}
    assert looks == {"next_after": 5}


def test_the_first_and_last_minute_are_cut() -> None:
    found = per_minute(table(cron="* * * * * *"), NOW + 50 * SECOND, NOW + 2 * MINUTE + 5 * SECOND)
    assert found == {NOW: 10, NOW + MINUTE: 60, NOW + 2 * MINUTE: 5}
    assert per_minute(table(cron="* * * * * *"), NOW, NOW + SECOND + 1) == {NOW: 2}


def test_max_runs_ends_it_in_the_middle_of_a_minute() -> None:
    timetable = table(every="1s", start_time=NOW, max_runs=100)
    assert per_minute(timetable, NOW, NOW + DAY) == {NOW: 60, NOW + MINUTE: 40}
    assert per_minute(timetable, NOW, NOW + DAY, runs=99) == {NOW: 1}
    assert per_minute(timetable, NOW, NOW + DAY, runs=100) == {}


def _counted(looks: Counter[str], name: str) -> Any:
    real = getattr(forecast, name)

    def look(*arguments: Any, **options: Any) -> Any:
        looks[name] += 1
        return real(*arguments, **options)

    return look
