"""Promises 1, 3, 4 and 9 under kill −9: what was accepted ends, once, whatever dies."""

import asyncio
from collections import Counter
from pathlib import Path

import asyncpg
import pytest
from msgspec import Raw

from foliot.domain.job import AttemptStatus, State
from foliot.sdk.client import AsyncClient
from foliot.wire import SubmitBody
from tests.processes import KEY, Process, eventually, serve

JOBS = 20_000
QUICK = {"FOLIOT_LEASE_SECONDS": "2", "FOLIOT_HEARTBEAT_SECONDS": "0.5"}


@pytest.mark.timeout(180)
async def test_every_job_completes_once_when_a_node_and_a_worker_are_killed(database_url: str, tmp_path: Path) -> None:
    first, first_url = serve(tmp_path, "node1", "--no-worker", "--database", database_url, **QUICK)
    second, second_url = serve(tmp_path, "node2", "--no-worker", "--database", database_url, **QUICK)
    runs = [tmp_path / "runs1", tmp_path / "runs2"]
    workers = [
        Process(
            tmp_path,
            f"worker{index}",
            "worker",
            "tests.promises.counting_app:app",
            "--concurrency",
            "100",
            FOLIOT_URL=url,
            RUNS_FILE=str(runs[index]),
        )
        for index, url in enumerate([first_url, second_url])
    ]
    client = AsyncClient(first_url, KEY)
    try:
        bodies = [SubmitBody(job_type="count", payload=Raw(f'{{"number":{n}}}'.encode())) for n in range(JOBS)]
        accepted = await client.submit_many(bodies)
        eventually(lambda: all(_lines(file) > 500 for file in runs), "both workers run jobs")
        workers[1].kill()
        second.kill()
        database = await asyncpg.connect(database_url)
        try:
            await _until_ended(database)
            assert await _ends(database) == {State.COMPLETED: JOBS}
            assert await database.fetchval("select count(*) from leases") == 0
            lost = await database.fetch("select status, count(*) from attempts group by status")
            assert {AttemptStatus(status) for status, _ in lost} <= {AttemptStatus.LOST}
        finally:
            await database.close()
        assert len(set(accepted)) == JOBS
        counted = Counter(number for file in runs for number in file.read_text().split())
        assert set(counted) == {str(number) for number in range(JOBS)}
        repeated = sum(count - 1 for count in counted.values())
        assert repeated <= sum(count for _, count in lost), "a job ran twice without a recorded cause"
    finally:
        await client.close()
        for process in (*workers, first, second):
            process.stop()


def _lines(file: Path) -> int:
    return file.read_bytes().count(b"\n") if file.exists() else 0


async def _ends(database: asyncpg.Connection) -> dict[State, int]:
    rows = await database.fetch("select state, count(*) from history group by state")
    return {State(state): count for state, count in rows}


async def _until_ended(database: asyncpg.Connection) -> None:
    async with asyncio.timeout(120):
        while sum((await _ends(database)).values()) < JOBS:  # noqa: ASYNC110 (another process ends them)
            await asyncio.sleep(0.1)
