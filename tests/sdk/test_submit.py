"""Submitting: stored when it returns, shared where calls coincide, stored once whatever is lost."""

import asyncio
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path

import msgspec
import pytest

from foliot import AsyncJob, Foliot
from foliot.sdk.failures import BadInput, Conflict, NotAuthenticated, Unreachable
from foliot.wire import FilterBody, SubmitBody
from tests.sdk.cutting_proxy import CuttingProxy
from tests.sdk.served_node import KEY, ServedNode

SINGLE, BATCH = "POST /api/v1/jobs", "POST /api/v1/jobs/batch"
LATER = datetime(2099, 1, 1, tzinfo=UTC)


def test_a_job_is_stored_when_submit_returns(app: Foliot, node: ServedNode) -> None:
    @app.job(queue="sums", tags=["a"])
    def add(a: int, b: int = 2) -> int:
        return a + b

    job = add.submit(1, at=LATER, priority="high", timeout=timedelta(seconds=5))
    info = job.info()
    assert (info.job_type, info.queue, info.tags, info.priority) == ("add", "sums", ["a"], "high")
    assert (info.status, info.schedule_time, info.timeout) == ("scheduled", LATER, 5)
    assert msgspec.json.decode(bytes(info.payload)) == {"a": 1}  # type: ignore[arg-type]
    assert node.count(SINGLE) == 1


def test_an_argument_that_is_named_like_an_option_is_an_argument(app: Foliot) -> None:
    @app.job
    def move(queue: str, priority: int) -> None: ...

    job = move.options(queue="moves", at=LATER).submit(queue="a", priority=3)
    assert msgspec.json.decode(bytes(job.info().payload)) == {"queue": "a", "priority": 3}  # type: ignore[arg-type]
    assert job.info().queue == "moves"
    plain = move.submit(queue="b", priority=4, at=LATER)
    assert plain.info().queue == "default"
    with pytest.raises(TypeError, match="unexpected keyword argument 'at'"):
        move.options(queue="moves").submit(queue="a", priority=3, at=LATER)


def test_wrong_arguments_send_nothing(app: Foliot, node: ServedNode) -> None:
    @app.job
    def add(a: int) -> None: ...

    with pytest.raises(TypeError, match="argument 'a'"):
        add.submit("one")
    with pytest.raises(TypeError, match="argument 'a'"):
        add.submit_many([(1,), ("two",)])
    assert node.requests == []


def test_many_jobs_go_in_one_request(app: Foliot, node: ServedNode) -> None:
    @app.job
    def add(a: int, b: int = 0) -> None: ...

    jobs = add.options(at=LATER).submit_many([(1,), {"a": 2, "b": 3}, [4, 5]])
    sent = [msgspec.json.decode(bytes(job.info().payload)) for job in jobs]  # type: ignore[arg-type]
    assert sent == [{"a": 1}, {"a": 2, "b": 3}, {"a": 4, "b": 5}]
    assert (node.count(BATCH), node.count(SINGLE)) == (1, 0)


def test_many_jobs_are_cut_into_requests_of_ten_thousand(app: Foliot, node: ServedNode) -> None:
    @app.job
    def touch(n: int) -> None: ...

    jobs = touch.options(at=LATER).submit_many((n,) for n in range(10_001))
    assert len({job.job_id for job in jobs}) == 10_001
    assert (node.count(BATCH), node.count(SINGLE)) == (2, 0)


def test_a_job_type_that_lives_elsewhere_is_submitted_by_name(app: Foliot) -> None:
    job = app.submit("elsewhere.report", {"month": 3}, at=LATER, job_id="report-3")
    assert job.job_id == "report-3"
    assert app.attach("report-3").info().job_type == "elsewhere.report"


def test_a_submit_under_a_unique_key_gives_the_job_that_waits(app: Foliot) -> None:
    @app.job(unique_key=lambda day: f"report-{day}")
    def report(day: str, note: str = "") -> None: ...

    first, again, other = report.submit("mon"), report.submit("mon", note="x"), report.submit("tue")
    assert again.job_id == first.job_id != other.job_id
    assert [job.duplicate for job in (first, again, other)] == [False, True, False]
    many = report.submit_many([("mon",), ("wed",), ("tue",)])
    assert [job.duplicate for job in many] == [True, False, True]
    assert app.submit("report", {"day": "mon"}, unique_key="report-mon").duplicate


async def test_each_of_a_shared_request_knows_whether_it_is_a_duplicate(app: Foliot) -> None:
    await app.aio.submit("note", unique_key="k3")
    jobs = await asyncio.gather(*(app.aio.submit("note", unique_key=f"k{n}") for n in range(6)))
    assert [job.duplicate for job in jobs] == [False, False, False, True, False, False]


def test_what_a_job_asks_for_is_stored(app: Foliot) -> None:
    @app.job(resources={"cpu": 0.5, "memory": "1Ki"}, requires={"zone": "eu"}, concurrency=("disk", 2))
    def crunch() -> None: ...

    info = crunch.submit().info()
    assert info.resources == {"cpu": 0.5, "memory": 1024, "slot": 1}
    assert info.requires == {"zone": "eu"}
    assert info.concurrency is not None
    assert (info.concurrency.key, info.concurrency.limit) == ("disk", 2)


