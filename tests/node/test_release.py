"""Ends are carried on, to children and to those that wait for a token: by a hint at once, without one a bit later."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable

import pytest

from foliot.clock import WallClock, wall
from foliot.domain import events
from foliot.domain.duration import SECOND
from foliot.domain.errors import Unavailable
from foliot.domain.graph import On
from foliot.domain.ids import IdMaker, JobKey
from foliot.domain.job import Ended, Job, Ready, State, Waiting
from foliot.node import release as release_module
from foliot.node import running as running_module
from foliot.node.peers import Peers
from foliot.node.release import Release, Tokens
from foliot.node.timekeeper import Timekeeper
from foliot.service import Services
from foliot.service.wake import Wake
from foliot.store.base import Parent
from tests.service.meddling import Gate, Meddling, failing
from tests.store.builders import Scene

HOUR = 3600 * SECOND


class Clockwork:
    """The two duties on a real store, and what they say."""

    def __init__(self, store: Meddling) -> None:
        self.store = store
        self.scene = Scene(store, wall())
        self.wake = Wake()
        clock = WallClock()
        services = Services(store, clock, IdMaker(node=1), self.wake, lease=60 * SECOND, heartbeat=SECOND)
        self.release = Release(store, clock, self.wake)
        self.tokens = Tokens(clock, self.wake, services.limits)
        self.keeper = Timekeeper(store, clock, self.wake, Peers(1))
        self.lanes: set[int] = set()
        self.dues: list[JobKey | None] = []
        self._news = asyncio.Event()
        self.wake.on_ready.append(self._ready)
        self.wake.on_due.append(lambda _time, key, _tell: self.dues.append(key))
        self.wake.on_log.append(lambda _keys: self._news.set())

    def _ready(self, lanes: object, _tell: bool) -> None:
        assert isinstance(lanes, set)
        self.lanes |= lanes
        self._news.set()

    async def until(self, condition: Callable[[], Awaitable[bool]]) -> None:
        """Looked at after each hint, since hints come after what they tell."""
        while not await condition():
            self._news.clear()
            await self._news.wait()

    async def asleep(self, method: str, duty: Release | Tokens) -> None:
        """Start a duty and wait until it has looked for what was forgotten."""
        looked = Gate()
        looked.opened.set()
        self.store.after(method, looked)
        duty.start()
        await looked.reached.wait()
        for _ in range(3):
            await asyncio.sleep(0)

    async def end(self, key: JobKey) -> None:
        await self.scene.happen(key, events.Cancel())

    async def is_ready(self, job: Job) -> bool:
        return isinstance(await self.scene.row(job.id), Ready) and job.lane_id in self.lanes

    async def of_key(self, count: int, most: int = 1) -> tuple[int, list[Job]]:
        """A concurrency key's number, and jobs that wait for a token of it."""
        number = await self.scene.limit("k", most)
        jobs = await self.scene.jobs(count, limit_key="k")
        await self.scene.submit(*jobs)
        return number, jobs

    async def ready(self, jobs: list[Job]) -> int:
        """How many of them are."""
        records = await self.store.load([job.id for job in jobs])
        return sum(isinstance(record.row, Ready) for record in records.values())

    async def are_ready(self, jobs: list[Job], count: int) -> bool:
        return await self.ready(jobs) == count

    async def is_cancelled(self, job: Job) -> bool:
        row = await self.scene.row(job.id)
        return isinstance(row, Ended) and row.state is State.CANCELLED


@pytest.fixture
async def clockwork(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Clockwork]:
    monkeypatch.setattr(running_module, "PAUSE_AFTER_ERROR", 0)
    monkeypatch.setattr(release_module, "FORGOTTEN_AFTER", HOUR)
    store = Meddling(":memory:")
    await store.open()
    clockwork = Clockwork(store)
    yield clockwork
    for duty in (clockwork.release, clockwork.tokens, clockwork.keeper):
        await duty.stop()
    await store.close()


async def nothing() -> None:
    """A step that does nothing."""


async def test_a_hint_carries_an_end_on_at_once(clockwork: Clockwork) -> None:
    await clockwork.asleep("release", clockwork.release)
    parent = await clockwork.scene.submitted()
    child = await clockwork.scene.child(parent.id, on=On.ANY)
    await clockwork.end(parent.id)
    clockwork.wake.release()
    await clockwork.until(lambda: clockwork.is_ready(child))


async def test_an_end_from_before_the_start_is_carried_on_without_a_hint(clockwork: Clockwork) -> None:
    parent = await clockwork.scene.submitted()
    child = await clockwork.scene.child(parent.id, on=On.ANY)
    await clockwork.end(parent.id)
    clockwork.release.start()
    await clockwork.until(lambda: clockwork.is_ready(child))


