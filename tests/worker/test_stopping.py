"""Attempts that are to end: out of time, cancelled, or their worker leaves."""

import asyncio
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import psutil
import pytest

from foliot.worker import Worker
from tests.worker.conftest import running
from tests.worker.real_node import KEY, Jobs, NodeProcess, messages

ONCE = {"max_attempts": 1}
ENDABLE = pytest.mark.parametrize(
    "job_type", ["sleep", "deaf", "listening.thread", "deaf.thread", "tidy.process", "stubborn.process"]
)


@ENDABLE
async def test_an_attempt_out_of_time_is_ended(worker: Worker, jobs: Jobs, job_type: str) -> None:
    async with running(worker):
        job_id = await jobs.submit(job_type, timeout=1.5, retry=ONCE)
        job, lines = await jobs.ended(job_id)
        assert (job["status"], job["reason"]) == ("failed", "timed_out")
        assert (await jobs.executions(job_id))[0]["status"] == "timed_out"
        assert "not done within 1.5 s" in messages(lines)[-1]
        again, _ = await jobs.ended(await jobs.submit("add", {"a": 1, "b": 1}))
        assert again["status"] == "completed"


@ENDABLE
async def test_a_cancelled_attempt_is_ended(worker: Worker, jobs: Jobs, job_type: str) -> None:
    async with running(worker):
        job_id = await jobs.submit(job_type, retry=ONCE)
        await jobs.line(job_id, "begun")
        await jobs.cancel(job_id)
        job, lines = await jobs.ended(job_id)
        assert job["status"] == "cancelled"
        assert (await jobs.executions(job_id))[0]["status"] == "cancelled"
        if job_type == "tidy.process":
            assert "tidied up" in messages(lines)


async def test_a_killed_process_takes_its_children_along(worker: Worker, jobs: Jobs) -> None:
    async with running(worker):
        job_id = await jobs.submit("stubborn.process", retry=ONCE)
        line = await jobs.line(job_id, "begun")
        processes = [psutil.Process(int(word)) for word in line["log_message"].split()[1:]]
        await jobs.cancel(job_id)
        await jobs.ended(job_id)
        _, alive = await asyncio.to_thread(psutil.wait_procs, processes, 10)
        assert alive == []


async def test_a_thread_that_does_not_end_is_left_alone_and_its_slot_used(shared_node: NodeProcess, jobs: Jobs) -> None:
    from tests.worker.sample_handlers import HANDLERS

    worker = Worker(shared_node.url, KEY, HANDLERS, queues=[jobs.queue], concurrency=1, stop_grace=0.1)
    async with running(worker):
        job_id = await jobs.submit("deaf.thread", retry=ONCE)
        await jobs.line(job_id, "begun")
        await jobs.cancel(job_id)
        _, lines = await jobs.ended(job_id)
        assert any("was left alone" in message for message in messages(lines))
        again, _ = await jobs.ended(await jobs.submit("add.thread", {"a": 1, "b": 1}))
        assert again["status"] == "completed"


@contextmanager
def worker_process(node: NodeProcess, jobs: Jobs, grace: float) -> Iterator[subprocess.Popen[str]]:
    command = [sys.executable, "-m", "tests.worker.worker_program", node.url, KEY, jobs.queue, str(grace)]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


async def test_sigterm_lets_running_jobs_end_and_leaves(shared_node: NodeProcess, jobs: Jobs) -> None:
    with worker_process(shared_node, jobs, grace=15) as process:
        job_id = await jobs.submit("sleep", {"seconds": 1.5}, retry=ONCE)
        await jobs.line(job_id, "begun")
        process.send_signal(signal.SIGTERM)
        later = await jobs.submit("add", {"a": 1, "b": 1})
        job, _ = await jobs.ended(job_id)
        assert job["status"] == "completed"
        assert await asyncio.to_thread(process.wait, 10) == 0
        assert (await jobs.get(f"/jobs/{later}"))["status"] == "queued"
        assert jobs.queue not in [one["name"] for one in await jobs.get("/workers")]


async def test_what_outlasts_the_grace_is_given_back(shared_node: NodeProcess, jobs: Jobs) -> None:
    with worker_process(shared_node, jobs, grace=0.1) as process:
        found = [await jobs.submit(kind) for kind in ("sleep", "deaf", "deaf.thread", "stubborn.process")]
        for job_id in found:
            await jobs.line(job_id, "begun")
        process.send_signal(signal.SIGTERM)
        assert await asyncio.to_thread(process.wait, 15) == 0
        for job_id in found:
            assert (await jobs.get(f"/jobs/{job_id}"))["status"] == "queued"
            assert [one["status"] for one in await jobs.executions(job_id)] == ["released"]


async def test_a_second_signal_does_not_wait_for_the_grace(shared_node: NodeProcess, jobs: Jobs) -> None:
    with worker_process(shared_node, jobs, grace=3600) as process:
        job_id = await jobs.submit("sleep")
        await jobs.line(job_id, "begun")
        process.send_signal(signal.SIGINT)
        assert process.stderr is not None
        while "draining" not in await asyncio.to_thread(process.stderr.readline):
            pass
        process.send_signal(signal.SIGTERM)
        assert await asyncio.to_thread(process.wait, 10) == 0
        assert (await jobs.get(f"/jobs/{job_id}"))["status"] == "queued"


async def test_a_node_can_ask_a_worker_to_drain(worker: Worker, jobs: Jobs) -> None:
    async with running(worker):
        job_id = await jobs.submit("sleep", {"seconds": 1})
        await jobs.line(job_id, "begun")
        await jobs.post(f"/workers/{worker.worker_id}/drain")
        await worker.wait()
        assert (await jobs.get(f"/jobs/{job_id}"))["status"] == "completed"
