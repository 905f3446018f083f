"""When a schedule would run, from where its preview begins, and what can not be a schedule."""

from datetime import UTC, datetime

import msgspec
import pytest

from foliot.domain.errors import BadInput
from foliot.service.preview import Preview
from foliot.wire import PreviewBody, PreviewTime, to_micros
from tests.service.conftest import World

NOW = datetime(2027, 3, 27, 12, tzinfo=UTC)


class StandingClock:
    def now(self) -> int:
        return to_micros(NOW)


async def preview(**fields: object) -> list[PreviewTime]:
    return await Preview(StandingClock()).times(msgspec.convert(fields, PreviewBody))


async def times(**fields: object) -> list[str]:
    return [f"{row.time:%Y-%m-%d %H:%M}" for row in await preview(**fields)]


async def test_without_a_start_it_begins_after_now() -> None:
    assert await times(cron="0 12 * * *", count=2) == ["2027-03-28 12:00", "2027-03-29 12:00"]
    assert await times(every="2h", count=2) == ["2027-03-27 14:00", "2027-03-27 16:00"]


@pytest.mark.parametrize("year", [2020, 2030])
async def test_with_a_start_it_begins_there_also_in_the_past(year: int) -> None:
    start = datetime(year, 1, 1, 12, tzinfo=UTC)
    assert await times(cron="0 12 * * *", start_time=start, count=2) == [f"{year}-01-01 12:00", f"{year}-01-02 12:00"]
    assert await times(every="2h", start_time=start, count=2) == [f"{year}-01-01 12:00", f"{year}-01-01 14:00"]


async def test_ten_are_shown_unless_asked_otherwise() -> None:
    assert len(await times(cron="@hourly")) == 10
    assert len(await times(cron="@hourly", count=1000)) == 1000


async def test_the_schedules_bounds_end_it() -> None:
    assert len(await times(cron="@daily", max_runs=3)) == 3
    assert await times(rrule="FREQ=HOURLY", end_time=datetime(2027, 3, 27, 12, 30, tzinfo=UTC)) == ["2027-03-27 12:00"]


async def test_it_ends_where_zones_are_not_worked_out_any_further() -> None:
    found = await times(every="36500d", count=1000)
    assert len(found) == 10
    assert found[-1] < "3051"


async def test_each_is_told_in_utc_and_local_with_the_clocks_rule() -> None:
    assert await preview(cron="30 2 * * *", timezone="Europe/Madrid", count=2) == [
        PreviewTime(
            time=datetime(2027, 3, 28, 1, tzinfo=UTC),
            local="2027-03-28T03:00:00+02:00",
            note="02:30 does not exist on Sun 2027-03-28: runs at 03:00",
        ),
        PreviewTime(time=datetime(2027, 3, 29, 0, 30, tzinfo=UTC), local="2027-03-29T02:30:00+02:00", note=None),
    ]


async def test_a_calendar_closes_its_holidays_weekend_and_dates() -> None:
    calendar = {"country": "ES", "weekend": ["sun"], "except": ["2027-05-03"]}
    start = datetime(2027, 4, 30, tzinfo=UTC)  # 1 May is a holiday, 2 May a Sunday
    fields = {"cron": "0 9 * * *", "calendar": calendar, "start_time": start, "count": 2}
    assert await times(**fields) == ["2027-04-30 09:00", "2027-05-04 09:00"]
    moved = await preview(**fields, on_holiday="previous")
    assert moved[0].note is not None
    assert "2027-05-01" in moved[0].note


@pytest.mark.parametrize(
    ("field", "fields"),
    [
        ("cron", {}),
        ("every", {"cron": "@daily", "every": "5m"}),
        ("cron", {"cron": "0 0 31 2 *"}),
        ("every", {"every": 0.05}),
        ("timezone", {"cron": "@daily", "timezone": "Mars/Olympus"}),
        ("end_time", {"cron": "@daily", "start_time": NOW, "end_time": datetime(2026, 1, 1, tzinfo=UTC)}),
        ("calendar.except", {"cron": "@daily", "calendar": {"except": ["soon"]}}),
        ("catch_up_window", {"cron": "@daily", "catch_up_window": "a while"}),
        ("jitter", {"cron": "@daily", "jitter": "some"}),
    ],
)
async def test_what_can_not_be_a_schedule_is_refused_by_its_field(field: str, fields: dict[str, object]) -> None:
    with pytest.raises(BadInput) as refused:
        await preview(**fields)
    assert [error.field for error in refused.value.errors] == [field]


async def test_a_whole_schedule_is_taken_and_the_node_has_the_service(world: World) -> None:
    body = PreviewBody(cron="@daily", catch_up="all", catch_up_window="2h", overlap="queue", jitter="5m", count=1)
    assert len(await world.services.preview.times(body)) == 1
