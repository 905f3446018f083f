"""The calls on schedules, through to the store."""

import re
from datetime import datetime, timedelta
from typing import Any

import pytest

from foliot.clock import wall
from foliot.wire import RunInfo, ScheduleInfo, to_time
from tests.api.client import AsgiClient, Response
from tests.api.test_bad_input import only_field
from tests.api.test_jobs import next_page
from tests.api.worker import Worker

SCHEDULES = "/api/v1/schedules"
PAYOUT = {"schedule_id": "payout", "cron": "0 9 * * *", "job": {"job_type": "echo", "payload": {"n": 1}}}
PAST = "2026-01-01T00:00:00Z"


async def create(client: AsgiClient, **fields: Any) -> str:
    answer = await client.post(SCHEDULES, PAYOUT | fields)
    assert answer.status == 201, answer.body
    schedule_id: str = answer.json()["schedule_id"]
    return schedule_id


async def put(client: AsgiClient, schedule_id: str, body: object, **headers: str) -> Response:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return await client.request("PUT", f"{SCHEDULES}/{schedule_id}", body, headers=named)


async def read(client: AsgiClient, schedule_id: str = "payout") -> Any:
    answer = await client.get(f"{SCHEDULES}/{schedule_id}")
    assert answer.status == 200, answer.body
    return answer.json()


def refused_field(answer: Response, status: int = 400) -> str:
    field, _ = only_field(answer, status)
    return field


async def walk(client: AsgiClient, target: str | None, key: str) -> list[list[Any]]:
    """That field of what each page has, by the links."""
    pages = []
    while target is not None:
        answer = await client.get(target)
        assert answer.status == 200, answer.body
        pages.append([each[key] for each in answer.json()])
        target = next_page(answer)
    return pages


async def test_an_answer_tells_where_the_schedule_is_and_when_it_runs_next(client: AsgiClient) -> None:
    answer = await client.post(SCHEDULES, PAYOUT)
    assert answer.status == 201
    assert answer.headers["location"] == f"{SCHEDULES}/payout"
    made = answer.json()
    assert {name: made[name] for name in ("status", "schedule_id")} == {"status": "created", "schedule_id": "payout"}
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT09:00:00Z", made["next_run"])
    info = (await client.get(answer.headers["location"])).json()
    assert info["next_run"] == made["next_run"]
    assert info["description"] == "at 09:00 every day, UTC"


async def test_a_schedule_as_read_is_of_the_type_that_is_told_and_has_its_etag(client: AsgiClient) -> None:
    await create(client)
    answer = await client.get(f"{SCHEDULES}/payout")
    assert set(answer.json()) == set(ScheduleInfo.__struct_fields__)
    assert answer.json()["job"] == PAYOUT["job"]
    assert answer.headers["etag"] == '"1"'
    (listed,) = (await client.get(SCHEDULES)).json()
    assert listed == answer.json()


async def test_a_schedule_sent_again_is_the_same_and_another_under_its_id_is_refused(client: AsgiClient) -> None:
    first, again = await client.post(SCHEDULES, PAYOUT), await client.post(SCHEDULES, PAYOUT)
    assert (again.status, again.body) == (201, first.body)
    other = await client.post(SCHEDULES, PAYOUT | {"cron": "0 10 * * *"})
    assert (other.status, other.json()["type"]) == (409, "urn:foliot:problem:conflict")
    assert other.headers["content-type"] == "application/problem+json"


async def test_a_request_sent_again_under_its_key_is_answered_as_the_first(client: AsgiClient) -> None:
    body = {"every": "1h", "job": {"job_type": "echo"}}
    headers = {"idempotency-key": "once, please"}
    first = await client.post(SCHEDULES, body, headers=headers)
    again = await client.post(SCHEDULES, body, headers=headers)
    assert (again.status, again.body) == (201, first.body)
    assert (await client.post(SCHEDULES, body | {"every": "2h"}, headers=headers)).status == 409
    assert len((await client.get(SCHEDULES)).json()) == 1


async def test_a_list_is_walked_by_its_links(client: AsgiClient) -> None:
    for number in range(5):
        await create(client, schedule_id=f"s-{number}")
    assert await walk(client, f"{SCHEDULES}?limit=2", "schedule_id") == [["s-4", "s-3"], ["s-2", "s-1"], ["s-0"]]
    assert await walk(client, SCHEDULES, "schedule_id") == [[f"s-{number}" for number in (4, 3, 2, 1, 0)]]


