"""A node whose clock is wrong, or is set while it runs, fires nothing early, late or twice; one that slept catches
up, as its schedules say."""

import asyncio
import subprocess
import sys
from collections import Counter
from datetime import UTC, datetime, timedelta
from pathlib import Path

import asyncpg
import pytest
from msgspec import Raw

from foliot.domain.schedule import Verdict
from foliot.sdk.client import AsyncClient
from foliot.wire import RunInfo, ScheduleBody, SubmitBody, TemplateBody
from tests.processes import KEY, Programs
from tests.trouble.clock_shim import ClockShim

MINUTES = 60.0
STEPS = (5 * MINUTES, -5 * MINUTES, 0.0, 60 * MINUTES, 5 * MINUTES)  # what its clock is off by, one after the other
SCHEDULES, JOBS, SECONDS = 10, 200, 16
FAR_OFF = 60_000.0  # milliseconds; what a clock that is off by minutes would make of a start


def test_the_shim_moves_a_programs_clocks_and_not_the_one_it_sleeps_by(clock_shim: ClockShim) -> None:
    code = (
        "import time\n"
        "for c in (time.CLOCK_REALTIME, time.CLOCK_BOOTTIME, time.CLOCK_MONOTONIC): print(time.clock_gettime(c))\n"
        "print(time.time())"
    )
    clock_shim.set(wall=1e6, asleep=2e6)
    moved = subprocess.run([sys.executable, "-c", code], env=clock_shim.environ, capture_output=True, check=True)
    plain = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True)
    differences = [
        round((float(one) - float(other)) / 1e5)
        for one, other in zip(moved.stdout.split(), plain.stdout.split(), strict=True)
    ]
    assert differences == [10, 20, 0, 10]


@pytest.mark.timeout(120)
@pytest.mark.parametrize("company", [False, True], ids=["alone", "beside a node whose clock is right"])
async def test_a_node_with_a_wrong_clock_fires_nothing_early_late_or_twice(
    database_url: str, programs: Programs, tmp_path: Path, clock_shim: ClockShim, company: bool
) -> None:
    clock_shim.set(wall=STEPS[0])
    _, url = programs.serve("wrong", "--no-worker", "--database", database_url, **clock_shim.environ)
    if company:
        programs.serve("right", "--no-worker", "--database", database_url)
    runs = tmp_path / "runs"
    programs.start("worker", "worker", "tests.promises.counting_app:app", FOLIOT_URL=url, RUNS_FILE=str(runs))
    client = AsyncClient(url, KEY)
    database = await asyncpg.connect(database_url)
    try:
        start = (await database.fetchval("select clock_timestamp()")) + timedelta(seconds=3)
        for number in range(SCHEDULES):
            await client.create_schedule(_every_second(number, start))
        step = timedelta(seconds=SECONDS / JOBS)
        await client.submit_many([_at(SCHEDULES + n, start + n * step) for n in range(JOBS)])
        expected = SCHEDULES * SECONDS + JOBS
        for index, off_by in enumerate(STEPS):
            clock_shim.set(wall=off_by)
            await _until_ended(database, expected * index // (len(STEPS) - 1))

        late = [row[0] / 1000 for row in await database.fetch("select started - due from history order by 1")]
        verdicts = Counter(row["verdict"] for row in await database.fetch("select verdict from ledger"))
        counted = Counter(runs.read_text().split())
        print(
            f"\nwall clock off by {', '.join(f'{step:+.0f} s' for step in STEPS)}: {len(late)} starts, "
            f"from due to start {late[0]:.1f} to {late[-1]:.1f} ms, median {late[len(late) // 2]:.1f} ms; "
            f"{verdicts[Verdict.RAN]} due times ran, {sum(counted.values())} runs counted by the worker"
        )
        assert late[0] >= 0, "a job started before its time"
        assert late[-1] < FAR_OFF, "a job started minutes after its time"
        assert verdicts == {Verdict.RAN: SCHEDULES * SECONDS}
        assert counted == {str(n): SECONDS if n < SCHEDULES else 1 for n in range(SCHEDULES + JOBS)}
    finally:
        await client.close()
        await database.close()


@pytest.mark.timeout(60)
async def test_a_node_that_slept_catches_up_as_its_schedules_say(programs: Programs, clock_shim: ClockShim) -> None:
    _, url = programs.serve("node", **clock_shim.environ)
    async with AsyncClient(url, KEY) as client:
        start = datetime.now(UTC) + timedelta(minutes=10)
        for catch_up in ("none", "latest", "all"):
            await client.create_schedule(
                ScheduleBody(
                    schedule_id=catch_up,
                    every="20m",
                    start_time=start,
                    catch_up=catch_up,
                    catch_up_window="1h",
                    overlap="allow",
                    job=TemplateBody(job_type="echo"),
                )
            )
        asleep = 2 * 60 * MINUTES
        clock_shim.set(wall=asleep, asleep=asleep)  # due meanwhile: after 10, 30, 50, 70, 90 and 110 minutes
        runs = {name: await _until_decided(client, name, 6) for name in ("none", "latest", "all")}
    assert _verdicts(runs["none"]) == {"missed": 6}
    assert _verdicts(runs["latest"]) == {"expired": 3, "missed": 2, "caught_up": 1}
    assert _verdicts(runs["all"]) == {"expired": 3, "caught_up": 3}


def _every_second(number: int, start: datetime) -> ScheduleBody:
    return ScheduleBody(
        schedule_id=f"beat-{number}",
        every="1s",
        start_time=start,
        end_time=start + timedelta(seconds=SECONDS - 1),
        overlap="allow",
        job=TemplateBody(job_type="count", payload=Raw(f'{{"number":{number}}}'.encode())),
    )


def _at(number: int, time: datetime) -> SubmitBody:
    return SubmitBody(job_type="count", payload=Raw(f'{{"number":{number}}}'.encode()), schedule_time=time)


async def _until_ended(database: asyncpg.Connection, count: int) -> None:
    async with asyncio.timeout(90):
        while await database.fetchval("select count(*) from history") < count:  # noqa: ASYNC110
            await asyncio.sleep(0.05)


async def _until_decided(client: AsyncClient, schedule_id: str, count: int) -> list[RunInfo]:
    async with asyncio.timeout(45):
        while True:
            runs = await client.runs(schedule_id)
            if sum(run.count for run in runs if run.verdict is not None) >= count:
                return runs
            await asyncio.sleep(0.05)


def _verdicts(runs: list[RunInfo]) -> dict[str, int]:
    counts: Counter[str] = Counter()
    for run in runs:
        counts[str(run.verdict)] += run.count
    return dict(counts)
