"""Promise 6: a job starts at its time, never before it, whatever is changed or dies meanwhile. How late, `make bench`
tells."""

import asyncio
import time
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

import asyncpg
import pytest

from foliot.sdk.client import AsyncClient
from foliot.sdk.failures import Conflict
from foliot.wire import SubmitBody, UpdateBody, to_micros
from tests.processes import KEY, Programs, eventually
from tests.promises.gated_app import runs_in

JOBS = 40
ENOUGH = timedelta(seconds=8)  # for a very busy machine; one that is forgotten is found after half a minute at best


@pytest.fixture(params=["sqlite", "postgresql"])
def store_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'jobs.db'}"
    return str(request.getfixturevalue("database_url"))


async def test_no_job_starts_early_and_none_is_forgotten(store_url: str, programs: Programs, tmp_path: Path) -> None:
    _, url = programs.serve("node", "--no-worker", "--database", store_url)
    programs.work("worker", url, "--concurrency", "50")
    ahead = await _ahead(store_url)
    async with AsyncClient(url, KEY) as client:
        due = await _submit([client])
        due |= await _reschedule([client], due)
        _assert_each_started_once(tmp_path, due)
        _assert_none_early(tmp_path, due, ahead)
        await _assert_claimed_in_time(client, due)


async def test_jobs_of_a_killed_node_start_all_the_same(programs: Programs, database_url: str, tmp_path: Path) -> None:
    _, url = programs.serve("node1", "--no-worker", "--database", database_url)
    victim, other_url = programs.serve("node2", "--no-worker", "--database", database_url)
    programs.work("worker", url, "--concurrency", "50")
    ahead = await _ahead(database_url)
    async with AsyncClient(url, KEY) as client, AsyncClient(other_url, KEY) as other:
        due = await _submit([client, other])
        due |= await _reschedule([client, other], due)
        victim.kill()
        _assert_each_started_once(tmp_path, due)
        _assert_none_early(tmp_path, due, ahead)
        await _assert_claimed_in_time(client, due)


async def _submit(clients: Sequence[AsyncClient]) -> dict[str, datetime]:
    """Jobs that are due in one to three seconds: some inside of what a node looks ahead, some outside."""
    begun = datetime.now(UTC)
    due = {f"job-{number}": begun + timedelta(seconds=1 + 2 * number / JOBS) for number in range(JOBS)}
    await asyncio.gather(
        *(
            clients[number % len(clients)].submit(SubmitBody(job_type="mark", job_id=job_id, schedule_time=when))
            for number, (job_id, when) in enumerate(due.items())
        )
    )
    return due


async def _reschedule(clients: Sequence[AsyncClient], due: dict[str, datetime]) -> dict[str, datetime]:
    """Of every four jobs one is moved to an earlier time, one to a later, one there and back; through any node. Those
    that were moved, and their new times."""

    async def move(number: int, job_id: str) -> dict[str, datetime]:
        moved: dict[str, datetime] = {}
        for step in {0: [-0.7], 1: [+1.0], 2: [+1.5, -0.2], 3: []}[number % 4]:
            when = due[job_id] + timedelta(seconds=step)
            client = clients[number // 4 % len(clients)]
            try:
                await client.update(job_id, UpdateBody(schedule_time=when))
            except Conflict:  # it runs already: the machine was slow
                break
            moved[job_id] = when
        return moved

    moves = await asyncio.gather(*(move(number, job_id) for number, job_id in enumerate(due)))
    return {job_id: when for moved in moves for job_id, when in moved.items()}


def _assert_each_started_once(folder: Path, due: dict[str, datetime]) -> None:
    eventually(lambda: {run.job_id for run in runs_in(folder)} == set(due), "every job runs")
    assert len(runs_in(folder)) == len(due)


def _assert_none_early(folder: Path, due: dict[str, datetime], ahead: int) -> None:
    early = {
        run.job_id: to_micros(due[run.job_id]) - run.time - ahead
        for run in runs_in(folder)
        if run.time + ahead < to_micros(due[run.job_id])
    }
    assert early == {}, "microseconds before their time, by the database's clock"


async def _assert_claimed_in_time(client: AsyncClient, due: dict[str, datetime]) -> None:
    for job_id, when in due.items():
        (execution,) = await client.executions(job_id)
        assert execution.due_time == when
        assert when <= execution.claimed_time <= when + ENOUGH, job_id


async def _ahead(url: str) -> int:
    """By how many microseconds at most the database's clock is ahead of this machine's."""
    if url.startswith("sqlite:"):
        return 0
    database = await asyncpg.connect(url)
    try:
        asked = time.time_ns() // 1000
        told = await database.fetchval("select clock_timestamp()")
        return to_micros(told) - asked
    finally:
        await database.close()
