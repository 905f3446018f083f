"""The record in an SQLite file: one writer, whose numbers go on whatever was forgotten."""

import asyncio
import contextlib
import sqlite3
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from foliot.domain import events
from foliot.domain.duration import DAY
from foliot.domain.feed import ALL_STATUSES, Happening, Position
from foliot.store.sqlite import SqliteStore
from tests.store.builders import Scene
from tests.store.feed_reader import FeedReader, follow


@pytest.fixture
def path(folder: Path) -> str:
    return str(folder / "foliot.db")


@contextlib.asynccontextmanager
async def opened(path: str, *, recording: bool = True) -> AsyncIterator[Scene]:
    store = SqliteStore(path, recording=recording)
    await store.open()
    try:
        yield Scene(store, await store.now())
    finally:
        await store.close()


async def test_there_is_one_writer_whose_end_is_known_before_it_wrote(path: str) -> None:
    async with opened(path) as scene:
        end = await scene.store.feed_end()
        assert end == Position(floor=2, seen={1: 0})
        await scene.submitted()
        reading = await scene.store.read_feed(end, 10, mask=ALL_STATUSES)
        assert [(batch.writer, batch.number) for batch in reading.batches] == [(1, 1)]
        assert reading.position == Position(floor=2, seen={1: 1}, time=scene.now)
        assert reading.position == await scene.store.feed_end()


async def test_a_number_is_not_given_again_once_all_is_forgotten(path: str) -> None:
    async with opened(path) as scene:
        reader = await follow(scene.store)
        for _ in range(3):
            await scene.submitted()
        end = await scene.store.feed_end()
        assert await scene.store.forget_feed(scene.now + 1) == 3
        assert await scene.store.forget_feed(scene.now + 1) == 0
        assert await reader.batches() == []
        assert (await scene.store.feed_end()).seen == end.seen
    async with opened(path) as scene:
        job = await scene.submitted()
        assert [batch.number for batch in await FeedReader(scene.store, end).batches()] == [4]
        assert await reader_of(scene, reader).statuses() == [(job.id, "queued")]


def reader_of(scene: Scene, reader: FeedReader) -> FeedReader:
    """The same reader, on a store that was opened again."""
    return FeedReader(scene.store, reader.position)


async def test_what_was_written_before_a_time_is_forgotten_and_the_rest_stays(path: str) -> None:
    async with opened(path) as scene:
        now = scene.now
        scene.now = now - 2 * DAY
        for _ in range(450):
            await scene.store.note([Happening(kind="k", subject="old")], scene.now)
        scene.now = now
        await scene.store.note([Happening(kind="k", subject="new")], scene.now)
        taken = []
        while count := await scene.store.forget_feed(now - DAY):
            taken.append(count)
        assert sum(taken) == 450
        assert len(taken) > 1
        (batch,) = await FeedReader(scene.store, Position()).batches()
        assert [happening.subject for happening in batch.happenings] == ["new"]


async def test_a_position_that_has_read_the_writer_to_its_end_is_carried_on_from_there(path: str) -> None:
    async with opened(path) as scene:
        await scene.submitted()
        reader = FeedReader(scene.store, Position(floor=9, seen={8: 5}))
        assert await reader.batches() == []
        assert reader.position == Position(floor=2, seen={1: 1})
        job = await scene.submitted()
        assert await reader.statuses() == [(job.id, "queued")]


async def test_a_call_that_fails_leaves_no_trace_in_the_record_and_those_beside_it_do(path: str) -> None:
    async with opened(path) as scene:
        reader = await follow(scene.store)
        job = await scene.job()
        bad = scene.new(await scene.job(payload="\udc00"))
        results = await asyncio.gather(scene.submit(job), scene.insert(scene.request(bad)), return_exceptions=True)
        assert isinstance(results[1], BaseException)
        assert await reader.statuses() == [(job.id, "queued")]


async def test_a_batch_costs_one_step_however_many_jobs_it_tells_of(path: str) -> None:
    counts: dict[bool, list[int]] = {True: [], False: []}
    for recording in (True, False):
        async with opened(f"{path}{recording}", recording=recording) as scene:
            assert isinstance(scene.store, SqliteStore)
            statements = 0

            def count(_: str) -> None:
                nonlocal statements
                statements += 1

            await scene.store._write(lambda connection: connection.set_trace_callback(count))
            worker = await scene.worker()
            for size in (3, 100):
                jobs = await scene.jobs(size)
                statements = 0
                await scene.submit(*jobs)
                leases = [claimed.lease for claimed in await scene.claim(worker, jobs[0], size)]
                records = await scene.store.load([lease.id for lease in leases])
                await scene.save([scene.decide(record, events.Succeed()) for record in records.values()])
                counts[recording].append(statements)
    assert counts[True] == [number + 3 for number in counts[False]]


async def test_what_is_the_same_for_all_entries_of_a_batch_is_kept_once(path: str) -> None:
    async with opened(path) as scene:
        one, other = await scene.job(), await scene.job(due=scene.later(60))
        await scene.submit(one)
        await scene.submit(one, other, await scene.job())
        with contextlib.closing(sqlite3.connect(path)) as connection:
            found = connection.execute(
                "SELECT mask, json_extract(entries, '$[1]', '$[2]', '$[8]') FROM events"
            ).fetchall()
        lane_id = one.lane_id
        assert found == [(0b100, f"[[{lane_id}],[2],[null]]"), (0b101, f"[[{lane_id}],[0,2],[null]]")]
        entries = await FeedReader(scene.store, Position()).entries()
        assert [entry.status for entry in entries] == [2, 0, 2]
