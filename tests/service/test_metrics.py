"""What the metrics tell of jobs, workers and nodes, whom they tell what, and that telling does not take longer the more
jobs there are."""

import sqlite3
from collections.abc import Mapping

import pytest

from foliot.domain.access import ADMIN, Caller
from foliot.domain.duration import SECOND
from foliot.domain.errors import NotFound
from foliot.domain.ids import JOB, show
from foliot.domain.worker import Worker
from foliot.service import metrics as module
from foliot.service.metrics import Metrics
from foliot.telemetry.counters import count, counted
from foliot.telemetry.families import FAMILIES, Buckets, Reading
from foliot.wire import BatchBody, SubmitBody
from tests.service.conftest import World, job_key, worker_key
from tests.service.meddling import Meddling

OTHER = Caller(name="k", namespace="other", role="viewer")


async def values(world: World, name: str, caller: Caller = ADMIN) -> dict[tuple[str, ...], object]:
    return {tuple(sample.labels): sample.value for sample in (await readings(world, caller))[name].samples}


async def readings(world: World, caller: Caller = ADMIN) -> Mapping[str, Reading]:
    found = await world.services.metrics.collect(caller)
    assert len({reading.family.name for reading in found}) == len(found)
    return {reading.family.name: reading for reading in found}


async def submit_as(world: World, caller: Caller, queue: str) -> None:
    await world.services.submit.one(SubmitBody(job_type="echo", queue=queue), b"", caller)


async def test_jobs_are_told_by_queue_and_status(world: World) -> None:
    worker = await world.worker()
    done = await world.submit(queue="a")
    await world.report(worker, await world.take_one(worker), "success")
    assert await world.status(done) == "completed"
    for job_type in ("one", "two"):
        await world.submit(job_type, queue="b")
    assert await values(world, "foliot_jobs") == {
        ("default", "a", "completed"): 1,
        ("default", "b", "queued"): 2,
    }


async def test_the_oldest_wait_is_that_of_the_job_that_was_due_first(world: World) -> None:
    await world.submit("one", queue="b")
    world.clock.pass_seconds(20)
    await world.submit("two", queue="b")
    world.clock.pass_seconds(5)
    done = await world.submit(queue="a")
    await world.cancel(done)
    assert await values(world, "foliot_oldest_wait_seconds") == {("default", "a"): 0, ("default", "b"): 25}


async def test_a_depth_is_that_of_one_queue(world: World) -> None:
    await world.submit("one", queue="b")
    await world.submit("two", queue="b")
    await world.submit(queue="a")
    worker = await world.worker(queues=["b"])
    await world.take_one(worker)
    world.clock.pass_seconds(3)
    depth = await world.services.metrics.depth("b", ADMIN)
    assert (depth.queue, depth.waiting, depth.running, depth.oldest_wait) == ("b", 1, 1, 3)


async def test_a_queue_that_nobody_has_used_is_empty(world: World) -> None:
    depth = await world.services.metrics.depth("new", ADMIN)
    assert (depth.waiting, depth.running, depth.oldest_wait) == (0, 0, 0)


async def test_a_depth_counts_what_the_caller_reaches(world: World) -> None:
    await world.submit("one", queue="b")
    await world.submit("two", queue="b")
    await submit_as(world, OTHER, "b")
    reached = [
        (await world.services.metrics.depth("b", caller)).waiting
        for caller in (ADMIN, OTHER, Caller(name="k", queues=("b",)), Caller(name="k", job_types=("two",)))
    ]
    assert reached == [2, 1, 2, 1]
    with pytest.raises(NotFound):
        await world.services.metrics.depth("b", Caller(name="k", queues=("a",)))


