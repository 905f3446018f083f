"""Promise 5 for what workers offer: counted where the jobs run, whatever is killed on the way."""

from collections import Counter, defaultdict
from pathlib import Path

import pytest
from msgspec import Raw

from foliot.sdk.client import AsyncClient
from foliot.wire import RetryBody, SubmitBody
from tests.processes import KEY, REGISTERED, Process, Programs, eventually
from tests.promises.holding_app import notes_in

QUICK = {"FOLIOT_LEASE_SECONDS": "2", "FOLIOT_HEARTBEAT_SECONDS": "0.5"}
OFFER = {"slot": 6, "cpu": 4, "gpu": 1}
KINDS: tuple[dict[str, float | str], ...] = (
    {},
    {"cpu": 0.5},
    {"cpu": 3},
    {"cpu": 1, "gpu": 1},
    {"slot": 4},
    {"cpu": 4},
)
JOBS = 120
RETRY = RetryBody(max_attempts=10, backoff="fixed", initial=0.1, jitter=0)


@pytest.mark.timeout(90)
async def test_jobs_hold_what_their_workers_have_and_no_more_though_workers_and_a_node_are_killed(
    database_url: str, programs: Programs, tmp_path: Path
) -> None:
    notes = tmp_path / "notes"
    doomed, first_url = programs.serve("node1", "--no-worker", "--database", database_url, **QUICK)
    _, url = programs.serve("node2", "--no-worker", "--database", database_url, **QUICK)
    victim = _work(programs, "victim", url, notes)
    orphan = _work(programs, "orphan", first_url, notes)
    async with AsyncClient(url, KEY) as client:
        never = await client.submit(_body({"gpu": 2}, priority="high"))
        found = [await client.submit(_body(KINDS[number % len(KINDS)])) for number in range(JOBS)]
        eventually(lambda: len(notes_in(notes)) >= JOBS // 3, "some have run")
        victim.kill()
        doomed.kill()
        _work(programs, "heir", url, notes)
        for job_id in found:
            assert (await client.wait(job_id, timeout=60)).status == "completed", job_id
        assert (await client.get(never)).status == "queued", "nobody has two, and it held up nobody"

    held: defaultdict[int, Counter[str]] = defaultdict(Counter)
    most: Counter[str] = Counter()
    for note in notes_in(notes):
        for name, amount in note.resources.items():
            held[note.process][name] += note.sign * round(amount * 1000)
        most |= held[note.process]
    assert set(held) >= {victim.process.pid, orphan.process.pid}
    assert most == {name: amount * 1000 for name, amount in OFFER.items()}, "all was used, and never more"
    assert not any(held[process][name] for process in held if process != victim.process.pid for name in OFFER)


def _work(programs: Programs, name: str, url: str, notes: Path) -> Process:
    worker = programs.start(
        name,
        *("worker", "tests.promises.holding_app:app", "--name", name, "--concurrency", str(OFFER["slot"])),
        *("--resource", f"cpu={OFFER['cpu']}", "--label", "zone=eu"),
        FOLIOT_URL=url,
        FOLIOT_RESOURCES=f"gpu={OFFER['gpu']}",
        NOTES=str(notes),
    )
    worker.wait_for(REGISTERED)
    return worker


def _body(resources: dict[str, float | str], **fields: object) -> SubmitBody:
    payload = Raw(b'{"seconds": 0.02}')
    return SubmitBody(
        job_type="hold",
        payload=payload,
        resources=resources,
        requires={"zone": "eu"},
        retry=RETRY,
        **fields,  # type: ignore[arg-type]
    )
