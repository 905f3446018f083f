"""The calls on jobs, through to the store."""

import re
from typing import Any

import msgspec
import pytest

from foliot.wire import Execution, JobInfo, LogInfo, NodeView, Stats
from tests.api.client import AsgiClient, Response
from tests.api.worker import Worker

JOBS = "/api/v1/jobs"
LATER = "2030-01-01T00:00:00Z"


async def submit(client: AsgiClient, **job: Any) -> str:
    answer = await client.post(JOBS, {"job_type": "echo"} | job)
    assert answer.status == 201, answer.body
    job_id: str = answer.json()["job_id"]
    return job_id


async def status_of(client: AsgiClient, job_id: str) -> str:
    status: str = (await client.get(f"{JOBS}/{job_id}")).json()["status"]
    return status


def next_page(answer: Response) -> str | None:
    link = answer.headers.get("link")
    found = re.fullmatch(r'<(/[^>]+)>; rel="next"', link) if link else None
    assert (found is None) is (link is None)
    return found[1] if found else None


def events(body: bytes) -> list[tuple[str, Any]]:
    """The (id, data) of each event; comments keep the line alive and say nothing."""
    blocks = [block for block in body.decode().split("\n\n") if block and not block.startswith(":")]
    found = [re.fullmatch(r"id: (\S+)\ndata: (.+)", block) for block in blocks]
    assert all(found), body
    return [(each[1], msgspec.json.decode(each[2])) for each in found if each]


async def test_an_answer_tells_where_the_job_is(client: AsgiClient) -> None:
    answer = await client.post(JOBS, {"job_type": "echo"})
    job_id = answer.json()["job_id"]
    assert answer.headers["location"] == f"{JOBS}/{job_id}"
    assert (await client.get(answer.headers["location"])).json()["job_id"] == job_id


async def test_an_unknown_job_is_404(client: AsgiClient) -> None:
    calls = [("GET", ""), ("PUT", ""), ("DELETE", ""), ("POST", "/pause"), ("POST", "/resume"), ("POST", "/retry")]
    calls += [("POST", "/run"), ("GET", "/executions"), ("GET", "/logs"), ("GET", "/result")]
    for method, rest in calls:
        options = {"content": b"{}"} if method == "PUT" else {}
        answer = await client.request(method, f"{JOBS}/nobody{rest}", **options)
        assert (answer.status, answer.json()["type"]) == (404, "urn:foliot:problem:not-found"), rest
    events = await client.get(f"{JOBS}/nobody/logs", headers={"accept": "text/event-stream"})
    assert (events.status, events.headers["content-type"]) == (404, "application/problem+json")


async def test_a_job_sent_again_is_the_same_and_another_under_its_id_is_refused(client: AsgiClient) -> None:
    body = {"job_type": "echo", "job_id": "a", "schedule_time": LATER}
    first, again = await client.post(JOBS, body), await client.post(JOBS, body)
    assert (again.status, again.body) == (first.status, first.body)
    other = await client.post(JOBS, body | {"priority": "high"})
    assert (other.status, other.json()["type"]) == (409, "urn:foliot:problem:conflict")
    assert len((await client.get(JOBS)).json()) == 1


@pytest.mark.parametrize("target", [JOBS, f"{JOBS}/batch"])
async def test_a_request_sent_again_under_its_key_is_answered_as_the_first(client: AsgiClient, target: str) -> None:
    job = {"job_type": "echo"}
    body = job if target == JOBS else {"jobs": [job, job]}
    headers = {"idempotency-key": "once, please"}
    first = await client.post(target, body, headers=headers)
    again = await client.post(target, body, headers=headers)
    assert (again.status, again.body) == (201, first.body)
    other = job if target != JOBS else job | {"priority": "low"}
    refused = await client.post(target, other if target == JOBS else {"jobs": [other]}, headers=headers)
    assert refused.status == 409
    assert len((await client.get(JOBS)).json()) == (1 if target == JOBS else 2)


