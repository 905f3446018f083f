"""Jobs become ready at their instant: found ahead, hinted at, moved to another time, or another node's to move."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from foliot.clock import WallClock, wall
from foliot.domain import events
from foliot.domain.duration import SECOND, Micros
from foliot.domain.errors import Unavailable
from foliot.domain.job import Job, Ready
from foliot.node import look_ahead as look_ahead_module
from foliot.node import running as running_module
from foliot.node.look_ahead import COURTESY, LATER, LONGEST_SLEEP
from foliot.node.peers import Peers
from foliot.node.timekeeper import Timekeeper
from foliot.service.wake import Wake
from tests.service.meddling import Gate, Meddling, failing
from tests.store.builders import Scene

SOON: Micros = SECOND // 20


class Clockwork:
    """A timekeeper on a real store, and what it says is ready."""

    def __init__(self, store: Meddling) -> None:
        self.store = store
        self.scene = Scene(store, wall())
        self.wake = Wake()
        self.peers = Peers(1)
        self.keeper = Timekeeper(store, WallClock(), self.wake, self.peers)
        self._ready: asyncio.Queue[set[int]] = asyncio.Queue()
        self.wake.on_ready.append(lambda lanes, _tell: self._ready.put_nowait(set(lanes)))

    async def job(self, due: Micros, **fields: object) -> Job:
        self.scene.now = wall()
        return await self.scene.submitted(due=self.scene.now + due, **fields)

    async def start(self) -> None:
        """Until it has looked ahead and sleeps."""
        looked = Gate()
        looked.opened.set()
        self.store.after("peek_due", looked)
        self.keeper.start()
        await looked.reached.wait()
        await asyncio.sleep(0)

    async def becomes_ready(self, *jobs: Job) -> None:
        """Until all of them are; none is before it is due."""
        waiting, lanes = list(jobs), set[int]()
        while waiting:
            lanes |= await self._ready.get()
            for job in list(waiting):
                row = await self.scene.row(job.id)
                if isinstance(row, Ready) and job.lane_id in lanes:
                    assert row.due <= row.since
                    waiting.remove(job)


@pytest.fixture
async def clockwork(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Clockwork]:
    monkeypatch.setattr(running_module, "PAUSE_AFTER_ERROR", 0)
    store = Meddling(":memory:")
    await store.open()
    clockwork = Clockwork(store)
    yield clockwork
    await clockwork.keeper.stop()
    await store.close()


async def test_a_job_becomes_ready_at_its_instant(clockwork: Clockwork) -> None:
    job, overdue = await clockwork.job(SOON), await clockwork.job(1)
    await clockwork.start()
    await clockwork.becomes_ready(overdue, job)


async def test_a_job_that_comes_while_it_sleeps_wakes_it(clockwork: Clockwork) -> None:
    await clockwork.job(3600 * SECOND)
    await clockwork.start()
    job = await clockwork.job(SOON)
    clockwork.wake.due(job.due, job.id)
    await clockwork.becomes_ready(job)


async def test_a_job_of_another_node_wakes_it(clockwork: Clockwork) -> None:
    await clockwork.start()
    job = await clockwork.job(SOON)
    clockwork.wake.due(job.due)
    await clockwork.becomes_ready(job)


@pytest.mark.parametrize("named", [True, False])
async def test_a_job_beyond_the_look_ahead_is_looked_for_in_time(
    clockwork: Clockwork, named: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(look_ahead_module, "LOOK_AHEAD", SOON)
    await clockwork.start()
    job = await clockwork.job(3 * SOON)
    clockwork.wake.due(job.due, job.id if named else None)
    clockwork.wake.due(job.due + 3600 * SECOND)  # farther: no reason to look earlier
    await clockwork.becomes_ready(job)


async def test_a_far_job_that_it_found_is_ready_in_time_without_any_hint(
    clockwork: Clockwork, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(look_ahead_module, "LOOK_AHEAD", SOON)
    job = await clockwork.job(3 * SOON)
    await clockwork.start()
    await clockwork.becomes_ready(job)


@pytest.mark.parametrize("named", [True, False])
@pytest.mark.parametrize("due", [SOON // 2, 3 * SOON])
async def test_a_job_that_comes_during_a_look_is_not_overlooked(
    clockwork: Clockwork, named: bool, due: Micros, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(look_ahead_module, "LOOK_AHEAD", SOON)
    gate = Gate()
    clockwork.store.after("peek_due", gate)
    clockwork.keeper.start()
    await gate.reached.wait()  # it has read, and found nothing
    job = await clockwork.job(due)
    clockwork.wake.due(job.due, job.id if named else None)
    gate.opened.set()
    await clockwork.becomes_ready(job)


async def test_a_job_put_off_within_the_look_ahead_is_moved_at_its_new_time(
    clockwork: Clockwork, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What could not be moved at the old time is looked for again, long before the next look."""
    monkeypatch.setattr(look_ahead_module, "LOOK_AHEAD", 3600 * SECOND)
    job = await clockwork.job(SOON)
    await clockwork.start()
    later = job.due + 2 * SOON
    await clockwork.scene.happen(job.id, events.Reschedule(job=job, due=later))
    clockwork.wake.due(later, job.id)
    await clockwork.becomes_ready(job)
    assert (await clockwork.scene.row(job.id)).due == later


