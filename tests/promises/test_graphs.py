"""Graphs under kill −9: every job of a fan-out runs, once, and what waits for all of them runs last."""

from collections import Counter
from pathlib import Path

import pytest
from msgspec import Raw

from foliot.sdk.client import AsyncClient
from foliot.wire import SubmitBody
from tests.processes import KEY, REGISTERED, Programs, eventually
from tests.promises.speaker import report, speakers

WIDTH = 2000
QUICK = {"FOLIOT_LEASE_SECONDS": "2", "FOLIOT_HEARTBEAT_SECONDS": "0.5"}


@pytest.mark.timeout(120)
async def test_a_fan_out_whose_node_is_killed_half_way_runs_once_and_its_end_last(
    programs: Programs, database_url: str, tmp_path: Path
) -> None:
    _, url = programs.serve("node1", "--no-worker", "--database", database_url, **QUICK)
    doomed, doomed_url = programs.serve("node2", "--no-worker", "--database", database_url, **QUICK)
    runs = tmp_path / "runs"
    for index in range(2):
        name = f"worker{index}"
        words = ("worker", "tests.promises.counting_app:app", "--name", name, "--concurrency", "50")
        programs.start(name, *words, FOLIOT_URL=url, RUNS_FILE=str(runs)).wait_for(REGISTERED)
    names = [f"child-{number}" for number in range(WIDTH)]
    jobs = [
        SubmitBody(job_type="start", job_id="start"),
        *(count(number, job_id=name, depends_on=["start"]) for number, name in enumerate(names)),
        count(WIDTH, job_id="last", depends_on=list(names)),
    ]
    async with AsyncClient(url, KEY) as client, speakers(doomed_url) as (speaker,):
        await client.submit_many(jobs)
        worker = await speaker.register("start")
        (start,) = await speaker.take(worker)
        answer = await speaker.exchange(worker, reports=[report(start, "success", result="go")])
        assert answer["rejected"] == []
        eventually(lambda: numbers(runs) != [], "the first children run")
        doomed.kill()
        assert (await client.wait("last", timeout=60)).status == "completed"
        assert {(await client.get(name)).status for name in names[:: WIDTH // 20]} == {"completed"}
    assert Counter(numbers(runs)) == Counter(range(WIDTH + 1))
    assert numbers(runs)[-1] == WIDTH


def count(number: int, *, job_id: str, depends_on: list[str]) -> SubmitBody:
    payload = Raw(f'{{"number":{number}}}'.encode())
    return SubmitBody(job_type="count", job_id=job_id, payload=payload, depends_on=[*depends_on])


def numbers(runs: Path) -> list[int]:
    """In the order in which they ran."""
    lines = runs.read_text().splitlines(keepends=True) if runs.exists() else []
    return [int(line) for line in lines if line.endswith("\n")]