async def test_a_batch_is_answered_in_the_order_given(client: AsgiClient) -> None:
    names = ["c", "a", "b"]
    jobs = [{"job_type": "echo", "job_id": name} for name in names]
    answer = await client.post(f"{JOBS}/batch", {"jobs": jobs})
    assert (answer.status, answer.json()) == (201, {"status": "submitted", "job_ids": names})


async def test_a_job_as_read_is_of_the_type_that_is_told(client: AsgiClient) -> None:
    job_id = await submit(client, payload={"n": 1})
    read = (await client.get(f"{JOBS}/{job_id}")).json()
    assert set(read) == set(JobInfo.__struct_fields__)
    (listed,) = (await client.get(JOBS)).json()
    assert set(read) - set(listed) == {"payload", "last_error"}


async def test_a_list_is_walked_by_its_links_with_every_filter_kept(client: AsgiClient) -> None:
    for number in range(5):
        await submit(client, job_id=f"job-{number}", tags=["a b", "c&d"], schedule_time=LATER)
        await submit(client, schedule_time=LATER)
    target: str | None = (
        f"{JOBS}?tag=a%20b&tag=c%26d&status=scheduled&status=queued&limit=2&start_time=2029-01-01T00:00:00+01:00"
    )
    found: list[str] = []
    pages = 0
    while target is not None:
        answer = await client.get(target)
        assert answer.status == 200, answer.body
        page = [job["job_id"] for job in answer.json()]
        assert len(page) <= 2
        found += page
        pages += 1
        target = next_page(answer)
    assert found == ["job-4", "job-3", "job-2", "job-1", "job-0"]
    assert pages >= 3


async def test_a_list_is_bounded_on_both_sides(client: AsgiClient) -> None:
    for day in range(1, 5):
        await submit(client, job_id=f"day-{day}", schedule_time=f"2030-01-0{day}T00:00:00Z")
    for after, before in (("start_time", "end_time"), ("due_after", "due_before")):
        query = f"{after}=2030-01-02T00:00:00Z&{before}=2030-01-03T12:00:00Z"
        assert [job["job_id"] for job in (await client.get(f"{JOBS}?{query}")).json()] == ["day-3", "day-2"]


@pytest.mark.parametrize("time", ["9999-12-31T23:59:59-01:00", "0001-01-01T00:00:00+01:00", "0001-01-01T00:00:00Z"])
async def test_a_time_at_the_edge_of_the_calendar_harms_no_list_and_no_worker(client: AsgiClient, time: str) -> None:
    await submit(client, job_id="edge", schedule_time=time, deadline="9999-12-31T23:59:59-01:00")
    listed = await client.get(JOBS)
    assert [job["job_id"] for job in listed.json()] == ["edge"]
    await client.post(f"{JOBS}/edge/run")
    worker = await Worker.register(client)
    (job,) = await worker.take()
    await worker.report(job, "success", started=time)
    assert (await client.get(f"{JOBS}/edge/executions")).status == 200
    assert await status_of(client, "edge") == "completed"


async def test_waiting_means_every_status_before_running(client: AsgiClient) -> None:
    await submit(client, job_id="later", schedule_time=LATER)
    await submit(client, job_id="held", schedule_time=LATER)
    await client.post(f"{JOBS}/held/pause")
    await submit(client, job_id="gone", schedule_time=LATER)
    await client.request("DELETE", f"{JOBS}/gone")
    assert {job["job_id"] for job in (await client.get(f"{JOBS}?status=waiting")).json()} == {"later", "held"}


async def test_a_write_on_an_older_version_is_refused(client: AsgiClient) -> None:
    job_id = await submit(client, schedule_time=LATER)
    target = f"{JOBS}/{job_id}"
    tag = (await client.get(target)).headers["etag"]
    assert (await client.request("PUT", target, {"priority": 1}, headers={"if-match": tag})).status == 200
    for method, rest in (("PUT", ""), ("DELETE", ""), ("POST", "/pause"), ("POST", "/run"), ("POST", "/retry")):
        stale = await client.request(method, target + rest, {}, headers={"if-match": tag})
        assert (stale.status, stale.json()["type"]) == (412, "urn:foliot:problem:stale")
    fresh = (await client.get(target)).headers["etag"]
    assert fresh != tag
    assert (await client.request("DELETE", target, headers={"if-match": fresh})).status == 200


