"""Following what happens: in order, nothing missed, only what was asked for and is reached."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import aclosing, asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import msgspec
import pytest

from foliot.clock import WallClock
from foliot.domain.access import ADMIN, Caller
from foliot.domain.duration import DAY
from foliot.domain.errors import BadInput, Gone, Unavailable
from foliot.domain.feed import ALL_STATUSES, Happening, Position, mask_of, read_position
from foliot.service import feed as feed_module
from foliot.service.event import Event, events_of, lanes_of, with_records
from foliot.service.feed import EventsOff, Feed, Selection
from foliot.service.sealing import Sealer
from foliot.service.wake import Wake
from foliot.store.sqlite import SqliteStore
from foliot.wire import BatchBody, SubmitBody
from tests.service.conftest import World
from tests.service.meddling import Meddling

Message = tuple[str, dict[str, Any]]  # id and event


class Follower:
    """Reads a stream event by event."""

    def __init__(self, chunks: AsyncIterator[bytes]) -> None:
        self._chunks = chunks
        self._messages: list[Message] = []
        self.last = ""

    async def next(self) -> dict[str, Any]:
        while not self._messages:
            self.read(await anext(self._chunks))
        self.last, event = self._messages.pop(0)
        return event

    def read(self, chunk: bytes) -> None:
        for message in chunk.decode().strip("\n").split("\n\n"):
            fields = dict(line.split(": ", 1) for line in message.split("\n"))
            if "data" in fields:
                event = msgspec.json.decode(fields["data"])
                assert fields["event"] == event["type"]
                self._messages.append((fields["id"], event))
            else:
                self.last = fields["id"]

    async def take(self, count: int) -> list[tuple[str, str]]:
        """(subject, what it became) of the next ones."""
        events = [await self.next() for _ in range(count)]
        return [(event["subject"], event["type"].removeprefix("foliot.job.")) for event in events]


@asynccontextmanager
async def following(
    world: World, after: str | None = None, *, caller: Caller = ADMIN, **asked: Any
) -> AsyncIterator[Follower]:
    feed = world.services.feed
    selection = await feed.select(caller, **asked)
    async with aclosing(feed.follow(selection, feed.begin(after))) as chunks:
        follower = Follower(chunks)
        follower.read(await anext(chunks))  # from here on nothing is missed
        yield follower


async def run(world: World, worker: str, status: str = "success") -> str:
    job = await world.take_one(worker)
    await world.report(worker, job, status)
    return job.job_id


async def test_each_change_is_told_in_order_with_the_job_as_it_then_was(world: World) -> None:
    async with following(world) as follower:
        worker = await world.worker()
        job_id = await world.submit(job_id="a", tags=["x"], payload={"secret": 1})
        await run(world, worker)
        events = [await follower.next() for _ in range(3)]
    assert [event["type"] for event in events] == ["foliot.job.queued", "foliot.job.running", "foliot.job.completed"]
    assert {event["subject"] for event in events} == {job_id}
    assert len({event["id"] for event in events}) == 3
    assert [event["data"]["status"] for event in events] == ["queued", "running", "completed"]
    assert [event["data"]["attempt"] for event in events] == [0, 1, 1]
    assert [event["data"]["worker_id"] for event in events] == [None, worker, worker]
    assert [event["data"]["end_time"] is None for event in events] == [True, True, False]
    assert all(event["data"]["tags"] == ["x"] and "payload" not in event["data"] for event in events)
    assert events[0]["source"] == "/foliot/default"


async def test_a_stream_goes_on_after_any_event_also_in_the_middle_of_a_batch(world: World) -> None:
    body = BatchBody(jobs=[SubmitBody(job_type="echo", job_id=f"j{number}") for number in range(5)])
    async with following(world) as follower:
        await world.services.submit.batch(body, b"", ADMIN)
        await world.submit(job_id="later")
        ids = []
        for _ in range(6):
            await follower.next()
            ids.append(follower.last)
    wanted = [*(f"j{number}" for number in range(5)), "later"]
    for read, position in enumerate(ids, start=1):
        async with following(world, position) as again:
            assert [subject for subject, _ in await again.take(6 - read)] == wanted[read:]


async def test_a_stream_from_the_start_tells_all_that_is_kept(world: World) -> None:
    jobs = [await world.submit() for _ in range(3)]
    async with following(world, "start") as follower:
        assert await follower.take(3) == [(job, "queued") for job in jobs]
    async with following(world, "now") as follower:
        later = await world.submit()
        assert await follower.take(1) == [(later, "queued")]


async def test_what_was_read_alone_and_what_the_tail_brought_meanwhile_is_told_once(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(feed_module, "CHUNK", 2)
    before = [await world.submit() for _ in range(5)]
    async with following(world), following(world, "start") as late:  # the first keeps the tail reading
        during = [await world.submit() for _ in range(5)]
        assert [subject for subject, _ in await late.take(10)] == before + during


@pytest.mark.parametrize(
    ("asked", "told"),
    [
        ({"job_ids": ["b"]}, ["b"]),
        ({"job_ids": ["a", "c"]}, ["a", "c"]),
        ({"queues": ["mail"]}, ["b", "d"]),
        ({"job_types": ["echo"]}, ["a", "b"]),
        ({"statuses": ["scheduled"]}, ["c"]),
        ({"statuses": ["waiting"]}, ["a", "b", "c", "d"]),
        ({"statuses": ["queued"], "queues": ["mail"], "job_types": ["other"]}, ["d"]),
    ],
)
async def test_only_what_was_asked_for_is_told(world: World, asked: dict[str, Any], told: list[str]) -> None:
    jobs = {"a": ("echo", "default"), "b": ("echo", "mail"), "c": ("other", "default"), "d": ("other", "mail")}
    for job_id, (job_type, queue) in jobs.items():
        await world.submit(job_type, job_id=job_id, queue=queue, **({"delay": 3600} if job_id == "c" else {}))
    async with following(world, "start", **asked) as follower:
        assert [subject for subject, _ in await follower.take(len(told))] == told
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.05):
                await follower.next()


async def test_a_caller_is_told_of_what_it_reaches(world: World) -> None:
    narrowed = Caller(name="n", role="viewer", queues=("mail",))
    foreign = Caller(name="f", role="viewer", namespace="other")
    async with (
        following(world, caller=narrowed) as mail,
        following(world, caller=foreign) as other,
        following(world) as everything,
    ):
        await world.submit(job_id="a")
        await world.submit(job_id="b", queue="mail")
        body = SubmitBody(job_type="echo", job_id="elsewhere")
        await world.services.submit.one(body, b"", Caller(name="x", namespace="other"))
        assert await mail.take(1) == [("b", "queued")]
        assert await other.take(1) == [("elsewhere", "queued")]
        assert await everything.take(2) == [("a", "queued"), ("b", "queued")]


async def test_what_is_not_about_a_job_goes_to_those_who_follow_everything(world: World) -> None:
    plain = Caller(name="p", role="viewer")
    async with following(world) as admin, following(world, caller=plain) as viewer:
        happenings = [
            Happening(kind="node.lost", subject="n_1"),
            Happening(kind="worker.lost", subject="w_1", namespace="default", data='{"name":"w"}'),
            Happening(kind="worker.lost", subject="w_2", namespace="other"),
        ]
        await world.store.note(happenings, world.clock.now())
        world.wake.change()
        first, second = await admin.next(), await admin.next()
        assert (first["type"], second["type"], second["data"]) == (
            "foliot.node.lost",
            "foliot.worker.lost",
            {"name": "w"},
        )
        assert first["source"] == "/foliot"
        assert (await viewer.next())["subject"] == "w_1"
    lost = Event(event_id="1.1.0", time=0, kind="worker.lost", namespace="default", subject="w_1")
    assert not Selection(caller=ADMIN, queues=("mail",)).takes(lost)


async def test_who_can_not_keep_up_is_let_go_and_may_come_again(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(feed_module, "MOST_BATCHES", 2)
    feed = world.services.feed
    selection = await feed.select(ADMIN)
    slow, seen = feed.follow(selection, feed.begin(None)), Follower(feed.follow(selection, feed.begin(None)))
    async with following(world) as quick:
        stalled = Follower(slow)
        stalled.read(await anext(slow))
        first = await world.submit()
        assert await quick.take(1) == [(first, "queued")]
        assert await stalled.take(1) == [(first, "queued")]
        jobs = []
        for _ in range(5):
            jobs.append(await world.submit())
            assert await quick.take(1) == [(jobs[-1], "queued")]
        with pytest.raises(StopAsyncIteration):
            await stalled.next()
    del seen
    async with following(world, stalled.last) as again:
        assert [subject for subject, _ in await again.take(5)] == jobs


async def test_silence_is_broken_by_a_word_that_tells_how_far_was_read(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(feed_module, "KEEP_ALIVE", 0.01)
    feed = world.services.feed
    async with aclosing(feed.follow(await feed.select(ADMIN, statuses=["failed"]), feed.begin(None))) as chunks:
        first = await anext(chunks)
        await world.submit()
        while (mark := await anext(chunks)) == first:
            pass
    position = read_position(mark.decode().removeprefix("id: ").strip())
    assert position is not None
    assert position.seen != {}


async def test_streams_end_with_the_node(world: World) -> None:
    feed = world.services.feed
    chunks = feed.follow(await feed.select(ADMIN), feed.begin(None))
    await anext(chunks)
    waiting = asyncio.ensure_future(anext(chunks))
    await asyncio.sleep(0)
    feed.close()
    with pytest.raises(StopAsyncIteration):
        await waiting


@pytest.mark.parametrize("text", ["", "x", "1_2", "1_2_3_4_5", "1_2_zz", "1_2_3.g", "1_2_1.2-1.3", "g_1_", "1_2__1"])
async def test_a_position_that_is_none_of_ours_is_refused(world: World, text: str) -> None:
    with pytest.raises(BadInput, match="Last-Event-ID"):
        world.services.feed.begin(text)


async def test_a_position_from_before_what_is_kept_is_gone(world: World) -> None:
    old = Position(floor=2, seen={1: 5}, time=world.clock.now() - 4 * DAY)
    with pytest.raises(Gone, match="no longer kept"):
        world.services.feed.begin(old.text())


async def test_without_a_record_there_is_nothing_to_follow() -> None:
    store = SqliteStore(":memory:", recording=False)
    await store.open()
    feed = Feed(store, WallClock(), Sealer(), Wake(), kept=DAY)
    with pytest.raises(EventsOff):
        feed.begin(None)
    await store.close()


async def test_wrong_words_are_named(world: World) -> None:
    feed = world.services.feed
    with pytest.raises(BadInput, match="status"):
        await feed.select(ADMIN, statuses=["done"])
    with pytest.raises(BadInput, match="job_id"):
        await feed.select(ADMIN, job_ids=["nobody"])
    with pytest.raises(BadInput, match="at most 100"):
        await feed.select(ADMIN, job_ids=[str(number) for number in range(101)])


async def test_events_of_jobs_that_are_forgotten_are_left_out(world: World) -> None:
    worker = await world.worker()
    gone = await world.submit()
    assert await run(world, worker) == gone
    stays = await world.submit()
    while await world.store.forget(world.clock.now() + 90 * DAY, 1000):
        pass
    async with following(world, "start") as follower:
        assert await follower.take(1) == [(stays, "queued")]
        with suppress(TimeoutError):
            async with asyncio.timeout(0.05):
                raise AssertionError(await follower.next())


async def test_many_who_follow_are_told_the_same(world: World) -> None:
    async with following(world) as one, following(world) as other, following(world, queues=["mail"]) as mail:
        first = await world.submit(queue="mail")
        for follower in (one, other, mail):
            assert await follower.take(1) == [(first, "queued")]
        plain, last = await world.submit(), await world.submit(queue="mail")
        for follower in (one, other):
            assert await follower.take(2) == [(plain, "queued"), (last, "queued")]
        assert await mail.take(1) == [(last, "queued")]


async def test_who_comes_when_the_node_stops_is_told_nothing_more(world: World) -> None:
    world.services.feed.close()
    async with following(world, "start") as follower:
        with pytest.raises(StopAsyncIteration):
            await follower.next()


async def test_lanes_that_a_node_has_not_met_are_learnt_from_the_jobs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = Meddling(str(tmp_path / "db")), Meddling(str(tmp_path / "db"))
    await first.open()
    job_id = await World(first).submit("never-seen")
    await first.close()
    await second.open()
    known = second.lane
    monkeypatch.setattr(second, "lane", lambda number: known(number) if second.calls["load"] else None)
    batches = (await second.read_feed(Position(), 10, mask=ALL_STATUSES)).batches
    lanes = await lanes_of(second, batches)
    told = [one for batch in batches for one in events_of(batch, lanes, ALL_STATUSES)]
    assert [event.subject for event in await with_records(second, [one.event for one in told])] == [job_id]
    assert [one for batch in batches for one in events_of(batch, lanes, mask_of(["failed"]))] == []
    await second.close()


@pytest.mark.parametrize("error", [Unavailable("the store is away"), RuntimeError("a defect")])
async def test_where_the_record_can_not_be_read_streams_end_and_may_come_again(
    world: World, error: Exception, caplog: pytest.LogCaptureFixture
) -> None:
    async def fail() -> None:
        raise error

    async with following(world) as follower:
        first = await world.submit()
        assert await follower.take(1) == [(first, "queued")]
        world.store.before("read_feed", fail)
        second = await world.submit()
        with pytest.raises(StopAsyncIteration):
            await follower.next()
    assert "events can not be read" in caplog.text
    async with following(world, follower.last) as again:
        assert await again.take(1) == [(second, "queued")]


async def test_a_node_that_stops_waits_for_what_is_being_read(world: World) -> None:
    async with following(world) as follower:
        world.services.feed.close()
        await world.services.feed.drain()
        assert world.services.feed._tail is None
        with pytest.raises(StopAsyncIteration):
            await follower.next()


async def test_silence_does_not_step_over_what_the_tail_has_not_brought_yet(world: World) -> None:
    before = await world.store.feed_end()
    await world.submit()
    assert await world.services.feed._forward(before) == before


async def test_a_stream_is_kept_alive_also_while_much_happens_that_it_did_not_ask_for(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    feed = world.services.feed
    async with aclosing(feed.follow(await feed.select(ADMIN, statuses=["failed"]), feed.begin(None))) as chunks:
        first = await anext(chunks)
        monkeypatch.setattr(feed_module, "KEEP_ALIVE", 3600)  # no silence is ever that long
        waiting = asyncio.ensure_future(anext(chunks))
        await world.submit()
        done, _ = await asyncio.wait({waiting}, timeout=0.1)
        assert not done
        monkeypatch.setattr(feed_module, "KEEP_ALIVE", 0)
        await world.submit()
        assert await waiting != first
        assert await anext(chunks) != first
