"""What becomes of a submitted job, the same over HTTP with a worker beside it and embedded in this process."""

import importlib
import os
import sys
from collections.abc import Iterator
from typing import Any

import pytest

from foliot import Foliot, JobCancelled, JobFailed
from foliot.wire import ErrorInfo
from tests.sdk.served_node import KEY, ServedNode

WAIT = 15


@pytest.fixture(params=["http", "embedded"])
def sample(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """The sample app's module, loaded anew for this node."""
    node: ServedNode | None = request.getfixturevalue("node") if request.param == "http" else None
    monkeypatch.setenv("FOLIOT_URL", node.url if node else "sqlite:///:memory:")
    monkeypatch.setenv("FOLIOT_KEY", KEY)
    sys.modules.pop("tests.sdk.sample_app", None)
    module = importlib.import_module("tests.sdk.sample_app")
    if node is not None:
        node.run_worker(module.app.handlers)
    yield module
    module.app.close()


def test_a_result_comes_back_as_the_type_that_the_function_names(sample: Any) -> None:
    job = sample.bill.submit([1, 2], when=sample.NOON)
    assert job.result(WAIT) == sample.Receipt(total=3, due=sample.NOON + sample.timedelta(days=30))
    assert job.status() == "completed"
    assert job.wait(WAIT).attempt == 1


async def test_the_same_is_awaited_under_aio(sample: Any) -> None:
    job = await sample.greet.aio.submit("you", loud=True)
    assert await job.result(WAIT) == "YOU"
    assert await job.status() == "completed"


def test_a_jobs_log_is_read_and_followed(sample: Any) -> None:
    job = sample.greet.submit("you")
    followed = [(line.log_level, line.log_message) for line in job.follow_logs()]
    assert followed == [("INFO", "greeting you"), ("WARNING", "attempt 1")]
    assert [line.log_message for line in job.logs()] == ["greeting you", "attempt 1"]


async def test_a_log_is_followed_while_the_job_runs(sample: Any) -> None:
    job = await sample.hang.aio.submit()
    seen = []
    async for line in job.follow_logs():
        seen.append(line.log_message)
        await job.cancel()
    assert seen == ["started"]
    with pytest.raises(JobCancelled):
        await job.result(WAIT)


def test_a_failed_job_raises_its_error_with_the_jobs_id(sample: Any) -> None:
    job = sample.fail.submit(word="broken")
    with pytest.raises(JobFailed, match="broken") as caught:
        job.result(WAIT)
    assert caught.value.job_id == job.job_id
    assert isinstance(caught.value.error, ErrorInfo)
    assert caught.value.error.type == "ValueError"


def test_a_job_that_asks_for_it_is_tried_again(sample: Any) -> None:
    assert sample.flaky.submit().result(WAIT) == 2


def test_a_fatal_failure_is_not_tried_again(sample: Any) -> None:
    with pytest.raises(JobFailed) as caught:
        sample.refuse.submit().result(WAIT)
    assert (caught.value.reason, caught.value.info.attempt) == ("refused", 1)


def test_arguments_that_do_not_fit_at_run_are_a_fatal_failure_that_names_them(sample: Any) -> None:
    job = sample.app.submit("greet", {"name": "you", "loud": "very"})
    with pytest.raises(JobFailed, match="argument 'loud': Expected bool, got str") as caught:
        job.result(WAIT)
    assert (caught.value.reason, caught.value.info.attempt) == ("bad_arguments", 1)


def test_a_cancelled_job_says_so(sample: Any) -> None:
    job = sample.greet.submit("you", delay="1h")
    job.cancel()
    with pytest.raises(JobCancelled) as caught:
        job.result(WAIT)
    assert caught.value.job_id == job.job_id


def test_a_job_in_a_process_of_its_own_is_found_there(sample: Any) -> None:
    assert sample.where_am_i.submit().result(WAIT) != os.getpid()


def test_results_are_handed_on_and_rules_applied_in_a_process_too(sample: Any) -> None:
    half = sample.halve.submit(6)
    with pytest.raises(JobFailed, match="3 is odd") as caught:
        sample.halve.submit(half).result(WAIT)
    assert isinstance(caught.value.error, ErrorInfo)
    assert (caught.value.info.attempt, caught.value.error.type) == (1, "ValueError")


def test_a_job_may_submit_another(sample: Any) -> None:
    other = sample.pass_on.submit("you").result(WAIT)
    assert sample.app.attach(other).result(WAIT) == "you"


def test_waiting_for_a_result_ends_with_its_timeout(sample: Any) -> None:
    with pytest.raises(TimeoutError):
        sample.greet.submit("you", delay="1h").result(timeout=0.05)


def test_an_embedded_app_keeps_its_jobs_in_its_file(tmp_path: Any) -> None:
    url = f"sqlite:///{tmp_path}/jobs.db"
    with Foliot(url) as first:
        job_id = first.submit("later", {"n": 1}, delay="1h").job_id
    with Foliot(url) as second:
        assert second.attach(job_id).status() == "scheduled"


def test_an_embedded_app_takes_no_jobs_once_its_worker_runs(embedded: Foliot) -> None:
    embedded.start()
    with pytest.raises(RuntimeError, match="before the first call"):

        @embedded.job
        def late() -> None: ...
