"""The slower duties: deadlines, lost workers, forgotten jobs, the node's own number, and what is past."""

import asyncio
from collections.abc import AsyncIterator, Callable

import pytest

from foliot.clock import OffsetClock, WallClock, monotonic, wall
from foliot.domain.access import ADMIN
from foliot.domain.duration import DAY, HOUR, SECOND
from foliot.domain.feed import ALL_STATUSES, Position
from foliot.domain.ids import NODES, IdMaker
from foliot.domain.job import Ended
from foliot.node import duties
from foliot.node.duties import Expiry, Heartbeat, Looker, Prune, Recovery, measure
from foliot.node.peers import Peers
from foliot.node.running import Running
from foliot.service import Services
from foliot.service.wake import Wake
from foliot.store.base import NodeLease
from foliot.store.postgres import PostgresStore
from foliot.store.sqlite import SqliteStore
from foliot.wire import SubmitBody, to_time
from tests.service.conftest import World
from tests.service.meddling import Gate, Meddling
from tests.store.builders import Scene

SOON = SECOND // 20


@pytest.fixture
async def store() -> AsyncIterator[Meddling]:
    store = Meddling(":memory:")
    await store.open()
    yield store
    await store.close()


@pytest.fixture
async def run() -> AsyncIterator[Callable[[Running], None]]:
    """Starts duties; they are stopped after the test."""
    started: list[Running] = []

    def start(duty: Running) -> None:
        duty.start()
        started.append(duty)

    yield start
    for duty in started:
        await duty.stop()


def passed(store: Meddling, method: str) -> asyncio.Event:
    """Set once the next call of this method is done."""
    gate = Gate()
    gate.opened.set()
    store.after(method, gate)
    return gate.reached


class Deadlines:
    """Services by the real clock, and what of them has ended."""

    def __init__(self, store: Meddling) -> None:
        self.store, self.wake, self.clock = store, Wake(), WallClock()
        self.services = Services(
            store, self.clock, IdMaker(node=1), self.wake, lease=30 * SECOND, heartbeat=10 * SECOND
        )
        self.duty = Expiry(store, self.services.recover, self.clock, self.wake)
        self.changed = asyncio.Event()
        self.wake.on_log.append(lambda _keys: self.changed.set())

    async def submit(self, deadline: int) -> str:
        body = SubmitBody(job_type="echo", deadline=to_time(deadline))
        return (await self.services.submit.one(body, b"", ADMIN)).job_id

    async def expires(self, job_id: str, deadline: int) -> None:
        await self.changed.wait()
        row = (await self.services.query.find(job_id, ADMIN)).row
        assert isinstance(row, Ended)
        assert row.reason == "expired"
        assert row.ended >= deadline


