"""Promises 2 and 8: any number of nodes may fire, one of them may die; each due time has one job and one verdict."""

import asyncio
import os
from collections import Counter
from datetime import UTC, datetime, timedelta
from pathlib import Path

import asyncpg
import pytest
from msgspec import Raw

from foliot.domain.job import State
from foliot.domain.schedule import Verdict, run_name
from foliot.sdk.client import AsyncClient
from foliot.wire import ScheduleBody, TemplateBody, to_micros
from tests.processes import KEY, Programs, eventually

SCHEDULES = 200
SECONDS = int(os.environ.get("FOLIOT_FIRING_SECONDS", "15"))  # a longer look: 60
RUNS = SCHEDULES * SECONDS


@pytest.mark.timeout(180)
async def test_each_due_time_has_one_job_though_a_node_is_killed(
    database_url: str, programs: Programs, tmp_path: Path
) -> None:
    doomed, _ = programs.serve("node1", "--no-worker", "--database", database_url)
    _, url = programs.serve("node2", "--no-worker", "--database", database_url)
    runs = tmp_path / "runs"
    programs.start("worker", "worker", "tests.promises.counting_app:app", FOLIOT_URL=url, RUNS_FILE=str(runs))
    client = AsyncClient(url, KEY)
    database = await asyncpg.connect(database_url)
    try:
        start = datetime.now(UTC).replace(microsecond=0) + timedelta(seconds=4)
        for number in range(SCHEDULES):
            await client.create_schedule(_every_second(number, start))
        eventually(lambda: _lines(runs) >= RUNS // 2, "half of the runs", seconds=90)
        doomed.kill()
        async with asyncio.timeout(90):
            while await database.fetchval("select count(*) from history") < RUNS:  # noqa: ASYNC110
                await asyncio.sleep(0.1)

        ledger = await database.fetch("select verdict, count, due, until from ledger")
        names = {row["name"] for row in await database.fetch("select name from jobs")}
        states = Counter(row["state"] for row in await database.fetch("select state from history"))
        late = sorted(row[0] / 1000 for row in await database.fetch("select claimed - due from history"))
        counted = Counter(runs.read_text().split())
        print(
            f"\n{len(ledger):,} due times in the ledger, {len(names):,} jobs, {states[State.COMPLETED]:,} completed, "
            f"{sum(counted.values()):,} runs counted by the worker; from due to claim: "
            f"median {late[len(late) // 2]:.1f} ms, latest {late[-1]:.1f} ms (the node's death included)"
        )
        assert Counter(row["verdict"] for row in ledger) == {Verdict.RAN: RUNS}
        assert all(row["count"] == 1 and row["due"] == row["until"] for row in ledger)
        first = to_micros(start)
        assert names == {
            run_name(f"beat-{number}", first + second * 1_000_000)
            for number in range(SCHEDULES)
            for second in range(SECONDS)
        }
        assert states == {State.COMPLETED: RUNS}
        assert counted == {str(number): SECONDS for number in range(SCHEDULES)}
        assert await database.fetchval("select count(*) from open_runs") == 0
    finally:
        await client.close()
        await database.close()


def _every_second(number: int, start: datetime) -> ScheduleBody:
    return ScheduleBody(
        schedule_id=f"beat-{number}",
        every="1s",
        start_time=start,
        end_time=start + timedelta(seconds=SECONDS - 1),
        overlap="allow",
        job=TemplateBody(job_type="count", payload=Raw(f'{{"number":{number}}}'.encode())),
    )


def _lines(file: Path) -> int:
    return file.read_bytes().count(b"\n") if file.exists() else 0