async def test_null_sets_a_field_back(client: AsgiClient) -> None:
    job_id = await submit(client, schedule_time=LATER, priority="high", queue="own", tags=["a"], timeout="5m")
    change = {"priority": None, "queue": None, "tags": None, "timeout": None}
    assert (await client.request("PUT", f"{JOBS}/{job_id}", change)).status == 200
    job = (await client.get(f"{JOBS}/{job_id}")).json()
    assert (job["priority"], job["queue"], job["tags"], job["timeout"]) == ("medium", "default", [], 3600)


async def test_a_job_is_held_let_go_and_run_early(client: AsgiClient) -> None:
    job_id = await submit(client, schedule_time=LATER)
    held = await client.post(f"{JOBS}/{job_id}/pause")
    assert (held.status, held.json()) == (200, {"status": "paused", "job_id": job_id})
    assert (await client.post(f"{JOBS}/{job_id}/resume", {})).json()["status"] == "scheduled"
    assert (await client.post(f"{JOBS}/{job_id}/run")).json()["status"] == "queued"
    assert await status_of(client, job_id) == "queued"


async def test_a_running_job_is_asked_to_stop(client: AsgiClient) -> None:
    job_id = await submit(client)
    worker = await Worker.register(client)
    (job,) = await worker.take()
    asked = await client.request("DELETE", f"{JOBS}/{job_id}")
    assert (asked.status, asked.json()) == (202, {"status": "cancelling", "job_id": job_id})
    assert (await client.get(f"{JOBS}/{job_id}")).json()["cancel_requested"] is True
    (stop,) = (await worker.exchange())["stop"]
    assert (stop["job_id"], stop["token"]) == (job_id, job["token"])
    await worker.report(job, "cancelled")
    again = await client.request("DELETE", f"{JOBS}/{job_id}")
    assert (again.status, again.json()["status"]) == (200, "cancelled")


async def test_an_ended_job_is_neither_cancelled_nor_changed_but_may_be_retried(client: AsgiClient) -> None:
    job_id = await submit(client)
    worker = await Worker.register(client)
    (job,) = await worker.take()
    await worker.report(job, "fatal_failure", error={"type": "ValueError", "message": "no"})
    assert (await client.request("DELETE", f"{JOBS}/{job_id}")).status == 409
    assert (await client.request("PUT", f"{JOBS}/{job_id}", {"priority": 1})).status == 409
    again = await client.post(f"{JOBS}/{job_id}/retry", {"payload": {"second": True}})
    assert (again.status, again.json()) == (200, {"status": "queued", "job_id": job_id})
    (job,) = await worker.take()
    assert (job["attempt"], job["payload"]) == (2, {"second": True})
    await worker.report(job, "success")
    assert (await client.post(f"{JOBS}/{job_id}/retry")).status == 409


async def test_many_are_changed_at_once_and_counted_without_a_change(client: AsgiClient) -> None:
    for number in range(3):
        await submit(client, job_id=f"job-{number}", tags=["mine"], schedule_time=LATER)
    await submit(client, job_id="other", schedule_time=LATER)
    mine = {"filter": {"tag": "mine"}}
    for action, status in (
        ("pause", "paused"),
        ("resume", "scheduled"),
        ("cancel", "cancelled"),
        ("retry", "scheduled"),
    ):
        counted = await client.post(f"{JOBS}/{action}", mine | {"dry_run": True})
        assert counted.json() == {"matched": 3, "changed": 0}
        changed = await client.post(f"{JOBS}/{action}", mine)
        assert (changed.status, changed.json()) == (200, {"matched": 3, "changed": 3})
        assert {await status_of(client, f"job-{number}") for number in range(3)} == {status}
    assert await status_of(client, "other") == "scheduled"