async def test_a_job_brought_forward_is_moved_at_its_new_time_and_once(clockwork: Clockwork) -> None:
    job, other = await clockwork.job(3 * SOON), await clockwork.job(5 * SOON)
    await clockwork.start()
    await clockwork.scene.happen(job.id, events.Reschedule(job=job, due=clockwork.scene.now + SOON))
    clockwork.wake.due(clockwork.scene.now + SOON, job.id)
    await clockwork.becomes_ready(job)
    await clockwork.becomes_ready(other)
    assert clockwork.store.calls["admit"] == 2


async def test_more_than_a_look_takes_is_found_by_the_next(
    clockwork: Clockwork, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(look_ahead_module, "PEEK", 3)
    monkeypatch.setattr(look_ahead_module, "FIRST_CHUNK", 2)
    at_once = [await clockwork.job(SOON, job_type=f"type-{n}") for n in range(7)]
    later = [await clockwork.job(2 * SOON + n) for n in range(4)]
    await clockwork.start()
    late = await clockwork.job(3 * SOON)
    clockwork.wake.due(late.due, late.id)  # beyond what it knows: found when it gets there
    await clockwork.becomes_ready(*at_once, *later, late)


def foreign(peers: Peers, job: Job) -> None:
    """Make the job another node's share."""
    for other in range(2, 100):
        peers.update([other])
        if not peers.is_home(job.id):
            return
        peers.update([0])
        if not peers.is_home(job.id):
            return
    raise AssertionError("no other node is its home")


async def test_a_job_of_another_nodes_share_is_left_to_it_for_a_moment(clockwork: Clockwork) -> None:
    job = await clockwork.job(SOON)
    foreign(clockwork.peers, job)
    await clockwork.start()
    assert clockwork.keeper._known == {job.id: job.due + COURTESY}
    await clockwork.becomes_ready(job)
    assert (await clockwork.scene.row(job.id)).since >= job.due + COURTESY


async def test_what_another_node_moved_is_no_reason_to_look_again(clockwork: Clockwork) -> None:
    job = await clockwork.job(1)
    foreign(clockwork.peers, job)
    moved = Gate()
    clockwork.store.before("admit", moved)
    clockwork.keeper.start()
    await moved.reached.wait()
    look_at = clockwork.keeper._look_at
    admitted = await super(Meddling, clockwork.store).admit([job.id])
    assert list(admitted.ready) == [(job.id, job.lane_id)]
    mine = Gate()
    mine.opened.set()
    clockwork.store.after("admit", mine)
    moved.opened.set()
    await mine.reached.wait()
    await asyncio.sleep(0)
    assert clockwork.keeper._look_at == look_at


async def test_what_is_left_of_another_nodes_share_is_looked_for_within_a_second(clockwork: Clockwork) -> None:
    await clockwork.start()
    assert clockwork.keeper._look_at - wall() > LONGEST_SLEEP // 2
    job = await clockwork.job(10 * SECOND)  # put off since the hint was given
    foreign(clockwork.peers, job)
    tried = Gate()
    tried.opened.set()
    clockwork.store.after("admit", tried)
    clockwork.wake.due(wall(), job.id)
    await tried.reached.wait()
    await asyncio.sleep(0)
    assert clockwork.keeper._look_at - wall() <= LATER


async def test_what_could_not_be_moved_because_the_store_failed_is_looked_for_again(clockwork: Clockwork) -> None:
    await clockwork.start()
    assert clockwork.keeper._look_at - wall() > LONGEST_SLEEP // 2
    job = await clockwork.job(SOON)
    clockwork.store.before("admit", failing(Unavailable("no answer")))
    clockwork.wake.due(job.due, job.id)
    await clockwork.becomes_ready(job)


async def test_a_look_that_failed_is_repeated(clockwork: Clockwork) -> None:
    job = await clockwork.job(SOON)
    clockwork.store.before("peek_due", failing(Unavailable("no answer")))
    clockwork.keeper.start()
    await clockwork.becomes_ready(job)
