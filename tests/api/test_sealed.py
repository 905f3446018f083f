"""A node with encryption keys, from outside: it is as any other, its database holds nothing to read, and one without
the key says which it lacks."""

from pathlib import Path
from typing import Any

import aiohttp

from foliot.handlers import load_handlers
from foliot.handlers.permissions import Permissions
from foliot.worker import Worker
from tests.worker.conftest import client, running
from tests.worker.real_node import KEY, NodeProcess

SECRET = "a very private thing"
OLD, NEW = "2026a:" + "A" * 43 + "=", "2026b:" + "B" * 42 + "A="


def held(folder: Path) -> bytes:
    """All that the database holds."""
    return b"".join(file.read_bytes() for file in folder.iterdir() if file.name.startswith("foliot.db"))


async def get(node: NodeProcess, path: str) -> tuple[int, Any]:
    headers = {"Authorization": f"Bearer {KEY}"}
    async with aiohttp.ClientSession(node.url, headers=headers) as session, session.get(f"/api/v1{path}") as answer:
        return answer.status, await answer.json(content_type=None)


async def test_a_sealed_job_runs_is_read_and_is_lost_without_its_key(tmp_path: Path) -> None:
    node = NodeProcess(tmp_path, FOLIOT_ENCRYPTION_KEYS=OLD)
    try:
        async with client(node, "sealed") as jobs:
            worker = Worker(node.url, KEY, {"echo": load_handlers(Permissions())["echo"]}, queues=[jobs.queue])
            async with running(worker):
                job_id = await jobs.submit("echo", {"message": SECRET})
                job, _ = await jobs.ended(job_id)
                assert (job["status"], job["payload"]) == ("completed", {"message": SECRET})
                assert SECRET in str(await jobs.get(f"/jobs/{job_id}/result"))
    finally:
        node.stop()
    other = NodeProcess(tmp_path, FOLIOT_ENCRYPTION_KEYS=NEW)
    try:
        for path in (f"/jobs/{job_id}", f"/jobs/{job_id}/result"):
            status, problem = await get(other, path)
            assert (status, problem["type"]) == (500, "urn:foliot:problem:unreadable")
            assert "'2026a'" in problem["detail"]
        assert (await get(other, "/jobs"))[1][0]["status"] == "completed"
    finally:
        other.stop()
    assert b"sealed:1:2026a:" in held(tmp_path)
