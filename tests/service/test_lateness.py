"""How late jobs were is counted as they end, kept by the minute, and added up over all nodes."""

import asyncio
from datetime import timedelta

import pytest

from foliot.domain.access import ADMIN, Caller
from foliot.domain.duration import HOUR, MINUTE, SECOND
from foliot.domain.errors import BadInput, Unavailable
from foliot.domain.ids import IdMaker, JobKey
from foliot.domain.job import Lane, State
from foliot.service import lateness as module
from foliot.service.lateness import SHOWN, Lateness
from foliot.store.base import LatenessRow, Timing
from foliot.wire import to_time
from tests.service.conftest import ManualClock, World
from tests.service.meddling import Meddling

START = 1_800_000_000 * SECOND  # the beginning of a minute
MS = SECOND // 1000


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock(START)


@pytest.fixture
def lateness(store: Meddling, clock: ManualClock) -> Lateness:
    return Lateness(store, clock, 1)


async def lane(store: Meddling, queue: str = "mail", job_type: str = "send", namespace: str = "default") -> int:
    return (await store.lane_ids([Lane(namespace, queue, job_type)]))[0]


def timing(lane_id: int, ended: int, *, late: int = 5 * MS, run: int = 20 * MS, key: int | None = 7) -> Timing:
    """One that was claimed and started at once, `late` after its due time."""
    started = ended - run
    due = started - late
    return Timing(lane_id, State.COMPLETED, due, due, started, started, ended, None if key is None else JobKey(key))


async def jobs_by_queue(lateness: Lateness, caller: Caller = ADMIN) -> dict[str | None, int]:
    return {each.queue: each.jobs for each in await lateness.percentiles(caller, by="queue")}


async def test_a_job_that_ends_is_counted_with_each_of_its_steps(world: World) -> None:
    await world.submit("send", queue="mail")
    worker = await world.worker()
    world.clock.pass_seconds(2)
    job = await world.take_one(worker)
    world.clock.pass_seconds(1)
    started = to_time(world.clock.now())
    world.clock.pass_seconds(10)
    await world.report(worker, job, "success", started=started)
    (found,) = await world.services.lateness.percentiles(ADMIN)
    assert (found.queue, found.job_type, found.jobs) == ("mail", "send", 1)
    steps = [found.admit, found.claim, found.start, found.run, found.late]
    assert [step.max for step in steps if step] == [0, 2, 1, 10, 3]
    assert found.late is not None
    assert found.late.p50 == found.late.p999 == 3


async def test_an_attempt_that_is_tried_again_does_not_count(world: World) -> None:
    await world.submit("send", retry={"max_attempts": 2, "backoff": "fixed", "initial": 0})
    worker = await world.worker()
    await world.report(worker, await world.take_one(worker), "retriable_failure", error="no")
    assert await world.services.lateness.percentiles(ADMIN) == []


async def test_a_step_that_nobody_told_of_has_no_percentiles(lateness: Lateness, store: Meddling) -> None:
    lane_id = await lane(store)
    lateness.take([Timing(lane_id, State.FAILED, START - 30, START - 20, START - 10, None, START)])
    (found,) = await lateness.percentiles(ADMIN)
    assert found.start is None
    assert found.late is not None
    assert found.late.max == 20 / SECOND


async def test_what_is_not_written_yet_counts_once_and_what_is_written_too(lateness: Lateness, store: Meddling) -> None:
    lane_id = await lane(store)
    lateness.take([timing(lane_id, START)])
    assert await jobs_by_queue(lateness) == {"mail": 1}
    await lateness.flush()
    assert await jobs_by_queue(lateness) == {"mail": 1}
    lateness.take([timing(lane_id, START), timing(lane_id, START)])
    assert await jobs_by_queue(lateness) == {"mail": 3}
    await lateness.flush()
    assert await jobs_by_queue(lateness) == {"mail": 3}
    assert len(await store.lateness(None, 0, START + MINUTE)) == 1


async def test_all_nodes_are_added_up(lateness: Lateness, store: Meddling, clock: ManualClock) -> None:
    other, lane_id = Lateness(store, clock, 2), await lane(store)
    other.take([timing(lane_id, START)])
    await other.flush()
    lateness.take([timing(lane_id, START, late=SECOND)])
    (found,) = await lateness.percentiles(ADMIN)
    assert found.late is not None
    assert (found.jobs, found.late.p50, found.late.max) == (2, 0.005, 1)