async def test_a_job_ends_at_its_deadline(
    store: Meddling, run: Callable[[Running], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(duties, "NODE_BEAT", HOUR)
    deadlines = Deadlines(store)
    job_id = await deadlines.submit(deadline := wall() + SOON)
    run(deadlines.duty)
    await deadlines.expires(job_id, deadline)


async def test_a_nearer_deadline_wakes_whoever_waits_for_a_farther_one(
    store: Meddling, run: Callable[[Running], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(duties, "NODE_BEAT", HOUR)
    deadlines = Deadlines(store)
    await deadlines.submit(wall() + HOUR // 2)
    asleep = passed(store, "next_deadline")
    run(deadlines.duty)
    await asleep.wait()
    job_id = await deadlines.submit(deadline := wall() + SOON)
    await deadlines.submit(deadline + HOUR)  # farther: nothing to it
    await deadlines.expires(job_id, deadline)


async def test_the_work_of_a_lost_worker_is_brought_back(store: Meddling, run: Callable[[Running], None]) -> None:
    world = World(store)
    job_id = await world.submit(retry={"initial": 0, "jitter": 0})
    await world.take_one(await world.worker())
    ready = asyncio.Event()
    world.wake.on_ready.append(lambda _lanes, _tell: ready.set())
    run(Recovery(world.services.recover, lease=SECOND // 10))
    world.clock.pass_seconds(31)
    await ready.wait()
    assert await world.status(job_id) == "queued"


async def test_while_workers_wait_ready_jobs_without_a_hint_are_found(
    store: Meddling, run: Callable[[Running], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(duties, "LOOK_EVERY", 0.001)
    world = World(store)
    worker = await world.worker()
    looker = Looker(world.services.dispatch)
    await looker.round()
    assert store.calls["occupied_lanes"] == 0, "nobody waits, so nobody looks"
    job_id = await world.submit()
    world.services.dispatch._flagged.clear()
    call = asyncio.create_task(world.exchange(worker, free={"slot": 1}, wait=10))
    run(looker)
    assert [job.job_id for job in (await call).jobs] == [job_id]


async def test_a_heartbeat_keeps_the_number_measures_the_clock_and_learns_who_lives(
    store: Meddling, run: Callable[[Running], None]
) -> None:
    now = wall()
    lease = await store.acquire_node("mine", "1", now, now + SECOND)
    await store.acquire_node("living", "1", now, now + HOUR)
    await store.acquire_node("dead", "1", now, now)
    clock, peers, ids = OffsetClock(), Peers(lease.number), IdMaker(node=lease.number)
    clock.set(0, asked=monotonic(), answered=monotonic())
    last = ids.one(now)
    beat = Heartbeat(store, clock, Wake(), ids, peers, lease)
    done = passed(store, "beat_node")
    run(beat)
    await done.wait()
    assert abs(clock.now() - wall()) < DAY, "it was off by decades"
    mine = next(node for node in await store.nodes() if node.name == "mine")
    assert mine.until > now + SECOND
    assert not beat.lost.is_set()
    while peers.alone:  # noqa: ASYNC110 - it learns without a word
        await asyncio.sleep(0)
    assert peers._living == [0, 1]
    assert last == ids.last


class Unasked(SqliteStore):
    """One whose clock nobody may ask."""

    async def now(self) -> int:
        raise AssertionError("the store was asked for its time")


async def test_a_clock_that_needs_no_measuring_is_left_alone() -> None:
    await measure(Unasked(":memory:"), WallClock())
    with pytest.raises(AssertionError, match="asked for its time"):
        await measure(Unasked(":memory:"), OffsetClock())


async def test_a_node_whose_number_went_to_another_is_told_to_end(
    database_url: str, run: Callable[[Running], None]
) -> None:
    first, second = PostgresStore(database_url), PostgresStore(database_url)
    await first.open()
    await second.open()
    try:
        now = await first.now()
        lost = await first.acquire_node("slow", "1", now - HOUR, now - 1)
        # Numbers that were never used go first.
        taken = [await second.acquire_node("new", "1", now, now + HOUR) for _ in range(NODES)][-1]
        assert taken.number == lost.number
        beats = [_heartbeat(store, lease) for store, lease in ((first, lost), (second, taken))]
        run(beats[0])
        await beats[0].lost.wait()
        run(beats[1])
        await beats[1].started.wait()
        assert not beats[1].lost.is_set()
        await beats[0].stop()
        await beats[1].stop()
    finally:
        await first.close()
        await second.close()


def _heartbeat(store: PostgresStore, lease: NodeLease) -> Heartbeat:
    return Heartbeat(store, OffsetClock(), Wake(), IdMaker(node=lease.number), Peers(lease.number), lease)


class Ahead:
    """A clock some days ahead."""

    def now(self) -> int:
        return wall() + 40 * DAY


async def test_what_is_past_is_taken_away_and_what_lives_stays(
    store: Meddling, run: Callable[[Running], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(duties, "PRUNE_CHUNK", 1)
    scene = Scene(store, wall() - 2 * SECOND)
    worker = await scene.worker()
    ended = [await scene.ended() for _ in range(3)]
    lease = await scene.running(worker)
    idle = await scene.worker()
    done = passed(store, "forget_workers")
    assert (await store.read_feed(Position(), 100, mask=ALL_STATUSES)).batches
    run(Prune(store, Ahead(), retention=30 * DAY, events_kept=3 * DAY))
    await done.wait()
    assert not (await store.read_feed(Position(), 100, mask=ALL_STATUSES)).batches
    found = await store.load([*(record.job.id for record in ended), lease.id])
    assert list(found) == [lease.id]
    left = {known.id for known, _ in await store.workers()}
    assert worker.id in left, "it still holds something"
    assert idle.id not in left
