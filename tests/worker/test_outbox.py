"""What is kept until it is acknowledged, and in which order it leaves."""

import asyncio

import pytest

from foliot.wire import AssignedJob
from foliot.worker.attempt import Attempt
from foliot.worker.outbox import LINES_PER_CALL, Outbox
from foliot.worker.outcome import SUCCESS
from tests.worker.lone_runner import LoneRunner, assigned, error_of
from tests.worker.sample_handlers import HANDLERS


@pytest.fixture
async def ready() -> asyncio.Event:
    return asyncio.Event()


@pytest.fixture
async def outbox(ready: asyncio.Event) -> Outbox:
    return Outbox(asyncio.get_running_loop(), ready.set)


def attempt(outbox: Outbox, number: int = 1) -> Attempt:
    job: AssignedJob = assigned("add", {}, number=number)
    return Attempt(job, None, asyncio.get_running_loop(), outbox.changed)


def end(outbox: Outbox, one: Attempt) -> None:
    if one.written_log is not None:
        one.written_log.close()
    one.ended = True
    outbox.end(one, one.report(SUCCESS))


async def test_an_end_is_kept_until_it_is_acknowledged(outbox: Outbox) -> None:
    end(outbox, attempt(outbox))
    first = outbox.take(whole=True)
    assert not outbox.take(whole=True)
    outbox.put_back(first)
    second = outbox.take(whole=True)
    assert [report.token for report in second.reports()] == ["t1"]
    assert list(outbox.tokens) == ["t1"]
    outbox.acknowledge(second)
    assert outbox.is_empty


async def test_an_end_leaves_with_its_lines(outbox: Outbox) -> None:
    one = attempt(outbox)
    one.line("INFO", "hello")
    end(outbox, one)
    batch = outbox.take(whole=False)
    assert [line.log_message for line in batch.logs()] == ["hello"]
    assert len(batch.ended) == 1


async def test_an_end_waits_for_lines_that_are_under_way(outbox: Outbox, ready: asyncio.Event) -> None:
    one = attempt(outbox)
    one.line("INFO", "first")
    await ready.wait()
    talk = outbox.take(whole=True)
    assert [line.log_message for line in talk.logs()] == ["first"]
    one.line("INFO", "second")
    end(outbox, one)
    rest = outbox.take(whole=True)
    assert [line.log_message for line in rest.logs()] == ["second"]
    assert rest.ended == []
    outbox.acknowledge(rest)
    assert not outbox.take(whole=True)
    outbox.acknowledge(talk)
    assert len(outbox.take(whole=True).ended) == 1


async def test_more_lines_than_a_call_carries_leave_in_several_before_the_end(outbox: Outbox) -> None:
    one = attempt(outbox)
    count = LINES_PER_CALL * 2
    for number in range(count):
        one.note("INFO", str(number))  # at any rate
    end(outbox, one)
    seen: list[str] = []
    while not (batch := outbox.take(whole=False)).ended:
        assert batch.lines
        seen += [line.log_message for line in batch.logs()]
        outbox.acknowledge(batch)
    seen += [line.log_message for line in batch.logs()]
    assert seen == [str(number) for number in range(count)]


async def test_lines_of_a_running_attempt_do_not_ride_in_a_call_that_waits(
    outbox: Outbox, ready: asyncio.Event
) -> None:
    attempt(outbox).line("INFO", "hello")
    await ready.wait()
    assert not outbox.take(whole=False)
    assert outbox.take(whole=True)


async def test_only_the_newest_progress_is_told(outbox: Outbox, ready: asyncio.Event) -> None:
    one = attempt(outbox)
    for value in (0.1, 0.2, 0.3):
        one.note_progress(value, None)
    await ready.wait()
    batch = outbox.take(whole=True)
    assert [report.progress.value for report in batch.reports() if report.progress] == [0.3]
    one.note_progress(0.4, None)
    outbox.put_back(batch)
    ready.clear()
    await ready.wait()
    again = outbox.take(whole=True)
    assert [report.progress.value for report in again.reports() if report.progress] == [0.4]


async def test_one_report_that_the_node_refuses_does_not_hold_up_the_others(outbox: Outbox) -> None:
    for number in range(8):
        end(outbox, attempt(outbox, number))
    taken: list[str] = []
    replaced: list[str] = []
    for _ in range(50):
        batch = outbox.take(whole=True)
        if not batch:
            break
        reports = batch.reports()
        if any(report.token == "t5" and report.status == "success" for report in reports):
            outbox.refuse(batch, "bad")
            continue
        taken += [report.token for report in reports if report.status == "success"]
        replaced += [report.token for report in reports if report.status == "fatal_failure"]
        outbox.acknowledge(batch)
    assert sorted(taken) == [f"t{number}" for number in range(8) if number != 5]
    assert replaced == ["t5"]
    assert outbox.is_empty


async def test_a_job_that_is_sent_twice_runs_once() -> None:
    lone = LoneRunner(HANDLERS)
    lone.begin(assigned("add", {"a": 1, "b": 2}))
    lone.begin(assigned("add", {"a": 1, "b": 2}))
    assert len(lone.runner.attempts) == 1
    await lone.runner.wait_idle()
    lone.begin(assigned("add", {"a": 1, "b": 2}))
    assert lone.runner.attempts == {}
    await lone.ended()
    assert lone.outbox.is_empty
    await lone.close()


async def test_jobs_beyond_the_concurrency_wait_their_turn_and_are_given_back_when_leaving() -> None:
    lone = LoneRunner(HANDLERS, concurrency=1, stop_grace=3600)
    lone.begin(assigned("sleep", {}), assigned("add", {"a": 1, "b": 1}, number=2), assigned("add", {}, number=3))
    lone.runner.cancel("t3")
    report, _ = await lone.ended()
    assert (report.token, report.status, report.started) == ("t3", "cancelled", None)
    lone.runner.take_no_more()
    report, _ = await lone.ended()
    assert (report.token, report.status) == ("t2", "released")
    lone.runner.cancel("t1")
    report, _ = await lone.ended()
    assert (report.token, report.status) == ("t1", "cancelled")
    await lone.close()


async def test_a_process_handler_that_is_not_found_is_a_failure() -> None:
    from foliot.sdk.handler import Handler

    missing = Handler(name="missing", function=print, isolation="process", origin="no_such_module:function")
    lone = LoneRunner({"missing": missing})
    report, _ = await lone.run(assigned("missing", {}))
    await lone.close()
    assert report.status == "retriable_failure"
    assert "no_such_module" in error_of(report).message