def test_a_job_waits_for_jobs(app: Foliot) -> None:
    first = app.submit("note", at=LATER)
    child = app.submit("note", depends_on=[first, (first, "success")])
    assert child.status() == "blocked"
    with pytest.raises(BadInput, match="nobody"):
        app.submit("note", depends_on=["nobody"])


async def test_calls_under_way_at_the_same_time_share_a_request(app: Foliot, node: ServedNode) -> None:
    @app.job
    async def note(n: int) -> None: ...

    jobs = await asyncio.gather(*(note.aio.submit(n, at=LATER) for n in range(100)))
    assert len({job.job_id for job in jobs}) == 100
    infos = [await job.info() for job in jobs]
    assert [msgspec.json.decode(bytes(info.payload))["n"] for info in infos] == list(range(100))  # type: ignore[arg-type]
    assert node.count(SINGLE) + node.count(BATCH) <= 3


def test_threads_that_submit_at_the_same_time_each_get_their_own_job(app: Foliot) -> None:
    @app.job
    def note(n: int) -> None: ...

    with ThreadPoolExecutor(8) as threads:
        jobs = list(threads.map(lambda n: note.submit(n, at=LATER), range(40)))
    sent = [msgspec.json.decode(bytes(job.info().payload))["n"] for job in jobs]  # type: ignore[arg-type]
    assert sent == list(range(40))


async def test_one_bad_job_does_not_fail_those_it_shared_a_request_with(app: Foliot) -> None:
    async def submit(n: int) -> str:
        body = SubmitBody(job_type="note", schedule_time=LATER, priority=99 if n == 13 else 5)
        return await app.client.aio.submit(body)

    answers = await asyncio.gather(*(submit(n) for n in range(50)), return_exceptions=True)
    assert [n for n, answer in enumerate(answers) if isinstance(answer, Exception)] == [13]
    assert isinstance(answers[13], BadInput)
    assert "priority" in str(answers[13])


async def test_an_id_that_is_taken_fails_only_its_own_submit(app: Foliot) -> None:
    await app.aio.submit("note", {"n": 1}, at=LATER, job_id="mine")
    submits = [
        app.aio.submit("note", {"n": 2}, at=LATER, job_id="mine"),
        app.aio.submit("note", {"n": 3}, at=LATER),
        app.aio.submit("note", {"n": 1}, at=LATER, job_id="mine"),
    ]
    answers = await asyncio.gather(*submits, return_exceptions=True)
    assert isinstance(answers[0], Conflict)
    assert [isinstance(answer, AsyncJob) for answer in answers] == [False, True, True]


@pytest.mark.parametrize("lost", [1, 3])
def test_a_lost_answer_stores_a_job_once(node: ServedNode, proxy: CuttingProxy, lost: int) -> None:
    with Foliot(proxy.url, KEY) as app:
        proxy.cuts = lost
        job = app.submit("note", at=LATER)
        assert proxy.cut == lost
        assert [each.job_id for each in app.client.list()] == [job.job_id]
    assert node.count(SINGLE) == lost + 1
    assert len(set(node.keys)) == 1


async def test_a_lost_answer_stores_a_shared_request_once(node: ServedNode, proxy: CuttingProxy) -> None:
    async with Foliot(proxy.url, KEY) as app:
        proxy.cuts = 2
        jobs = await asyncio.gather(*(app.aio.submit("note", at=LATER) for _ in range(30)))
        assert proxy.cut == 2
        stored = {each.job_id async for each in app.client.aio.list(FilterBody(job_type="note"), page_size=10)}
        assert stored == {job.job_id for job in jobs}


def test_a_node_that_comes_up_late_is_waited_for(tmp_path: Path) -> None:
    node = ServedNode(tmp_path)
    with ThreadPoolExecutor(1) as threads, Foliot(node.url, KEY) as app:
        submitted = threads.submit(app.submit, "note", at=LATER)
        node.start()
        assert submitted.result().status() == "scheduled"
        node.stop()


def test_patience_ends_with_what_to_do(free_port: int) -> None:
    with Foliot(f"http://127.0.0.1:{free_port}", KEY, patience=0.1) as app, pytest.raises(Unreachable) as caught:
        app.submit("note")
    assert "foliot serve" in str(caught.value)
    assert not caught.value.sent


def test_a_wrong_key_is_not_tried_twice(node: ServedNode) -> None:
    with Foliot(node.url, "a-wrong-key-for-the-tests") as app, pytest.raises(NotAuthenticated):
        app.submit("note")
    assert node.count(SINGLE) == 1


async def test_a_blocking_call_in_an_event_loop_is_refused(app: Foliot) -> None:
    with pytest.raises(RuntimeError, match=r"under \.aio"):
        app.submit("note")
