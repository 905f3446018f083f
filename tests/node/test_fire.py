"""Schedules are fired at their instant: read ahead, hinted at, changed since, or another node's to fire. What waits for
room has its turn."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import msgspec
import pytest

from foliot.clock import WallClock, wall
from foliot.domain.access import ADMIN
from foliot.domain.duration import SECOND, Micros
from foliot.domain.errors import Unavailable
from foliot.domain.ids import IdMaker, ScheduleKey
from foliot.domain.job import Job
from foliot.domain.schedule import Run, Schedule, run_name
from foliot.main import open_node
from foliot.node import fire as fire_module
from foliot.node import look_ahead as look_ahead_module
from foliot.node import running as running_module
from foliot.node.fire import Fire, Settle
from foliot.node.look_ahead import COURTESY, LONGEST_SLEEP
from foliot.node.peers import Peers
from foliot.service import Services
from foliot.service.wake import Wake
from foliot.settings import Settings
from foliot.wire import (
    AssignedJob,
    ExchangeBody,
    RegisterBody,
    Report,
    ScheduleBody,
    ScheduleUpdateBody,
    TemplateBody,
    to_micros,
    to_time,
)
from tests.service.meddling import Gate, Meddling, failing

SOON: Micros = SECOND // 20
ECHO = TemplateBody(job_type="echo")


class Off:
    """A clock that is wrong by so much."""

    def __init__(self, offset: Micros) -> None:
        self._offset = offset

    def now(self) -> int:
        return wall() + self._offset


class Clockwork:
    """A node's services on a real store and time, its two duties for schedules, and a second node that has none. A
    third one's clock is a minute late: what is made there may be overdue."""

    def __init__(self, store: Meddling) -> None:
        self.store = store
        self.wake = Wake()
        self.peers = Peers(1)
        clock, ids = WallClock(), IdMaker(node=1)
        self.services = Services(store, clock, ids, self.wake, lease=60 * SECOND, heartbeat=SECOND)
        self.elsewhere = Services(store, clock, IdMaker(node=2), Wake(), lease=60 * SECOND, heartbeat=SECOND)
        self.late = Services(store, Off(-60 * SECOND), IdMaker(node=3), Wake(), lease=SECOND, heartbeat=SECOND)
        self.fire = Fire(store, clock, self.wake, self.peers, self.services.firing)
        self.settle = Settle(clock, self.wake, self.services.firing)
        self._news = asyncio.Event()
        self.wake.on_ready.append(lambda _lanes, _tell: self._news.set())

    async def schedule(
        self, due: Micros, name: str = "beat", *, services: Services | None = None, **fields: object
    ) -> Schedule:
        """One whose first due time is so far away, and the next an hour later."""
        start = to_time(wall() + due)
        body = msgspec.convert(
            {"schedule_id": name, "job": ECHO, "every": "1h", "start_time": start, **fields}, ScheduleBody
        )
        await (services or self.services).schedules.create(body, ADMIN)
        return await self.kept(name)

    async def start(self) -> None:
        """Until schedules are read ahead and it sleeps."""
        looked = Gate()
        looked.opened.set()
        self.store.after("peek_schedules", looked)
        self.fire.start()
        await looked.reached.wait()
        await asyncio.sleep(0)

    async def change(self, services: Services | None = None, name: str = "beat", **fields: object) -> Schedule:
        body = msgspec.convert(fields, ScheduleUpdateBody)
        await (services or self.services).schedules.update(name, body, if_match=None, caller=ADMIN)
        return await self.kept(name)

    async def kept(self, name: str = "beat") -> Schedule:
        found = await self.store.schedule(ADMIN.namespace, name)
        assert found is not None
        return found

    async def runs(self, name: str = "beat") -> list[Run]:
        return await self.store.runs((await self.kept(name)).id, limit=100, before=None)

    async def job(self, due: Micros | None, name: str = "beat") -> Job:
        """The job of a due time, once it is there; it was not made before."""
        assert due is not None
        job_id = run_name(name, due)
        await self.until(lambda: self.store.find(ADMIN.namespace, [job_id]))
        job = (await self.services.query.find(job_id, ADMIN)).job
        assert job.created >= due
        return job

    async def until(self, condition: Callable[[], Awaitable[object]]) -> None:
        """Looked at whenever jobs have become ready."""
        while not await condition():
            self._news.clear()
            if not await condition():
                await self._news.wait()