async def test_a_node_that_comes_back_in_the_same_minute_adds_to_what_it_wrote(
    lateness: Lateness, store: Meddling, clock: ManualClock
) -> None:
    lane_id = await lane(store)
    lateness.take([timing(lane_id, START)])
    await lateness.close()
    again = Lateness(store, clock, 1)
    again.take([timing(lane_id, START), timing(await lane(store, "reports"), START)])
    await again.flush()
    assert await jobs_by_queue(again) == {"mail": 2, "reports": 1}
    assert await jobs_by_queue(Lateness(store, clock, 3)) == {"mail": 2, "reports": 1}
    assert [phases.late.total for phases in again.since_start().values()] == [1, 1]


async def test_a_minute_that_is_over_is_no_longer_written(
    lateness: Lateness, store: Meddling, clock: ManualClock
) -> None:
    lane_id = await lane(store)
    lateness.take([timing(lane_id, START)])
    await lateness.flush()
    clock.pass_seconds(150)
    await lateness.flush()
    lateness.take([timing(lane_id, START)])  # it ended long ago, and is told of only now
    await lateness.flush()
    rows = await store.lateness(None, 0, START + HOUR)
    assert [row.minute for row in rows] == [START, START + MINUTE]
    assert await jobs_by_queue(lateness) == {"mail": 2}
    assert sum(phases.late.total for phases in lateness.since_start().values()) == 2


async def test_what_could_not_be_written_is_written_the_next_time(lateness: Lateness, store: Meddling) -> None:
    async def fail() -> None:
        raise Unavailable("gone")

    lateness.take([timing(await lane(store), START)])
    store.before("add_lateness", fail, fail)
    with pytest.raises(Unavailable):
        await lateness.flush()
    await lateness.close()
    assert await store.lateness(None, 0, START + MINUTE) == []
    await lateness.flush()
    assert len(await store.lateness(None, 0, START + MINUTE)) == 1


async def test_a_minute_that_is_counted_while_it_is_written_is_written_again(
    lateness: Lateness, store: Meddling, clock: ManualClock
) -> None:
    lane_id = await lane(store)

    async def another() -> None:
        lateness.take([timing(lane_id, START)])
        lateness.since_start()
        clock.pass_seconds(150)

    lateness.take([timing(lane_id, START)])
    store.after("add_lateness", another)
    await lateness.flush()
    await lateness.flush()
    assert await jobs_by_queue(Lateness(store, clock, 2)) == {"mail": 2}


async def test_many_are_counted_at_once_without_being_asked(
    lateness: Lateness, store: Meddling, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "FOLD_AT", 3)
    lane_id = await lane(store)
    lateness.take([timing(lane_id, START)] * 2)
    assert lateness.instances(("default", "mail", "send")) == {}
    lateness.take([timing(lane_id, START)])
    assert lateness.instances(("default", "mail", "send"))


async def test_a_lane_that_nobody_has_met_counts_nowhere(lateness: Lateness) -> None:
    lateness.take([timing(12345, START)])
    assert await lateness.percentiles(ADMIN) == []


async def test_groups_are_by_queue_or_by_type_or_by_both(lateness: Lateness, store: Meddling) -> None:
    for queue, job_type in (("a", "x"), ("a", "y"), ("b", "y")):
        lateness.take([timing(await lane(store, queue, job_type), START)])
    by = {
        name: [(each.queue, each.job_type, each.jobs) for each in await lateness.percentiles(ADMIN, by=name)]
        for name in ("queue", "job_type", "both")
    }
    assert by == {
        "queue": [("a", None, 2), ("b", None, 1)],
        "job_type": [(None, "x", 1), (None, "y", 2)],
        "both": [("a", "x", 1), ("a", "y", 1), ("b", "y", 1)],
    }
    assert [each.queue for each in await lateness.percentiles(ADMIN, job_type="y")] == ["a", "b"]
    assert [each.job_type for each in await lateness.percentiles(ADMIN, queue="a")] == ["x", "y"]


async def test_a_caller_is_told_only_of_what_it_reaches(lateness: Lateness, store: Meddling) -> None:
    for queue, job_type, namespace in (("a", "x", "default"), ("b", "y", "default"), ("a", "x", "other")):
        lateness.take([timing(await lane(store, queue, job_type, namespace), START)])
    await lateness.flush()
    assert await jobs_by_queue(lateness, Caller(name="k", namespace="other")) == {"a": 1}
    assert await jobs_by_queue(lateness, Caller(name="k", queues=("b",))) == {"b": 1}
    assert await jobs_by_queue(lateness, Caller(name="k", job_types=("x",))) == {"a": 1}
    assert len(await lateness.read(None, START, START + MINUTE)) == 3


