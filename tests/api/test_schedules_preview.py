"""When a schedule would run, over HTTP."""

from datetime import datetime, timedelta
from typing import Any
from urllib.parse import urlencode

import pytest

from foliot.clock import wall
from foliot.wire import to_time
from tests.api.client import AsgiClient, Response
from tests.api.test_bad_input import only_field

PREVIEW = "/api/v1/schedules/preview"
SPRING = "2027-03-27T00:00:00Z"


async def ask(client: AsgiClient, **parameters: object) -> Response:
    return await client.get(f"{PREVIEW}?{urlencode(parameters)}")


async def test_a_trigger_is_previewed_with_the_rule_that_applied(client: AsgiClient) -> None:
    answer = await ask(client, cron="30 2 * * *", timezone="Europe/Madrid", start_time=SPRING, count=2)
    assert answer.status == 200
    assert answer.json() == [
        {"time": "2027-03-27T01:30:00Z", "local": "2027-03-27T02:30:00+01:00", "note": None},
        {
            "time": "2027-03-28T01:00:00Z",
            "local": "2027-03-28T03:00:00+02:00",
            "note": "02:30 does not exist on Sun 2027-03-28: runs at 03:00",
        },
    ]


@pytest.mark.parametrize(
    "trigger",
    [{"cron": "0 9 * * mon#2"}, {"every": "90m"}, {"every": 5400}, {"every": 0.5}, {"rrule": "FREQ=DAILY;INTERVAL=2"}],
    ids=str,
)
async def test_a_query_and_a_body_are_answered_alike(client: AsgiClient, trigger: dict[str, Any]) -> None:
    fields = {
        **trigger,
        "timezone": "Asia/Kathmandu",
        "start_time": SPRING,
        "end_time": "2028-01-01T00:00:00Z",
        "max_runs": 4,
        "count": 7,
    }
    by_query, by_body = await ask(client, **fields), await client.post(PREVIEW, fields)
    assert by_query.status == 200, by_query.body
    assert len(by_query.json()) == 4
    assert by_query.json() == by_body.json()


async def test_it_begins_at_its_start_or_else_now(client: AsgiClient) -> None:
    (at_start,) = (await ask(client, cron="* * * * * *", count=1, start_time="2020-01-01T00:00:00Z")).json()
    assert at_start["time"] == "2020-01-01T00:00:00Z"
    before = to_time(wall())
    (soon,) = (await ask(client, cron="* * * * * *", count=1)).json()
    assert before < datetime.fromisoformat(soon["time"]) <= to_time(wall()) + timedelta(seconds=1)


async def test_a_whole_schedule_is_previewed_and_nothing_is_saved(client: AsgiClient) -> None:
    body = {
        "schedule_id": "payout",
        "job": {"job_type": "pay", "payload": {"all": True}},
        "cron": "0 9 L * *",
        "timezone": "Europe/Madrid",
        "start_time": "2027-01-01T00:00:00+01:00",
        "jitter": "30s",
        "overlap": "skip",
        "max_concurrency": 1,
        "catch_up": "latest",
        "catch_up_window": "1h",
        "calendar": {"country": "ES", "subdivision": "MD", "weekend": ["sat", "sun"], "except": ["2027-01-29"]},
        "on_holiday": "previous",
        "paused": True,
        "count": 1,
    }
    (row,) = (await client.post(PREVIEW, body)).json()
    assert row["local"] == "2027-01-28T09:00:00+01:00"
    assert "2027-01-31" in row["note"]
    assert (await client.get("/api/v1/jobs")).json() == []


async def test_null_is_the_default(client: AsgiClient) -> None:
    answer = await client.post(PREVIEW, {"cron": "@daily", "timezone": None, "calendar": None, "count": 1})
    assert [row["local"][10:] for row in answer.json()] == ["T00:00:00+00:00"]


@pytest.mark.parametrize(
    ("fields", "field", "message"),
    [
        ({}, "cron", "exactly one of"),
        ({"cron": "@daily", "every": "5m"}, "every", "exactly one of"),
        ({"cron": "0 0 31 2 *"}, "cron", "can never fire"),
        ({"cron": "@daily", "timezone": "Europe/Madrd"}, "timezone", "did you mean 'Europe/Madrid'?"),
        ({"every": "50ms"}, "every", "100 ms"),
        ({"every": "soon"}, "every", "is not a duration"),
        ({"every": "nan"}, "every", "duration"),
        ({"cron": "@daily", "start_time": SPRING, "end_time": "2027-01-01T00:00:00Z"}, "end_time", "before start_time"),
        ({"cron": "@daily", "start_time": "2027-01-01T00:00:00"}, "start_time", "needs its offset"),
        ({"cron": "@daily", "count": 0}, "count", "must be at least 1"),
        ({"cron": "@daily", "count": 1001}, "count", "must be at most 1000"),
        ({"cron": "@daily", "max_runs": 0}, "max_runs", "must be at least 1"),
    ],
    ids=str,
)
async def test_what_is_wrong_is_named(client: AsgiClient, fields: dict[str, Any], field: str, message: str) -> None:
    for answer in (await ask(client, **fields), await client.post(PREVIEW, fields)):
        named, told = only_field(answer)
        assert named == field
        assert message in told


@pytest.mark.parametrize(
    ("fields", "field", "message"),
    [
        ({"calendar": {"country": "XX"}}, "calendar.country", "is not known"),
        ({"calendar": {"county": "ES"}}, "calendar.county", "did you mean country?"),
        ({"calendar": {"closed": []}}, "calendar.closed", "there is no such field"),
        ({"calendar": {"weekend": ["sat", "sunday"]}}, "calendar.weekend[1]", "must be one of"),
        ({"calendar": {"except": ["24.12.2027"]}}, "calendar.except", "use the form 2027-12-24"),
        ({"on_holiday": "next"}, "on_holiday", "needs a calendar"),
        ({"on_holiday": "later"}, "on_holiday", "must be one of next, previous, skip"),
        ({"overlap": "both"}, "overlap", "must be one of"),
        ({"catch_up_window": "long"}, "catch_up_window", "is not a duration"),
        ({"schedule_id": "x" * 97}, "schedule_id", "1–96 of"),
        ({"job": "echo"}, "job", "must be an object"),
        ({"time_zone": "UTC"}, "time_zone", "did you mean timezone?"),
    ],
    ids=str,
)
async def test_what_is_wrong_in_a_schedule_is_named(
    client: AsgiClient, fields: dict[str, Any], field: str, message: str
) -> None:
    named, told = only_field(await client.post(PREVIEW, {"cron": "@daily", **fields}))
    assert named == field
    assert message in told


async def test_a_calendar_has_no_place_in_a_query(client: AsgiClient) -> None:
    named, told = only_field(await ask(client, cron="@daily", on_holiday="skip"))
    assert named == "on_holiday"
    assert "there is no such query parameter" in told


async def test_a_stranger_gets_no_preview(stranger: AsgiClient) -> None:
    assert (await ask(stranger, cron="@daily")).status == 401
    assert (await stranger.post(PREVIEW, {"cron": "@daily"})).status == 401