@pytest.mark.parametrize("query", ["limit=0", "limit=1001", "cursor=x", "colour=red"])
@pytest.mark.parametrize("list_", ["", "/payout/runs"])
async def test_a_bad_page_is_refused_by_its_parameter(client: AsgiClient, list_: str, query: str) -> None:
    await create(client)
    answer = await client.get(f"{SCHEDULES}{list_}?{query}")
    assert refused_field(answer) == query.partition("=")[0]


async def test_fields_that_are_put_change_and_the_others_stay(client: AsgiClient) -> None:
    await create(client, jitter="5s", overlap="queue")
    answer = await put(client, "payout", {"cron": "30 10 * * *", "overlap": None, "max_runs": 3})
    assert (answer.status, answer.json()["status"]) == (200, "updated")
    assert answer.json()["next_run"].endswith("T10:30:00Z")
    info = await read(client)
    assert (info["cron"], info["overlap"], info["max_runs"], info["jitter"]) == ("30 10 * * *", "skip", 3, 5)
    assert info["version"] == 2


async def test_a_lost_update_is_412(client: AsgiClient) -> None:
    await create(client)
    assert (await put(client, "payout", {"jitter": 1}, if_match='"1"')).status == 200
    calls = [
        await put(client, "payout", {"jitter": 2}, if_match='"1"'),
        await client.post(f"{SCHEDULES}/payout/pause", headers={"if-match": '"1"'}),
        await client.post(f"{SCHEDULES}/payout/resume", headers={"if-match": '"1"'}),
        await client.request("DELETE", f"{SCHEDULES}/payout", headers={"if-match": '"1"'}),
    ]
    assert [(call.status, call.json()["type"]) for call in calls] == [(412, "urn:foliot:problem:stale")] * 4
    assert (await put(client, "payout", {"jitter": 2}, if_match='"2"')).status == 200
    assert (await read(client))["jitter"] == 2


@pytest.mark.parametrize(
    ("field", "fields"),
    [
        ("cron", {"cron": "0 0 31 2 *"}),
        ("timezone", {"timezone": "Mars/Olympus"}),
        ("every", {"cron": None, "every": 0}),
        ("every", {"cron": None, "every": "99ms"}),
        ("every", {"cron": "@daily", "every": "5m"}),
        ("end_time", {"start_time": "2030-01-02T00:00:00Z", "end_time": "2030-01-01T00:00:00Z"}),
        ("start_time", {"start_time": "2030-01-02T00:00:00"}),
        ("schedule_id", {"schedule_id": "x" * 97}),
        ("schedule_id", {"schedule_id": "j_mine"}),
        ("schedule_id", {"schedule_id": "preview"}),
        ("overlap", {"overlap": "perhaps"}),
        ("max_concurrency", {"max_concurrency": 1001}),
        ("max_runs", {"max_runs": 0}),
        ("calendar.weekend[0]", {"calendar": {"weekend": ["caturday"]}}),
        ("calendar.colour", {"calendar": {"colour": "red"}}),
        ("colour", {"colour": "red"}),
        ("job.colour", {"job": {"job_type": "echo", "colour": "red"}}),
        ("job.job_id", {"job": {"job_type": "echo", "job_id": "a"}}),
        ("job.delay", {"job": {"job_type": "echo", "delay": 5}}),
        ("job.job_type", {"job": {}}),
        ("job.priority", {"job": {"job_type": "echo", "priority": 10}}),
        ("job", {"job": None}),
    ],
)
async def test_bad_input_names_the_field_and_saves_nothing(
    client: AsgiClient, field: str, fields: dict[str, Any]
) -> None:
    answer = await client.post(SCHEDULES, PAYOUT | fields)
    assert answer.headers["content-type"] == "application/problem+json"
    assert refused_field(answer) == field
    assert (await client.get(SCHEDULES)).json() == []
    if "schedule_id" not in fields:
        await create(client)
        kept = await read(client)
        assert refused_field(await put(client, "payout", fields)) == field
        assert await read(client) == kept


