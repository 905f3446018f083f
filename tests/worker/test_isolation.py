"""Handlers on the loop, in threads and in processes: results, failures, output, misbehaviour."""

import os

import pytest

from foliot.worker import Worker
from foliot.worker.attempt_log import LINES
from tests.worker.conftest import running
from tests.worker.real_node import Jobs, messages

ONCE = {"max_attempts": 1}
KINDS = pytest.mark.parametrize("kind", ["", ".thread", ".process"])


async def test_a_coroutine_returns_its_result(worker: Worker, jobs: Jobs) -> None:
    async with running(worker):
        job_id = await jobs.submit("add", {"a": 1, "b": 2})
        job, _ = await jobs.ended(job_id)
        assert job["status"] == "completed"
        assert await jobs.get(f"/jobs/{job_id}/result") == 3


async def test_a_thread_returns_its_result(worker: Worker, jobs: Jobs) -> None:
    async with running(worker):
        job_id = await jobs.submit("add.thread", {"a": 1, "b": 2})
        await jobs.ended(job_id)
        result = await jobs.get(f"/jobs/{job_id}/result")
        assert result == {"sum": 3, "pid": os.getpid(), "key": job_id}


async def test_a_process_returns_its_result_and_serves_the_next_job(worker: Worker, jobs: Jobs) -> None:
    async with running(worker):
        found = []
        for _ in range(2):
            job_id = await jobs.submit("add.process", {"a": 1, "b": 2})
            await jobs.ended(job_id)
            found.append(await jobs.get(f"/jobs/{job_id}/result"))
        assert found[0]["sum"] == 3
        assert found[0]["pid"] == found[1]["pid"] != os.getpid()


@KINDS
async def test_what_is_printed_and_logged_is_the_jobs_log(worker: Worker, jobs: Jobs, kind: str) -> None:
    async with running(worker):
        job, lines = await jobs.ended(await jobs.submit(f"talk{kind}"))
        assert job["status"] == "completed"
        assert sorted((line["log_level"], line["log_message"]) for line in lines) == [
            ("DEBUG", "told"),
            ("ERROR", "logged 7"),
            ("INFO", "no newline"),
            ("INFO", "printed words"),
            ("WARNING", "to stderr"),
        ]


@KINDS
async def test_an_exception_is_a_retriable_failure_with_its_stack(worker: Worker, jobs: Jobs, kind: str) -> None:
    async with running(worker):
        job_id = await jobs.submit(f"fail{kind}", retry={"max_attempts": 2, "delays": [0]})
        job, lines = await jobs.ended(job_id)
        assert job["status"] == "failed"
        assert [one["status"] for one in await jobs.executions(job_id)] == ["retriable_failure"] * 2
        error = job["last_error"]
        assert (error["type"], error["message"]) == ("ValueError", "a bad\ufffdvalue")
        assert "sample_handlers.py" in error["stack"]
        assert "raise ValueError" in messages(lines)[-1]


@KINDS
async def test_a_handler_that_forks_ends_once(worker: Worker, jobs: Jobs, kind: str) -> None:
    async with running(worker):
        job_id = await jobs.submit(f"fork{kind}", retry=ONCE)
        job, _ = await jobs.ended(job_id)
        assert job["status"] == "completed"
        assert await jobs.get(f"/jobs/{job_id}/result") == "original"
        again, _ = await jobs.ended(await jobs.submit("add", {"a": 1, "b": 1}))
        assert again["status"] == "completed"


async def test_a_process_that_is_killed_is_a_retriable_failure(worker: Worker, jobs: Jobs) -> None:
    async with running(worker):
        other = await jobs.submit("add.process", {"a": 1, "b": 2})
        job_id = await jobs.submit("kill_itself.process", retry=ONCE)
        job, _ = await jobs.ended(job_id)
        assert (job["status"], job["reason"]) == ("failed", "process_ended")
        assert "ended by SIGKILL" in job["last_error"]["message"]
        assert (await jobs.executions(job_id))[0]["status"] == "retriable_failure"
        assert (await jobs.ended(other))[0]["status"] == "completed"


@pytest.mark.parametrize(("job_type", "reason"), [("not_json", "result_not_json"), ("too_large", "result_too_large")])
async def test_a_result_that_can_not_be_kept_is_fatal(worker: Worker, jobs: Jobs, job_type: str, reason: str) -> None:
    async with running(worker):
        job, _ = await jobs.ended(await jobs.submit(job_type))
        assert (job["status"], job["reason"], job["attempt"]) == ("failed", reason, 1)


async def test_sys_exit_in_a_handler_does_not_end_the_worker(worker: Worker, jobs: Jobs) -> None:
    async with running(worker):
        job, _ = await jobs.ended(await jobs.submit("leave_program", retry=ONCE))
        assert "sys.exit(3)" in job["last_error"]["message"]
        again, _ = await jobs.ended(await jobs.submit("add", {"a": 1, "b": 1}))
        assert again["status"] == "completed"


@pytest.mark.parametrize("job_type", ["print_much", "print_much.process"])
async def test_a_hundred_megabytes_of_output_are_bounded(worker: Worker, jobs: Jobs, job_type: str) -> None:
    async with running(worker):
        job_id = await jobs.submit(job_type, retry=ONCE)
        job, lines = await jobs.ended(job_id)
        assert job["status"] == "completed"
        assert len(lines) <= LINES + 1
        assert sum(map(len, messages(lines))) < 5 * 1024 * 1024
        marks = [text.split(maxsplit=1)[0] for text in messages(lines) if "left out here" in text or "dropped" in text]
        assert marks
        missing = sum(int(count.replace(",", "")) for count in marks)
        # On a slow machine the worker adds a line of its own: that the handler blocks its loop.
        assert len(lines) - len(marks) + missing - 100 * 1024 in (0, 1)


async def test_a_long_line_is_cut(worker: Worker, jobs: Jobs) -> None:
    async with running(worker):
        _, lines = await jobs.ended(await jobs.submit("long_line"))
        assert len(lines) == 1
        assert len(lines[0]["log_message"].encode()) == 16 * 1024
        assert lines[0]["log_message"].endswith("(cut)")