async def test_what_this_node_took_in_gave_out_and_saw_end_is_counted(world: World) -> None:
    worker = await world.worker()
    await world.submit(queue="a")
    await world.services.submit.batch(
        BatchBody(jobs=[SubmitBody(job_type="echo", queue="b", job_id=name) for name in ("x", "y")]), b"", ADMIN
    )
    await world.services.submit.batch(
        BatchBody(jobs=[SubmitBody(job_type="echo", queue="b", job_id=name) for name in ("y", "z")]), b"", ADMIN
    )
    first, *others = await world.take(worker)
    await world.report(worker, first, "success")
    await world.report(worker, others[0], "fatal_failure", error="no")
    assert sum((await values(world, "foliot_jobs_started")).values()) == 4  # type: ignore[arg-type]
    assert await values(world, "foliot_jobs_submitted") == {("default", "a"): 1, ("default", "b"): 3}
    ended = await values(world, "foliot_jobs_ended")
    assert sorted(labels[2] for labels in ended) == ["completed", "failed"]


async def test_lateness_and_run_time_are_histograms_with_a_job_as_example(world: World) -> None:
    worker = await world.worker()
    job_id = await world.submit("send", queue="mail")
    world.clock.pass_seconds(4)
    job = await world.take_one(worker)
    world.clock.pass_seconds(0.2)
    await world.report(worker, job, "success")
    late = (await values(world, "foliot_start_lateness_seconds"))["default", "mail", "send"]
    run = (await values(world, "foliot_run_seconds"))["default", "mail", "send"]
    assert isinstance(late, Buckets)
    assert isinstance(run, Buckets)
    assert (late.count, late.sum, run.count, run.sum) == (1, 4, 1, 0.2)
    assert {bound: at_most for bound, at_most, _ in late.at_most if bound in (2.5, 5, 3600)} == {2.5: 0, 5: 1, 3600: 1}
    examples = {bound: example for bound, _, example in late.at_most if example}
    assert {bound: (each.job_id, each.value) for bound, each in examples.items()} == {
        5: (show(JOB, job_key(job_id)), 4)
    }
    assert late.beyond is None
    assert not any(example for _, _, example in run.at_most)


async def test_a_job_that_is_later_than_all_bounds_is_an_example_too(world: World) -> None:
    await world.submit("send")
    world.clock.pass_seconds(2 * 3600)
    worker = await world.worker()
    await world.report(worker, await world.take_one(worker), "success")
    late = (await values(world, "foliot_start_lateness_seconds"))["default", "default", "send"]
    assert isinstance(late, Buckets)
    assert late.beyond is not None
    assert late.beyond.value == 7200


async def test_workers_are_told_by_status_and_slots_of_those_alive(world: World, store: Meddling) -> None:
    await world.worker(resources={"slot": 3})
    await store.drain_worker(worker_key(await world.worker(resources={"slot": 5})))
    now = world.clock.now()
    lost = Worker(
        id=worker_key(await world.worker()),
        namespace="other",
        name="w",
        queues=(),
        job_types=(),
        resources={"slot": 7},
        labels={},
        since=now,
        seen=now,
        until=now,
    )
    await store.remove_worker(lost.id)
    await store.add_worker(lost)
    assert await values(world, "foliot_workers") == {
        ("default", "alive"): 1,
        ("default", "draining"): 1,
        ("other", "lost"): 1,
    }
    assert await values(world, "foliot_worker_slots") == {("default",): 3, ("other",): 0}
    assert await values(world, "foliot_workers", OTHER) == {("other", "lost"): 1}


async def test_nodes_this_node_and_its_clock_are_told(world: World, store: Meddling) -> None:
    now = world.clock.now()
    await store.acquire_node("one", "0.9", now, now + SECOND)
    await store.acquire_node("two", "1.0", now, now)
    assert await values(world, "foliot_nodes", OTHER) == {("alive",): 1, ("lost",): 1}
    assert list(await values(world, "foliot_node", OTHER)) == [("n_0000000000000001", "1.0", "sqlite")]
    (offset,) = (await values(world, "foliot_clock_offset_seconds", OTHER)).values()
    assert isinstance(offset, float)
    assert -120 < offset < -50  # the test's clock stands a minute behind the machine's


