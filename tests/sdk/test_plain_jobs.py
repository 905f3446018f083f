"""Functions that are handed in as they are, and jobs that come to a worker which runs already."""

import threading
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pytest

from foliot import Foliot

gate = threading.Event()
begun = threading.Event()


def double(number: int) -> int:
    return 2 * number


async def greet(name: str, loud: bool = False) -> str:
    return name.upper() if loud else name


def hold() -> bool:
    begun.set()
    return gate.wait(15)


@pytest.fixture
def embedded() -> Iterator[Foliot]:
    app = Foliot("sqlite:///:memory:")
    yield app
    gate.set()
    app.close()


def test_a_function_becomes_a_job_of_its_qualified_name(embedded: Foliot) -> None:
    job = embedded.submit(double, 21, at=datetime(2026, 1, 1, tzinfo=UTC), tags=["mine"])
    assert job.result(15) == 42
    info = job.info()
    assert (info.job_type, info.tags, info.schedule_time.year) == (f"{__name__}.double", ["mine"], 2026)


async def test_a_coroutine_function_is_awaited(embedded: Foliot) -> None:
    job = await embedded.aio.submit(greet, "ada", loud=True)
    assert await job.result(15) == "ADA"
    await embedded.aio.close()


def test_a_function_that_comes_later_is_taken_by_a_worker_that_runs_already(embedded: Foliot) -> None:
    gate.clear()
    begun.clear()
    held = embedded.submit(hold)
    begun.wait(15)
    assert embedded.submit(double, 1).result(15) == 2  # the worker that holds the other has no part in it
    assert embedded.submit(greet, "b").result(15) == "b"
    assert held.status() == "running"
    gate.set()
    assert held.result(15) is True
    assert embedded.submit(double, 2).result(15) == 4


def test_a_job_function_is_submitted_with_its_own_options(embedded: Foliot) -> None:
    @embedded.job(queue="fast", name="triple")
    def triple(number: int) -> int:
        return 3 * number

    job = embedded.submit(triple, number=2, priority="high")
    assert job.result(15) == 6
    assert (job.info().job_type, job.info().queue, job.info().priority) == ("triple", "fast", "high")


@pytest.mark.parametrize("function", [lambda: 1, gate.wait, print], ids=["lambda", "method", "builtin"])
def test_what_has_no_name_to_be_found_by_is_refused(embedded: Foliot, function: Any) -> None:
    with pytest.raises(TypeError, match="call_later"):
        embedded.submit(function)


def test_a_node_elsewhere_is_sent_no_function_that_it_can_not_know() -> None:
    app = Foliot("http://127.0.0.1:1", patience=0)
    with pytest.raises(TypeError, match=r"put @app\.job above it"):
        app.submit(double, 1)
    app.close()


def test_another_apps_job_is_refused(embedded: Foliot) -> None:
    other = Foliot("http://127.0.0.1:1")

    @other.job
    def theirs() -> None: ...

    with pytest.raises(ValueError, match="a job of another app"):
        embedded.submit(theirs)
