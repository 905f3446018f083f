"""The conversation with the node when things go wrong."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from foliot.sdk.context import JobContext
from foliot.sdk.handler import Handler
from foliot.worker import Worker
from foliot.worker.node import WorkerRefused
from tests.worker.conftest import running
from tests.worker.fault_proxy import FaultProxy
from tests.worker.real_node import KEY, Jobs, NodeProcess, messages
from tests.worker.sample_handlers import HANDLERS


@pytest.fixture
async def proxy(shared_node: NodeProcess) -> AsyncIterator[FaultProxy]:
    async with FaultProxy(shared_node.port) as proxy:
        yield proxy


def through(proxy: FaultProxy, jobs: Jobs) -> Worker:
    return Worker(proxy.url, KEY, HANDLERS, queues=[jobs.queue], concurrency=8, stop_grace=0.5)


async def test_jobs_in_a_lost_answer_are_sent_again(proxy: FaultProxy, jobs: Jobs) -> None:
    proxy.lose(b'"token"')
    async with running(through(proxy, jobs)):
        job_id = await jobs.submit("add", {"a": 1, "b": 2}, retry={"max_attempts": 1})
        job, _ = await jobs.ended(job_id)
        assert proxy.lost.is_set()
        assert b'"holds":[]' in proxy.sent
        assert (job["status"], job["attempt"]) == ("completed", 1)


async def test_a_report_whose_answer_is_lost_is_handed_in_again(proxy: FaultProxy, jobs: Jobs) -> None:
    async with running(through(proxy, jobs)) as worker:
        first = await jobs.submit("sleep", {"seconds": 0.5}, retry={"max_attempts": 1})
        await jobs.line(first, "begun")
        proxy.lose(b'"rejected"')
        job, _ = await jobs.ended(first)
        await proxy.lost.wait()
        assert job["status"] == "completed"
        again, _ = await jobs.ended(await jobs.submit("add", {"a": 1, "b": 1}))
        assert again["status"] == "completed"
        await worker.stop()
        assert worker.unacknowledged == 0


async def test_a_worker_that_reaches_no_node_stops_its_jobs_and_comes_back(
    brisk_node: NodeProcess, brisk_jobs: Jobs
) -> None:
    jobs = brisk_jobs
    stopped = asyncio.Event()

    async def stay(payload: bytes, context: JobContext) -> int:
        if context.attempt == 1:
            context.log.info("begun")
            try:
                await asyncio.sleep(3600)
            finally:
                stopped.set()
        return context.attempt

    handlers = {"stay": Handler(name="stay", function=stay)}
    async with (
        FaultProxy(brisk_node.port) as proxy,
        running(Worker(proxy.url, KEY, handlers, queues=[jobs.queue], concurrency=1)) as worker,
    ):
        first_id = worker.worker_id
        job_id = await jobs.submit("stay", retry={"max_attempts": 2, "delays": [0]})
        await jobs.line(job_id, "begun")
        worker.started.clear()
        proxy.block()
        await stopped.wait()
        proxy.open()
        await worker.started.wait()
        assert worker.worker_id != first_id
        job, _ = await jobs.ended(job_id)
        assert job["status"] == "completed"
        assert [one["status"] for one in await jobs.executions(job_id)] == ["lost", "success"]


async def test_lines_and_progress_are_seen_while_the_job_runs(shared_node: NodeProcess, jobs: Jobs) -> None:
    seen = asyncio.Event()

    async def advance(payload: bytes, context: JobContext) -> None:
        for hundredth in range(51):
            context.progress(hundredth / 100, "half" if hundredth == 50 else None)
        print("half way")
        await seen.wait()
        print("and on")
        await asyncio.sleep(3600)

    handlers = {"advance": Handler(name="advance", function=advance)}
    async with running(Worker(shared_node.url, KEY, handlers, queues=[jobs.queue])):
        job_id = await jobs.submit("advance")
        await jobs.line(job_id, "half way")
        seen.set()
        await jobs.line(job_id, "and on")  # which left after the call that carried the progress was answered
        job = await jobs.get(f"/jobs/{job_id}")
        assert job["status"] == "running"
        assert job["progress"] == {"value": 0.5, "note": "half"}
        await jobs.cancel(job_id)
        await jobs.ended(job_id)


async def test_a_handler_that_blocks_the_loop_keeps_the_lease_and_is_named(
    brisk_node: NodeProcess, brisk_jobs: Jobs
) -> None:
    jobs = brisk_jobs
    async with running(Worker(brisk_node.url, KEY, HANDLERS, queues=[jobs.queue])):
        job_id = await jobs.submit("block", {"seconds": 4}, retry={"max_attempts": 1})
        job, lines = await jobs.ended(job_id)
        assert (job["status"], job["attempt"]) == ("completed", 1)
        assert any("blocks the worker's event loop" in message for message in messages(lines))
        assert [one["status"] for one in await jobs.executions(job_id)] == ["success"]


async def test_an_unknown_job_type_is_fatal_and_says_what_there_is(shared_node: NodeProcess, jobs: Jobs) -> None:
    offered = {"add": HANDLERS["add"]}
    async with running(Worker(shared_node.url, KEY, offered, queues=[jobs.queue], job_types=[])):
        job, _ = await jobs.ended(await jobs.submit("no.such.type"))
        assert (job["status"], job["reason"], job["attempt"]) == ("failed", "unknown_job_type", 1)
        assert "it has add" in job["last_error"]["message"]


async def test_a_wrong_key_ends_the_worker_with_a_clear_word(shared_node: NodeProcess) -> None:
    worker = Worker(shared_node.url, "wrong", {"add": HANDLERS["add"]})
    await worker.start()
    with pytest.raises(WorkerRefused, match="does not accept the key"):
        await worker.wait()


async def test_a_worker_that_never_reached_a_node_can_be_stopped(free_port: int) -> None:
    worker = Worker(f"http://127.0.0.1:{free_port}", KEY, {"add": HANDLERS["add"]})
    await worker.start()
    await worker.stop()
    assert not worker.started.is_set()


async def test_many_jobs_all_end_once(worker: Worker, jobs: Jobs) -> None:
    async with running(worker):
        found = await jobs.submit_many([("add", {"a": number, "b": 1}) for number in range(500)])
        for number, job_id in enumerate(found):
            job, _ = await jobs.ended(job_id)
            assert (job["status"], job["attempt"]) == ("completed", 1)
            if number % 100 == 0:
                assert await jobs.get(f"/jobs/{job_id}/result") == number + 1
