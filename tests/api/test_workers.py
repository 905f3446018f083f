"""The calls of workers."""

from foliot.node.node import Node
from foliot.wire import AssignedJob, WorkerInfo
from tests.api.client import AsgiClient
from tests.api.worker import Worker

JOBS = "/api/v1/jobs"
WORKERS = "/api/v1/workers"


async def test_a_worker_is_told_its_lease_and_is_listed(client: AsgiClient) -> None:
    offer = {"name": "one", "queues": ["a"], "job_types": ["echo"], "resources": {"slot": 4}, "labels": {"zone": "eu"}}
    answer = await client.post(WORKERS, offer)
    assert answer.status == 201
    told = answer.json()
    assert (told["lease_seconds"], told["heartbeat_seconds"]) == (30, 10)
    (listed,) = (await client.get(WORKERS)).json()
    assert set(listed) == set(WorkerInfo.__struct_fields__)
    assert listed | offer | {"worker_id": told["worker_id"], "status": "alive", "running": []} == listed


async def test_a_job_comes_with_all_that_is_needed_to_run_it(client: AsgiClient) -> None:
    await client.post(JOBS, {"job_type": "echo", "job_id": "a", "payload": {"n": 1}, "timeout": "5m"})
    worker = await Worker.register(client)
    (job,) = await worker.take()
    only_where_there_are_some = {"secret_fields", "queue", "trace", "trace_links"}
    assert set(job) == set(AssignedJob.__struct_fields__) - only_where_there_are_some
    assert (job["job_id"], job["attempt"], job["payload"], job["timeout"]) == ("a", 1, {"n": 1}, 300)
    assert (await client.get(WORKERS)).json()[0]["running"] == ["a"]


async def test_a_job_keeps_the_trace_that_it_was_submitted_in(client: AsgiClient) -> None:
    trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
    jobs = [{"job_type": "echo", "queue": "mail"}, {"job_type": "echo"}]
    await client.post(f"{JOBS}/batch", {"jobs": jobs}, headers={"traceparent": trace})
    await client.post(JOBS, {"job_type": "echo"}, headers={"traceparent": "00-no-trace-at-all"})
    worker = await Worker.register(client)
    found = sorted((job.get("trace", ""), job.get("queue", "")) for job in await worker.take(3))
    assert found == [("", ""), (trace, ""), (trace, "mail")]


async def test_a_report_with_another_token_is_rejected(client: AsgiClient) -> None:
    await client.post(JOBS, {"job_type": "echo", "job_id": "a"})
    worker = await Worker.register(client)
    (job,) = await worker.take()
    report = {"job_id": "a", "attempt": 1, "token": "0" * 32, "status": "success"}
    (rejected,) = (await worker.exchange(reports=[report]))["rejected"]
    assert (rejected["job_id"], rejected["attempt"]) == ("a", 1)
    assert (await client.get(f"{JOBS}/a")).json()["status"] == "running"
    await worker.report(job, "success")


async def test_what_a_worker_held_goes_back_when_it_leaves(client: AsgiClient) -> None:
    await client.post(JOBS, {"job_type": "echo", "job_id": "a", "retry": {"delays": [0, 0]}})
    leaver, heir = await Worker.register(client), await Worker.register(client)
    await leaver.take()
    left = await client.request("DELETE", f"{WORKERS}/{leaver.worker_id}")
    assert (left.status, left.body) == (204, b"")
    (job,) = await heir.take()
    assert (job["job_id"], job["attempt"]) == ("a", 2)


async def test_a_worker_that_is_not_there_registers_anew(client: AsgiClient) -> None:
    worker = await Worker.register(client)
    await client.request("DELETE", f"{WORKERS}/{worker.worker_id}")
    gone = await client.post(f"{WORKERS}/{worker.worker_id}/exchange", {})
    assert (gone.status, gone.json()["type"]) == (410, "urn:foliot:problem:gone")
    assert (await client.request("DELETE", f"{WORKERS}/{worker.worker_id}")).status == 404
    assert (await client.post(f"{WORKERS}/nobody/exchange", {})).status == 404


async def test_a_drained_worker_is_told_and_given_nothing(client: AsgiClient) -> None:
    worker = await Worker.register(client)
    drained = await client.post(f"{WORKERS}/{worker.worker_id}/drain")
    assert (drained.status, drained.body) == (204, b"")
    await client.post(JOBS, {"job_type": "echo"})
    answer = await worker.exchange(free={"slot": 1})
    assert (answer["jobs"], answer["drain"]) == ([], True)


async def test_a_job_reaches_a_worker_that_waits(client: AsgiClient) -> None:
    worker = await Worker.register(client)
    waiting = client.start("POST", f"{WORKERS}/{worker.worker_id}/exchange", {"free": {"slot": 1}, "wait": 10})
    await client.post(JOBS, {"job_type": "echo", "job_id": "a"})
    assert [job["job_id"] for job in (await waiting.response()).json()["jobs"]] == ["a"]


async def test_a_worker_that_hung_up_while_it_waited_takes_no_job(client: AsgiClient, node: Node) -> None:
    worker, heir = await Worker.register(client), await Worker.register(client)
    waiting = client.start("POST", f"{WORKERS}/{worker.worker_id}/exchange", {"free": {"slot": 5}, "wait": 300})
    waiting.hang_up()
    await waiting.task
    assert waiting.messages.empty()
    await client.post(JOBS, {"job_type": "echo", "job_id": "a"})
    (job,) = await heir.take()
    assert (job["job_id"], job["attempt"]) == ("a", 1)
