"""The worker's runner and outbox without a node: jobs in, reports and lines out."""

import asyncio
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import msgspec

from foliot.sdk.handler import Handler
from foliot.wire import AssignedJob, ErrorInfo, Report, encode
from foliot.worker.capture import captured
from foliot.worker.outbox import Outbox
from foliot.worker.room import offer_of
from foliot.worker.runner import Runner


def assigned(
    job_type: str,
    payload: Any,
    *,
    number: int = 1,
    attempt: int = 1,
    timeout: float = 3600,
    resources: Mapping[str, float] | None = None,
) -> AssignedJob:
    return AssignedJob(
        job_id=f"j{number}",
        job_type=job_type,
        attempt=attempt,
        token=f"t{number}",
        payload=msgspec.Raw(encode(payload)),
        timeout=timeout,
        schedule_time=datetime(2027, 1, 1, tzinfo=UTC),
        idempotency_key=f"j{number}",
        resources={"slot": 1} | dict(resources or {}),
    )


class LoneRunner:
    def __init__(
        self,
        handlers: Mapping[str, Handler],
        *,
        concurrency: int = 8,
        resources: Mapping[str, float | str] | None = None,
        stop_grace: float = 5.0,
    ) -> None:
        self._ready = asyncio.Event()
        self.outbox = Outbox(asyncio.get_running_loop(), self._ready.set)
        self.runner = Runner(handlers, self.outbox, offer=offer_of(concurrency, resources or {}), stop_grace=stop_grace)

    def begin(self, *jobs: AssignedJob) -> None:
        self.runner.begin(jobs)
        self.runner.arm()

    async def ended(self) -> tuple[Report, list[str]]:
        """The next attempt that ends, and its lines that were not taken before."""
        while True:
            self._ready.clear()
            batch = self.outbox.take(whole=False)
            if batch.ended:
                self.outbox.acknowledge(batch)
                return batch.ended[0].report, [line.log_message for line in batch.logs()]
            await self._ready.wait()

    async def said(self, text: str) -> str:
        """Wait until a running attempt has written a line with `text` in it."""
        while True:
            self._ready.clear()
            batch = self.outbox.take(whole=True)
            self.outbox.acknowledge(batch)
            for line in batch.logs():
                if text in line.log_message:
                    return line.log_message
            await self._ready.wait()

    async def run(self, job: AssignedJob) -> tuple[Report, list[str]]:
        with captured():
            self.begin(job)
            return await self.ended()

    async def close(self) -> None:
        self.runner.stop_all("fence")
        await self.runner.close()


def error_of(report: Report) -> ErrorInfo:
    assert isinstance(report.error, ErrorInfo)
    return report.error


def result_of(report: Report) -> Any:
    assert isinstance(report.result, msgspec.Raw)
    return msgspec.json.decode(report.result)
