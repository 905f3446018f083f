"""Graphs over HTTP: a whole one in one request, run, shown and run again."""

from typing import Any

import pytest

from foliot.wire import BATCH_LIMIT
from tests.api.client import AsgiClient
from tests.api.test_bad_input import only_field
from tests.api.worker import Worker

JOBS = "/api/v1/jobs"


async def submit(client: AsgiClient, *jobs: dict[str, Any]) -> Any:
    answer = await client.post(f"{JOBS}/batch", {"jobs": [{"job_type": "echo"} | job for job in jobs]})
    assert answer.status == 201, answer.body
    return answer.json()


async def job(client: AsgiClient, job_id: str) -> Any:
    return (await client.get(f"{JOBS}/{job_id}")).json()


async def ended(client: AsgiClient, job_id: str) -> Any:
    """The job, once the stream of its log has ended, which is when it has."""
    await client.get(f"{JOBS}/{job_id}/logs", headers={"accept": "text/event-stream"})
    return await job(client, job_id)


async def test_a_graph_is_submitted_at_once_and_runs_in_its_order(client: AsgiClient) -> None:
    answer = await submit(
        client,
        {"job_id": "sum", "depends_on": ["left", {"job_id": "right", "on": "any"}]},
        {"job_id": "left", "depends_on": ["start"]},
        {"job_id": "right", "depends_on": ["start"]},
        {"job_id": "start"},
    )
    assert answer == {"status": "submitted", "job_ids": ["sum", "left", "right", "start"]}
    shown = await job(client, "sum")
    assert (shown["status"], shown["reason"]) == ("blocked", "dependency")
    assert shown["depends_on"] == [{"job_id": "left", "on": "success"}, {"job_id": "right", "on": "any"}]
    worker = await Worker.register(client)
    (start,) = await worker.take(5)
    await worker.report(start, "success", result={"n": 1})
    seen: list[str] = []
    while len(seen) < 2:
        for each in await worker.take(5):
            assert each["upstream"] == {"start": {"status": "completed", "result": {"n": 1}}}
            seen.append(each["job_id"])
            await worker.report(each, "success" if each["job_id"] == "left" else "fatal_failure")
    (last,) = await worker.take(5)
    assert (sorted(seen), last["job_id"]) == (["left", "right"], "sum")
    assert last["upstream"] == {
        "left": {"status": "completed", "result": None},
        "right": {"status": "failed", "result": None},
    }


async def test_a_graph_is_shown(client: AsgiClient) -> None:
    await submit(client, {"job_id": "a"}, {"job_id": "b", "depends_on": [{"job_id": "a", "on": "failure"}]})
    answer = await client.get(f"{JOBS}/b/graph")
    assert (answer.status, answer.json()) == (
        200,
        {
            "nodes": [
                {"job_id": "b", "job_type": "echo", "status": "blocked"},
                {"job_id": "a", "job_type": "echo", "status": "queued"},
            ],
            "edges": [{"from": "a", "to": "b", "on": "failure"}],
            "complete": True,
        },
    )
    assert (await client.get(f"{JOBS}/nobody/graph")).status == 404


async def test_a_failed_job_runs_again_with_its_dependents(client: AsgiClient) -> None:
    await submit(client, {"job_id": "a"}, {"job_id": "b", "depends_on": ["a"]})
    worker = await Worker.register(client)
    (first,) = await worker.take()
    await worker.report(first, "fatal_failure")
    child = await ended(client, "b")
    assert (child["status"], child["reason"]) == ("cancelled", "parent_failed")
    answer = await client.post(f"{JOBS}/a/retry", {"dependents": True, "payload": [7]})
    assert (answer.status, answer.json()) == (200, {"status": "queued", "job_id": "a"})
    (again,) = await worker.take()
    assert (again["job_id"], again["attempt"], again["payload"]) == ("a", 2, [7])
    await worker.report(again, "success")
    (following,) = await worker.take()
    assert following["job_id"] == "b"


async def test_many_run_again_with_another_payload(client: AsgiClient) -> None:
    await submit(client, {"job_id": "a"}, {"job_id": "b", "payload": 1})
    worker = await Worker.register(client)
    for each in await worker.take(2):
        await worker.report(each, "fatal_failure")
    body = {"filter": {"status": "failed"}, "payload": {"fixed": True}}
    assert (await client.post(f"{JOBS}/retry", body | {"dry_run": True})).json() == {"matched": 2, "changed": 0}
    assert (await client.post(f"{JOBS}/retry", body)).json() == {"matched": 2, "changed": 2}
    assert [each["payload"] for each in await worker.take(2)] == [{"fixed": True}] * 2
    assert only_field(await client.post(f"{JOBS}/cancel", body))[0] == "payload"


