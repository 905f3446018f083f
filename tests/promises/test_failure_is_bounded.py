"""Promise 5: what a lost worker had is back in play within its lease; a database that comes back is found again."""

import asyncio
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest

from foliot.sdk.client import AsyncClient
from foliot.wire import RetryBody, SubmitBody
from tests.postgres_server import PostgresServer
from tests.processes import KEY, Programs, eventually
from tests.promises.gated_app import gate, runs_in
from tests.promises.speaker import Speaker, speakers

LEASE = timedelta(seconds=2)
QUICK = {"FOLIOT_LEASE_SECONDS": "2", "FOLIOT_HEARTBEAT_SECONDS": "0.5"}
BACKOFF = timedelta(seconds=0.5)
ENOUGH = timedelta(seconds=8)  # for one step of a very busy machine; a forgotten job waits without end


async def test_a_killed_workers_job_runs_again_after_its_lease_and_not_before(
    programs: Programs, tmp_path: Path
) -> None:
    _, url = programs.serve("node", "--no-worker", **QUICK)
    victim = programs.work("victim", url)
    async with AsyncClient(url, KEY) as client:
        retry = RetryBody(backoff="fixed", initial=BACKOFF.total_seconds(), jitter=0)
        job_id = await client.submit(SubmitBody(job_type="gated", retry=retry))
        eventually(lambda: len(runs_in(tmp_path)) == 1, "the first worker has it")
        programs.work("heir", url)
        victim.kill()
        eventually(lambda: len(runs_in(tmp_path)) == 2, "it runs again")
        gate(tmp_path, job_id, 2).touch()
        assert await client.outcome(job_id) == "heir"

        lost, success = await client.executions(job_id)
        (dead,) = [worker for worker in await client.workers() if worker.worker_id == lost.worker_id]
        assert (lost.status, success.status, dead.status) == ("lost", "success", "lost")
        assert dead.lease_until == dead.last_seen + LEASE
        assert lost.end_time is not None
        assert lost.end_time >= dead.lease_until, "taken away while its worker had a right to it"
        assert success.claimed_time >= lost.end_time + BACKOFF
        assert success.claimed_time <= dead.last_seen + LEASE + BACKOFF + ENOUGH
        first, second = runs_in(tmp_path)
        assert first.idempotency_key == second.idempotency_key


async def test_a_worker_that_leaves_gives_its_jobs_back_at_once(programs: Programs) -> None:
    _, url = programs.serve("node", "--no-worker")
    async with speakers(url) as (speaker,):
        leaver, heir = await speaker.register("task"), await speaker.register("task")
        await speaker.submit("task", retry={"backoff": "fixed", "initial": "20ms", "jitter": 0})
        (held,) = await speaker.take(leaver)
        await speaker.ask("DELETE", f"/workers/{leaver}")
        (again,) = await speaker.take(heir)  # long before the lease of 30 seconds
        assert (again["job_id"], again["attempt"]) == (held["job_id"], 2)


@pytest.mark.timeout(90)
async def test_a_database_that_crashes_and_comes_back_loses_nothing_that_was_acknowledged(programs: Programs) -> None:
    server = PostgresServer.start(fsync=True)
    try:
        url = server.create_database()
        node, address = programs.serve("node", "--no-worker", "--database", url)
        worker = programs.work("worker", address)
        async with speakers(address) as (speaker,), asyncio.TaskGroup() as tasks:
            flow = Flow(speaker)
            senders = [tasks.create_task(flow.send()) for _ in range(8)]
            await flow.until(lambda: len(flow.accepted) >= 100)
            server.kill()
            await flow.until(lambda: flow.refused >= 8)
            server.restart()
            so_far = len(flow.accepted)
            await flow.until(lambda: len(flow.accepted) >= so_far + 100)
            server.restart()  # in peace this time, in the middle of the flow
            so_far = len(flow.accepted)
            await flow.until(lambda: len(flow.accepted) >= so_far + 100)
            for sender in senders:
                sender.cancel()
        async with AsyncClient(address, KEY) as client:
            for job_id in flow.accepted:
                assert (await client.wait(job_id, timeout=30)).status == "completed", job_id
        assert len(set(flow.accepted)) == len(flow.accepted)
        assert "Traceback" not in node.said
        assert "Traceback" not in worker.said
        assert node.stop() == 0
        worker.kill()
    finally:
        server.stop()


class Flow:
    """Submits without end, and what became of each."""

    def __init__(self, speaker: Speaker) -> None:
        self._speaker = speaker
        self._news = asyncio.Event()
        self.accepted: list[str] = []
        self.refused = 0

    async def send(self) -> None:
        while True:
            status, answer = await self._speaker.call("POST", "/jobs", {"job_type": "mark"})
            if status == 201:
                self.accepted.append(answer["job_id"])
            else:
                assert (status, answer["type"]) == (503, "urn:foliot:problem:unavailable"), answer
                self.refused += 1
            self._news.set()

    async def until(self, enough: Callable[[], bool]) -> None:
        while not enough():
            self._news.clear()
            await self._news.wait()