async def test_only_the_time_that_is_asked_for_counts(lateness: Lateness, store: Meddling, clock: ManualClock) -> None:
    lane_id = await lane(store)
    for hours in (0, 2, 4):
        lateness.take([timing(lane_id, START + hours * HOUR)])
        clock.time = START + hours * HOUR
        await lateness.flush()
    assert await jobs_by_queue(lateness) == {"mail": 1}
    (all_,) = await lateness.percentiles(ADMIN, since=START)
    (first,) = await lateness.percentiles(ADMIN, since=START, until=START + 3 * HOUR)
    assert (all_.jobs, first.jobs) == (3, 2)


@pytest.mark.parametrize(
    ("since", "until", "words"), [(START + 1, START, "after"), (START - 32 * 24 * HOUR, START, "31 days")]
)
async def test_a_time_that_can_not_be_told_of_is_refused(
    lateness: Lateness, since: int, until: int, words: str
) -> None:
    with pytest.raises(BadInput, match=words):
        await lateness.percentiles(ADMIN, since=since, until=until)


async def test_many_rows_are_read_without_holding_up_others(
    lateness: Lateness, store: Meddling, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "BREATH", 2)
    for queue in "abcde":
        lateness.take([timing(await lane(store, queue), START)])
    await lateness.flush()
    turns = 0

    async def others() -> None:
        nonlocal turns
        while True:
            await asyncio.sleep(0)
            turns += 1

    reader, task = Lateness(store, ManualClock(START), 9), asyncio.create_task(others())
    rows = await store.lateness(None, START, START + MINUTE)

    async def at_once(*_: object) -> list[LatenessRow]:
        return rows

    monkeypatch.setattr(store, "lateness", at_once)
    found = await reader.read("default", START, START + MINUTE)
    task.cancel()
    assert len(found) == 5
    assert turns >= 2


async def test_beyond_so_many_kinds_they_are_one(
    store: Meddling, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MOST", 2)
    lateness = Lateness(store, clock, 1)
    for queue in "abcdea":
        lateness.take([timing(await lane(store, queue), START)])
    lateness.take([timing(await lane(store, "a", "another"), START)])
    found = {each.queue: (each.job_type, each.jobs) for each in await lateness.percentiles(ADMIN)}
    assert found == {"a": ("send", 2), "b": ("send", 1), "c": ("other", 1), "d": ("other", 1), "other": ("other", 2)}


async def test_a_bucket_has_a_recent_job_as_its_example(lateness: Lateness, store: Meddling) -> None:
    lane_id = await lane(store)
    lateness.take([timing(lane_id, START, late=9 * SECOND, key=1), timing(lane_id, START + 5, key=2)])
    await lateness.flush()
    found = lateness.instances(("default", "mail", "send"))
    assert {SHOWN[place]: (each.id, each.late, each.time) for place, each in found.items()} == {
        10 * SECOND: (1, 9 * SECOND, START),
        5 * MS: (2, 5 * MS, START + 5),
    }


async def test_an_attempt_whose_job_is_not_told_is_no_example(lateness: Lateness, store: Meddling) -> None:
    lateness.take([timing(await lane(store), START, key=None)])
    await lateness.flush()
    assert lateness.instances(("default", "mail", "send")) == {}


async def test_a_node_writes_under_its_own_number(store: Meddling) -> None:
    world = World(store, ids=IdMaker(node=42))
    await world.submit("send")
    worker = await world.worker()
    await world.report(worker, await world.take_one(worker), "success")
    await world.services.drain()
    now = world.clock.now()
    assert [row.node for row in await store.lateness(None, now - HOUR, now + HOUR)] == [42]


async def test_attempts_tell_when_they_were_admitted(world: World) -> None:
    job_id = await world.submit("send")
    admitted = to_time(world.clock.now())
    world.clock.pass_seconds(3)
    await world.take_one(await world.worker())
    (attempt,) = await world.services.query.executions(job_id, ADMIN)
    assert attempt.admitted_time == admitted
    assert attempt.claimed_time == admitted + timedelta(seconds=3)