async def test_a_payload_that_is_too_large_is_413(client: AsgiClient) -> None:
    answer = await client.post(SCHEDULES, PAYOUT | {"job": {"job_type": "echo", "payload": "x" * 300_000}})
    assert refused_field(answer, 413) == "job.payload"


async def test_a_pause_holds_until_it_is_resumed(client: AsgiClient) -> None:
    await create(client)
    paused = await client.post(f"{SCHEDULES}/payout/pause")
    assert (paused.status, paused.json()) == (200, {"status": "paused", "schedule_id": "payout", "next_run": None})
    assert (await read(client))["status"] == "paused"
    resumed = await client.post(f"{SCHEDULES}/payout/resume", {})
    assert (resumed.status, resumed.json()["status"]) == (200, "active")
    assert (await read(client))["next_run"] == resumed.json()["next_run"]
    refused = await client.post(f"{SCHEDULES}/payout/pause", {"until": "noon"})
    assert refused_field(refused) == "until"


async def test_a_triggered_run_is_a_job_of_the_schedule(client: AsgiClient) -> None:
    await create(client)
    answer = await client.post(f"{SCHEDULES}/payout/trigger")
    assert answer.status == 201
    job_id = answer.json()["job_id"]
    worker = await Worker.register(client)
    (job,) = await worker.take()
    assert (job["job_id"], job["payload"]) == (job_id, {"n": 1})
    info = (await client.get(f"/api/v1/jobs/{job_id}")).json()
    assert (info["schedule_id"], info["status"]) == ("payout", "running")
    (run,) = (await client.get(f"{SCHEDULES}/payout/runs")).json()
    assert set(run) == set(RunInfo.__struct_fields__)
    assert (run["verdict"], run["reason"], run["job_id"]) == ("ran", "triggered", job_id)


async def test_jobs_are_found_by_their_schedule(client: AsgiClient) -> None:
    await create(client)
    await create(client, schedule_id="other")
    await client.post("/api/v1/jobs", {"job_type": "echo"})
    made = [(await client.post(f"{SCHEDULES}/payout/trigger")).json()["job_id"] for _ in range(3)]
    await client.post(f"{SCHEDULES}/other/trigger")
    assert [page for page in await walk(client, "/api/v1/jobs?schedule_id=payout&limit=2", "job_id") if page] == [
        [made[2], made[1]],
        [made[0]],
    ]
    assert (await client.get("/api/v1/jobs?schedule_id=payout&status=running")).json() == []
    assert (await client.get("/api/v1/jobs?schedule_id=nobody")).json() == []


async def test_a_backfill_runs_past_due_times_and_tells_how_many(client: AsgiClient) -> None:
    start = to_time(wall()).replace(microsecond=0) - timedelta(hours=3)
    await create(client, cron=None, every="1h", start_time=start.isoformat())
    body = {"from": start.isoformat(), "to": (start + timedelta(hours=2)).isoformat(), "max_concurrency": 2}
    answer = await client.post(f"{SCHEDULES}/payout/backfill", body)
    assert (answer.status, answer.json()) == (202, {"runs": 3})
    again = await client.post(f"{SCHEDULES}/payout/backfill", body)
    assert (again.status, again.json()["type"]) == (409, "urn:foliot:problem:conflict")
    worker = await Worker.register(client)
    ran: list[str] = []
    while len(ran) < 3:
        for job in await worker.take(10):
            await worker.report(job, "success")
            ran.append(job["job_id"])
    runs = (await client.get(f"{SCHEDULES}/payout/runs")).json()
    past = [run for run in runs if datetime.fromisoformat(run["due_time"]) <= start + timedelta(hours=2)]
    assert [run["verdict"] for run in past] == ["backfilled"] * 3
    assert sorted(ran) == sorted(run["job_id"] for run in past)


@pytest.mark.parametrize(
    ("field", "body"),
    [
        ("from", {"to": PAST}),
        ("to", {"from": PAST}),
        ("to", {"from": "2026-01-02T00:00:00Z", "to": PAST}),
        ("to", {"from": PAST, "to": "2999-01-01T00:00:00Z"}),
        ("from", {"from": "2020-01-01T00:00:00Z", "to": "2026-01-01T00:00:00Z"}),
        ("max_concurrency", {"from": PAST, "to": PAST, "max_concurrency": 0}),
        ("colour", {"from": PAST, "to": PAST, "colour": "red"}),
    ],
)
async def test_a_bad_backfill_is_refused_by_its_field(client: AsgiClient, field: str, body: dict[str, Any]) -> None:
    await create(client, cron="* * * * *")
    answer = await client.post(f"{SCHEDULES}/payout/backfill", body)
    assert refused_field(answer) == field
    assert (await client.get(f"{SCHEDULES}/payout/runs")).json() == []


