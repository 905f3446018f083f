"""What workers tell of their attempts (ends, progress, log lines) is fenced and taken once, whatever comes between."""

from datetime import UTC, datetime

import pytest

from foliot.domain import events as e
from foliot.domain.access import ADMIN
from foliot.domain.changes import Refusal
from foliot.domain.errors import Unavailable
from foliot.domain.states import transition
from foliot.service import group as group_module
from foliot.service import report as report_module
from foliot.wire import LOG_LINE_LIMIT, AssignedJob, LogBody, ProgressInfo
from tests.service.conftest import World, job_key, report
from tests.service.meddling import failing

AT_ONCE = {"initial": 0, "jitter": 0}


def line(job: AssignedJob, message: str, **fields: object) -> LogBody:
    given = {"token": job.token, "log_time": datetime(2026, 1, 1, tzinfo=UTC), "log_message": message} | fields
    return LogBody(job_id=job.job_id, attempt=job.attempt, **given)  # type: ignore[arg-type]


async def messages(world: World, job_id: str) -> list[str]:
    lines = await world.services.query.logs(job_id, after=None, level=None, limit=1000, caller=ADMIN)
    return [one.log_message for one in lines]


async def lose(world: World) -> None:
    """All workers are gone, and what they held is back in play."""
    world.clock.pass_seconds(31)
    await world.services.recover.missed()


async def test_log_lines_are_kept_in_order_with_what_can_not_be_kept_replaced(world: World) -> None:
    worker = await world.worker()
    job_id = await world.submit()
    job = await world.take_one(worker)
    long = "y" * (LOG_LINE_LIMIT + 1234)
    answer = await world.exchange(
        worker, logs=[line(job, "a\x00b"), line(job, long, log_level="ERROR"), line(job, "z")]
    )
    assert answer.rejected == []
    kept = await messages(world, job_id)
    assert kept == ["a�b", "y" * LOG_LINE_LIMIT + "… (1,234 characters cut)", "z"]


async def test_log_lines_of_an_outdated_attempt_are_refused_and_those_beside_them_kept(world: World) -> None:
    worker = await world.worker()
    job_id = await world.submit(retry=AT_ONCE)
    old = await world.take_one(worker)
    await world.report(worker, old, "released")
    new = await world.take_one(worker)
    forged = line(new, "forged", token="nonsense")
    answer = await world.exchange(worker, logs=[line(old, "old"), line(new, "new"), forged])
    assert [(one.job_id, one.attempt, one.reason) for one in answer.rejected] == [
        (job_id, 2, "the token is not one of ours"),
        (job_id, 1, report_module.OLD_TOKEN),
    ]
    assert await messages(world, job_id) == ["new"]
    assert len((await world.exchange(worker, logs=[forged])).rejected) == 1


async def test_log_lines_whose_write_was_repeated_are_kept_once(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(group_module, "FIRST_PAUSE", 0.001)
    worker = await world.worker()
    job_id = await world.submit()
    job = await world.take_one(worker)
    world.store.after("append_logs", failing(Unavailable("cut off", fate_unknown=True)))
    await world.exchange(worker, logs=[line(job, "once")])
    assert await messages(world, job_id) == ["once"]


async def test_log_lines_come_before_the_end_that_is_reported_with_them(world: World) -> None:
    worker = await world.worker()
    job_id = await world.submit()
    job = await world.take_one(worker)
    answer = await world.exchange(worker, logs=[line(job, "last words")], reports=[report(job, "success")])
    assert answer.rejected == []
    assert await messages(world, job_id) == ["last words"]


async def test_a_report_that_lost_against_a_cancel_is_decided_anew(world: World) -> None:
    worker = await world.worker()
    job_id = await world.submit()
    job = await world.take_one(worker)
    world.store.before("save", lambda: world.cancel(job_id))
    assert (await world.report(worker, job, "retriable_failure", error="flaky")).rejected == []
    assert await world.status(job_id) == "cancelled"


@pytest.mark.parametrize("status", ["success", "retriable_failure", "cancelled", "processing"])
async def test_a_report_that_lost_against_the_end_of_its_lease_is_refused(world: World, status: str) -> None:
    worker = await world.worker()
    job_id = await world.submit(retry=AT_ONCE)
    job = await world.take_one(worker)
    world.store.before("save", lambda: lose(world))
    answer = await world.report(worker, job, status)
    assert [one.reason for one in answer.rejected] == ["the attempt ended as lost before"]
    assert await world.status(job_id) == "queued"


async def test_a_report_is_refused_once_the_attempt_is_another(world: World) -> None:
    worker = await world.worker()
    job_id = await world.submit(retry=AT_ONCE)
    old = await world.take_one(worker)
    await lose(world)
    other = await world.worker()
    new = await world.take_one(other)
    for status in ("success", "timed_out", "cancelled", "processing"):
        assert len((await world.report(other, old, status)).rejected) == 1
    assert await world.status(job_id) == "running"
    assert (await world.report(other, new, "success")).rejected == []


@pytest.mark.parametrize(
    "status", ["success", "retriable_failure", "fatal_failure", "timed_out", "released", "cancelled"]
)
async def test_a_report_sent_again_is_taken_as_the_first_was(world: World, status: str) -> None:
    worker = await world.worker()
    await world.submit(retry={"initial": "1h"})
    job = await world.take_one(worker)
    reports = [report(job, "processing", progress=ProgressInfo(value=1.0)), report(job, status)]
    for _ in range(2):
        assert (await world.exchange(worker, reports=reports)).rejected == []


async def test_a_result_that_was_too_large_is_too_large_again(world: World) -> None:
    worker = await world.worker()
    job_id = await world.submit()
    job = await world.take_one(worker)
    for _ in range(2):
        assert (await world.report(worker, job, "success", result="é" * (600 * 1024))).rejected == []
    assert (await world.services.query.job(job_id, ADMIN)).reason == "result_too_large"


async def test_a_report_whose_write_was_repeated_is_taken_once(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(group_module, "FIRST_PAUSE", 0.001)
    worker = await world.worker()
    job_id = await world.submit()
    job = await world.take_one(worker)
    world.store.after("save", failing(Unavailable("cut off", fate_unknown=True)))
    assert (await world.report(worker, job, "success")).rejected == []
    assert len(await world.services.query.executions(job_id, ADMIN)) == 1


async def test_a_report_that_loses_again_and_again_is_not_given_up(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(report_module, "ROUNDS", 2)
    monkeypatch.setattr(group_module, "FIRST_PAUSE", 0.001)
    worker = await world.worker()
    job_id = await world.submit()
    job = await world.take_one(worker)

    async def touch() -> None:
        """Another change of the lease: its version goes on."""
        record = await world.record(job_id)
        change = transition(record.row, e.Cancel(), world.clock.now(), retry=record.job.retry)
        assert not isinstance(change, Refusal)
        assert (await world.store.save([change], world.clock.now())).done == {job_key(job_id)}

    world.store.before("save", *[touch] * 3)
    assert (await world.report(worker, job, "retriable_failure")).rejected == []
    assert await world.status(job_id) == "cancelled"


async def test_when_an_attempt_began_is_what_its_worker_says(world: World) -> None:
    worker = await world.worker()
    began = datetime(2026, 1, 1, 12, tzinfo=UTC)
    job_id = await world.submit()
    await world.report(worker, await world.take_one(worker), "success", started=began)
    assert (await world.services.query.job(job_id, ADMIN)).start_time == began
