"""A key that is narrowed to queues or job types reaches those and nothing besides, on every route."""

from typing import Any

import pytest

from foliot.api.routes import Route
from foliot.wire import BASE_PATH
from tests.api.client import AsgiClient
from tests.api.worker import Worker
from tests.security.requests import NAMED, ask, title
from tests.security.site import HOME, MARK, Site, expect
from tests.security.test_other_namespaces import JOBS, picture

OTHER: Any = ({"queues": ["side"]}, {"job_types": ["side"]}, {"queues": ["line"], "job_types": ["side"]})
REACHES = {"queues": ["line"]}, {"job_types": ["kind"]}, {"queues": ["line"], "job_types": ["kind"]}
each_other: Any = pytest.mark.parametrize("narrow", OTHER, ids=str)
each_reaching: Any = pytest.mark.parametrize("narrow", REACHES, ids=str)


async def objects(client: AsgiClient, site: Site) -> dict[str, Any]:
    """All but the audit log, which tells what was tried."""
    seen = await picture(client, site)
    del seen[f"{BASE_PATH}/audit"]
    return seen


@each_other
@pytest.mark.parametrize("route", NAMED, ids=title)
async def test_what_a_key_does_not_reach_is_not_there_for_it(
    furnished: Site, route: Route, narrow: dict[str, Any]
) -> None:
    whole, narrowed = await furnished.caller("admin"), await furnished.caller("admin", **narrow)
    before = await objects(whole, furnished)
    names = [furnished.names | {"job_id": job_id} for job_id in JOBS] if "{job_id}" in route.path else [furnished.names]
    for each in names:
        answer = await ask(narrowed, route, each)
        if "{job_id}" in route.path or "{schedule_id}" in route.path:
            assert answer.status == 404, answer.body
        elif "{namespace}" in route.path and route.method == "GET":
            assert answer.status == 200
        elif "{queue}" in route.path and route.method == "GET" and narrow.get("queues") != ["side"]:
            assert answer.status in (200, 404)
        else:
            assert answer.status in (403, 404, 410), answer.body
        assert MARK.encode() not in answer.body
    assert await objects(whole, furnished) == before


@each_other
async def test_lists_show_only_what_a_key_reaches(furnished: Site, narrow: dict[str, Any]) -> None:
    narrowed = await furnished.caller("admin", **narrow)
    for name in ("jobs", "schedules", "workers", "job-types", "queues", "limits", "api-keys", "audit"):
        answer = await narrowed.get(f"{BASE_PATH}/{name}")
        if name == "queues" and narrow.get("queues") != ["side"]:
            continue  # a queue is there for all job types, and a type in all queues
        if name == "job-types" and "job_types" not in narrow:
            continue
        assert answer.status == 403 or answer.json() == [], (name, answer.body)
    for action in ("cancel", "pause", "resume", "retry"):
        answer = await narrowed.post(f"{BASE_PATH}/jobs/{action}", {"filter": {}})
        assert expect(answer, 200) == {"matched": 0, "changed": 0}


@each_reaching
async def test_lists_show_all_that_a_key_reaches(furnished: Site, narrow: dict[str, Any]) -> None:
    narrowed, whole = await furnished.caller("operator", **narrow), await furnished.caller("operator")
    for name in ("jobs", "schedules"):
        seen = expect(await narrowed.get(f"{BASE_PATH}/{name}"), 200)
        assert seen
        assert seen == expect(await whole.get(f"{BASE_PATH}/{name}"), 200)


@each_other
async def test_jobs_and_schedules_beyond_a_keys_reach_are_refused(furnished: Site, narrow: dict[str, Any]) -> None:
    narrowed = await furnished.caller("operator", **narrow)
    job = {"job_type": "kind", "queue": "line"}
    mine = {"job_type": narrow.get("job_types", ["kind"])[0], "queue": narrow.get("queues", ["line"])[0]}
    expect(await narrowed.post(f"{BASE_PATH}/jobs", mine | {"job_id": "mine"}), 201)
    assert (await narrowed.post(f"{BASE_PATH}/jobs", job)).status == 403
    assert (await narrowed.post(f"{BASE_PATH}/jobs/batch", {"jobs": [mine, job]})).status == 403
    assert (await narrowed.post(f"{BASE_PATH}/schedules", {"every": "1h", "job": job})).status == 403
    expect(await narrowed.post(f"{BASE_PATH}/schedules", {"schedule_id": "own", "every": "1h", "job": mine}), 201)
    for path, body in (("jobs/mine", {"queue": "else", "job_type": "else"}), ("schedules/own", {"job": job})):
        assert (await narrowed.request("PUT", f"{BASE_PATH}/{path}", body)).status == 403
    assert (await narrowed.post(f"{BASE_PATH}/jobs", mine | {"depends_on": ["the-later"]})).status == 400
    assert (await (await furnished.caller("admin")).get(f"{BASE_PATH}/queues/else")).status == 404