async def test_runs_are_walked_by_their_links(client: AsgiClient) -> None:
    start = to_time(wall()).replace(microsecond=0) - timedelta(hours=5)
    await create(client, cron=None, every="1h", start_time=start.isoformat(), paused=True)
    body = {"from": start.isoformat(), "to": to_time(wall()).isoformat()}
    runs = (await client.post(f"{SCHEDULES}/payout/backfill", body)).json()["runs"]
    pages = await walk(client, f"{SCHEDULES}/payout/runs?limit=2", "due_time")
    found = [time for page in pages for time in page]
    assert [len(page) for page in pages] == [2, 2, 2]
    assert len(found) == runs == 6
    assert found == sorted(found, reverse=True)
    (first,) = (await client.get(f"{SCHEDULES}/payout/runs?limit=1")).json()
    assert (first["verdict"], first["reason"], first["job_id"]) == (None, "waiting", None)


async def test_a_deleted_schedule_is_gone_and_its_jobs_stay(client: AsgiClient) -> None:
    await create(client)
    job_id = (await client.post(f"{SCHEDULES}/payout/trigger")).json()["job_id"]
    answer = await client.request("DELETE", f"{SCHEDULES}/payout")
    assert (answer.status, answer.json()) == (200, {"status": "deleted", "schedule_id": "payout", "next_run": None})
    assert (await client.get(SCHEDULES)).json() == []
    assert (await client.get(f"/api/v1/jobs/{job_id}")).json()["status"] == "queued"


async def test_an_unknown_schedule_is_404(client: AsgiClient) -> None:
    backfill = {"json": {"from": "2026-01-01T00:00:00Z", "to": "2026-01-02T00:00:00Z"}}
    for method, rest, options in (
        ("GET", "", {}),
        ("PUT", "", {"content": b"{}"}),
        ("DELETE", "", {}),
        ("POST", "/pause", {}),
        ("POST", "/resume", {}),
        ("POST", "/trigger", {}),
        ("POST", "/backfill", backfill),
        ("GET", "/runs", {}),
    ):
        answer = await client.request(method, f"{SCHEDULES}/nobody{rest}", **options)
        assert (answer.status, answer.json()["type"]) == (404, "urn:foliot:problem:not-found"), rest
        assert "nobody" in answer.json()["detail"]


async def test_a_schedule_whose_id_looks_like_a_path_is_found_by_it(client: AsgiClient) -> None:
    name = "a:b@c.d-e_f"
    assert await create(client, schedule_id=name) == name
    assert (await read(client, name))["schedule_id"] == name


async def test_nobody_gets_in_without_a_key(stranger: AsgiClient) -> None:
    assert (await stranger.get(SCHEDULES)).status == 401
    assert (await stranger.post(SCHEDULES, PAYOUT)).status == 401
    assert (await stranger.get("/api/v1/stats/forecast")).status == 401


async def test_the_forecast_tells_what_is_due_within_a_day(client: AsgiClient) -> None:
    await create(client)
    await create(client, schedule_id="held", paused=True)
    due = to_time(wall()) + timedelta(hours=2)
    await client.post("/api/v1/jobs", {"job_type": "echo", "schedule_time": due.isoformat()})
    await Worker.register(client, resources={"slot": 4})
    answer = await client.get("/api/v1/stats/forecast")
    assert answer.status == 200
    found = answer.json()
    assert (found["jobs"], found["runs"], found["slots"], found["capacity_per_minute"]) == (1, 1, 4, None)
    times = [minute["time"] for minute in found["minutes"]]
    assert times == sorted(times)
    assert sum(minute["jobs"] for minute in found["minutes"]) == 1
    assert [minute["time"] for minute in found["minutes"] if minute["runs"]] == [(await read(client))["next_run"]]
