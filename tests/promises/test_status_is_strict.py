"""Promise 4: after an acknowledged write every read, from any node, shows it."""

from typing import Any

from tests.processes import Programs
from tests.promises.speaker import Speaker, report, speakers

ROUNDS = 15


async def test_a_read_through_one_node_shows_what_was_just_written_through_another(
    programs: Programs, database_url: str
) -> None:
    urls = [programs.serve(f"node{n}", "--no-worker", "--database", database_url)[1] for n in (1, 2)]
    async with speakers(*urls) as both:
        worker = await both[0].register("task")
        for number in range(ROUNDS):
            writer, reader = both if number % 2 else reversed(both)
            await _a_life(writer, reader, worker, f"life-{number}")
            await _a_cancelled_life(writer, reader, f"cancelled-{number}")


async def _a_life(writer: Speaker, reader: Speaker, worker: str, job_id: str) -> None:
    path = f"/jobs/{job_id}"

    async def shows(**expected: Any) -> None:
        job = await reader.get(path)
        assert {name: job[name] for name in expected} == expected
        (listed,) = [one for one in await reader.get("/jobs?limit=5") if one["job_id"] == job_id]
        assert listed["status"] == job["status"]

    await writer.submit("task", job_id=job_id, delay="1h", priority="low")
    await shows(status="scheduled", priority="low")
    await writer.ask("PUT", path, {"priority": "high", "payload": {"n": 1}, "tags": ["changed"]})
    await shows(priority="high", payload={"n": 1}, tags=["changed"])
    await writer.ask("POST", f"{path}/pause")
    await shows(status="paused")
    await writer.ask("POST", f"{path}/resume")
    await shows(status="scheduled")
    await writer.ask("POST", f"{path}/run")
    await shows(status="queued")
    (job,) = await writer.take(worker)
    assert job["job_id"] == job_id
    await shows(status="running", worker_id=worker, attempt=1)
    progress = {"value": 0.5, "note": "half"}
    await writer.exchange(worker, reports=[report(job, "processing", progress=progress)])
    await shows(progress=progress)
    await writer.ask("DELETE", path)
    await shows(status="running", cancel_requested=True)
    await writer.exchange(worker, reports=[report(job, "success", result="done")])
    await shows(status="completed")
    assert await reader.get(f"{path}/result") == "done"


async def _a_cancelled_life(writer: Speaker, reader: Speaker, job_id: str) -> None:
    await writer.submit("nobody-runs-this", job_id=job_id)
    assert (await reader.get(f"/jobs/{job_id}"))["status"] == "queued"
    await writer.ask("DELETE", f"/jobs/{job_id}")
    assert (await reader.get(f"/jobs/{job_id}"))["status"] == "cancelled"
    await writer.ask("POST", f"/jobs/{job_id}/retry")
    assert (await reader.get(f"/jobs/{job_id}"))["status"] == "queued"
    await writer.ask("POST", "/jobs/cancel", {"filter": {"job_type": "nobody-runs-this", "status": "queued"}})
    assert (await reader.get(f"/jobs/{job_id}"))["status"] == "cancelled"
