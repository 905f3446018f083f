"""The services over a real SQLite store, with a clock that the test moves."""

from collections.abc import AsyncIterator

import msgspec
import pytest
from msgspec import UNSET, Raw

from foliot.clock import wall
from foliot.domain.access import ADMIN
from foliot.domain.duration import SECOND
from foliot.domain.ids import JOB, WORKER, IdMaker, JobKey, WorkerKey, parse
from foliot.domain.job import Record
from foliot.outbound import AllowList
from foliot.service import Services
from foliot.service.sealing import Sealer
from foliot.service.wake import Wake
from foliot.wire import AssignedJob, ErrorInfo, ExchangeAnswer, ExchangeBody, RegisterBody, Report, SubmitBody
from tests.service.meddling import Meddling


class ManualClock:
    """Stands still unless moved. It starts a minute behind the store's own clock, which decides what is due, unless
    told otherwise."""

    def __init__(self, time: int | None = None) -> None:
        self.time = wall() - 60 * SECOND if time is None else time

    def now(self) -> int:
        return self.time

    def pass_seconds(self, seconds: float) -> None:
        self.time += round(seconds * SECOND)


class World:
    """A node's services and short words for what tests do with them."""

    def __init__(
        self,
        store: Meddling,
        *,
        clock: ManualClock | None = None,
        lease: float = 30,
        heartbeat: float = 10,
        sealer: Sealer | None = None,
        ids: IdMaker | None = None,
        allowed: AllowList | None = None,
    ) -> None:
        self.store = store
        self.clock = clock or ManualClock()
        self.wake = Wake()
        self.ids = ids or IdMaker(node=1)
        self.services = Services(
            store,
            self.clock,
            self.ids,
            self.wake,
            lease=round(lease * SECOND),
            heartbeat=round(heartbeat * SECOND),
            sealer=sealer,
            allowed=allowed,
        )

    async def submit(self, job_type: str = "echo", **fields: object) -> str:
        body = msgspec.json.decode(msgspec.json.encode({"job_type": job_type, **fields}), type=SubmitBody)
        return (await self.services.submit.one(body, b"", ADMIN)).job_id

    async def worker(self, **fields: object) -> str:
        body = msgspec.convert({"name": "w", "resources": {"slot": 10}, **fields}, RegisterBody)
        return (await self.services.workers.register(body, ADMIN)).worker_id

    async def exchange(self, worker: str, **fields: object) -> ExchangeAnswer:
        return await self.services.workers.exchange(worker, msgspec.convert(fields, ExchangeBody), ADMIN)

    async def take(self, worker: str, count: int = 10) -> list[AssignedJob]:
        return list((await self.exchange(worker, free={"slot": count})).jobs)

    async def take_one(self, worker: str) -> AssignedJob:
        (job,) = await self.take(worker, 1)
        return job

    async def report(self, worker: str, job: AssignedJob, status: str, **fields: object) -> ExchangeAnswer:
        return await self.exchange(worker, reports=[report(job, status, **fields)])

    async def status(self, job_id: str) -> str:
        return (await self.services.query.job(job_id, ADMIN)).status

    async def record(self, job_id: str) -> Record:
        key = job_key(job_id)
        return (await self.store.load([key]))[key]

    async def cancel(self, job_id: str) -> str:
        return (await self.services.control.cancel(job_id, if_match=None, caller=ADMIN)).status


def job_key(job_id: str) -> JobKey:
    key = parse(JOB, job_id)
    assert key is not None
    return JobKey(key)


def worker_key(worker_id: str) -> WorkerKey:
    key = parse(WORKER, worker_id)
    assert key is not None
    return WorkerKey(key)


def report(job: AssignedJob, status: str, **fields: object) -> Report:
    result = fields.pop("result", UNSET)
    error = fields.pop("error", None)
    return Report(
        job_id=job.job_id,
        attempt=job.attempt,
        token=job.token,
        status=status,  # type: ignore[arg-type]
        result=Raw(msgspec.json.encode(result)) if result is not UNSET else UNSET,
        error=error if isinstance(error, str | ErrorInfo | None) else None,
        **fields,  # type: ignore[arg-type]
    )


@pytest.fixture
async def store() -> AsyncIterator[Meddling]:
    store = Meddling(":memory:")
    await store.open()
    yield store
    await store.close()


@pytest.fixture
def world(store: Meddling) -> World:
    return World(store)
