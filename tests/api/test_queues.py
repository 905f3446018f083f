"""Queues and job types over HTTP."""

from typing import Any

import pytest

from foliot.wire import JobType, QueueName
from tests.api.client import AsgiClient
from tests.api.test_bad_input import only_field, refusal, right
from tests.api.test_jobs import next_page
from tests.api.worker import Worker

JOBS, QUEUES, TYPES = "/api/v1/jobs", "/api/v1/queues", "/api/v1/job-types"
PLAIN: dict[str, Any] = {
    "queue": "mail",
    "policy": "priority",
    "aging": None,
    "weight": 1.0,
    "weights": {},
    "max_concurrency": None,
    "rate_limit": None,
    "paused": False,
    "waiting": 0,
    "running": 0,
    "oldest_wait": None,
    "notify": None,
    "objective": None,
    "version": 1,
}


async def submit(client: AsgiClient, job_id: str, **fields: Any) -> None:
    answer = await client.post(JOBS, {"job_type": "echo", "job_id": job_id} | fields)
    assert answer.status == 201, answer.body


async def test_a_queue_is_made_by_a_put_and_read_back(client: AsgiClient) -> None:
    rules = {
        "policy": "fair",
        "aging": "1m",
        "weight": 2,
        "weights": {"a": 3},
        "max_concurrency": 5,
        "rate_limit": {"limit": 10, "per": "2s", "burst": 3},
    }
    answer = await client.request("PUT", f"{QUEUES}/mail", rules)
    expected = PLAIN | rules | {"aging": 60, "rate_limit": {"limit": 10, "per": 2, "burst": 3}}
    assert (answer.status, answer.json()) == (200, expected)
    assert answer.headers["etag"] == '"1"'
    assert (await client.get(f"{QUEUES}/mail")).json() == expected
    assert (await client.get(QUEUES)).json() == [expected]
    answer = await client.request("PUT", f"{QUEUES}/mail", dict.fromkeys(rules))
    assert answer.json() == PLAIN | {"version": 2}


async def test_a_queue_comes_into_being_with_its_first_job_and_tells_how_full_it_is(client: AsgiClient) -> None:
    assert "there is no queue 'mail'" in refusal(await client.get(f"{QUEUES}/mail"), 404)["detail"]
    await submit(client, "a", queue="mail")
    await submit(client, "b", queue="mail")
    worker = await Worker.register(client)
    (job,) = await worker.take()
    shown = (await client.get(f"{QUEUES}/mail")).json()
    assert (shown["waiting"], shown["running"], shown["oldest_wait"] >= 0) == (1, 1, True)
    await worker.report(job, "success")
    assert (await client.get(f"{QUEUES}/mail")).json()["running"] == 0


async def test_a_paused_queue_starts_nothing_until_it_is_resumed(client: AsgiClient) -> None:
    assert (await client.post(f"{QUEUES}/mail/pause")).json() == PLAIN | {"paused": True}
    await submit(client, "held", queue="mail")
    await submit(client, "other")
    worker = await Worker.register(client)
    assert [job["job_id"] for job in await worker.take(5)] == ["other"]
    assert (await client.post(f"{QUEUES}/mail/resume")).json()["paused"] is False
    assert [job["job_id"] for job in await worker.take(5)] == ["held"]


async def test_a_paused_job_type_starts_nothing_until_it_is_resumed(client: AsgiClient) -> None:
    assert (await client.post(f"{TYPES}/mail/pause")).json() == {"job_type": "mail", "paused": True}
    await submit(client, "held", job_type="mail")
    await submit(client, "other")
    worker = await Worker.register(client)
    assert [job["job_id"] for job in await worker.take(5)] == ["other"]
    assert (await client.get(TYPES)).json() == [{"job_type": "mail", "paused": True}]
    assert (await client.post(f"{TYPES}/mail/resume")).json() == {"job_type": "mail", "paused": False}
    assert [job["job_id"] for job in await worker.take(5)] == ["held"]
    assert (await client.get(TYPES)).json() == []


async def test_a_change_from_an_old_view_is_refused(client: AsgiClient) -> None:
    await client.request("PUT", f"{QUEUES}/mail", {"weight": 2})
    old = {"If-Match": '"1"'}
    assert (await client.post(f"{QUEUES}/mail/pause", headers=old)).json()["version"] == 2
    for method, path in (("PUT", "mail"), ("POST", "mail/pause"), ("POST", "mail/resume")):
        refusal(await client.request(method, f"{QUEUES}/{path}", {}, headers=old), 412)
    shown = (await client.get(f"{QUEUES}/mail")).json()
    assert (shown["paused"], shown["weight"], shown["version"]) == (True, 2, 2)


async def test_queues_come_page_by_page(client: AsgiClient) -> None:
    names = ["A", "a", "b.c", "d_e", "z" * 64]
    for name in names:
        await client.request("PUT", f"{QUEUES}/{name}", {"weight": 2})
    seen: list[str] = []
    target: str | None = f"{QUEUES}?limit=2"
    while target:
        answer = await client.get(target)
        seen += [each["queue"] for each in answer.json()]
        target = next_page(answer)
    assert sorted(seen) == sorted(names)


