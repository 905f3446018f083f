"""Concurrency keys over HTTP."""

from typing import Any
from urllib.parse import quote

import pytest

from tests.api.client import AsgiClient
from tests.api.test_bad_input import only_field, refusal
from tests.api.test_jobs import next_page
from tests.api.worker import Worker

JOBS, LIMITS = "/api/v1/jobs", "/api/v1/limits"


async def submit(client: AsgiClient, job_id: str, key: str = "k", limit: int = 1) -> None:
    body = {"job_type": "echo", "job_id": job_id, "concurrency": {"key": key, "limit": limit}}
    answer = await client.post(JOBS, body)
    assert answer.status == 201, answer.body


async def test_who_holds_a_token_and_who_waits_is_shown(client: AsgiClient) -> None:
    await submit(client, "a")
    worker = await Worker.register(client)
    (held,) = await worker.take()
    await submit(client, "b")
    shown = (await client.get(f"{JOBS}/b")).json()
    assert (shown["status"], shown["reason"], shown["concurrency"]) == ("queued", "limit", {"key": "k", "limit": 1})
    expected = {"key": "k", "limit": 1, "held": 1, "waiting": 1, "holders": ["a"], "waiters": ["b"]}
    assert (await client.get(LIMITS)).json() == [expected]
    assert (await client.get(f"{LIMITS}/k")).json() == expected
    await worker.report(held, "success")
    (following,) = await worker.take()
    assert following["job_id"] == "b"
    await worker.report(following, "success")
    assert (await client.get(f"{LIMITS}/k")).json()["held"] == 0


async def test_a_limit_is_raised_and_lowered(client: AsgiClient) -> None:
    await submit(client, "a")
    worker = await Worker.register(client)
    await worker.take()
    await submit(client, "b")
    answer = await client.request("PUT", f"{LIMITS}/k", {"limit": 2})
    assert (answer.status, answer.json()["limit"], answer.json()["held"]) == (200, 2, 2)
    (second,) = await worker.take()
    assert second["job_id"] == "b"
    assert (await client.request("PUT", f"{LIMITS}/k", {"limit": 1})).json()["held"] == 2


async def test_keys_come_page_by_page(client: AsgiClient) -> None:
    names = ["a b", "a/b", "c&d=e", "é", "z" * 200]
    for number, name in enumerate(names):
        await submit(client, f"job{number}", name)
    seen: list[str] = []
    target: str | None = f"{LIMITS}?limit=2"
    while target:
        answer = await client.get(target)
        seen += [each["key"] for each in answer.json()]
        target = next_page(answer)
    assert sorted(seen) == sorted(names)
    for name in names:
        assert (await client.get(f"{LIMITS}/{quote(name, safe='')}")).json()["key"] == name


async def test_an_unknown_key_is_404(client: AsgiClient) -> None:
    assert "there is no concurrency key" in refusal(await client.get(f"{LIMITS}/nobody"), 404)["detail"]
    for wrong in ("x" * 201, "a%00b", ""):
        assert (await client.request("PUT", f"{LIMITS}/{wrong}", {"limit": 1})).status == 404


@pytest.mark.parametrize(
    ("concurrency", "field", "message"),
    [
        ({"key": "k", "limit": 0}, "concurrency.limit", "must be at least 1"),
        ({"key": "k", "limit": -1}, "concurrency.limit", "must be at least 1"),
        ({"key": "k", "limit": 10**9}, "concurrency.limit", "must be at most 1000000"),
        ({"key": "k", "limit": 1.5}, "concurrency.limit", "must be a whole number"),
        ({"key": "k"}, "concurrency.limit", "is required"),
        ({"limit": 1}, "concurrency.key", "is required"),
        ({"key": "", "limit": 1}, "concurrency.key", "must have at least 1 character"),
        ({"key": "x" * 201, "limit": 1}, "concurrency.key", "must have at most 200 characters"),
        ({"key": "a\nb", "limit": 1}, "concurrency.key", "without control characters"),
        ({"key": "k", "limits": 1}, "concurrency.limits", "did you mean limit?"),
        ("k", "concurrency", "must be an object or null"),
    ],
    ids=str,
)
async def test_a_wrong_key_is_named(client: AsgiClient, concurrency: Any, field: str, message: str) -> None:
    body = {"job_type": "echo", "concurrency": concurrency}
    told_field, told = only_field(await client.post(JOBS, body))
    assert (told_field, message in told) == (field, True), told
    assert only_field(await client.post(f"{JOBS}/batch", {"jobs": [body]}))[0] == f"jobs[0].{field}"
    assert only_field(await client.request("PUT", f"{JOBS}/a", {"concurrency": concurrency}))[0] == field
    assert ((await client.get(JOBS)).json(), (await client.get(LIMITS)).json()) == ([], [])


@pytest.mark.parametrize("body", [{}, {"limit": 0}, {"limit": "2"}, {"limit": 10**7}])
async def test_a_wrong_limit_is_named(client: AsgiClient, body: dict[str, Any]) -> None:
    assert only_field(await client.request("PUT", f"{LIMITS}/k", body))[0] == "limit"
    assert (await client.get(LIMITS)).json() == []


@pytest.mark.parametrize(
    ("wrong", "field", "message"),
    [
        ({"resources": {"cpu": -1}}, "resources.cpu", "is from 0 to"),
        ({"resources": {"memory": "9999999Ti"}}, "resources.memory", "is from 0 to"),
        ({"resources": {"gpu": 1e300}}, "resources.gpu", "is from 0 to"),
        ({"resources": {"memory": "much"}}, "resources.memory", 'one with a unit such as "256Mi"'),
        ({"resources": {"": 1}}, "resources.", "a resource's name is"),
        ({"resources": {f"r{n}": 1 for n in range(17)}}, "resources", "must have at most 16 entries"),
        ({"requires": {"zone": 5}}, "requires[...]", "must be text"),
        ({"unique_key": ""}, "unique_key", "must have at least 1 character"),
    ],
    ids=str,
)
async def test_what_can_not_be_asked_of_a_worker_is_named(
    client: AsgiClient, wrong: dict[str, Any], field: str, message: str
) -> None:
    told_field, told = only_field(await client.post(JOBS, {"job_type": "echo"} | wrong))
    assert (told_field, message in told) == (field, True), told
    assert (await client.get(JOBS)).json() == []
    template = {"schedule_id": "s", "every": "1h", "job": {"job_type": "echo"} | wrong}
    assert only_field(await client.post("/api/v1/schedules", template))[0] == f"job.{field}"