@pytest.fixture
async def clockwork(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Clockwork]:
    monkeypatch.setattr(running_module, "PAUSE_AFTER_ERROR", 0)
    store = Meddling(":memory:")
    await store.open()
    clockwork = Clockwork(store)
    yield clockwork
    await clockwork.fire.stop()
    await clockwork.settle.stop()
    await store.close()


@pytest.fixture
def far_look(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is due within the hour is read ahead, and not looked at again for half of it."""
    monkeypatch.setattr(look_ahead_module, "LOOK_AHEAD", 3600 * SECOND)
    monkeypatch.setattr(look_ahead_module, "LONGEST_SLEEP", 3600 * SECOND)


async def test_a_schedule_is_fired_at_its_instant_with_one_write(clockwork: Clockwork) -> None:
    schedule = await clockwork.schedule(SOON)
    before = clockwork.store.calls["save_schedules"]
    await clockwork.start()
    await clockwork.job(schedule.next_due)
    assert clockwork.store.calls["save_schedules"] == before + 1
    assert clockwork.store.calls["standings"] == 0


async def test_it_is_fired_again_and_again(clockwork: Clockwork) -> None:
    schedule = await clockwork.schedule(SOON, every="100ms", overlap="allow")
    await clockwork.start()
    first = schedule.next_due or 0
    for number in range(4):
        await clockwork.job(first + number * SECOND // 10)


async def test_a_schedule_that_is_overdue_is_fired_at_once(clockwork: Clockwork) -> None:
    schedule = await clockwork.schedule(-SOON, services=clockwork.late)
    await clockwork.start()
    await clockwork.job(schedule.next_due)


async def test_a_schedule_that_comes_while_it_sleeps_wakes_it(clockwork: Clockwork) -> None:
    await clockwork.schedule(3600 * SECOND, "far")
    await clockwork.start()
    schedule = await clockwork.schedule(SOON)
    await clockwork.job(schedule.next_due)


async def test_a_schedule_made_on_another_node_wakes_it(clockwork: Clockwork) -> None:
    await clockwork.start()
    schedule = await clockwork.schedule(SOON, services=clockwork.elsewhere)
    assert clockwork.fire._look_at - wall() > LONGEST_SLEEP // 2
    clockwork.wake.fire(schedule.next_due or 0, tell=False)
    await clockwork.job(schedule.next_due)


@pytest.mark.usefixtures("far_look")
@pytest.mark.parametrize("told", [True, False])
async def test_one_that_was_put_off_since_it_was_read_is_fired_at_its_new_time_only(
    clockwork: Clockwork, told: bool
) -> None:
    schedule = await clockwork.schedule(6 * SOON)
    await clockwork.start()
    later = (schedule.next_due or 0) + 2 * SOON
    await clockwork.change(clockwork.services if told else clockwork.elsewhere, start_time=to_time(later))
    await clockwork.job(later)
    assert [run.due for run in await clockwork.runs()] == [later]


@pytest.mark.usefixtures("far_look")
async def test_one_that_was_brought_forward_since_it_was_read_is_fired_at_its_new_time(clockwork: Clockwork) -> None:
    await clockwork.schedule(1800 * SECOND)
    await clockwork.start()
    sooner = wall() + SOON
    await clockwork.change(start_time=to_time(sooner))
    await clockwork.job(sooner)


@pytest.mark.usefixtures("far_look")
@pytest.mark.parametrize("how", ["pause", "delete"])
async def test_one_that_was_paused_or_deleted_since_it_was_read_is_not_fired(clockwork: Clockwork, how: str) -> None:
    schedule = await clockwork.schedule(6 * SOON)
    other = await clockwork.schedule(7 * SOON, "other")
    await clockwork.start()
    schedules = clockwork.services.schedules
    await (schedules.pause if how == "pause" else schedules.delete)("beat", if_match=None, caller=ADMIN)
    await clockwork.job(other.next_due, "other")
    assert await clockwork.store.runs(schedule.id, limit=1, before=None) == []


async def test_a_paused_schedule_is_not_fired_whatever_hint_there_is(clockwork: Clockwork) -> None:
    paused = await clockwork.schedule(-SOON, paused=True, services=clockwork.late)
    other = await clockwork.schedule(SOON, "other")
    await clockwork.start()
    clockwork.wake.fire(paused.next_due or 0, paused.id)
    await clockwork.job(other.next_due, "other")
    assert await clockwork.runs() == []
    assert (await clockwork.kept()).version == 1


def foreign(peers: Peers, key: ScheduleKey) -> None:
    """Make the schedule another node's share."""
    other = next(number for number in range(100) if number != peers.own and not _is_home(peers, number, key))
    peers.update([other])


def _is_home(peers: Peers, other: int, key: ScheduleKey) -> bool:
    peers.update([other])
    return peers.is_home(key)


async def test_another_nodes_share_is_left_to_it_for_a_moment_and_then_done(clockwork: Clockwork) -> None:
    schedule = await clockwork.schedule(SOON)
    foreign(clockwork.peers, schedule.id)
    await clockwork.start()
    due = schedule.next_due or 0
    assert clockwork.fire._known == {schedule.id: due + COURTESY}
    assert (await clockwork.job(due)).created >= due + COURTESY


async def test_what_another_node_has_fired_is_read_and_left_alone(clockwork: Clockwork) -> None:
    schedule = await clockwork.schedule(SOON, every="1s")
    foreign(clockwork.peers, schedule.id)
    await clockwork.start()
    due = schedule.next_due or 0
    gate = Gate()
    clockwork.store.before("standings", gate)
    await gate.reached.wait()  # it is about to see whether there is something to do
    await clockwork.elsewhere.firing.fire(await clockwork.store.peek_schedules(due, 1))
    before = clockwork.store.calls["save_schedules"]
    read = Gate()
    read.opened.set()
    clockwork.store.after("standings", read)
    gate.opened.set()
    await read.reached.wait()
    await asyncio.sleep(0)
    assert clockwork.store.calls["save_schedules"] == before
    assert clockwork.fire._known == {schedule.id: due + SECOND + COURTESY}


async def test_one_that_ended_or_is_gone_meanwhile_is_dropped(clockwork: Clockwork) -> None:
    await clockwork.start()
    ended = await clockwork.schedule(-SOON, max_runs=1, services=clockwork.late)
    await clockwork.elsewhere.firing.fire(await clockwork.store.peek_schedules(wall(), 1))
    read = Gate()
    read.opened.set()
    clockwork.store.after("standings", read)
    clockwork.wake.fire(wall(), ended.id)
    clockwork.wake.fire(wall(), ScheduleKey(4711))
    await read.reached.wait()
    other = await clockwork.schedule(SOON, "other")
    await clockwork.job(other.next_due, "other")
    assert len(await clockwork.runs()) == 1


async def test_what_could_not_be_fired_because_the_store_failed_is_fired_later(clockwork: Clockwork) -> None:
    await clockwork.start()
    schedule = await clockwork.schedule(SOON)
    clockwork.store.before("standings", failing(Unavailable("no answer")))
    clockwork.store.before("peek_schedules", failing(Unavailable("no answer")))
    await clockwork.job(schedule.next_due)


async def test_one_that_is_early_by_the_stores_clock_is_fired_a_moment_later(clockwork: Clockwork) -> None:
    """This node's clock is ahead of the store's by less than it takes to look twice."""
    clock = Off(SOON)
    services = Services(clockwork.store, clock, IdMaker(node=4), clockwork.wake, lease=SECOND, heartbeat=SECOND)
    clockwork.fire = Fire(clockwork.store, clock, clockwork.wake, clockwork.peers, services.firing)
    schedule = await clockwork.schedule(2 * SOON)
    await clockwork.start()
    await clockwork.job(schedule.next_due)
    (run,) = await clockwork.runs()
    assert run.due == schedule.next_due


# What waits for room


class Worker:
    """Takes all that is ready on one node, and ends it when told."""

    def __init__(self, services: Services, worker_id: str) -> None:
        self._services = services
        self._id = worker_id

    @classmethod
    async def register(cls, services: Services) -> "Worker":
        registered = await services.workers.register(RegisterBody(name="w", resources={"slot": 10}), ADMIN)
        return cls(services, registered.worker_id)

    async def take(self) -> list[AssignedJob]:
        body = ExchangeBody(free={"slot": 10}, wait=10)
        return list((await self._services.workers.exchange(self._id, body, ADMIN)).jobs)

    async def end(self, job: AssignedJob, status: str = "success") -> None:
        report = Report(job_id=job.job_id, attempt=job.attempt, token=job.token, status=status)  # type: ignore[arg-type]
        await self._services.workers.exchange(self._id, ExchangeBody(reports=[report]), ADMIN)

    async def stops(self) -> list[str]:
        answer = await self._services.workers.exchange(self._id, ExchangeBody(wait=10), ADMIN)
        return [stop.job_id for stop in answer.stop]


async def two_dues(clockwork: Clockwork, overlap: str = "queue") -> tuple[Worker, AssignedJob]:
    """A schedule of two due times, of which the first is under way."""
    worker = await Worker.register(clockwork.services)
    await clockwork.schedule(SOON, every="100ms", max_runs=2, overlap=overlap)
    await clockwork.start()
    (job,) = await worker.take()
    return worker, job


async def second_waits(clockwork: Clockwork) -> None:
    while not await clockwork.store.waiting_schedules(1):  # noqa: ASYNC110 - it comes to wait without a word
        await asyncio.sleep(0.001)


async def test_a_due_time_that_waits_starts_when_the_run_before_it_ends(clockwork: Clockwork) -> None:
    clockwork.settle.start()
    worker, first = await two_dues(clockwork)
    await second_waits(clockwork)
    await worker.end(first)
    (second,) = await worker.take()
    assert second.job_id > first.job_id


async def test_a_replacing_due_time_asks_the_running_one_to_stop(clockwork: Clockwork) -> None:
    clockwork.settle.start()
    worker, first = await two_dues(clockwork, overlap="replace")
    assert await worker.stops() == [first.job_id]
    await worker.end(first, "cancelled")
    (second,) = await worker.take()
    assert second.job_id > first.job_id


async def test_a_forgotten_due_time_is_found(clockwork: Clockwork, monkeypatch: pytest.MonkeyPatch) -> None:
    """The node on which the run ended is gone before it could start the next."""
    monkeypatch.setattr(fire_module, "FORGOTTEN_AFTER", SOON)
    worker, first = await two_dues(clockwork)
    await second_waits(clockwork)
    clockwork.wake.on_freed.clear()
    await worker.end(first)
    clockwork.settle.start()
    (second,) = await worker.take()
    assert second.job_id > first.job_id


async def test_a_hint_that_comes_while_it_settles_is_not_lost(clockwork: Clockwork) -> None:
    worker, first = await two_dues(clockwork)
    await second_waits(clockwork)
    gate = Gate()
    clockwork.store.after("standings", gate)
    clockwork.settle.start()
    await gate.reached.wait()  # it has read that there is no room
    await worker.end(first)
    gate.opened.set()
    (second,) = await worker.take()
    assert second.job_id > first.job_id


async def test_a_settling_that_failed_is_repeated(clockwork: Clockwork, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fire_module, "FORGOTTEN_AFTER", SOON)
    clockwork.settle.start()
    worker, first = await two_dues(clockwork)
    await second_waits(clockwork)
    clockwork.store.before("standings", failing(Unavailable("no answer")))
    await worker.end(first)
    (second,) = await worker.take()
    assert second.job_id > first.job_id


async def test_a_whole_node_fires_and_settles(tmp_path: Path) -> None:
    node = await open_node(Settings(database=f"sqlite:///{tmp_path / 'foliot.db'}"))
    worker = await Worker.register(node.services)
    body = ScheduleBody(schedule_id="beat", job=ECHO, every="100ms", max_runs=3, overlap="allow")
    made = await node.services.schedules.create(body, ADMIN)
    assert made.next_run is not None
    found: list[str] = []
    while len(found) < 3:
        for job in await worker.take():
            found.append(job.job_id)
            await worker.end(job)
    first = to_micros(made.next_run)
    assert found == [run_name("beat", first + number * SECOND // 10) for number in range(3)]
    assert (await node.services.schedules.read("beat", ADMIN)).status == "ended"
    await node.stop()
