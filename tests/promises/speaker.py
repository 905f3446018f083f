"""The API spoken word by word, for tests that send what no well-behaved client or worker would."""

import contextlib
from collections.abc import AsyncIterator
from typing import Any

import msgspec

from foliot.sdk.transport import HttpTransport
from foliot.wire import BASE_PATH
from tests.processes import KEY

LOG_TIME = "2027-01-31T09:00:00Z"


class Speaker:
    """One try a call, whatever comes back."""

    def __init__(self, url: str) -> None:
        self._transport = HttpTransport(url)

    async def call(self, method: str, path: str, body: Any = None) -> tuple[int, Any]:
        """The status and the answer's JSON."""
        sent = None if body is None else msgspec.json.encode(body)
        headers = {"Authorization": f"Bearer {KEY}", "Content-Type": "application/json"}
        status, _, answer = await self._transport.call(method, BASE_PATH + path, sent, headers)
        return status, msgspec.json.decode(answer) if answer else None

    async def ask(self, method: str, path: str, body: Any = None) -> Any:
        """The answer of a call that must succeed."""
        status, answer = await self.call(method, path, body)
        assert status < 300, (method, path, status, answer)
        return answer

    async def get(self, path: str) -> Any:
        return await self.ask("GET", path)

    async def submit(self, job_type: str, **fields: Any) -> str:
        return str((await self.ask("POST", "/jobs", {"job_type": job_type} | fields))["job_id"])

    async def register(self, *job_types: str) -> str:
        body = {"name": "speaker", "job_types": job_types}
        return str((await self.ask("POST", "/workers", body))["worker_id"])

    async def exchange(self, worker_id: str, **body: Any) -> Any:
        return await self.ask("POST", f"/workers/{worker_id}/exchange", body)

    async def take(self, worker_id: str, count: int = 1) -> list[Any]:
        """Exactly so many jobs, waiting for them."""
        jobs: list[Any] = []
        while len(jobs) < count:
            jobs += (await self.exchange(worker_id, free={"slot": count - len(jobs)}, wait=1))["jobs"]
        return jobs

    async def close(self) -> None:
        await self._transport.close()


@contextlib.asynccontextmanager
async def speakers(*urls: str) -> AsyncIterator[list[Speaker]]:
    made = [Speaker(url) for url in urls]
    try:
        yield made
    finally:
        for speaker in made:
            await speaker.close()


def report(job: Any, status: str, **more: Any) -> dict[str, Any]:
    return {"job_id": job["job_id"], "attempt": job["attempt"], "token": job["token"], "status": status} | more


def line(job: Any, message: str) -> dict[str, Any]:
    said = {"log_time": LOG_TIME, "log_level": "INFO", "log_message": message}
    return {"job_id": job["job_id"], "attempt": job["attempt"], "token": job["token"]} | said
