"""Whoever is of another namespace sees nothing, changes nothing, and is told nothing."""

from typing import Any

import pytest

from foliot.api.routes import Route
from foliot.wire import BASE_PATH
from tests.api.client import AsgiClient
from tests.api.worker import Worker
from tests.security.requests import NAMED, PROTECTED, READS, address, ask, title
from tests.security.site import HOME, MARK, Site, expect

MAKES_ITS_OWN = {  # what is named comes into being in the caller's namespace
    "set_queue",
    "pause_queue",
    "pause_type",
    "resume_type",
    "set_limit",
}
EXPECTED = {"exchange": 410, "set_quotas": 403, "delete_namespace": 403, "read_depth": 200}  # an empty one
ABOUT_THE_NODE = {f"{BASE_PATH}/nodes"}
JOBS = ("the-ended", "the-held", "the-queued", "the-child", "the-later")


async def picture(client: AsgiClient, site: Site) -> dict[str, Any]:
    """All that the namespace's own admin reads, of each of its objects."""
    seen: dict[str, Any] = {}
    for route in READS:
        about_time = (f"{BASE_PATH}/audit/check", f"{BASE_PATH}/session", f"{BASE_PATH}/events", "/metrics")
        if route.path in (*about_time, *ABOUT_THE_NODE):
            continue
        for job_id in JOBS if "{job_id}" in route.path else ("the-later",):
            target = address(route, site.names | {"job_id": job_id})
            answer = await client.get(target, headers={"x-request-id": "the-same"})
            seen[target] = answer.status, answer.body
    return seen


@pytest.mark.parametrize("route", NAMED, ids=title)
async def test_what_is_named_is_not_there_for_another_namespace(furnished: Site, route: Route) -> None:
    home, stranger = await furnished.caller("admin"), await furnished.caller("admin", "there")
    before = await picture(home, furnished)
    names = [furnished.names | {"job_id": job_id} for job_id in JOBS] if "{job_id}" in route.path else [furnished.names]
    for each in names:
        answer = await ask(stranger, route, each)
        made = route.handler.__name__ in MAKES_ITS_OWN
        assert answer.status == (200 if made else EXPECTED.get(route.handler.__name__, 404)), answer.body
        assert MARK.encode() not in answer.body
    assert await picture(home, furnished) == before


@pytest.mark.parametrize("route", [route for route in PROTECTED if "{" not in route.path], ids=title)
async def test_what_is_for_a_whole_namespace_is_for_the_callers_own(furnished: Site, route: Route) -> None:
    home, stranger = await furnished.caller("admin"), await furnished.caller("admin", "there")
    before = await picture(home, furnished)
    answer = await ask(stranger, route, furnished.names)
    for known in (MARK, HOME, *furnished.names.values(), *JOBS):
        assert f'"{known}"'.encode() not in answer.body, answer.body
    assert await picture(home, furnished) == before


async def test_lists_of_another_namespace_are_empty(furnished: Site) -> None:
    stranger = await furnished.caller("admin", "there")
    for name in ("jobs", "schedules", "queues", "job-types", "limits", "workers"):
        assert expect(await stranger.get(f"{BASE_PATH}/{name}"), 200) == [], name
    assert [key["namespace"] for key in expect(await stranger.get(f"{BASE_PATH}/api-keys"), 200)] == ["there"]
    assert [each["name"] for each in expect(await stranger.get(f"{BASE_PATH}/namespaces"), 200)] == ["there"]
    assert expect(await stranger.get(f"{BASE_PATH}/audit"), 200) == []
    stats = expect(await stranger.get(f"{BASE_PATH}/stats"), 200)
    assert (sum(stats["jobs"].values()), stats["workers"], stats["slots"], stats["running"]) == (0, 0, 0, 0)
    forecast = expect(await stranger.get(f"{BASE_PATH}/stats/forecast"), 200)
    assert (forecast["jobs"], forecast["runs"], forecast["slots"]) == (0, 0, 0)


async def test_many_at_once_are_those_of_the_callers_namespace(furnished: Site) -> None:
    stranger = await furnished.caller("operator", "there")
    for action in ("cancel", "pause", "resume", "retry"):
        assert expect(await stranger.post(f"{BASE_PATH}/jobs/{action}", {"filter": {}}), 200) == {
            "matched": 0,
            "changed": 0,
        }


@pytest.mark.parametrize("own", [True, False])
async def test_a_job_can_not_depend_on_one_of_another_namespace(furnished: Site, own: bool) -> None:
    home, stranger = await furnished.caller("admin"), await furnished.caller("admin", "there")
    job_id = "the-later" if own else expect(await home.post(f"{BASE_PATH}/jobs", {"job_type": "kind"}), 201)["job_id"]
    single, batch = {"job_type": "x", "depends_on": [job_id]}, {"job_type": "x", "depends_on": [{"job_id": job_id}]}
    assert (await stranger.post(f"{BASE_PATH}/jobs", single)).status == 400
    assert (await stranger.post(f"{BASE_PATH}/jobs/batch", {"jobs": [batch]})).status == 400