async def family(site: Site) -> tuple[AsgiClient, AsgiClient]:
    """Jobs of two queues that hang together; a client for all of them, and one for those in `side`."""
    whole, narrowed = await site.caller("admin"), await site.caller("admin", queues=["side"])
    side, line = {"job_type": "kind", "queue": "side"}, {"job_type": "kind", "queue": "line"}
    for job in (
        line | {"job_id": "hidden-parent", "concurrency": {"key": "shared", "limit": 1}},
        side | {"job_id": "seen-child", "depends_on": ["hidden-parent"]},
        side | {"job_id": "seen-waiter", "concurrency": {"key": "shared", "limit": 1}},
        side | {"job_id": "seen-parent", "delay": "1d"},
        line | {"job_id": "hidden-child", "depends_on": ["seen-parent"]},
    ):
        expect(await whole.post(f"{BASE_PATH}/jobs", job), 201)
    return whole, narrowed


@pytest.mark.parametrize("job_id", ["seen-child", "seen-waiter", "seen-parent"])
@pytest.mark.parametrize("part", ["", "/why", "/graph"])
async def test_a_job_does_not_tell_of_those_beyond_a_keys_reach(furnished: Site, job_id: str, part: str) -> None:
    _, narrowed = await family(furnished)
    answer = await narrowed.get(f"{BASE_PATH}/jobs/{job_id}{part}")
    assert answer.status == 200
    assert b"hidden" not in answer.body


async def test_a_retry_with_dependents_is_refused_where_some_are_beyond_a_keys_reach(furnished: Site) -> None:
    whole, narrowed = await family(furnished)
    expect(await whole.request("DELETE", f"{BASE_PATH}/jobs/seen-parent"), 200)
    await furnished.world.settle()
    answer = await narrowed.post(f"{BASE_PATH}/jobs/seen-parent/retry", {"dependents": True})
    assert answer.status == 403, answer.body
    assert b"hidden" not in answer.body
    for job_id in ("seen-parent", "hidden-child"):
        assert expect(await whole.get(f"{BASE_PATH}/jobs/{job_id}"), 200)["status"] == "cancelled"
    expect(await narrowed.post(f"{BASE_PATH}/jobs/seen-parent/retry"), 200)


async def test_a_worker_serves_no_more_than_its_key_reaches(furnished: Site) -> None:
    client = await furnished.caller("worker", queues=["side"], job_types=["kind"])
    for beyond in ({"queues": ["line"]}, {"queues": ["side", "line"]}, {"job_types": ["other"]}):
        assert (await client.post(f"{BASE_PATH}/workers", {"name": "w"} | beyond)).status == 403, beyond
    worker = await Worker.register(client)
    (listed,) = expect(await client.get(f"{BASE_PATH}/workers"), 200)
    assert (listed["worker_id"], listed["queues"], listed["job_types"]) == (worker.worker_id, ["side"], ["kind"])
    whole = await furnished.caller("admin")
    expect(await whole.post(f"{BASE_PATH}/job-types/kind/resume"), 200)
    expect(await whole.post(f"{BASE_PATH}/queues/line/resume"), 200)
    assert (await worker.exchange(free={"slot": 10}))["jobs"] == []


async def test_a_worker_does_not_report_for_a_job_beyond_its_keys_reach(furnished: Site) -> None:
    whole = await furnished.caller("admin")
    expect(await whole.post(f"{BASE_PATH}/jobs", {"job_id": "running", "job_type": "open", "queue": "open"}), 201)
    (job,) = await (await Worker.register(whole, queues=["open"])).take()
    worker = await Worker.register(await furnished.caller("worker", queues=["side"]))
    report = {"job_id": "running", "attempt": 1, "token": job["token"], "status": "success"}
    assert len((await worker.exchange(reports=[report]))["rejected"]) == 1
    assert expect(await whole.get(f"{BASE_PATH}/jobs/running"), 200)["status"] == "running"


async def test_only_who_may_control_jobs_names_another_owner(furnished: Site) -> None:
    job = {"job_type": "kind", "owner": "somebody-else"}
    plan = {"every": "1h", "job": job}
    submitter, operator = await furnished.caller("submitter"), await furnished.caller("operator")
    for body, path in ((job, "jobs"), ({"jobs": [job]}, "jobs/batch"), (plan, "schedules")):
        assert (await submitter.post(f"{BASE_PATH}/{path}", body)).status == 403, path
        assert (await operator.post(f"{BASE_PATH}/{path}", body)).status == 201, path
    own = expect(await submitter.get(f"{BASE_PATH}/session"), 200)["name"]
    expect(await submitter.post(f"{BASE_PATH}/jobs", {"job_type": "kind", "owner": own}), 201)


async def test_a_session_is_as_narrow_as_the_key_it_came_from(furnished: Site) -> None:
    client = await furnished.caller("operator", HOME, queues=["side"])
    link = expect(await client.post(f"{BASE_PATH}/login-links"), 201)["url"]
    headers, _ = await furnished.let_in(link)
    browser = furnished.client(None)
    assert (await browser.get(f"{BASE_PATH}/jobs/the-later", headers=headers)).status == 404
    assert expect(await browser.get(f"{BASE_PATH}/session", headers=headers), 200)["queues"] == ["side"]
