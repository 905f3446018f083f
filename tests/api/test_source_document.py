"""The calls of the document that the product began with work as they are written there, field by field."""

from typing import Any

from tests.api.client import AsgiClient
from tests.api.worker import Worker

JOBS = "/api/v1/jobs"
TIME = "2030-01-01T10:00:00Z"


def submission(job_id: str, **changed: Any) -> dict[str, Any]:
    return {
        "job_id": job_id,
        "job_type": "data_processing",
        "schedule_time": TIME,
        "priority": "high",
        "payload": {"key": "value"},
    } | changed


async def run(client: AsgiClient, worker: Worker, *statuses: str) -> None:
    """Attempts of the one job that is ready, ending as told."""
    for status in statuses:
        (job,) = await worker.take()
        await worker.report(job, status)


async def test_a_job_is_submitted(client: AsgiClient) -> None:
    answer = await client.post(JOBS, submission("report-1"))
    assert answer.status == 201
    assert answer.json() == {"status": "submitted", "job_id": "report-1"}
    kept = (await client.get(f"{JOBS}/report-1")).json()
    for field, value in submission("report-1").items():
        assert kept[field] == value


async def test_each_word_for_a_priority_is_taken(client: AsgiClient) -> None:
    for word in ("high", "medium", "low"):
        assert (await client.post(JOBS, submission(word, priority=word))).status == 201
        assert (await client.get(f"{JOBS}/{word}")).json()["priority"] == word


async def test_a_job_is_updated(client: AsgiClient) -> None:
    await client.post(JOBS, submission("report-1"))
    change = {"schedule_time": "2031-06-01T00:00:00Z", "priority": "low", "payload": {"key": "updated_value"}}
    answer = await client.request("PUT", f"{JOBS}/report-1", change)
    assert answer.status == 200
    assert answer.json() == {"status": "updated", "job_id": "report-1"}
    kept = (await client.get(f"{JOBS}/report-1")).json()
    for field, value in change.items():
        assert kept[field] == value
    assert kept["job_type"] == "data_processing"


async def test_a_job_is_cancelled(client: AsgiClient) -> None:
    await client.post(JOBS, submission("report-1"))
    answer = await client.request("DELETE", f"{JOBS}/report-1")
    assert answer.status == 200
    assert answer.json() == {"status": "cancelled", "job_id": "report-1"}
    assert (await client.get(f"{JOBS}/report-1")).json()["status"] == "cancelled"


async def test_the_status_of_a_job_is_read(client: AsgiClient) -> None:
    await client.post(
        JOBS, submission("report-1", schedule_time="2024-12-17T00:00:00Z", retry={"delays": [0, 0], "jitter": 0})
    )
    waiting = (await client.get(f"{JOBS}/report-1")).json()
    assert (waiting["status"], waiting["start_time"], waiting["end_time"], waiting["retries"]) == (
        "queued",
        None,
        None,
        0,
    )

    worker = await Worker.register(client)
    await run(client, worker, "retriable_failure", "retriable_failure")
    (job,) = await worker.take()
    running = (await client.get(f"{JOBS}/report-1")).json()
    assert (running["status"], running["end_time"], running["retries"]) == ("running", None, 2)
    await worker.report(job, "success")

    done = (await client.get(f"{JOBS}/report-1")).json()
    assert (done["job_id"], done["status"], done["retries"]) == ("report-1", "completed", 2)
    assert done["created_time"] <= done["start_time"] <= done["end_time"]
    assert done["end_time"].endswith("Z")


async def test_a_job_that_failed_is_read(client: AsgiClient) -> None:
    await client.post(JOBS, submission("report-1", schedule_time="2024-12-17T00:00:00Z"))
    await run(client, await Worker.register(client), "fatal_failure")
    assert (await client.get(f"{JOBS}/report-1")).json()["status"] == "failed"


async def test_jobs_are_listed_by_status_type_and_time(client: AsgiClient) -> None:
    past = "2024-12-18T10:00:00Z"
    worker = await Worker.register(client, job_types=["data_processing"])
    await client.post(JOBS, submission("done", schedule_time=past))
    await run(client, worker, "success")
    await client.post(JOBS, submission("too-early", schedule_time="2024-12-16T23:59:59Z"))
    await run(client, worker, "success")
    await client.post(JOBS, submission("another-type", schedule_time=past, job_type="report_generation"))
    await client.post(JOBS, submission("not-done"))

    query = "status=completed&job_type=data_processing&start_time=2024-12-17T00:00:00Z"
    listed = (await client.get(f"{JOBS}?{query}")).json()
    assert [(job["job_id"], job["status"], job["schedule_time"]) for job in listed] == [("done", "completed", past)]

    everything = (await client.get(JOBS)).json()
    assert [(job["job_id"], job["status"]) for job in everything] == [
        ("not-done", "scheduled"),
        ("another-type", "queued"),
        ("too-early", "completed"),
        ("done", "completed"),
    ]
