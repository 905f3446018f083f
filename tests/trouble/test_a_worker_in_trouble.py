"""A worker goes on when its registration, its node or the node's database is gone for a while."""

import re
import sqlite3
from collections import Counter
from pathlib import Path

import pytest

from foliot.sdk.client import AsyncClient
from foliot.wire import RetryBody, SubmitBody
from tests.processes import KEY, REGISTERED, Programs, eventually
from tests.promises.gated_app import gate, runs_in
from tests.promises.speaker import speakers

AT_ONCE = RetryBody(backoff="fixed", initial="20ms", jitter=0, max_attempts=10, max_lost=10)
TRIES_AGAIN = re.compile("trying again in")


async def test_a_worker_that_is_not_known_any_more_registers_anew_and_nothing_is_lost_or_doubled(
    programs: Programs, tmp_path: Path
) -> None:
    _, url = programs.serve("node", "--no-worker")
    worker = programs.work("worker", url)
    async with AsyncClient(url, KEY) as client, speakers(url) as (speaker,):
        slow = await client.submit(SubmitBody(job_type="gated", retry=AT_ONCE))
        eventually(lambda: [run.job_id for run in runs_in(tmp_path)] == [slow], "it runs")
        for removal in (1, 2, 3):
            quick = [SubmitBody(job_type="mark", retry=AT_ONCE) for _ in range(100)]
            job_ids = await client.submit_many(quick)
            await speaker.ask("DELETE", f"/workers/{worker.wait_for(REGISTERED, removal)[1]}")
            job_ids += await client.submit_many(quick)
            worker.wait_for(REGISTERED, removal + 1)
            for job_id in job_ids:
                assert (await client.wait(job_id, timeout=15)).status == "completed"
        eventually(lambda: len([run for run in runs_in(tmp_path) if run.job_id == slow]) == 4, "it runs once more")
        gate(tmp_path, slow, 4).touch()
        assert (await client.wait(slow, timeout=15)).status == "completed"

        started = Counter(run.job_id for run in runs_in(tmp_path))
        assert len(started) == 601
        for job_id, times in started.items():
            ends = [one.status for one in await client.executions(job_id)]
            assert times <= len(ends), "each start has its recorded attempt"
            assert ends == ["lost"] * (len(ends) - 1) + ["success"]


@pytest.mark.parametrize("how", ["stop", "kill"])
async def test_a_report_arrives_after_the_node_was_away(
    how: str, programs: Programs, tmp_path: Path, free_port: int
) -> None:
    words = ("--no-worker", "--port", str(free_port), "--data-dir", str(tmp_path / "data"))
    node, url = programs.serve("node", *words)
    worker = programs.work("worker", url)
    async with AsyncClient(url, KEY) as client:
        job_id = await client.submit(SubmitBody(job_type="gated"))
        eventually(lambda: len(runs_in(tmp_path)) == 1, "it runs")
        if how == "stop":
            assert node.stop() == 0
        else:
            node.kill()
        gate(tmp_path, job_id, 1).touch()
        worker.wait_for(TRIES_AGAIN, 4)  # ever more seldom, but it never gives up
        programs.serve("node-again", *words)
        assert await client.outcome(job_id, timeout=15) == "worker"
        assert [one.status for one in await client.executions(job_id)] == ["success"]
        assert [one.log_message for one in await client.logs(job_id)] == ["worker is past the gate"]
        again = await client.submit(SubmitBody(job_type="mark"))
        assert await client.outcome(again, timeout=15) == "worker"
    assert len(runs_in(tmp_path)) == 2
    assert len(REGISTERED.findall(worker.said)) == 1, "its lease outlived the pause"


@pytest.mark.timeout(60)
async def test_a_node_that_answers_503_for_a_while_is_asked_again(programs: Programs, tmp_path: Path) -> None:
    node, url = programs.serve("node", "--no-worker", "--data-dir", str(tmp_path / "data"))
    worker = programs.work("worker", url)
    async with AsyncClient(url, KEY) as client, speakers(url) as (speaker,):
        job_id = await client.submit(SubmitBody(job_type="gated"))
        eventually(lambda: len(runs_in(tmp_path)) == 1, "it runs")
        other_program = sqlite3.connect(tmp_path / "data" / "foliot.db", isolation_level=None)
        try:
            other_program.execute("begin immediate")
            gate(tmp_path, job_id, 1).touch()
            status, problem = await speaker.call("POST", "/jobs", {"job_type": "mark"})
            assert (status, problem["type"]) == (503, "urn:foliot:problem:unavailable")
            assert "Another program holds the database" in problem["detail"]
            assert (await client.get(job_id)).status == "running", "what can be read is read"
            worker.wait_for(re.compile("answered 503"))
        finally:
            other_program.close()
        assert await client.outcome(job_id, timeout=30) == "worker"
        again = await client.submit(SubmitBody(job_type="mark"))
        assert await client.outcome(again, timeout=30) == "worker"
        assert [one.status for one in await client.executions(job_id)] == ["success"]
    assert len(runs_in(tmp_path)) == 2
    assert "Traceback" not in node.said