async def test_the_same_names_in_two_namespaces_are_two_things(furnished: Site) -> None:
    stranger = await furnished.caller("admin", "there")
    job = {"job_id": "the-later", "job_type": "kind", "queue": "line", "unique_key": "one", "payload": {"own": 1}}
    expect(await stranger.post(f"{BASE_PATH}/jobs", job, headers={"idempotency-key": "k"}), 201)
    home = await furnished.caller("admin")
    other = {"job_type": "kind", "unique_key": "one"}
    assert "duplicate" not in expect(await home.post(f"{BASE_PATH}/jobs", other, headers={"idempotency-key": "k"}), 201)
    assert expect(await stranger.get(f"{BASE_PATH}/jobs/the-later"), 200)["payload"] == {"own": 1}
    assert expect(await home.get(f"{BASE_PATH}/jobs/the-later"), 200)["payload"] == {"note": MARK}
    assert expect(await stranger.get(f"{BASE_PATH}/queues/line"), 200)["paused"] is False
    assert expect(await home.get(f"{BASE_PATH}/queues/line"), 200)["paused"] is True


async def test_a_worker_gets_only_jobs_of_its_namespace(furnished: Site) -> None:
    stranger = await furnished.caller("worker", "there")
    worker = await Worker.register(stranger)
    assert (await worker.exchange(free={"slot": 100}))["jobs"] == []


async def running(site: Site, client: AsgiClient, worker_client: AsgiClient | None = None) -> tuple[Worker, Any]:
    """A job under way and the worker that has it."""
    expect(await client.post(f"{BASE_PATH}/jobs", {"job_id": "running", "job_type": "open", "queue": "open"}), 201)
    worker = await Worker.register(worker_client or client, queues=["open"], job_types=["open"])
    (job,) = await worker.take()
    return worker, job


@pytest.mark.parametrize("status", ["processing", "success", "retriable_failure", "fatal_failure", "released"])
async def test_a_worker_can_not_report_for_a_job_of_another_namespace_though_it_knows_the_token(
    furnished: Site, status: str
) -> None:
    home = await furnished.caller("admin")
    _, job = await running(furnished, home)
    before = expect(await home.get(f"{BASE_PATH}/jobs/running"), 200)
    foreign = await Worker.register(await furnished.caller("worker", "there"))
    report = {"job_id": "running", "attempt": 1, "token": job["token"], "status": status, "progress": {"value": 0.5}}
    answer = await foreign.exchange(reports=[report])
    assert [each["job_id"] for each in answer["rejected"]] == ["running"]
    assert expect(await home.get(f"{BASE_PATH}/jobs/running"), 200) == before


async def test_a_worker_can_not_write_into_the_log_of_another_namespace_though_it_knows_the_token(
    furnished: Site,
) -> None:
    home = await furnished.caller("admin")
    _, job = await running(furnished, home)
    foreign = await Worker.register(await furnished.caller("worker", "there"))
    line = {"job_id": "running", "attempt": 1, "token": job["token"], "log_time": "2027-01-31T09:00:00Z"}
    answer = await foreign.exchange(logs=[line | {"log_message": "forged"}])
    assert [each["job_id"] for each in answer["rejected"]] == ["running"]
    assert expect(await home.get(f"{BASE_PATH}/jobs/running/logs"), 200) == []


async def test_nobody_of_another_namespace_prolongs_a_workers_lease(furnished: Site) -> None:
    home = await furnished.caller("admin")
    worker, _ = await running(furnished, home)
    furnished.world.services.workers._seats.clear()  # as on a node that the worker never spoke to
    listed = expect(await home.get(f"{BASE_PATH}/workers"), 200)
    furnished.clock.pass_seconds(20)
    stranger = await furnished.caller("worker", "there")
    assert (await stranger.post(f"{BASE_PATH}/workers/{worker.worker_id}/exchange", {})).status == 410
    after = expect(await home.get(f"{BASE_PATH}/workers"), 200)
    assert [each["lease_until"] for each in after] == [each["lease_until"] for each in listed]


async def test_a_report_through_another_node_is_taken(furnished: Site) -> None:
    """The node that takes it has not handed the job out."""
    home = await furnished.caller("admin")
    worker, job = await running(furnished, home)
    services = furnished.world.services
    services.workers._given.clear()
    await worker.log(job, "a line")
    services.workers._given.clear()
    await worker.report(job, "success", result=1)
    assert expect(await home.get(f"{BASE_PATH}/jobs/running"), 200)["status"] == "completed"
