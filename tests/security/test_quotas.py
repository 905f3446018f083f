"""What a namespace may use, across nodes; and who shows wrong keys is made to wait."""

from typing import Any

import pytest

from foliot.api import create_app
from foliot.clock import monotonic
from foliot.domain.duration import SECOND
from foliot.node.node import Node
from foliot.service.access import FAILURES_SPAN, FRESH, MOST_FAILURES
from foliot.wire import BASE_PATH
from tests.api.client import KEY, AsgiClient, Response
from tests.security.site import HOME, Site, expect

SECRET = "A" * 43
JOBS = f"{BASE_PATH}/jobs"


def is_held_back(answer: Response) -> bool:
    """Refused for now: it says how long, in whole seconds."""
    if answer.status != 429:
        return False
    assert answer.headers["content-type"] == "application/problem+json"
    assert int(answer.headers["retry-after"]) >= 1
    return True


async def limit(site: Site, **quotas: int) -> AsgiClient:
    expect(await site.root.request("PUT", f"{BASE_PATH}/namespaces/there", quotas), 200)
    site.clock.pass_seconds(6)
    return await site.caller("submitter", "there")


async def test_live_jobs_are_bounded(furnished: Site) -> None:
    client = await limit(furnished, live_jobs=3)
    assert is_held_back(await client.post(f"{JOBS}/batch", {"jobs": [{"job_type": "x"}] * 4}))
    for number in range(3):
        expect(await client.post(JOBS, {"job_type": "x", "job_id": f"x{number}"}), 201)
    assert is_held_back(await client.post(JOBS, {"job_type": "x"}))
    expect(await (await furnished.caller("operator", "there")).request("DELETE", f"{JOBS}/x0"), 200)
    furnished.clock.pass_seconds(6)
    expect(await client.post(JOBS, {"job_type": "x"}), 201)
    expect(await (await furnished.caller("submitter", HOME)).post(JOBS, {"job_type": "x"}), 201)


async def test_bytes_of_payload_are_bounded(furnished: Site) -> None:
    client = await limit(furnished, payload_bytes_per_second=1024)
    answers = [await client.post(JOBS, {"job_type": "x", "payload": "é" * 3000}) for _ in range(2)]
    assert all(map(is_held_back, answers))
    assert int(answers[0].headers["retry-after"]) > 1
    expect(await (await furnished.caller("submitter", HOME)).post(JOBS, {"job_type": "x", "payload": "é" * 3000}), 201)


async def test_bytes_are_counted_and_not_letters(furnished: Site) -> None:
    client = await limit(furnished, payload_bytes_per_second=4096)
    assert is_held_back(await client.post(JOBS, {"job_type": "x", "payload": "€" * 4000}))


async def test_nobody_but_the_nodes_own_key_sets_quotas(furnished: Site) -> None:
    client = await furnished.caller("admin", "there")
    answer = await client.request("PUT", f"{BASE_PATH}/namespaces/there", {"live_jobs": 1_000_000})
    assert answer.status == 403


@pytest.mark.parametrize(
    "headers",
    [
        {"authorization": f"Bearer fk_{'a' * 16}_{SECRET}"},
        {"authorization": "Bearer guess"},
        {"authorization": f"Bearer {KEY[:-1]}"},
        {"cookie": f"foliot_session={SECRET}"},
    ],
    ids=["unknown key", "no key at all", "nearly the admin key", "session"],
)
async def test_who_shows_many_wrong_credentials_is_made_to_wait(furnished: Site, headers: dict[str, str]) -> None:
    good = (await furnished.make_key("viewer"))["key"]
    expect(await furnished.client(good).get(f"{BASE_PATH}/session"), 200)
    attacker = furnished.client(None)
    for _ in range(MOST_FAILURES):
        answer = await attacker.get(JOBS, headers=headers)
        assert answer.status == 401
        furnished.clock.time += FAILURES_SPAN // MOST_FAILURES // 2
    assert is_held_back(await attacker.get(JOBS, headers=headers | {"x-forwarded-for": "203.0.113.9"}))
    assert (await furnished.client(None, source="192.0.2.2").get(JOBS, headers=headers)).status == 401
    expect(await furnished.client(good).get(f"{BASE_PATH}/session"), 200)
    expect(await furnished.client(KEY).get(f"{BASE_PATH}/session"), 200)
    furnished.clock.time += FAILURES_SPAN
    assert (await attacker.get(JOBS, headers=headers)).status == 401


