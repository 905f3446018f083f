"""Figures over HTTP: how late jobs were, how full a queue is, metrics."""

from typing import Any

import pytest

from foliot.api import create_app
from foliot.node.node import Node
from foliot.telemetry.counters import counted
from tests.api.client import KEY, AsgiClient

BASE = "/api/v1"


@pytest.fixture
async def ended(client: AsgiClient) -> str:
    """A job of the queue mail that has run."""
    job_id = (await client.post(f"{BASE}/jobs", {"job_type": "send", "queue": "mail"})).json()["job_id"]
    worker = (await client.post(f"{BASE}/workers", {"name": "w", "resources": {"slot": 1}})).json()["worker_id"]
    exchange = f"{BASE}/workers/{worker}/exchange"
    (job,) = (await client.post(exchange, {"free": {"slot": 1}})).json()["jobs"]
    report = {"job_id": job_id, "attempt": 1, "token": job["token"], "status": "success"}
    assert (await client.post(exchange, {"reports": [report]})).json()["rejected"] == []
    return str(job_id)


async def make_client(admin: AsgiClient, node: Node, **fields: Any) -> AsgiClient:
    made = await admin.post(f"{BASE}/api-keys", {"name": "k", "role": "viewer", **fields})
    return AsgiClient(create_app(node.services, admin_key=KEY), key=made.json()["key"])


async def test_lateness_is_told_by_queue_and_job_type(client: AsgiClient, ended: str) -> None:
    (found,) = (await client.get(f"{BASE}/stats/lateness")).json()
    assert (found["queue"], found["job_type"], found["jobs"]) == ("mail", "send", 1)
    assert set(found["late"]) == {"p50", "p90", "p99", "p999", "max"}
    assert found["start"] is None
    assert found["late"]["max"] == pytest.approx(found["admit"]["max"] + found["claim"]["max"])
    (by_queue,) = (await client.get(f"{BASE}/stats/lateness?by=queue&queue=mail")).json()
    assert (by_queue["queue"], by_queue["job_type"]) == ("mail", None)
    assert (await client.get(f"{BASE}/stats/lateness?job_type=another")).json() == []
    assert (await client.get(f"{BASE}/stats/lateness?until=2026-01-01T00:00:00Z")).json() == []


@pytest.mark.parametrize(
    ("query", "field"),
    [
        ("by=tag", "by"),
        ("since=2026-02-01T00:00:00Z&until=2026-01-01T00:00:00Z", "since"),
        ("since=2020-01-01T00:00:00Z&until=2026-01-01T00:00:00Z", "since"),
        ("since=yesterday", "since"),
    ],
)
async def test_a_question_that_makes_no_sense_is_refused(client: AsgiClient, query: str, field: str) -> None:
    answer = await client.get(f"{BASE}/stats/lateness?{query}")
    assert answer.status == 400
    assert [each["field"] for each in answer.json()["errors"]] == [field]


async def test_a_depth_is_told_of_any_queue(client: AsgiClient, ended: str) -> None:
    await client.post(f"{BASE}/jobs", {"job_type": "send", "queue": "mail"})
    depth = (await client.get(f"{BASE}/queues/mail/depth")).json()
    assert (depth["queue"], depth["waiting"], depth["running"]) == ("mail", 1, 0)
    assert depth["oldest_wait"] > 0
    assert (await client.get(f"{BASE}/queues/new/depth")).json() == {
        "queue": "new",
        "waiting": 0,
        "running": 0,
        "oldest_wait": 0,
    }


async def test_a_narrowed_key_is_told_of_what_it_reaches(client: AsgiClient, node: Node, ended: str) -> None:
    reports = await make_client(client, node, queues=["reports"])
    assert (await reports.get(f"{BASE}/stats/lateness")).json() == []
    assert (await reports.get(f"{BASE}/queues/mail/depth")).status == 404
    assert (await reports.get(f"{BASE}/queues/reports/depth")).status == 200
    assert "mail" not in (await reports.get("/metrics")).body.decode()


async def test_metrics_are_told_in_the_form_that_is_taken(client: AsgiClient, node: Node, ended: str) -> None:
    answer = await client.get("/metrics")
    assert answer.headers["content-type"].startswith("application/openmetrics-text")
    assert f'job_id="{ended}"' in answer.body.decode()
    plain = await client.get("/metrics", headers={"accept": "text/plain"})
    assert plain.headers["content-type"].startswith("text/plain")
    assert "foliot_store_fact" in plain.body.decode()
    viewer = await make_client(client, node)
    assert "foliot_store_fact" not in (await viewer.get("/metrics")).body.decode()


async def test_requests_are_counted_by_route_and_never_by_address(client: AsgiClient, stranger: AsgiClient) -> None:
    async def grown(route: str, status: str, *paths: str, by: AsgiClient = client) -> int:
        before = counted("http_requests").get((route, status), 0)
        for path in paths:
            await by.get(path)
        return counted("http_requests")[route, status] - before

    assert await grown("GET /api/v1/jobs/{job_id}", "4xx", f"{BASE}/jobs/one", f"{BASE}/jobs/two") == 2
    assert await grown("GET /api/v1/queues", "2xx", f"{BASE}/queues") == 1
    assert await grown("GET /api/v1/queues", "4xx", f"{BASE}/queues", by=stranger) == 1
    assert await grown("none", "4xx", "/nowhere", "/nowhere/else") == 2
