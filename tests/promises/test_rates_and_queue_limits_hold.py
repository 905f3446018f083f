"""Promise 5 for queues: never more at once than `max_concurrency`, never more in a time than the rate allows, whatever
dies and however long the workers were away; counted where the jobs run."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from msgspec import Raw

from foliot.sdk.client import AsyncClient
from foliot.wire import RetryBody, SubmitBody
from tests.processes import KEY, Programs, eventually
from tests.promises.limited_app import notes_in, now
from tests.promises.speaker import Speaker, speakers
from tests.promises.test_limits_hold import begun, most_at_once, work

QUICK = {"FOLIOT_LEASE_SECONDS": "2", "FOLIOT_HEARTBEAT_SECONDS": "0.5"}
RETRY = RetryBody(max_attempts=10, backoff="fixed", initial="50ms", jitter=0)
AT_ONCE = 3
RATE: dict[str, Any] = {"limit": 20, "per": 1, "burst": 5}
BEAT = RATE["per"] / RATE["limit"]

# A claim is noted with the database's time by which the rate was charged (shown in microseconds). A handler's start is
# later, by the way to the worker: what can be seen there comes closer together than what counts, on a busy machine.
ROUNDING, STARTED_LATE = 0.000_01, 1.0


@pytest.mark.timeout(120)
async def test_a_rate_and_a_queues_limit_hold_when_a_node_and_a_worker_are_killed(
    programs: Programs, database_url: str, tmp_path: Path
) -> None:
    _, url = programs.serve("node1", "--no-worker", "--database", database_url, **QUICK)
    doomed, doomed_url = programs.serve("node2", "--no-worker", "--database", database_url, **QUICK)
    runs = tmp_path / "runs"
    async with AsyncClient(url, KEY) as client, speakers(url) as (speaker,):
        await speaker.ask("PUT", "/queues/few", {"max_concurrency": AT_ONCE})
        await speaker.ask("PUT", "/queues/slow", {"rate_limit": RATE})
        workers = [
            work(programs, f"worker{index}", address, runs) for index, address in enumerate([url, url, doomed_url])
        ]
        accepted = await client.submit_many([body("few")] * 150 + [body("slow")] * 120)
        eventually(lambda: begun(runs, {worker.process.pid for worker in workers}, 5), "all of them run jobs")
        victim = workers[0]
        victim.kill()
        killed = now()
        so_far = len(notes_in(runs))
        eventually(lambda: len(notes_in(runs)) > so_far + 40, "the others go on")
        doomed.kill()
        for job_id in accepted:
            assert (await client.wait(job_id, timeout=60)).status == "completed", job_id
        assert await fullness(speaker) == {"few": (0, 0), "slow": (0, 0)}
        claimed = [run.claimed_time.timestamp() for job_id in accepted[150:] for run in await client.executions(job_id)]
    notes = notes_in(runs)
    assert {note.job_id for note in notes if not note.begins} == set(accepted)
    assert most_at_once(notes, "few", victim.process.pid, killed) == AT_ONCE
    started = [note.time / 1e9 for note in notes if note.begins and note.key == "slow"]
    assert_rate(claimed, ROUNDING)
    assert_whole_run(started, STARTED_LATE)


@pytest.mark.timeout(90)
async def test_a_rate_holds_when_the_workers_come_back_to_a_backlog(
    programs: Programs, database_url: str, tmp_path: Path
) -> None:
    nodes = [programs.serve(f"node{index}", "--no-worker", "--database", database_url, **QUICK) for index in range(2)]
    urls = [url for _, url in nodes]
    runs = tmp_path / "runs"
    async with AsyncClient(urls[0], KEY) as client, speakers(urls[0]) as (speaker,):
        await speaker.ask("PUT", "/queues/slow", {"rate_limit": RATE})
        first = work(programs, "first", urls[0], runs)
        accepted = await client.submit_many([body("slow")])
        eventually(lambda: len(notes_in(runs)) == 2, "it has run")
        first.kill()
        accepted += await client.submit_many([body("slow")] * 80)
        signal = await speaker.register("signal")
        await speaker.submit("signal", delay=2.5 * RATE["per"])
        await speaker.take(signal)
        assert len(notes_in(runs)) == 2, "nobody was there meanwhile"
        for index, url in enumerate(urls):
            work(programs, f"worker{index}", url, runs)
        for job_id in accepted:
            assert (await client.wait(job_id, timeout=60)).status == "completed", job_id
        assert (await fullness(speaker))["slow"] == (0, 0)
        claimed = [run.claimed_time.timestamp() for job_id in accepted for run in await client.executions(job_id)]
    assert_rate(claimed, ROUNDING)
    assert_whole_run([note.time / 1e9 for note in notes_in(runs) if note.begins][1:], STARTED_LATE)


def body(queue: str) -> SubmitBody:
    payload = Raw(json.dumps({"key": queue}).encode())
    return SubmitBody(job_type="limited", queue=queue, payload=payload, retry=RETRY)


async def fullness(speaker: Speaker) -> dict[str, tuple[int, int]]:
    return {queue["queue"]: (queue["waiting"], queue["running"]) for queue in await speaker.get("/queues")}


def assert_rate(times: Sequence[float], tolerance: float) -> None:
    """Whichever two starts are picked: the last of n is at least n - 1 - burst beats after the first. So there are no
    more than limit + burst in any `per`."""
    ordered = sorted(times)
    for first, begin in enumerate(ordered):
        for last in range(first, len(ordered)):
            least = (last - first - RATE["burst"]) * BEAT
            assert ordered[last] - begin >= least - tolerance, f"{last - first + 1} starts in {ordered[last] - begin} s"


def assert_whole_run(times: Sequence[float], tolerance: float) -> None:
    """The same for the first and the last alone: what is between them may have come late by as much."""
    assert max(times) - min(times) >= (len(times) - 1 - RATE["burst"]) * BEAT - tolerance
