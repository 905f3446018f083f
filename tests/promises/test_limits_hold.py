"""Promise 5: never more than the limit of a concurrency key at once, whatever dies, and no token is left behind."""

from collections import Counter
from pathlib import Path

import pytest
from msgspec import Raw

from foliot.sdk.client import AsyncClient
from foliot.wire import ConcurrencyBody, RetryBody, SubmitBody
from tests.processes import KEY, REGISTERED, Process, Programs, eventually
from tests.promises.limited_app import Note, notes_in, now
from tests.promises.speaker import speakers

QUICK = {"FOLIOT_LEASE_SECONDS": "2", "FOLIOT_HEARTBEAT_SECONDS": "0.5"}
KEYS = ("a", "b", "c", "d", "e")
LIMIT = 2
JOBS = 300


@pytest.mark.timeout(120)
async def test_a_limit_holds_when_a_node_and_a_worker_are_killed(
    programs: Programs, database_url: str, tmp_path: Path
) -> None:
    _, url = programs.serve("node1", "--no-worker", "--database", database_url, **QUICK)
    doomed, doomed_url = programs.serve("node2", "--no-worker", "--database", database_url, **QUICK)
    runs = tmp_path / "runs"
    workers = [work(programs, f"worker{index}", address, runs) for index, address in enumerate([url, url, doomed_url])]
    async with AsyncClient(url, KEY) as client, speakers(url) as (speaker,):
        accepted = await client.submit_many([body(number) for number in range(JOBS)])
        eventually(lambda: begun(runs, {worker.process.pid for worker in workers}, 10), "all of them run jobs")
        victim = workers[0]
        victim.kill()
        killed = now()
        eventually(lambda: len(notes_in(runs)) > 200, "the others go on")
        doomed.kill()
        for job_id in accepted:
            assert (await client.wait(job_id, timeout=60)).status == "completed", job_id
        keys = await speaker.get("/limits")
    assert [(each["key"], each["limit"], each["held"], each["waiting"]) for each in keys] == [
        (key, LIMIT, 0, 0) for key in KEYS
    ]
    notes = notes_in(runs)
    assert {note.job_id for note in notes if not note.begins} == set(accepted)
    assert {key: most_at_once(notes, key, victim.process.pid, killed) for key in KEYS} == dict.fromkeys(KEYS, LIMIT)


def body(number: int) -> SubmitBody:
    key = KEYS[number % len(KEYS)]
    return SubmitBody(
        job_type="limited",
        payload=Raw(f'{{"key":"{key}"}}'.encode()),
        concurrency=ConcurrencyBody(key=key, limit=LIMIT),
        retry=RetryBody(max_attempts=10, backoff="fixed", initial="50ms", jitter=0),
    )


def work(programs: Programs, name: str, url: str, runs: Path) -> Process:
    """A worker with room for fewer than the limits let through, so that every one of them is needed."""
    app = "tests.promises.limited_app:app"
    worker = programs.start(
        name, "worker", app, "--name", name, "--concurrency", "4", FOLIOT_URL=url, RUNS_FILE=str(runs)
    )
    worker.wait_for(REGISTERED)
    return worker


def begun(runs: Path, processes: set[int], count: int) -> bool:
    """Whether each of these processes has begun so many jobs."""
    found = Counter(note.process for note in notes_in(runs))
    return all(found[process] > count for process in processes)


def most_at_once(notes: list[Note], key: str, victim: int, killed: int) -> int:
    """How many jobs of a key ran at once at most. What a killed process had begun ended with it."""
    ended = {(note.job_id, note.attempt) for note in notes if not note.begins}
    steps = [(note.time, 1 if note.begins else -1) for note in notes if note.key == key]
    for note in notes:
        if note.key == key and note.begins and (note.job_id, note.attempt) not in ended:
            assert note.process == victim, f"{note} never ended"
            steps.append((killed, -1))
    running = most = 0
    for _, change in sorted(steps):  # at the same instant ends come first
        running += change
        most = max(most, running)
    assert running == 0
    return most
