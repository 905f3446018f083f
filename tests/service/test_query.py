"""What is read: log lines as they come, nodes, figures, and why a job does not run."""

import asyncio
from collections.abc import AsyncIterator
from datetime import UTC, datetime

import pytest

from foliot.domain.access import ADMIN, Caller
from foliot.domain.duration import SECOND
from foliot.domain.errors import BadInput, NotFound
from foliot.domain.job import Lane
from foliot.service import query as query_module
from foliot.service.rates import Rate
from foliot.service.roster import Roster
from foliot.wire import AssignedJob, LogBody, LogInfo, SubmitBody
from tests.service.conftest import ManualClock, World


async def write(world: World, worker: str, job: AssignedJob, *lines: tuple[str, str]) -> None:
    bodies = [
        LogBody(
            job_id=job.job_id,
            attempt=job.attempt,
            token=job.token,
            log_time=datetime(2026, 1, 1, tzinfo=UTC),
            log_level=level,  # type: ignore[arg-type]
            log_message=message,
        )
        for level, message in lines
    ]
    assert (await world.exchange(worker, logs=bodies)).rejected == []


async def running(world: World) -> tuple[str, AssignedJob]:
    """A worker and the job that it runs."""
    worker = await world.worker()
    await world.submit(job_id="named")
    return worker, await world.take_one(worker)


def follow(world: World, *, after: str | None = None, level: str | None = None) -> AsyncIterator[list[LogInfo]]:
    return world.services.query.follow_logs("named", after=after, level=level, caller=ADMIN)


async def test_log_lines_are_read_by_level_and_from_where_one_stopped(world: World) -> None:
    worker, job = await running(world)
    await write(world, worker, job, ("DEBUG", "one"), ("WARNING", "two"), ("INFO", "three"))
    query = world.services.query

    async def read(after: str | None = None, level: str | None = None, limit: int = 9) -> list[LogInfo]:
        return await query.logs("named", after=after, level=level, limit=limit, caller=ADMIN)

    lines = await read()
    assert [(line.log_message, line.log_level) for line in lines] == [
        ("one", "DEBUG"), ("two", "WARNING"), ("three", "INFO"),
    ]  # fmt: skip
    assert (lines[0].job_id, lines[0].attempt, lines[0].log_time) == ("named", 1, datetime(2026, 1, 1, tzinfo=UTC))
    assert [line.log_message for line in await read(level="info")] == ["two", "three"]
    assert await read(after=lines[0].log_id, limit=1) == lines[1:2]
    with pytest.raises(BadInput, match="no level"):
        await read(level="loud")
    with pytest.raises(BadInput, match="no log_id"):
        await read(after="l_x")
    with pytest.raises(NotFound):
        await query.logs("nobody", after=None, level=None, limit=9, caller=ADMIN)


async def test_followed_lines_come_as_they_are_written_and_end_with_the_job(world: World) -> None:
    worker, job = await running(world)
    await write(world, worker, job, ("INFO", "before"))
    stream = follow(world)
    assert [line.log_message for line in await anext(stream)] == ["before"]
    coming = asyncio.ensure_future(anext(stream))
    await write(world, worker, job, ("INFO", "during"))
    assert [line.log_message for line in await coming] == ["during"]
    ending = asyncio.ensure_future(anext(stream, None))
    await world.report(worker, job, "success")
    assert await ending is None
    assert world.services.query._watched == {}


async def test_a_follower_is_given_what_was_written_right_before_the_end(world: World) -> None:
    worker, job = await running(world)
    stream = follow(world, level="WARNING")
    coming = asyncio.ensure_future(anext(stream))

    async def last_words() -> None:
        await write(world, worker, job, ("INFO", "small talk"), ("ERROR", "last words"))
        await world.report(worker, job, "success")

    world.store.before("logs", last_words)
    assert [line.log_message for line in await coming] == ["last words"]
    assert [lines async for lines in stream] == []


async def test_of_several_followers_of_one_job_each_leaves_when_it_likes(world: World) -> None:
    worker, job = await running(world)
    streams = [follow(world) for _ in range(3)]
    coming = [asyncio.ensure_future(anext(stream)) for stream in streams]
    await write(world, worker, job, ("INFO", "hello"))
    assert [len(await one) for one in coming] == [1, 1, 1]
    await streams[0].aclose()  # type: ignore[attr-defined]
    await world.report(worker, job, "success")
    for stream in streams[1:]:
        assert len(world.services.query._watched) == 1
        assert [lines async for lines in stream] == []
    assert world.services.query._watched == {}


