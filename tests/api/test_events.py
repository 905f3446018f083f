"""Following what happens over HTTP."""

import msgspec

from tests.api.client import AsgiClient, Request
from tests.api.worker import Worker

EVENTS = "/api/v1/events"
JOBS = "/api/v1/jobs"


def read(chunk: bytes) -> list[dict[str, str]]:
    """The fields of each message."""
    return [
        dict(line.split(": ", 1) for line in message.split("\n"))
        for message in chunk.decode().strip("\n").split("\n\n")
    ]


async def follow(client: AsgiClient, query: str = "", **headers: str) -> tuple[Request, str]:
    """A stream that is live, and where it stands."""
    request = client.start("GET", f"{EVENTS}{query}", headers=headers)
    start = await request.messages.get()
    assert start["status"] == 200
    assert (b"content-type", b"text/event-stream") in start["headers"]
    (mark,) = read((await request.messages.get())["body"])
    assert set(mark) == {"id"}
    return request, mark["id"]


async def test_events_are_cloud_events_and_go_on_from_the_last_one_seen(client: AsgiClient) -> None:
    request, _ = await follow(client, "?job_type=echo&status=queued&status=completed")
    assert (await client.post(JOBS, {"job_type": "echo", "job_id": "a"})).status == 201
    assert (await client.post(JOBS, {"job_type": "other", "job_id": "b"})).status == 201
    (queued,) = read((await request.messages.get())["body"])
    event = msgspec.json.decode(queued["data"])
    assert queued["event"] == event["type"] == "foliot.job.queued"
    assert {name: event[name] for name in ("specversion", "subject", "source", "datacontenttype")} == {
        "specversion": "1.0",
        "subject": "a",
        "source": "/foliot/default",
        "datacontenttype": "application/json",
    }
    assert event["data"]["job_type"] == "echo"
    request.hang_up()
    await request.task

    worker = await Worker.register(client)
    for job in await worker.take():
        await worker.report(job, "success")
    again, _ = await follow(client, "?job_type=echo&status=completed", **{"last-event-id": queued["id"]})
    (completed,) = read((await again.messages.get())["body"])
    assert msgspec.json.decode(completed["data"])["subject"] == "a"
    again.hang_up()
    await again.task


async def test_wrong_questions_are_refused_before_the_stream_begins(client: AsgiClient) -> None:
    for query, field in (
        ("job_id=nobody", "job_id"),
        ("status=done", "status"),
        ("queue=a%20b", "queue"),
        ("after=x", "Last-Event-ID"),
        ("limit=3", "limit"),
    ):
        refused = await client.get(f"{EVENTS}?{query}")
        assert refused.status == 400, query
        assert refused.json()["errors"][0]["field"].split("[")[0] == field
    assert (await client.get(EVENTS, headers={"last-event-id": "é".encode().decode("latin-1")})).status == 400
    assert (await client.get(EVENTS, headers={"last-event-id": "2_1_1.1"})).status == 410


async def test_a_stream_ends_when_the_client_has_gone(client: AsgiClient) -> None:
    request, _ = await follow(client)
    request.hang_up()
    await request.task
    assert request.messages.empty()
