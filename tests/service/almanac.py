"""A world for schedules: its store goes by the clock that the test moves, and what a node's duties would do is one
call. Times are seconds since it began."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta

import msgspec

from foliot.domain.access import ADMIN
from foliot.domain.ids import IdMaker, ScheduleKey
from foliot.domain.schedule import Schedule, Standing, run_name
from foliot.service.schedules import Schedules
from foliot.service.sealing import Sealer
from foliot.store.base import Filter
from foliot.wire import (
    BackfillBody,
    ScheduleBody,
    ScheduleChanged,
    ScheduleInfo,
    ScheduleUpdateBody,
    to_micros,
)
from tests.service.conftest import ManualClock, World
from tests.service.meddling import Meddling

BEGIN = datetime(2027, 1, 1, tzinfo=UTC)
LONG = 10**8

Line = tuple[int, str, str | None]


def at(seconds: float) -> datetime:
    return BEGIN + timedelta(seconds=seconds)


def run_id(seconds: int, schedule_id: str = "beat") -> str:
    return run_name(schedule_id, to_micros(at(seconds)))


def schedule_body(**fields: object) -> ScheduleBody:
    return msgspec.json.decode(msgspec.json.encode({"job": {"job_type": "echo"}, **fields}), type=ScheduleBody)


class Almanac(World):
    """Schedules are called `beat` unless a test says otherwise."""

    def __init__(
        self, store: Meddling, clock: ManualClock, sealer: Sealer | None = None, ids: IdMaker | None = None
    ) -> None:
        super().__init__(store, clock=clock, lease=LONG, sealer=sealer, ids=ids)
        self.freed: set[ScheduleKey] = set()
        self.wake.on_freed.append(self.freed.update)

    @property
    def schedules(self) -> Schedules:
        return self.services.schedules

    async def create(self, schedule_id: str | None = "beat", **fields: object) -> ScheduleChanged:
        return await self.schedules.create(schedule_body(schedule_id=schedule_id, **fields), ADMIN)

    async def change(
        self, schedule_id: str = "beat", *, if_match: int | None = None, **fields: object
    ) -> ScheduleChanged:
        body = msgspec.json.decode(msgspec.json.encode(fields), type=ScheduleUpdateBody)
        return await self.schedules.update(schedule_id, body, if_match=if_match, caller=ADMIN)

    async def pause(self, schedule_id: str = "beat") -> ScheduleChanged:
        return await self.schedules.pause(schedule_id, if_match=None, caller=ADMIN)

    async def resume(self, schedule_id: str = "beat") -> ScheduleChanged:
        return await self.schedules.resume(schedule_id, if_match=None, caller=ADMIN)

    async def delete(self, schedule_id: str = "beat") -> ScheduleChanged:
        return await self.schedules.delete(schedule_id, if_match=None, caller=ADMIN)

    async def trigger(self, schedule_id: str = "beat") -> str:
        return (await self.schedules.trigger(schedule_id, ADMIN)).job_id

    async def backfill(self, since: float, until: float, limit: int | None = None, schedule_id: str = "beat") -> int:
        body = BackfillBody(since=at(since), until=at(until), max_concurrency=limit)
        return (await self.schedules.backfill(schedule_id, body, ADMIN)).runs

    async def info(self, schedule_id: str = "beat") -> ScheduleInfo:
        return await self.schedules.read(schedule_id, ADMIN)

    async def kept(self, schedule_id: str = "beat") -> Schedule:
        """As the store has it."""
        found = await self.store.schedule(ADMIN.namespace, schedule_id)
        assert found is not None
        return found

    async def standing(self, schedule_id: str = "beat") -> Standing:
        key = (await self.kept(schedule_id)).id
        return (await self.store.standings([key]))[key]

    async def fire(self) -> set[ScheduleKey]:
        """All that is due now; then what waits has its turn."""
        standings = await self.store.peek_schedules(self.clock.now(), 1000)
        left = await self.services.firing.fire(standings)
        await self.settle()
        return left

    async def settle(self) -> None:
        """As long as hints say that there may be room."""
        while self.freed:
            freed = set(self.freed)
            self.freed.clear()
            await self.services.firing.settle(freed)

    async def move_to(self, seconds: float) -> None:
        """From due time to due time: each is fired at its instant."""
        end = to_micros(at(seconds))
        while True:
            first = (await self.store.peek_schedules(end, 1))[:1]
            due = first[0].schedule.next_due if first else None
            if due is None or due > end:
                break
            self.clock.time = max(self.clock.time, due)
            await self.fire()
        self.clock.time = end

    def sleep_to(self, seconds: float) -> None:
        """Nothing is fired meanwhile."""
        self.clock.time = to_micros(at(seconds))

    async def end(self, worker: str, *seconds: int, status: str = "success") -> None:
        """A worker takes all that is ready, which must be these runs of `beat`, and ends them."""
        jobs = await self.take(worker)
        assert [job.job_id for job in jobs] == [run_id(each) for each in seconds]
        for job in jobs:
            await self.report(worker, job, status)
        await self.settle()

    async def ledger(self, schedule_id: str = "beat") -> list[Line]:
        """Oldest first: due time, verdict, reason."""
        found, _ = await self.schedules.runs(schedule_id, limit=1000, cursor=None, caller=ADMIN)
        return [
            (round((run.due_time - BEGIN).total_seconds()), run.verdict or "-", run.reason) for run in reversed(found)
        ]

    async def jobs(self, schedule_id: str = "beat") -> dict[int, str]:
        """The schedule's jobs: due time and status, oldest first."""
        found = await self.store.list_jobs(_of(schedule_id), limit=1000, before=None)
        names = [record.job.name or "" for record in reversed(found.records)]
        return {_seconds(name): await self.status(name) for name in names}


@asynccontextmanager
async def open_almanac() -> AsyncIterator[Almanac]:
    clock = ManualClock(to_micros(BEGIN))
    store = Meddling(":memory:", clock=clock)
    await store.open()
    yield Almanac(store, clock)
    await store.close()


def _of(schedule_id: str) -> Filter:
    return Filter(namespace=ADMIN.namespace, schedule_id=schedule_id)


def _seconds(name: str) -> int:
    return round((datetime.fromisoformat(name.rpartition("@")[2]) - BEGIN).total_seconds())
