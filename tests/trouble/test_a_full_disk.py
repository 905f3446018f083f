"""SQLite on a disk without room: told, survived, and forgotten as soon as there is room again."""

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from foliot.sdk.client import AsyncClient
from tests.processes import KEY, Programs, eventually
from tests.promises.gated_app import gate, runs_in
from tests.promises.speaker import speakers

BALLAST = 4 * 1024 * 1024


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """Room for eight MiB, which only the system's administrator can make."""
    place = tmp_path / "small"
    place.mkdir()
    made = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=8m", "foliot-test", str(place)], capture_output=True, text=True
    )
    if made.returncode != 0:
        pytest.skip(f"no small disk can be made: {made.stderr.strip()}")
    yield place
    subprocess.run(["umount", "--lazy", str(place)], check=True)


async def test_submits_are_refused_with_store_full_and_all_goes_on_when_there_is_room(
    small_disk: Path, programs: Programs, tmp_path: Path
) -> None:
    ballast = small_disk / "ballast"
    ballast.write_bytes(bytes(BALLAST))
    node, url = programs.serve("node", "--no-worker", "--data-dir", str(small_disk / "data"))
    worker = programs.work("worker", url)
    async with speakers(url) as (speaker,), AsyncClient(url, KEY) as client:
        running = await speaker.submit("gated")
        eventually(lambda: len(runs_in(tmp_path)) == 1, "it runs")
        accepted: dict[str, str] = {}
        for size in (200_000, 10_000, 10):  # the smaller ones fill what the larger leave
            body = {"job_type": "nobody", "payload": size * "x"}
            status, answer = await speaker.call("POST", "/jobs", body)
            while status == 201:
                accepted[answer["job_id"]] = body["payload"]
                status, answer = await speaker.call("POST", "/jobs", body)
            assert (status, answer["type"]) == (503, "urn:foliot:problem:store-full")
            assert "The disk of the SQLite database is full. Make room" in answer["detail"]
        for job_id, payload in accepted.items():
            assert (await speaker.get(f"/jobs/{job_id}"))["payload"] == payload, "what can be read is read"
        gate(tmp_path, running, 1).touch()
        worker.wait_for(re.compile("answered 503: The disk of the SQLite database is full"), 2)
        assert node.process.poll() is None

        ballast.unlink()
        assert await client.outcome(running, timeout=15) == "worker"
        assert await client.outcome(await speaker.submit("mark"), timeout=15) == "worker"
        for job_id in accepted:
            assert (await speaker.get(f"/jobs/{job_id}"))["status"] == "queued"
    assert [run.attempt for run in runs_in(tmp_path)] == [1, 1]
    worker.kill()
    assert node.stop() == 0
    assert "Traceback" not in node.said
