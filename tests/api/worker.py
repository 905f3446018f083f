"""A worker made of the two calls that make one."""

from typing import Any

from tests.api.client import AsgiClient


class Worker:
    def __init__(self, client: AsgiClient, worker_id: str) -> None:
        self._client = client
        self.worker_id = worker_id

    @classmethod
    async def register(cls, client: AsgiClient, **offer: Any) -> "Worker":
        answer = await client.post("/api/v1/workers", {"name": "tester"} | offer)
        assert answer.status == 201, answer.body
        return cls(client, answer.json()["worker_id"])

    async def exchange(self, **body: Any) -> Any:
        answer = await self._client.post(f"/api/v1/workers/{self.worker_id}/exchange", body)
        assert answer.status == 200, answer.body
        return answer.json()

    async def take(self, count: int = 1) -> list[Any]:
        """Jobs, as soon as there are some."""
        jobs: list[Any] = (await self.exchange(free={"slot": count}, wait=10))["jobs"]
        return jobs

    async def report(self, job: Any, status: str, **more: Any) -> None:
        report = {"job_id": job["job_id"], "attempt": job["attempt"], "token": job["token"], "status": status}
        assert (await self.exchange(reports=[report | more]))["rejected"] == []

    async def log(self, job: Any, message: str, level: str = "INFO") -> None:
        line = {
            "job_id": job["job_id"],
            "attempt": job["attempt"],
            "token": job["token"],
            "log_time": "2027-01-31T09:00:00Z",
            "log_level": level,
            "log_message": message,
        }
        assert (await self.exchange(logs=[line]))["rejected"] == []
