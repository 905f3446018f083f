"""Timetables in words."""

from typing import Any

import pytest

from foliot.domain.timetable.describe import describe
from tests.domain.timetable.test_cron import EXPRESSIONS
from tests.domain.timetable.timetables import NOW, at, table


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"cron": "0 9 LW * *"}, "at 09:00 on the last weekday of the month"),
        ({"cron": "0 9 * * 1-5"}, "at 09:00, Monday to Friday"),
        ({"cron": "*/5 * * * *"}, "every 5 minutes"),
        ({"cron": "*/2 * * * *"}, "every 2 minutes"),
        ({"cron": "*/7 * * * *"}, "every 7th minute of every hour"),
        ({"cron": "*/15 * * * * *"}, "every 15 seconds"),
        ({"cron": "*/10 9-17 * * *"}, "every 10 minutes from 09:00 to 17:59"),
        ({"cron": "0 */2 * * *"}, "at minute 0 past every 2nd hour"),
        ({"cron": "5-20/3 * * * *"}, "every 3rd minute from 5 to 20 of every hour"),
        ({"cron": "0 0 1,22,31 * *"}, "at 00:00 on the first, the 22nd, and the 31st day of the month"),
        ({"cron": "0 0 11 * *"}, "at 00:00 on the 11th day of the month"),
        ({"cron": "@hourly"}, "at the start of every hour"),
        ({"rrule": "FREQ=DAILY", "start_time": at("2027-01-01T10:20:30")}, "every day at 10:20:30"),
        ({"rrule": "FREQ=WEEKLY;INTERVAL=2;BYDAY=MO,FR;BYHOUR=9"}, "every 2 weeks at 09:00:01 on Monday and Friday"),
        (
            {"rrule": "FREQ=MONTHLY;BYDAY=-1FR,-2TH;BYHOUR=9;BYMINUTE=0;BYSECOND=0;COUNT=4"},
            "every month at 09:00 on the last Friday and the 2nd last Thursday, 4 times",
        ),
        (
            {"rrule": "FREQ=YEARLY;BYMONTH=2;BYMONTHDAY=1,-1;BYHOUR=9,10"},
            "every year on the 1st and last day of the month where BYMONTH is 2 and BYHOUR is 9,10",
        ),
        ({"rrule": "FREQ=HOURLY;BYMINUTE=30"}, "every hour where BYMINUTE is 30"),
    ],
)
def test_a_trigger_in_words(fields: dict[str, Any], words: str) -> None:
    said = describe(table(**fields))
    assert said.removesuffix(", from 2027-01-01T10:20:30+00:00") == f"{words}, UTC"


@pytest.mark.parametrize(
    ("every", "words"),
    [
        (1, "every second"),
        ("5m", "every 5 minutes"),
        ("90m", "every 90 minutes"),
        ("1h", "every hour"),
        ("48h", "every 2 days"),
        ("250ms", "every 250 milliseconds"),
        (1.5, "every 1.5 seconds"),
    ],
)
def test_an_interval_in_words(every: float | str, words: str) -> None:
    assert describe(table(every=every)) == words


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"calendar": {"country": "ES", "subdivision": "MD"}}, "not on weekends and holidays of Spain (Madrid)"),
        ({"calendar": {}, "on_holiday": "next"}, "moved to the next business day from weekends"),
        (
            {"calendar": {"weekend": ["sun"]}, "on_holiday": "previous"},
            "moved to the previous business day from Sundays",
        ),
        (
            {"calendar": {"weekend": ["fri", "sat"], "country": "US", "except": ["2027-01-01", "2027-01-02"]}},
            "not on Fridays, Saturdays, holidays of United States and 2 further dates",
        ),
        ({"calendar": {"weekend": [], "except": ["2027-01-01"]}}, "not on 1 further date"),
        (
            {"start_time": NOW, "end_time": at("2028-01-01")},
            "from 2027-01-01T01:00:00+01:00, until 2028-01-01T01:00:00+01:00",
        ),
        ({"max_runs": 1}, "1 run"),
        ({"max_runs": 7, "jitter": "1m"}, "at most 7 runs, each up to 1 minute later"),
        ({"jitter": 90}, "each up to 90 seconds later"),
    ],
)
def test_what_else_there_is_in_words(fields: dict[str, Any], words: str) -> None:
    assert describe(table(cron="0 9 * * *", timezone="Europe/Madrid", **fields)) == (
        f"at 09:00 every day, Europe/Madrid time, {words}"
    )


def test_a_calendar_that_closes_nothing_is_not_mentioned() -> None:
    assert describe(table(every="1h", calendar={"weekend": []})) == "every hour, UTC"


def test_until_is_mentioned() -> None:
    said = describe(table(rrule="FREQ=DAILY;UNTIL=20270201T000000Z", start_time=NOW, end_time=at("2028-01-01")))
    assert said.endswith("until 2027-02-01T00:00:00+00:00")


@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_every_cron_has_words(expression: str) -> None:
    assert describe(table(cron=expression)).endswith(", UTC")
