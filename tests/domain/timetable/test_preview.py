"""Due times as people see them."""

from typing import Any

import pytest

from foliot.domain.timetable.preview import note_on, preview
from tests.domain.timetable.timetables import NOW, at, table


def test_a_preview_has_as_many_rows_as_asked_for_or_there_are() -> None:
    assert [row.local for row in preview(table(every="100ms"), NOW, 2)] == [
        "2027-01-01T00:00:00.100000+00:00",
        "2027-01-01T00:00:00.200000+00:00",
    ]
    assert len(preview(table(cron="@daily", max_runs=3), NOW, 10)) == 3


@pytest.mark.parametrize(
    ("fields", "due", "note"),
    [
        ({"cron": "0 9 * * *"}, "2027-03-28T09:00+02:00", None),
        ({"cron": "0 9 * * *"}, "3050-12-31T09:00+01:00", None),
        ({"cron": "30 2 * * *"}, "2027-03-28T03:00+02:00", "02:30 does not exist on Sun 2027-03-28: runs at 03:00"),
        (
            {"cron": "5 30 2 * * *"},
            "2027-03-28T03:00+02:00",
            "02:30:05 does not exist on Sun 2027-03-28: runs at 03:00",
        ),
        ({"cron": "0 3 * * *"}, "2027-03-28T03:00+02:00", None),
        ({"cron": "0 * * * *"}, "2027-03-28T03:00+02:00", None),
        (
            {"cron": "30 2 * * *"},
            "2027-10-31T02:30+02:00",
            "02:30 happens twice on Sun 2027-10-31: runs the first time",
        ),
        (
            {"cron": "*/30 * * * *"},
            "2027-10-31T02:30+02:00",
            "02:30 happens twice on Sun 2027-10-31: this is the first",
        ),
        (
            {"cron": "*/30 * * * *"},
            "2027-10-31T02:30+01:00",
            "02:30 happens twice on Sun 2027-10-31: this is the second",
        ),
        ({"cron": "*/30 * * * *"}, "2027-10-31T03:00+01:00", None),
        ({"every": 60}, "2027-10-31T02:30+01:00", "02:30 happens twice on Sun 2027-10-31: this is the second"),
        ({"every": 60, "calendar": {"weekend": []}}, "2027-10-31T03:30+01:00", None),
        ({"cron": "0 9 * * *", "calendar": {}}, "2027-03-29T09:00+02:00", None),
        (
            {"cron": "0 9 26 * *", "calendar": {"country": "ES"}, "on_holiday": "next"},
            "2027-03-29T09:00+02:00",
            "moved from Fri 2027-03-26, a holiday (Good Friday)",
        ),
        (
            {"cron": "0 9 * * 0,1", "calendar": {}, "on_holiday": "next"},
            "2027-03-29T09:00+02:00",
            "stands also for Sun 2027-03-28, a weekend day",
        ),
        (
            {"cron": "30 2 * * SAT", "calendar": {"weekend": ["sat"]}, "on_holiday": "next"},
            "2027-03-28T03:00+02:00",
            "02:30 does not exist on Sun 2027-03-28: runs at 03:00; moved from Sat 2027-03-27, a weekend day",
        ),
    ],
)
def test_a_note_says_which_rule_applied(fields: dict[str, Any], due: str, note: str | None) -> None:
    assert note_on(table(timezone="Europe/Madrid", **fields), at(due)) == note