async def test_a_silent_stream_is_kept_alive_and_polls_for_what_another_node_wrote(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(query_module, "LOG_POLL", 0.001)
    monkeypatch.setattr(query_module, "KEEP_ALIVE", 0.003)
    worker, job = await running(world)
    stream = follow(world)
    assert await anext(stream) == []
    other = World(world.store)
    await write(other, worker, job, ("INFO", "from afar"))
    lines: list[LogInfo] = []
    while not lines:
        lines = await anext(stream)
    assert lines[0].log_message == "from afar"
    await stream.aclose()  # type: ignore[attr-defined]


async def test_streams_end_when_the_node_is_about_to_stop(world: World) -> None:
    await running(world)
    stream = follow(world)
    coming = asyncio.ensure_future(anext(stream, None))
    while not world.services.query._watched:  # noqa: ASYNC110 - a stream begins without a word
        await asyncio.sleep(0)
    world.services.close()
    assert await coming is None


async def test_nodes_are_shown_with_whether_they_live(world: World) -> None:
    now = world.clock.now()
    await world.store.acquire_node("a", "1.0", now, now + 10 * SECOND)
    await world.store.acquire_node("b", "1.0", now, now + 60 * SECOND)
    world.clock.pass_seconds(30)
    nodes = {node.name: node for node in await world.services.query.nodes()}
    assert {name: node.alive for name, node in nodes.items()} == {"a": False, "b": True}
    assert (nodes["a"].version, nodes["a"].node_id[:2]) == ("1.0", "n_")


async def test_figures_count_jobs_living_workers_and_what_happened_of_late(world: World) -> None:
    lost = await world.worker(resources={"slot": 100})
    world.clock.pass_seconds(31)
    worker = await world.worker(resources={"slot": 4})
    await world.worker(resources={})
    for _ in range(3):
        await world.submit()
    await world.submit(delay="1h")
    jobs = await world.take(worker, 2)
    await world.report(worker, jobs[0], "success")
    world.clock.pass_seconds(1)
    stats = await world.services.query.stats(ADMIN)
    assert {name: count for name, count in stats.jobs.items() if count} == {
        "scheduled": 1, "queued": 1, "running": 1, "completed": 1,
    }  # fmt: skip
    assert (stats.workers, stats.slots, stats.running) == (2, 4, 1)
    assert (stats.submitted_per_second, stats.started_per_second, stats.ended_per_second) == (0.4, 0.2, 0.1)
    assert lost != worker


def test_a_rate_is_over_the_last_ten_whole_seconds() -> None:
    clock = ManualClock()
    clock.time = 1_000_000 * SECOND
    rate = Rate(clock)
    rate.add(10)
    assert rate.per_second() == 0
    clock.pass_seconds(1)
    rate.add(20)
    assert rate.per_second() == 1
    clock.pass_seconds(9)
    assert rate.per_second() == 3
    clock.pass_seconds(1)
    assert rate.per_second() == 2
    clock.pass_seconds(100)
    assert rate.per_second() == 0


def test_a_rate_bears_a_clock_that_is_set_back() -> None:
    clock = ManualClock()
    rate = Rate(clock)
    rate.add(10)
    clock.pass_seconds(-5)
    rate.add(10)
    clock.pass_seconds(6)
    assert rate.per_second() == 2


async def test_who_could_run_a_job_is_looked_up_at_most_once_a_second(world: World) -> None:
    roster = Roster(world.store, world.clock)
    lane = Lane("default", "default", "echo")
    assert not await roster.offers(lane)
    worker = await world.worker()
    assert not await roster.offers(lane)
    world.clock.pass_seconds(0.1)
    assert await roster.offers(lane)
    await world.services.workers.leave(worker, ADMIN)
    assert await roster.offers(lane)
    world.clock.pass_seconds(1)
    assert not await roster.offers(lane)


async def test_workers_of_several_namespaces_are_told_apart(world: World) -> None:
    stranger = Caller(name="eve", namespace="other")
    await world.worker()
    mine = await world.submit()
    theirs = (await world.services.submit.one(SubmitBody(job_type="echo"), b"", stranger)).job_id
    query = world.services.query
    assert (await query.job(mine, ADMIN)).reason is None
    assert (await query.job(theirs, stranger)).reason == "no_worker"
    assert (await query.job(mine, ADMIN)).reason is None