async def test_an_end_that_no_hint_told_of_is_found_after_a_while(
    clockwork: Clockwork, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(release_module, "FORGOTTEN_AFTER", SECOND // 50)
    await clockwork.asleep("release", clockwork.release)
    parent = await clockwork.scene.submitted()
    child = await clockwork.scene.child(parent.id, on=On.ANY)
    await clockwork.end(parent.id)
    await clockwork.until(lambda: clockwork.is_ready(child))


async def test_a_fan_out_is_carried_on_in_chunks(clockwork: Clockwork, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(release_module, "CHUNK", 100)
    scene = clockwork.scene
    parent = await scene.submitted()
    children = await scene.jobs(1000)
    await scene.insert(scene.request(*(scene.new(job, Parent(parent.id, On.ANY)) for job in children)))
    await clockwork.end(parent.id)
    halfway = Gate()
    clockwork.store.before("release", *[nothing] * 5, halfway)
    clockwork.release.start()
    await halfway.reached.wait()
    assert await clockwork.ready(children) == 500
    other = await scene.submitted()
    await clockwork.end(other.id)  # nobody is held up
    halfway.opened.set()
    await clockwork.until(lambda: clockwork.are_ready(children, 1000))


async def test_children_of_children_follow_in_the_same_breath(clockwork: Clockwork) -> None:
    scene = clockwork.scene
    parent = await scene.submitted()
    chain = [await scene.child(parent.id)]
    for _ in range(5):
        chain.append(await scene.child(chain[-1].id))
    await clockwork.end(parent.id)
    clockwork.release.start()
    await clockwork.until(lambda: clockwork.is_cancelled(chain[-1]))
    assert [await clockwork.is_cancelled(job) for job in chain] == [True] * 6


async def test_a_child_whose_time_is_to_come_is_told_to_who_looks_ahead(clockwork: Clockwork) -> None:
    scene = clockwork.scene
    parent, beside = await scene.submitted(), await scene.submitted()
    child = await scene.child(parent.id, on=On.ANY, due=wall() + HOUR)
    after = await scene.child(beside.id, on=On.ANY)
    await clockwork.end(parent.id)
    await clockwork.end(beside.id)
    clockwork.release.start()
    await clockwork.until(lambda: clockwork.is_ready(after))
    row = await scene.row(child.id)
    assert isinstance(row, Waiting)
    assert (row.parents, clockwork.dues) == (0, [child.id])


async def test_a_release_that_failed_is_repeated(clockwork: Clockwork) -> None:
    scene = clockwork.scene
    parent = await scene.submitted()
    child = await scene.child(parent.id, on=On.ANY)
    await clockwork.end(parent.id)
    clockwork.store.before("release", failing(Unavailable("no answer")))
    clockwork.store.after("release", failing(Unavailable("no answer", fate_unknown=True)))
    await clockwork.asleep("release", clockwork.release)
    assert clockwork.store.calls["release"] == 3
    assert isinstance(await scene.row(child.id), Ready)


async def test_a_hint_gives_a_token_at_once(clockwork: Clockwork) -> None:
    await clockwork.asleep("crowded_limits", clockwork.tokens)
    number, jobs = await clockwork.of_key(2)
    clockwork.wake.tokens({number})
    await clockwork.until(lambda: clockwork.is_ready(jobs[0]))
    await clockwork.end(jobs[0].id)
    clockwork.wake.tokens({number})
    await clockwork.until(lambda: clockwork.is_ready(jobs[1]))


async def test_those_that_waited_before_the_start_get_their_tokens_without_a_hint(clockwork: Clockwork) -> None:
    _, jobs = await clockwork.of_key(3, most=2)
    clockwork.tokens.start()
    await clockwork.until(lambda: clockwork.are_ready(jobs, 2))


async def test_a_token_that_no_hint_told_of_is_given_after_a_while(
    clockwork: Clockwork, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(release_module, "FORGOTTEN_AFTER", SECOND // 50)
    await clockwork.asleep("crowded_limits", clockwork.tokens)
    _, (job,) = await clockwork.of_key(1)
    await clockwork.until(lambda: clockwork.is_ready(job))


async def test_a_hint_that_comes_while_tokens_are_given_counts(clockwork: Clockwork) -> None:
    await clockwork.asleep("crowded_limits", clockwork.tokens)
    number, jobs = await clockwork.of_key(2)
    at_work = Gate()
    clockwork.store.after("give_tokens", at_work)
    clockwork.wake.tokens({number})
    await at_work.reached.wait()
    await clockwork.end(jobs[0].id)
    clockwork.wake.tokens({number})
    at_work.opened.set()
    await clockwork.until(lambda: clockwork.is_ready(jobs[1]))


async def test_a_look_for_tokens_that_failed_is_repeated(clockwork: Clockwork) -> None:
    _, (job,) = await clockwork.of_key(1)
    clockwork.store.before("crowded_limits", failing(Unavailable("no answer")))
    clockwork.tokens.start()
    await clockwork.until(lambda: clockwork.is_ready(job))


async def test_a_job_of_a_key_whose_time_has_come_gets_its_token(clockwork: Clockwork) -> None:
    await clockwork.asleep("crowded_limits", clockwork.tokens)
    await clockwork.scene.limit("k", 1)
    job = await clockwork.scene.submitted(limit_key="k", due=wall() + SECOND // 20)
    clockwork.keeper.start()
    await clockwork.until(lambda: clockwork.is_ready(job))