WRONG_RULES: list[tuple[dict[str, Any], str, str]] = [
    ({"policy": "random"}, "policy", "must be one of fair, fifo, priority"),
    ({"policy": 1}, "policy", "must be text"),
    ({"policies": "fifo"}, "policies", "there is no such field; did you mean policy?"),
    ({"paused": True}, "paused", "there is no such field"),
    ({"max_concurrency": 0}, "max_concurrency", "must be at least 1"),
    ({"max_concurrency": -1}, "max_concurrency", "must be at least 1"),
    ({"max_concurrency": 10**9}, "max_concurrency", "must be at most 1000000"),
    ({"max_concurrency": 1.5}, "max_concurrency", "must be a whole number"),
    ({"weight": 0}, "weight", "must be at least 0.001"),
    ({"weight": -1}, "weight", "must be at least 0.001"),
    ({"weight": "2"}, "weight", "must be a number"),
    ({"weights": {"a": -1}}, "weights[...]", "must be at least 0.001"),
    ({"weights": {"": 1}}, "weights", "at least 1 character"),
    ({"weights": [1]}, "weights", "must be an object"),
    ({"aging": 0}, "aging", "must be above zero"),
    ({"aging": "-1s"}, "aging", "is not a duration"),
    ({"aging": "soon"}, "aging", "is not a duration"),
    ({"rate_limit": {"limit": 0, "per": 1}}, "rate_limit.limit", "must be at least 1"),
    ({"rate_limit": {"limit": 1}}, "rate_limit.per", "is required"),
    ({"rate_limit": {"per": 1}}, "rate_limit.limit", "is required"),
    ({"rate_limit": {"limit": 1, "per": 0}}, "rate_limit.per", "must be from 1 ms to 31 days"),
    ({"rate_limit": {"limit": 1, "per": "60d"}}, "rate_limit.per", "must be from 1 ms to 31 days"),
    ({"rate_limit": {"limit": 1, "per": "soon"}}, "rate_limit.per", "is not a duration"),
    ({"rate_limit": {"limit": 1, "per": 1, "burst": -1}}, "rate_limit.burst", "must be at least 0"),
    ({"rate_limit": {"limit": 1, "per": 1, "bursts": 1}}, "rate_limit.bursts", "did you mean burst?"),
    ({"rate_limit": "10/s"}, "rate_limit", "must be an object or null"),
]


@pytest.mark.parametrize(("rules", "field", "message"), WRONG_RULES, ids=str)
async def test_a_wrong_rule_is_named_and_nothing_is_saved(
    client: AsgiClient, rules: dict[str, Any], field: str, message: str
) -> None:
    named, told = only_field(await client.request("PUT", f"{QUEUES}/mail", {"weight": 2} | rules))
    assert (named, message in told) == (field, True), (named, told)
    assert (await client.get(QUEUES)).json() == []


@pytest.mark.parametrize("name", ["a:b", "a%20b", "%C3%A9", "x" * 65])
async def test_a_wrong_name_is_named(client: AsgiClient, name: str) -> None:
    for method, path, body in (("PUT", "", {"weight": 2}), ("POST", "/pause", {}), ("POST", "/resume", {})):
        answer = await client.request(method, f"{QUEUES}/{name}{path}", body)
        assert only_field(answer) == ("queue", right(QueueName))
    refusal(await client.get(f"{QUEUES}/{name}"), 404)
    assert (await client.get(QUEUES)).json() == []


@pytest.mark.parametrize("call", ["pause", "resume"])
async def test_pause_and_resume_take_no_fields_and_no_wrong_type(client: AsgiClient, call: str) -> None:
    assert only_field(await client.post(f"{QUEUES}/mail/{call}", {"for": "1h"}))[0] == "for"
    assert only_field(await client.post(f"{TYPES}/mail/{call}", {"for": "1h"}))[0] == "for"
    assert only_field(await client.post(f"{TYPES}/a%20b/{call}")) == ("job_type", right(JobType))
    assert ((await client.get(QUEUES)).json(), (await client.get(TYPES)).json()) == ([], [])


async def test_a_wrong_page_is_named(client: AsgiClient) -> None:
    assert only_field(await client.get(f"{QUEUES}?limit=0"))[0] == "limit"
    assert only_field(await client.get(f"{QUEUES}?order=name"))[0] == "order"


async def test_a_wrong_fair_key_is_named(client: AsgiClient) -> None:
    for wrong, message in (("", "at least 1 character"), ("x" * 201, "at most 200"), (5, "must be text")):
        field, told = only_field(await client.post(JOBS, {"job_type": "echo", "fair_key": wrong}))
        assert (field, message in told) == ("fair_key", True), told
    assert (await client.get(JOBS)).json() == []