async def test_attempts_and_the_result_are_read(client: AsgiClient) -> None:
    job_id = await submit(client, retry={"delays": [0]})
    assert (await client.get(f"{JOBS}/{job_id}/result")).status == 404
    worker = await Worker.register(client)
    (job,) = await worker.take()
    await worker.report(job, "retriable_failure", error="not yet", exit_code=3)
    (job,) = await worker.take()
    await worker.report(job, "success", result={"text": "\u0000", "n": 1})
    attempts = (await client.get(f"{JOBS}/{job_id}/executions")).json()
    assert all(set(each) == set(Execution.__struct_fields__) for each in attempts)
    told = [(each["attempt"], each["status"], each["error"], each["exit_code"]) for each in attempts]
    assert told == [(1, "retriable_failure", "not yet", 3), (2, "success", None, None)]
    result = await client.get(f"{JOBS}/{job_id}/result")
    assert (result.status, result.json()) == (200, {"text": "\u0000", "n": 1})


async def test_a_log_is_read_in_pages_and_by_level(client: AsgiClient) -> None:
    job_id = await submit(client)
    worker = await Worker.register(client)
    (job,) = await worker.take()
    for number in range(3):
        await worker.log(job, f"line {number}", "ERROR" if number == 1 else "INFO")
    target: str | None = f"{JOBS}/{job_id}/logs?limit=2"
    lines: list[Any] = []
    while target is not None:
        answer = await client.get(target)
        lines += answer.json()
        target = next_page(answer)
    assert [line["log_message"] for line in lines] == ["line 0", "line 1", "line 2"]
    assert set(lines[0]) == set(LogInfo.__struct_fields__)
    errors = (await client.get(f"{JOBS}/{job_id}/logs?level=ERROR")).json()
    assert [line["log_message"] for line in errors] == ["line 1"]
    later = (await client.get(f"{JOBS}/{job_id}/logs?after={lines[1]['log_id']}")).json()
    assert later == lines[2:]
    for query, field in (("after=x", "after"), ("level=LOUD", "level")):
        refused = await client.get(f"{JOBS}/{job_id}/logs?{query}")
        assert (refused.status, refused.json()["errors"][0]["field"]) == (400, field)


async def test_a_log_is_followed_until_the_job_has_ended(client: AsgiClient) -> None:
    job_id = await submit(client)
    worker = await Worker.register(client)
    (job,) = await worker.take()
    await worker.log(job, "before\nit")
    request = client.start("GET", f"{JOBS}/{job_id}/logs", headers={"accept": "text/event-stream"})
    start = await request.messages.get()
    assert (b"content-type", b"text/event-stream") in start["headers"]
    first = (await request.messages.get())["body"]
    await worker.log(job, "while it ran")
    second = (await request.messages.get())["body"]
    await worker.report(job, "success")
    await request.task
    seen = events(first + second)
    assert [data["log_message"] for _, data in seen] == ["before\nit", "while it ran"]
    assert all(name == data["log_id"] for name, data in seen)

    headers = {"accept": "text/event-stream", "last-event-id": seen[0][0]}
    resumed = await client.get(f"{JOBS}/{job_id}/logs", headers=headers)
    assert events(resumed.body) == seen[1:]


async def test_following_ends_when_the_client_has_gone(client: AsgiClient) -> None:
    job_id = await submit(client)
    request = client.start("GET", f"{JOBS}/{job_id}/logs", headers={"accept": "text/event-stream"})
    assert (await request.messages.get())["status"] == 200
    request.hang_up()
    await request.task
    assert request.messages.empty()


async def test_nodes_and_figures_are_read(client: AsgiClient) -> None:
    await submit(client)
    (node,) = (await client.get("/api/v1/nodes")).json()
    assert set(node) == set(NodeView.__struct_fields__)
    assert node["alive"] is True
    stats = (await client.get("/api/v1/stats")).json()
    assert set(stats) == set(Stats.__struct_fields__)
    assert (stats["workers"], stats["running"]) == (0, 0)