async def test_a_wrong_secret_of_a_key_that_is_there_counts_too(furnished: Site) -> None:
    key = (await furnished.make_key("viewer"))["key"]
    attacker = furnished.client(key[:20] + SECRET)
    answers = [await attacker.get(JOBS) for _ in range(MOST_FAILURES + 1)]
    assert [answer.status for answer in answers] == [401] * MOST_FAILURES + [429]
    expect(await furnished.client(key).get(JOBS), 200)


async def test_many_wrong_login_links_are_held_back(furnished: Site) -> None:
    stranger = furnished.client(None)
    answers = [await stranger.get(f"/login?code={SECRET}") for _ in range(MOST_FAILURES + 1)]
    assert [answer.status for answer in answers[:-1]] == [401] * MOST_FAILURES
    assert is_held_back(answers[-1])


async def test_a_browser_that_is_logged_in_is_not_kept_out_by_others_of_its_address(furnished: Site) -> None:
    headers, _ = await furnished.browser("viewer")
    for _ in range(MOST_FAILURES + 1):
        await furnished.client(None).get(JOBS, headers={"authorization": "Bearer guess"})
    furnished.clock.time += FRESH
    assert (await furnished.client(None).get(JOBS, headers=headers)).status == 200


async def test_two_nodes_share_how_many_jobs_a_namespace_may_submit_a_second(nodes: list[Node]) -> None:
    most, tries = 5, 60
    clients = [AsgiClient(create_app(node.services, admin_key=KEY)) for node in nodes]
    expect(await clients[0].request("PUT", f"{BASE_PATH}/namespaces/default", {"submits_per_second": most}), 200)
    begun = monotonic()
    answers = [await clients[number % 2].post(JOBS, {"job_type": "x"}) for number in range(tries)]
    seconds = (monotonic() - begun) / SECOND
    taken = [answer.status == 201 for answer in answers]
    assert all(ok or is_held_back(answer) for ok, answer in zip(taken, answers, strict=True))
    assert 0 < sum(taken) <= 2 * most + most * seconds + 1
    assert not all(taken[::2])
    assert not all(taken[1::2])


async def test_a_key_that_is_revoked_on_one_node_is_refused_on_the_other(
    nodes: list[Node], record_property: Any
) -> None:
    here, there = (create_app(node.services, admin_key=KEY) for node in nodes)
    made = expect(await AsgiClient(here).post(f"{BASE_PATH}/api-keys", {"name": "k", "role": "viewer"}), 201)
    caller = AsgiClient(there, made["key"])
    link = expect(await caller.post(f"{BASE_PATH}/login-links"), 201)["url"].split("?")[1]
    cookie = (await AsgiClient(there, None).get(f"/login?{link}")).headers["set-cookie"].split(";")[0]
    browser = AsgiClient(there, None)
    expect(await caller.get(JOBS), 200)
    expect(await browser.get(JOBS, headers={"cookie": cookie}), 200)
    expect(await AsgiClient(here).request("DELETE", f"{BASE_PATH}/api-keys/{made['key_id']}"), 200)
    begun = monotonic()
    assert (await AsgiClient(here, made["key"]).get(JOBS)).status == 401
    while (await caller.get(JOBS)).status != 401 or (await browser.get(JOBS, headers={"cookie": cookie})).status != 401:
        assert monotonic() - begun < 15 * SECOND
    record_property("seconds until it was refused", (monotonic() - begun) / SECOND)
