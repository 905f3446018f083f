"""Rules, incidents and channels over HTTP."""

from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest

from foliot.api import create_app
from foliot.main import open_node
from foliot.settings import Settings
from foliot.wire import BASE_PATH
from tests.alerts.receiver import Receiver
from tests.api.client import KEY, AsgiClient
from tests.api.worker import Worker

ALERTS, CHANNELS, INCIDENTS = f"{BASE_PATH}/alerts", f"{BASE_PATH}/channels", f"{BASE_PATH}/alerts/incidents"


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    receiver = Receiver()
    yield receiver
    receiver.close()


@pytest.fixture
async def client(tmp_path: Path, receiver: Receiver) -> AsyncIterator[AsgiClient]:
    settings = Settings(data_dir=str(tmp_path), worker=False, admin_key=KEY, http_allow=receiver.allow)
    node = await open_node(settings)
    yield AsgiClient(create_app(node.services, admin_key=KEY))
    await node.stop()


async def make_channel(client: AsgiClient, receiver: Receiver) -> None:
    answer = await client.post(CHANNELS, {"name": "ops", "url": receiver.url})
    assert answer.status == 201, answer.body
    assert answer.headers["location"] == f"{CHANNELS}/ops"


async def make_rule(client: AsgiClient, **fields: Any) -> Any:
    answer = await client.post(ALERTS, {"name": "r", "on": "failed", "channels": ["ops"], **fields})
    assert answer.status == 201, answer.body
    return answer.json()


async def test_a_failure_becomes_an_incident_that_people_look_after(client: AsgiClient, receiver: Receiver) -> None:
    await make_channel(client, receiver)
    await make_rule(client, throttle=0)
    worker = await Worker.register(client)
    await client.post(f"{BASE_PATH}/jobs", {"job_type": "echo", "job_id": "a", "payload": {"password": "hunter2"}})
    (job,) = await worker.take()
    await worker.report(job, "fatal_failure", error="boom")
    (notice,) = await receiver.received(1)
    assert notice["title"] == "Jobs of default/echo fail"
    assert "hunter2" not in str(notice)
    (incident,) = (await client.get(INCIDENTS)).json()
    assert (incident["status"], incident["subject"], incident["jobs"]) == ("open", "default/echo", ["a"])
    path = f"{INCIDENTS}/{incident['incident_id']}"
    assert (await client.post(f"{path}/acknowledge")).json()["acknowledged_by"] == "admin"
    silenced = await client.post(f"{path}/silence", {"for": "1ms"})
    assert silenced.json()["silenced_until"] is not None
    assert (await client.post(f"{path}/resolve")).json()["status"] == "resolved"
    assert (await client.post(f"{path}/resolve")).status == 409
    assert (await client.get(path)).json()["resolved_time"] is not None
    await receiver.received(2)
    assert receiver.titles[1] == "[over] Jobs of default/echo fail"


async def test_a_rule_is_made_read_changed_and_deleted(client: AsgiClient, receiver: Receiver) -> None:
    await make_channel(client, receiver)
    made = await make_rule(client, match={"queue": "mail"})
    read = await client.get(f"{ALERTS}/r")
    assert read.json() == made
    assert read.headers["etag"] == '"1"'
    assert made["match"] == {"queue": "mail"}
    changed = await client.request("PUT", f"{ALERTS}/r", {"throttle": "1h"}, headers={"if-match": '"1"'})
    assert (changed.json()["throttle"], changed.json()["version"]) == (3600, 2)
    stale = await client.request("PUT", f"{ALERTS}/r", {"throttle": "1h"}, headers={"if-match": '"1"'})
    assert stale.status == 412
    assert (await client.get(ALERTS)).json() == [changed.json()]
    assert (await client.request("DELETE", f"{ALERTS}/r")).status == 204
    assert (await client.request("DELETE", f"{ALERTS}/r")).status == 404


async def test_a_channel_shows_nothing_of_its_address(client: AsgiClient, receiver: Receiver) -> None:
    await make_channel(client, receiver)
    (channel,) = (await client.get(CHANNELS)).json()
    assert (channel["name"], channel["url"]) == ("ops", "json://***")
    assert (await client.get(f"{CHANNELS}/ops")).json() == channel
    changed = await client.request("PUT", f"{CHANNELS}/ops", {"url": f"{receiver.url}-2"})
    assert changed.json()["version"] == 2
    assert (await client.post(f"{CHANNELS}/ops/test")).json() == {"sent": True, "error": None}
    assert receiver.titles == ["A test from Foliot"]
    assert (await client.request("DELETE", f"{CHANNELS}/ops")).status == 204


@pytest.mark.parametrize(
    ("path", "body", "field"),
    [
        (ALERTS, {"name": "r", "on": "failed", "channels": ["nobody"]}, "channels[0]"),
        (ALERTS, {"name": "r", "on": "failed", "channels": []}, "channels"),
        (ALERTS, {"name": "r", "on": "often", "channels": ["ops"]}, "on"),
        (ALERTS, {"name": "r", "on": "late", "channels": ["ops"]}, "after"),
        (ALERTS, {"name": "incidents", "on": "failed", "channels": ["ops"]}, "name"),
        (ALERTS, {"name": "a/b", "on": "failed", "channels": ["ops"]}, "name"),
        (ALERTS, {"name": "r", "on": "failed", "channels": ["ops"], "match": {"que": "x"}}, "match.que"),
        (CHANNELS, {"name": "x", "url": "syslog://"}, "url"),
        (CHANNELS, {"name": "x", "url": "no url"}, "url"),
        (f"{INCIDENTS}/i_0000000000000001/silence", {"for": "soon"}, "for"),
        (
            f"{BASE_PATH}/jobs",
            {"job_type": "x", "notify": {"on": ["failed"], "channels": ["no"]}},
            "notify.channels[0]",
        ),
        (f"{BASE_PATH}/jobs", {"job_type": "x", "notify": {"on": ["often"]}}, "notify.on[0]"),
    ],
)
async def test_what_is_wrong_is_named(client: AsgiClient, path: str, body: dict[str, Any], field: str) -> None:
    answer = await client.post(path, body)
    assert answer.status == 400, answer.body
    assert [error["field"] for error in answer.json()["errors"]] == [field]


async def test_what_queues_and_jobs_say_is_read_back(client: AsgiClient, receiver: Receiver) -> None:
    await make_channel(client, receiver)
    notify = {"on": ["failed", "late"], "late_after": "30s", "channels": ["ops"]}
    shown = {"on": ["failed", "late"], "late_after": 30, "channels": ["ops"]}
    objective = {"target": 0.99, "within": "1s", "over": "7d"}
    queue = await client.request("PUT", f"{BASE_PATH}/queues/mail", {"notify": notify, "objective": objective})
    assert queue.json()["notify"] == shown
    assert queue.json()["objective"] == {"target": 0.99, "within": 1, "over": 604800}
    await client.post(f"{BASE_PATH}/jobs", {"job_type": "x", "job_id": "a", "notify": notify})
    assert (await client.get(f"{BASE_PATH}/jobs/a")).json()["notify"] == shown
    await client.request("PUT", f"{BASE_PATH}/jobs/a", {"notify": None})
    assert (await client.get(f"{BASE_PATH}/jobs/a")).json()["notify"] is None
