"""Promise 2: a worker that was paused past its lease can finish nothing."""

import re
from pathlib import Path

from foliot.sdk.client import AsyncClient
from foliot.wire import RetryBody, SubmitBody
from tests.processes import KEY, REGISTERED, Programs, eventually
from tests.promises.gated_app import gate, runs_in
from tests.promises.speaker import Speaker, line, report, speakers

QUICK = {"FOLIOT_LEASE_SECONDS": "2", "FOLIOT_HEARTBEAT_SECONDS": "0.5"}
AT_ONCE = RetryBody(backoff="fixed", initial="50ms", jitter=0)


async def test_a_frozen_workers_job_goes_to_another_and_it_can_not_end_it_afterwards(
    programs: Programs, tmp_path: Path
) -> None:
    _, url = programs.serve("node", "--no-worker", **QUICK)
    sleeper = programs.work("sleeper", url, "--queues", "shared,sleepers")
    async with AsyncClient(url, KEY) as client:
        job_id = await client.submit(SubmitBody(job_type="gated", queue="shared", retry=AT_ONCE))
        eventually(lambda: [run.worker for run in runs_in(tmp_path)] == ["sleeper"], "the first worker has it")
        programs.work("other", url, "--queues", "shared")
        sleeper.freeze()
        eventually(lambda: [run.worker for run in runs_in(tmp_path)] == ["sleeper", "other"], "the other has it")
        gate(tmp_path, job_id, 2).touch()
        assert (await client.wait(job_id)).status == "completed"
        before = await client.get(job_id), await client.executions(job_id), await client.logs(job_id)

        gate(tmp_path, job_id, 1).touch()
        sleeper.thaw()
        sleeper.wait_for(re.compile("the lease is lost"))
        sleeper.wait_for(REGISTERED, 2)
        again = await client.submit(SubmitBody(job_type="mark", queue="sleepers"))
        assert await client.outcome(again) == "sleeper"

        assert (await client.get(job_id), await client.executions(job_id), await client.logs(job_id)) == before
        assert [one.status for one in before[1]] == ["lost", "success"]
        assert [one.log_message for one in before[2]] == ["other is past the gate"]
        assert await client.result(job_id) == "other"


async def test_reports_and_lines_of_an_old_token_are_refused_and_change_nothing(
    programs: Programs, database_url: str
) -> None:
    _, url = programs.serve("node1", "--no-worker", "--database", database_url, **QUICK)
    _, far_url = programs.serve("node2", "--no-worker", "--database", database_url, **QUICK)
    async with speakers(url, far_url) as (near, far):
        silent = await near.register("task")
        retry = {"backoff": "fixed", "initial": "50ms", "jitter": 0}
        job_id = await near.submit("task", retry=retry)
        (old,) = await near.take(silent)
        other = await far.register("task")
        (new,) = await far.take(other)  # comes once the silent one's lease is over
        assert (new["job_id"], new["attempt"]) == (job_id, 2)

        ends = [report(old, status) for status in ("success", "retriable_failure", "fatal_failure", "released")]
        lines = [line(old, "from the past")]
        for speaker in (near, far):
            status, problem = await speaker.call(
                "POST", f"/workers/{silent}/exchange", {"reports": ends, "logs": lines}
            )
            assert (status, problem["type"]) == (410, "urn:foliot:problem:gone")
            # Even as a worker in good standing: it is the token that counts.
            anew = await speaker.register("task")
            for sent in (ends[0], ends[1], ends[2], ends[3], report(old, "processing", progress={"value": 1})):
                answer = await speaker.exchange(anew, reports=[sent])
                assert [(one["job_id"], one["attempt"]) for one in answer["rejected"]] == [(job_id, 1)], sent
                await far.exchange(other)  # it stays alive
            answer = await speaker.exchange(anew, logs=lines)
            assert [one["job_id"] for one in answer["rejected"]] == [job_id]
            await _assert_running(speaker, job_id)

        answer = await far.exchange(other, logs=[line(new, "here")], reports=[report(new, "success", result=7)])
        assert answer["rejected"] == []
        assert await near.get(f"/jobs/{job_id}/result") == 7
        assert [one["status"] for one in await near.get(f"/jobs/{job_id}/executions")] == ["lost", "success"]
        assert [one["log_message"] for one in await near.get(f"/jobs/{job_id}/logs")] == ["here"]


async def _assert_running(speaker: Speaker, job_id: str) -> None:
    job = await speaker.get(f"/jobs/{job_id}")
    assert (job["status"], job["attempt"], job["progress"]) == ("running", 2, None)
    assert await speaker.get(f"/jobs/{job_id}/logs") == []
