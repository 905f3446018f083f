"""A timetable from the API's fields, and what is refused."""

from typing import Any

import msgspec
import pytest

from foliot.domain.duration import MINUTE
from foliot.domain.errors import BadInput
from foliot.domain.timetable.fields import parse_timetable
from foliot.domain.timetable.timetable import Timetable
from tests.domain.timetable.timetables import NOW, at, table

FULL: dict[str, Any] = {
    "cron": "0 9 L * *",
    "timezone": "Europe/Madrid",
    "start_time": NOW,
    "end_time": at("2028-01-01"),
    "max_runs": 3,
    "jitter": "1m",
    "calendar": {"country": "ES", "except": ["2027-12-24"]},
    "on_holiday": "previous",
}


@pytest.mark.parametrize("fields", [FULL, {"every": 60}, {"rrule": "FREQ=DAILY;UNTIL=20280101"}], ids=str)
def test_a_timetable_is_a_plain_value(fields: dict[str, Any]) -> None:
    timetable = table(**fields)
    assert msgspec.json.decode(msgspec.json.encode(timetable), type=Timetable) == timetable
    assert len({timetable, table(**fields)}) == 1


def test_what_is_not_given_has_a_default() -> None:
    timetable = table(cron="@daily")
    assert (timetable.timezone, timetable.jitter, timetable.on_holiday) == ("UTC", 0, "skip")
    assert table(**FULL).jitter == MINUTE


@pytest.mark.parametrize(
    ("fields", "field", "message"),
    [
        ({}, "cron", "exactly one of"),
        ({"cron": "@daily", "rrule": "FREQ=DAILY"}, "rrule", "exactly one of"),
        ({"cron": "@daily", "timezone": "Mars"}, "timezone", "not an IANA time zone"),
        ({"cron": "@daily", "start_time": -1}, "start_time", "1970 to 2999"),
        ({"cron": "@daily", "start_time": at("3000-01-01")}, "start_time", "1970 to 2999"),
        ({"cron": "@daily", "start_time": NOW, "end_time": NOW - 1}, "end_time", "before start_time"),
        ({"cron": "@daily", "end_time": NOW - 1}, "end_time", "before the first run"),
        ({"every": "1d", "end_time": NOW + 1}, "end_time", "before the first run"),
        ({"cron": "@daily", "max_runs": 0}, "max_runs", "1 or more"),
        ({"cron": "@daily", "jitter": "long"}, "jitter", "not a duration"),
        ({"cron": "@daily", "on_holiday": "next"}, "on_holiday", "needs a calendar"),
        ({"cron": "@daily", "calendar": {}, "on_holiday": "stay"}, "on_holiday", "skip, next, previous"),
        ({"every": 60, "calendar": {}, "on_holiday": "next"}, "on_holiday", "use a cron"),
        ({"cron": "0 0 */31 2 MON#5"}, "cron", "can never fire"),
        ({"cron": "0 9 * * SAT", "calendar": {}}, "calendar", "closes every day"),
        ({"cron": "0 9 * * SAT", "calendar": {}, "end_time": at("2027-06-01")}, "calendar", "closes every day"),
        ({"every": "7d", "start_time": at("2027-01-02"), "calendar": {}}, "calendar", "closes every day"),
        ({"rrule": "FREQ=WEEKLY;BYDAY=SA", "calendar": {}}, "calendar", "closes every day"),
        ({"rrule": "FREQ=DAILY;UNTIL=20260101"}, "rrule", "UNTIL lies before"),
    ],
)
def test_what_is_wrong_is_named_by_its_field(fields: dict[str, Any], field: str, message: str) -> None:
    with pytest.raises(BadInput) as caught:
        parse_timetable(created=NOW, **fields)
    (error,) = caught.value.errors
    assert error.field == field
    assert message in error.message
