"""Webhooks over HTTP."""

from typing import Any

import pytest

from foliot.domain.feed import Position
from foliot.node.node import Node
from foliot.wire import BASE_PATH
from tests.api.client import AsgiClient, Response
from tests.service.told import carry, happened

HOOKS = f"{BASE_PATH}/webhooks"
BODY: dict[str, Any] = {"url": "https://receiver.example.org/hook", "events": ["job.queued"]}


async def make(client: AsgiClient, **fields: Any) -> dict[str, Any]:
    answer = await client.post(HOOKS, BODY | fields)
    assert answer.status == 201, answer.body
    assert answer.headers["location"] == f"{HOOKS}/{answer.json()['webhook_id']}"
    made: dict[str, Any] = answer.json()
    return made


async def test_a_secret_is_shown_once(client: AsgiClient) -> None:
    made = await make(client)
    secret = made.pop("secret")
    assert secret.startswith("whsec_")
    read = await client.get(f"{HOOKS}/{made['webhook_id']}")
    assert read.json() == made
    assert read.headers["etag"] == '"1"'
    assert (await client.get(HOOKS)).json() == [made]
    rotated = (await client.post(f"{HOOKS}/{made['webhook_id']}/rotate", {"overlap": "1h"})).json()
    assert rotated["secret"].startswith("whsec_")
    assert rotated["secret"] != secret
    assert b"whsec_" not in (await client.get(HOOKS)).body


async def test_a_webhook_is_read_with_all_its_fields(client: AsgiClient) -> None:
    made = await make(client, match={"queue": "mail"}, give_up_after="1h")
    made.pop("secret")
    webhook_id, created = made.pop("webhook_id"), made.pop("created_time")
    assert webhook_id.startswith("wh_")
    assert created.endswith("Z")
    assert made == {
        "url": BODY["url"],
        "events": ["job.queued"],
        "match": {"queue": "mail", "job_type": None, "schedule_id": None, "tag": None},
        "give_up_after": 3600,
        "enabled": True,
        "off_reason": None,
        "failing_since": None,
        "created_by": "admin",
        "version": 1,
    }


async def test_webhooks_are_listed_in_pages(client: AsgiClient) -> None:
    made = [(await make(client))["webhook_id"] for _ in range(3)]
    first = await client.get(f"{HOOKS}?limit=2")
    following = first.headers["link"].split(">")[0][1:]
    assert [each["webhook_id"] for each in first.json() + (await client.get(following)).json()] == made


async def test_a_webhook_is_changed_switched_and_deleted(client: AsgiClient) -> None:
    path = f"{HOOKS}/{(await make(client))['webhook_id']}"
    changed = await client.request("PUT", path, {"events": ["job.*"]}, headers={"if-match": '"1"'})
    assert (changed.json()["events"], changed.headers["etag"]) == (["job.*"], '"2"')
    assert (await client.request("PUT", path, {"events": ["*"]}, headers={"if-match": '"1"'})).status == 412
    off = await client.post(f"{path}/disable")
    assert (off.json()["enabled"], off.json()["off_reason"]) == (False, "switched_off")
    assert (await client.post(f"{path}/test")).status == 409
    assert (await client.post(f"{path}/redeliver")).status == 409
    assert (await client.post(f"{path}/enable", headers={"if-match": '"9"'})).status == 412
    assert (await client.post(f"{path}/enable")).json()["enabled"] is True
    assert (await client.request("DELETE", path)).status == 204
    assert (await client.get(path)).status == (await client.request("DELETE", path)).status == 404


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"url": "http://192.168.1.1/"}, "url"),
        ({"url": "gopher://example.org"}, "url"),
        ({"url": "x" * 2049}, "url"),
        ({"events": []}, "events"),
        ({"events": ["job.exploded"]}, "events[0]"),
        ({"events": ["Job Failed"]}, "events[0]"),
        ({"match": {"que": "x"}}, "match.que"),
        ({"match": {"queue": "no queue"}}, "match.queue"),
        ({"give_up_after": "1s"}, "give_up_after"),
        ({"secret": "mine"}, "secret"),
    ],
)
async def test_what_is_wrong_is_named(client: AsgiClient, fields: dict[str, Any], field: str) -> None:
    for answer in (
        await client.post(HOOKS, BODY | fields),
        await client.request("PUT", f"{HOOKS}/{(await make(client))['webhook_id']}", fields),
    ):
        assert answer.status == 400
        assert [each["field"] for each in answer.json()["errors"]] == [field], answer.body


async def delivering(node: Node, client: AsgiClient, path: str, count: int) -> None:
    """Until so many events are on their way."""
    while len((await client.get(f"{path}/deliveries")).json()) < count:
        await carry(node.store, node.services.webhooks, node.services.webhooks._clock.now(), node=node._number)


async def test_deliveries_are_listed_and_sent_again(node: Node, client: AsgiClient) -> None:
    path = f"{HOOKS}/{(await make(client, url='https://receiver.invalid/'))['webhook_id']}"
    for _ in range(3):
        await client.post(f"{BASE_PATH}/jobs", {"job_type": "nobodys"})
    await delivering(node, client, path, 3)
    listed = await client.get(f"{path}/deliveries?limit=2&state=pending")
    assert [each["event_type"] for each in listed.json()] == ["foliot.job.queued"] * 2
    rest = await client.get(listed.headers["link"].split(">")[0][1:])
    assert len(rest.json()) == 1
    assert (await client.get(f"{path}/deliveries?state=failed")).json() == []
    delivery_id = rest.json()[0]["delivery_id"]
    again = await client.post(f"{path}/deliveries/{delivery_id}/redeliver")
    assert (again.json()["delivery_id"], again.json()["state"]) == (delivery_id, "pending")
    assert (await client.post(f"{path}/deliveries/wd_{'0' * 16}/redeliver")).status == 404
    assert (await client.post(f"{path}/redeliver", {"since": "2026-01-01T00:00:00Z"})).json() == {"redelivered": 0}
    wrong: list[Response] = [
        await client.get(f"{path}/deliveries?state=lost"),
        await client.get(f"{path}/deliveries?cursor=x"),
        await client.post(f"{path}/redeliver", {"since": "yesterday"}),
        await client.post(f"{path}/rotate", {"overlap": "31d"}),
    ]
    fields = [answer.json()["errors"][0]["field"] for answer in wrong]
    assert fields == ["state", "cursor", "since", "overlap"]


async def test_a_test_is_an_event_like_any_other(node: Node, client: AsgiClient) -> None:
    webhook_id = (await make(client))["webhook_id"]
    answer = await client.post(f"{HOOKS}/{webhook_id}/test")
    assert (answer.status, answer.json()["webhook_id"]) == (202, webhook_id)
    events, _ = await happened(node.store, Position())
    assert [(event.kind, event.subject) for event in events] == [("webhook.test", webhook_id)]
