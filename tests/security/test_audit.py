"""Every change leaves a word in the audit log before it is done, refused ones too; no secret is ever in it."""

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest

from foliot.api import create_app
from foliot.api.routes import ROUTES, Route
from foliot.domain.audit import AuditEntry
from foliot.domain.errors import StoreFull
from foliot.node.node import Node
from foliot.wire import BASE_PATH
from tests.api.client import KEY, AsgiClient
from tests.security.requests import WRITES, ask, body, title
from tests.security.site import HOME, Site, expect
from tests.security.test_narrowed_keys import objects

NOT_NOTED = {  # each says why
    f"POST {BASE_PATH}/jobs": "a job carries its owner",
    f"POST {BASE_PATH}/jobs/batch": "a job carries its owner",
    f"POST {BASE_PATH}/schedules/preview": "nothing is changed",
    f"POST {BASE_PATH}/workers": "a worker at its work",
    f"POST {BASE_PATH}/workers/{{worker_id}}/exchange": "a worker at its work",
    f"DELETE {BASE_PATH}/workers/{{worker_id}}": "a worker at its work",
}
NOTED = tuple(route for route in WRITES if title(route) not in NOT_NOTED)
AUDIT = f"{BASE_PATH}/audit"
PLANTED = "hunter2-planted"


async def entries(site: Site) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = expect(await site.root.get(f"{AUDIT}?limit=1000"), 200)
    return found


def test_every_change_is_noted_but_these() -> None:
    assert {title(route) for route in ROUTES if route.audited} == {title(route) for route in NOTED}
    assert {title(route) for route in WRITES if route.permission in ("control", "manage")} <= {
        title(route) for route in NOTED
    }


@pytest.mark.parametrize("route", NOTED, ids=title)
async def test_a_change_is_noted_with_who_what_and_from_where(furnished: Site, route: Route) -> None:
    key = await furnished.make_key("admin")
    caller = furnished.client(key["key"], source="198.51.100.7")
    before = len(await entries(furnished))
    answer = await ask(caller, route, furnished.names, headers={"x-request-id": "mine"})
    *refused, asked = (await entries(furnished))[:-before]
    assert asked["outcome"] == "asked"
    assert asked["action"] == title(route)
    assert (asked["actor"], asked["key_id"], asked["namespace"]) == (key["name"], key["key_id"], HOME)
    assert (asked["source"], asked["request_id"]) == ("198.51.100.7", "mine")
    assert all(f"{name}=" in asked["object"] for name in furnished.names if f"{{{name}}}" in route.path)
    if answer.status >= 400:
        assert [each["outcome"].split(":")[0] for each in refused] == ["refused"]
    else:
        assert refused == []


@pytest.mark.parametrize("route", [route for route in NOTED if route.permission != "known"], ids=title)
async def test_a_change_that_was_denied_is_noted(furnished: Site, route: Route) -> None:
    key = await furnished.make_key("viewer")
    before = len(await entries(furnished))
    assert (await ask(furnished.client(key["key"]), route, furnished.names)).status == 403
    (denied,) = (await entries(furnished))[:-before]
    assert (denied["outcome"], denied["action"], denied["key_id"]) == ("denied", title(route), key["key_id"])


@pytest.mark.parametrize("route", NOTED, ids=title)
async def test_nothing_is_done_that_could_not_be_noted(
    furnished: Site, route: Route, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def full(entries: Sequence[AuditEntry]) -> list[AuditEntry]:
        raise StoreFull("no room")

    admin = await furnished.caller("admin")
    before = await objects(admin, furnished)
    monkeypatch.setattr(furnished.world.store, "append_audit", full)
    assert (await ask(furnished.root, route, furnished.names)).status == 503
    assert await objects(admin, furnished) == before


async def test_a_browser_without_its_token_is_noted(furnished: Site) -> None:
    headers, _ = await furnished.browser("admin")
    assert (await furnished.client(None).post(f"{BASE_PATH}/queues/line/resume", headers=headers)).status == 403
    assert (await entries(furnished))[0]["outcome"] == "denied"


@pytest.mark.parametrize(
    ("path", "sent", "told"),
    [
        ("api-keys", {"name": "new-key", "role": "operator"}, "name=new-key role=operator namespace=default"),
        ("namespaces", {"name": "new-place"}, "name=new-place"),
        ("schedules", {"schedule_id": "new-plan", "every": "1h", "job": {"job_type": "x"}}, "schedule_id=new-plan"),
        ("jobs/cancel", {"filter": {"queue": "line"}}, '"queue":"line"'),
    ],
)
async def test_an_entry_names_what_was_made_or_meant(furnished: Site, path: str, sent: Any, told: str) -> None:
    assert (await furnished.root.post(f"{BASE_PATH}/{path}", sent)).status < 300
    assert told in (await entries(furnished))[0]["object"]


async def test_no_secret_and_no_payload_is_in_any_entry(furnished: Site) -> None:
    payload = {"password": PLANTED}
    job = {"job_type": "x", "payload": payload, "secret_fields": ["password"]}
    shown: list[str] = [KEY]
    admin = await furnished.make_key("admin")
    shown.append(admin["key"])
    client = furnished.client(admin["key"])
    for route in NOTED:
        for sent in (body(route), {"payload": payload}, job, {"job": job}, {"filter": {}, "payload": payload}):
            where = title(route).split(" ")[1]
            for name, value in furnished.names.items():
                where = where.replace(f"{{{name}}}", value)
            answer = await client.request(route.method, where, sent or {})
            if answer.status < 300 and b'"key":"fk_' in answer.body:
                shown.append(answer.json()["key"])
            if answer.status < 300 and b"code=" in answer.body:
                shown.append(answer.json()["url"].split("code=")[1])
        if title(route) == f"DELETE {BASE_PATH}/api-keys/{{key_id}}":
            furnished.names["key_id"] = (await furnished.make_key("viewer"))["key_id"]
    headers, token = await furnished.browser("admin")
    shown += [token, headers["cookie"].split("=")[1]]
    await client.get(f"{BASE_PATH}/jobs", headers={"authorization": f"Bearer fk_{'b' * 16}_{PLANTED}"})
    told = str(await entries(furnished))
    assert len(shown) > 5
    secrets = [each.split("_", 2)[2] if each.startswith("fk_") else each for each in shown]
    for secret in (PLANTED, *secrets):
        assert len(secret) > 10
        assert secret not in told


async def test_the_chain_is_whole_when_two_nodes_write_at_once(nodes: list[Node]) -> None:
    clients = [AsgiClient(create_app(node.services, admin_key=KEY)) for node in nodes]

    async def write(client: AsgiClient, number: int) -> None:
        for step in range(10):
            expect(await client.post(f"{BASE_PATH}/queues/q{number}-{step}/pause"), 200)

    await asyncio.gather(*(write(clients[number % 2], number) for number in range(8)))
    checked = [expect(await client.get(f"{AUDIT}/check"), 200) for client in clients]
    assert checked[0] == checked[1]
    assert checked[0]["broken_at"] is None
    assert checked[0]["entries"] == 80
    page = expect(await clients[0].get(f"{AUDIT}?limit=1000"), 200)
    assert [entry["seq"] for entry in page] == list(range(80, 0, -1))


async def test_entries_of_a_namespace_are_for_its_admins_and_the_chain_for_the_nodes_own_key(furnished: Site) -> None:
    admin = await furnished.caller("admin")
    seen = expect(await admin.get(f"{AUDIT}?limit=1000"), 200)
    assert seen
    assert {entry["namespace"] for entry in seen} == {HOME}
    assert (await admin.get(f"{AUDIT}/check")).status == 403
