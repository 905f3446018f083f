"""`foliot forecast`: what is due, as a plot and as the API has it."""

import json
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from click.testing import Result

from foliot.cli.forecast import gather, headline, plot
from foliot.cli.show import console
from foliot.wire import Forecast, ForecastMinute
from tests.cli.conftest import ServedNode
from tests.cli.test_jobs import api

Run = Callable[..., Result]

NOON = datetime(2027, 1, 1, 12, 0, tzinfo=UTC)
HOUR, MINUTE = timedelta(hours=1), timedelta(minutes=1)


@pytest.fixture
def in_zone(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str], None]]:
    """Puts this process's wall into another zone."""

    def put(zone: str) -> None:
        monkeypatch.setenv("TZ", zone)
        time.tzset()

    yield put
    monkeypatch.undo()
    time.tzset()


def forecast(*minutes: tuple[datetime, int, int], slots: float = 20, capacity: float | None = None) -> Forecast:
    return Forecast(
        minutes=[ForecastMinute(time=at, jobs=jobs, runs=runs) for at, jobs, runs in minutes],
        jobs=sum(jobs for _, jobs, _ in minutes),
        runs=sum(runs for _, _, runs in minutes),
        slots=slots,
        capacity_per_minute=capacity,
    )


def test_json_is_the_apis(foliot: Run, node: ServedNode) -> None:
    foliot("submit", "none", "--delay", "2h", "--queue", "forecast")
    asked: Any = api(node, "/stats/forecast")
    shown = json.loads(foliot("forecast", "--json").stdout)
    assert shown.keys() == asked.keys()
    assert shown["jobs"] == asked["jobs"] >= 1


def test_a_job_that_waits_is_seen_in_its_hour(foliot: Run) -> None:
    foliot("submit", "none", "--delay", "3h", "--queue", "forecast")
    foliot("schedules", "create", "none", "--cron", "@hourly", "--id", "forecast-hourly")
    shown = foliot("forecast")
    assert shown.exit_code == 0
    head, empty, columns, *hours = shown.stdout.splitlines()
    assert "due in the next 24 h; 20 slots" in head
    assert empty == ""
    assert columns.split()[:4] == ["TIME", "DUE", "JOBS", "RUNS"]
    assert len(hours) in (24, 25)
    assert sum("█" in line or "▏" in line for line in hours) >= 23
    assert len(foliot("forecast", "--by", "minute", "--hours", "1").stdout.splitlines()) >= 4


def test_minutes_are_gathered_into_hours_and_empty_hours_are_there() -> None:
    due = [(NOON + 5 * MINUTE, 1, 2), (NOON + 59 * MINUTE, 3, 4), (NOON + 2 * HOUR, 5, 0), (NOON + 4 * HOUR, 9, 9)]
    found = gather(forecast(*due), NOON + MINUTE, NOON + 3 * HOUR, HOUR)
    assert [tuple(bucket) for bucket in found] == [(NOON, 4, 6), (NOON + HOUR, 0, 0), (NOON + 2 * HOUR, 5, 0)]


def test_minutes_with_nothing_due_are_left_out() -> None:
    due = [(NOON + 5 * MINUTE, 1, 2), (NOON + 7 * MINUTE, 3, 4)]
    found = gather(forecast(*due), NOON, NOON + HOUR, MINUTE)
    assert [tuple(bucket) for bucket in found] == [*due]


def test_an_hour_is_one_on_the_wall(in_zone: Callable[[str], None]) -> None:
    in_zone("Asia/Kolkata")  # 5 h 30 min ahead of UTC
    found = gather(forecast((NOON + 29 * MINUTE, 1, 0), (NOON + 30 * MINUTE, 2, 0)), NOON, NOON + HOUR, HOUR)
    assert [(f"{bucket.time.astimezone():%H:%M}", bucket.jobs) for bucket in found] == [("17:00", 1), ("18:00", 2)]


def test_the_plot_tells_how_much_of_the_capacity_is_due(capsys: pytest.CaptureFixture[str]) -> None:
    busy = forecast((NOON, 60, 0), (NOON + HOUR, 90, 30), capacity=1.0)
    console().print(plot(gather(busy, NOON, NOON + 2 * HOUR, HOUR), 60.0))
    _, half, full = capsys.readouterr().out.splitlines()
    assert (half.count("█"), full.count("█")) == (20, 40)
    assert half.split()[-3:] == ["60", "0", "100%"]
    assert full.split()[-3:] == ["90", "30", "200%"]


@pytest.mark.parametrize(
    ("slots", "capacity", "told"),
    [
        (20, 600.0, "1 job and 2 runs of schedules due in the next 24 h; 20 slots, about 600 jobs a minute"),
        (20, None, "their pace is not known while nothing runs"),
        (0, None, "no worker is there to run them"),
    ],
)
def test_the_headline_tells_what_the_workers_can_take(slots: float, capacity: float | None, told: str) -> None:
    found = forecast((NOON, 1, 2), slots=slots, capacity=capacity)
    assert told in headline(found, gather(found, NOON, NOON + HOUR, HOUR), 24)