async def test_the_store_and_the_process_are_told_to_the_admin_key_only(world: World) -> None:
    shown, whole = await readings(world, Caller(name="k")), await readings(world)
    inner = {name for name, family in FAMILIES.items() if family.scope == "node" and not family.open}
    assert not inner & set(shown)
    assert inner - {name for name in inner if name.startswith("process_")} == set(whole) - set(shown)
    facts, trouble = whole["foliot_store_fact"], whole["foliot_store_trouble"]
    assert {tuple(sample.labels) for sample in facts.samples} == {tuple(sample.labels) for sample in trouble.samples}
    assert {sample.value for sample in trouble.samples} == {0}


async def test_what_the_process_counts_is_told(world: World) -> None:
    before = counted("webhook_deliveries").get(("delivered",), 0)
    count("webhook_deliveries", "delivered", amount=2)
    assert (await values(world, "foliot_webhook_deliveries"))["delivered",] == before + 2
    assert () in await values(world, "foliot_events")


async def test_a_key_is_told_of_what_it_reaches(world: World) -> None:
    await world.submit("one", queue="a")
    await world.submit("two", queue="b")
    await submit_as(world, OTHER, "a")
    for caller, queues in (
        (ADMIN, {("default", "a"), ("default", "b"), ("other", "a")}),
        (OTHER, {("other", "a")}),
        (Caller(name="k"), {("default", "a"), ("default", "b")}),
        (Caller(name="k", queues=("b",)), {("default", "b")}),
        (Caller(name="k", job_types=("one",)), {("default", "a")}),
    ):
        assert set(await values(world, "foliot_oldest_wait_seconds", caller)) == queues
        assert set(await values(world, "foliot_jobs_submitted", caller)) == queues
    worker = await world.worker()
    await world.report(worker, await world.take_one(worker), "success")
    assert await values(world, "foliot_run_seconds", OTHER) == {}
    assert len(await values(world, "foliot_run_seconds", Caller(name="k"))) == 1


async def test_beyond_so_many_queues_they_are_one(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST", 2)
    rates = world.services.query._rates
    metrics = Metrics(world.store, world.clock, world.services.lateness, 1, submitted=rates[0], started=rates[1])
    for queue in "abcd":
        await world.submit(queue=queue)
    found = {reading.family.name: reading for reading in await metrics.collect(ADMIN)}
    assert {tuple(sample.labels): sample.value for sample in found["foliot_jobs"].samples} == {
        ("default", "a", "queued"): 1,
        ("default", "b", "queued"): 1,
        ("default", "other", "queued"): 2,
    }


async def test_a_lane_that_nobody_has_met_is_left_out(world: World, store: Meddling) -> None:
    await world.submit()
    store._lanes.clear()
    assert await values(world, "foliot_jobs") == {}
    assert await values(world, "foliot_jobs_submitted") == {}
    assert (await world.services.metrics.depth("default", ADMIN)).waiting == 0


async def statements(world: World, store: Meddling) -> tuple[list[str], int]:
    """What a look at everything asks of the database, and how many steps that took it."""
    asked: list[str] = []
    steps = 0

    def step() -> int:
        nonlocal steps
        steps += 1
        return 0

    def watch(connection: sqlite3.Connection) -> None:
        connection.set_trace_callback(asked.append)
        connection.set_progress_handler(step, 100)

    def leave(connection: sqlite3.Connection) -> None:
        connection.set_trace_callback(None)
        connection.set_progress_handler(None, 0)

    await store._read(watch)
    await world.services.metrics.collect(ADMIN)
    await world.services.metrics.depth("b", ADMIN)
    await store._read(leave)
    return [text for text in asked if not text.startswith(("BEGIN", "COMMIT"))], steps


async def test_a_scrape_takes_no_longer_the_more_jobs_there_are(world: World, store: Meddling) -> None:
    async def submit(count: int) -> None:
        jobs = [SubmitBody(job_type="echo", queue="b") for _ in range(count)]
        await world.services.submit.batch(BatchBody(jobs=jobs), b"", ADMIN)

    await world.worker()
    await submit(10)
    few, few_steps = await statements(world, store)
    assert few
    await submit(10_000)
    many, many_steps = await statements(world, store)
    assert len(many) == len(few)
    assert many_steps <= few_steps + 5
    assert not [text for text in many if "count(*)" in text.lower()]
