"""A real node in a process of its own, and a client that waits for signals instead of sleeping."""

import os
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import aiohttp
import msgspec

KEY = "test-key-test-key-test-key"


class NodeProcess:
    """`foliot serve` without its own worker, on SQLite."""

    def __init__(self, folder: Path, **settings: str) -> None:
        environment = os.environ | {
            "FOLIOT_ADMIN_KEY": KEY,
            "FOLIOT_PORT": "0",
            "FOLIOT_DATA_DIR": str(folder),
            "FOLIOT_WORKER": "false",
            "FOLIOT_LEASE_SECONDS": "12",
            "FOLIOT_HEARTBEAT_SECONDS": "2",
        }
        self._process = subprocess.Popen(
            [sys.executable, "-m", "foliot", "serve"], env=environment | settings, stdout=subprocess.PIPE, text=True
        )
        assert self._process.stdout is not None
        first = self._process.stdout.readline()
        self.url = next(word for word in first.split() if word.startswith("http://"))

    @property
    def port(self) -> int:
        return int(self.url.rpartition(":")[2])

    def kill(self) -> None:
        self._process.kill()
        self._process.communicate()

    def stop(self) -> None:
        self._process.terminate()
        try:
            self._process.communicate(timeout=15)
        except subprocess.TimeoutExpired:
            self.kill()


class Jobs:
    """The public API, seen from a test. `queue` keeps tests that share a node apart."""

    def __init__(self, session: aiohttp.ClientSession, queue: str) -> None:
        self._session = session
        self.queue = queue

    async def submit(self, job_type: str, payload: Any = None, **fields: Any) -> str:
        body = {"job_type": job_type, "payload": payload or {}, "queue": self.queue} | fields
        async with self._session.post("/api/v1/jobs", json=body) as response:
            answer = await response.json()
            assert response.status == 201, answer
            return str(answer["job_id"])

    async def submit_many(self, jobs: list[tuple[str, Any]]) -> list[str]:
        bodies = [{"job_type": job_type, "payload": payload, "queue": self.queue} for job_type, payload in jobs]
        async with self._session.post("/api/v1/jobs/batch", json={"jobs": bodies}) as response:
            found: list[str] = (await response.json())["job_ids"]
            return found

    async def post(self, path: str) -> None:
        async with self._session.post(f"/api/v1{path}") as response:
            assert response.status < 300, await response.text()

    async def get(self, path: str) -> Any:
        async with self._session.get(f"/api/v1{path}") as response:
            return await response.json()

    async def cancel(self, job_id: str) -> None:
        async with self._session.delete(f"/api/v1/jobs/{job_id}") as response:
            assert response.status in (200, 202), await response.text()

    async def follow(self, job_id: str) -> AsyncIterator[dict[str, Any]]:
        """The job's log lines as they come, until the job has ended."""
        headers = {"Accept": "text/event-stream"}
        async with self._session.get(f"/api/v1/jobs/{job_id}/logs", headers=headers) as response:
            async for line in response.content:
                if line.startswith(b"data: "):
                    yield msgspec.json.decode(line[6:])

    async def line(self, job_id: str, text: str) -> dict[str, Any]:
        """Wait for a line that has `text` in it."""
        seen = []
        async for line in self.follow(job_id):
            if text in line["log_message"]:
                return line
            seen.append(line["log_message"])
        raise AssertionError(f"the job ended without a line {text!r}: {seen}, {await self.get(f'/jobs/{job_id}')}")

    async def ended(self, job_id: str) -> tuple[dict[str, Any], list[dict[str, Any]]]:
        """The job when it has ended, and all its lines."""
        lines = [line async for line in self.follow(job_id)]
        return await self.get(f"/jobs/{job_id}"), lines

    async def executions(self, job_id: str) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = await self.get(f"/jobs/{job_id}/executions")
        return found


def messages(lines: list[dict[str, Any]]) -> list[str]:
    return [line["log_message"] for line in lines]