@pytest.mark.parametrize(
    ("depends_on", "field", "message"),
    [
        (["nobody"], "depends_on[0]", "there is no job 'nobody'"),
        (["a", {"job_id": "nobody"}], "depends_on[1]", "there is no job 'nobody'"),
        (["a", {"job_id": "a", "on": "any"}], "depends_on[1]", "named twice with different `on`"),
        ([{"job_id": "a", "on": "sometimes"}], "depends_on[0].on", "must be one of any, failure, success"),
        ([{"job_id": "a", "if": "any"}], "depends_on[0].if", "there is no such field"),
        ([{"on": "any"}], "depends_on[0].job_id", "is required"),
        (["a b"], "depends_on[0]", "must be 1–128 of"),
        ([5], "depends_on[0]", "must be"),
        ("a", "depends_on", "must be a list"),
        (["self"], "depends_on", "self → self"),
        ([f"x{n}" for n in range(10_001)], "depends_on", "must have at most 10000 entries"),
    ],
    ids=lambda value: str(value)[:30],
)
async def test_a_wrong_dependency_is_named(client: AsgiClient, depends_on: Any, field: str, message: str) -> None:
    plain = [{"job_type": "echo", "job_id": name} for name in "abc"]
    wrong = {"job_type": "echo", "job_id": "self", "depends_on": depends_on}
    told_field, told = only_field(await client.post(f"{JOBS}/batch", {"jobs": [*plain, wrong]}))
    assert (told_field, message in told) == (f"jobs[3].{field}", True), told
    assert (await client.get(JOBS)).json() == []
    await submit(client, *plain)
    told_field, told = only_field(await client.post(JOBS, wrong))
    assert (told_field, message in told) == (field, True), told
    assert len((await client.get(JOBS)).json()) == 3


async def test_a_circle_is_named(client: AsgiClient) -> None:
    jobs = [
        {"job_type": "echo", "job_id": "a", "depends_on": ["b"]},
        {"job_type": "echo", "job_id": "b", "depends_on": ["a"]},
    ]
    field, told = only_field(await client.post(f"{JOBS}/batch", {"jobs": jobs}))
    assert (field, "a → b → a" in told) == ("jobs[0].depends_on", True)


async def test_one_job_too_many_is_refused(client: AsgiClient) -> None:
    jobs = [{"job_type": "echo"}] * (BATCH_LIMIT + 1)
    assert only_field(await client.post(f"{JOBS}/batch", {"jobs": jobs})) == (
        "jobs",
        "must have at most 10000 entries",
    )


async def test_what_a_job_depends_on_can_not_be_changed(client: AsgiClient) -> None:
    await submit(client, {"job_id": "a"})
    answer = await client.request("PUT", f"{JOBS}/a", {"depends_on": []})
    assert only_field(answer)[0] == "depends_on"


async def test_a_duplicate_is_answered_with_200_and_the_job_that_waits(client: AsgiClient) -> None:
    body = {"job_type": "echo", "unique_key": "nightly"}
    first = await client.post(JOBS, body)
    again = await client.post(JOBS, body)
    assert (first.status, first.json()) == (201, {"status": "submitted", "job_id": first.json()["job_id"]})
    assert (again.status, again.json()) == (200, first.json() | {"duplicate": True})
    assert again.headers["location"] == first.headers["location"]
    batch = await client.post(f"{JOBS}/batch", {"jobs": [{"job_type": "echo"}, body]})
    assert (batch.status, batch.json()["duplicates"]) == (201, [1])
    assert batch.json()["job_ids"][1] == first.json()["job_id"]


async def test_a_unique_key_can_not_be_changed(client: AsgiClient) -> None:
    job_id = (await client.post(JOBS, {"job_type": "echo", "unique_key": "u"})).json()["job_id"]
    answer = await client.request("PUT", f"{JOBS}/{job_id}", {"unique_key": "v"})
    assert only_field(answer)[0] == "unique_key"
    assert (await job(client, job_id))["unique_key"] == "u"
