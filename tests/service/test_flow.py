"""The way of a job through the services: in, out to a worker, back, and what is read of it."""

import asyncio
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest
from msgspec import Raw

from foliot.domain.access import ADMIN, Caller
from foliot.domain.errors import BadInput, Conflict, Gone, NotFound, Stale, TooLarge
from foliot.wire import (
    BatchBody,
    ErrorInfo,
    ExchangeBody,
    FilterBody,
    ManyBody,
    ManyChanged,
    ProgressInfo,
    RetryJobBody,
    SubmitBody,
    UpdateBody,
)
from tests.service.conftest import World, report


async def test_a_job_goes_in_runs_and_is_read_back(world: World) -> None:
    job_id = await world.submit(payload={"a": 1}, job_id="invoice-7", tags=["x"], owner="ada", priority="high")
    worker = await world.worker()
    job = await world.take_one(worker)
    assert (job.job_id, job.job_type, job.attempt, bytes(job.payload)) == ("invoice-7", "echo", 1, b'{"a":1}')
    assert job.idempotency_key.startswith("j_")
    await world.report(worker, job, "success", result={"b": 2})
    info = await world.services.query.job(job_id, ADMIN)
    assert (info.status, info.attempt, info.retries, info.worker_id, info.reason) == ("completed", 1, 0, worker, None)
    assert (info.priority, info.owner, info.tags) == ("high", "ada", ["x"])
    assert info.end_time is not None
    assert info.start_time is not None
    assert await world.services.query.result(job_id, ADMIN) == b'{"b":2}'
    (execution,) = await world.services.query.executions(job_id, ADMIN)
    assert (execution.attempt, execution.status, execution.worker_id) == (1, "success", worker)


async def test_a_batch_is_kept_in_order_and_bad_fields_are_named_with_their_place(world: World) -> None:
    body = BatchBody(jobs=[SubmitBody(job_type="a"), SubmitBody(job_type="b", queue="q"), SubmitBody(job_type="a")])
    answer = await world.services.submit.batch(body, b"", ADMIN)
    assert [(await world.services.query.job(i, ADMIN)).job_type for i in answer.job_ids] == ["a", "b", "a"]
    with pytest.raises(BadInput) as caught:
        await world.services.submit.batch(
            BatchBody(jobs=[SubmitBody(job_type="a"), SubmitBody(job_type="a", priority=11)]), b"", ADMIN
        )
    assert caught.value.errors[0].field == "jobs[1].priority"


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"priority": "urgent"}, "priority"),
        ({"job_id": "j_mine"}, "job_id"),
        ({"schedule_time": "2030-01-01T00:00:00Z", "delay": 5}, "delay"),
        ({"timeout": 0}, "timeout"),
        ({"timeout": "soon"}, "timeout"),
        ({"retry": {"delays": ["1s", "x"]}}, "retry.delays[1]"),
        ({"retry": {"initial": -1}}, "retry.initial"),
    ],
)
async def test_bad_fields_are_refused_by_name(world: World, fields: dict[str, Any], field: str) -> None:
    with pytest.raises(BadInput) as caught:
        await world.submit(**fields)
    assert caught.value.errors[0].field == field


async def test_a_payload_that_is_too_large_or_no_text_is_refused(world: World) -> None:
    with pytest.raises(TooLarge):
        await world.submit(payload="x" * 300_000)
    with pytest.raises(BadInput, match="UTF-8"):
        await world.services.submit.one(SubmitBody(job_type="a", payload=Raw(b'"\xff"')), b"", ADMIN)


async def test_the_same_submit_again_answers_as_the_first_and_another_body_clashes(world: World) -> None:
    assert await world.submit(job_id="a", payload=1) == await world.submit(job_id="a", payload=1)
    with pytest.raises(Conflict, match="'a' is taken"):
        await world.submit(job_id="a", payload=2)
    body = SubmitBody(job_type="echo")
    first = await world.services.submit.one(body, b"1", ADMIN, "key")
    assert await world.services.submit.one(body, b"1", ADMIN, "key") == first
    with pytest.raises(Conflict, match="Idempotency-Key"):
        await world.services.submit.one(body, b"2", ADMIN, "key")


async def test_null_fields_mean_the_default(world: World) -> None:
    fields = ("job_id", "schedule_time", "delay", "priority", "queue", "retry", "timeout", "deadline", "tags", "owner")
    info = await world.services.query.job(await world.submit("echo", **dict.fromkeys(fields)), ADMIN)
    assert (info.queue, info.priority, info.timeout, info.tags, info.owner) == ("default", "medium", 3600, [], "admin")
    assert info.deadline is None


async def test_a_job_waits_for_its_time_and_one_of_the_past_is_due_now(world: World) -> None:
    later = await world.submit(schedule_time="2099-01-01T00:00:00Z")
    past = await world.submit(schedule_time="2020-01-01T01:00:00+01:00")
    info = await world.services.query.job(later, ADMIN)
    assert (info.status, info.schedule_time) == ("scheduled", datetime(2099, 1, 1, tzinfo=UTC))
    info = await world.services.query.job(past, ADMIN)
    assert (info.status, info.schedule_time) == ("queued", datetime(2020, 1, 1, tzinfo=UTC))


async def test_why_it_does_not_run_yet_is_one_word(world: World) -> None:
    later, held, queued = await world.submit(delay="1h"), await world.submit(delay="1h"), await world.submit()
    await world.services.control.pause(held, if_match=None, caller=ADMIN)

    async def reason(job_id: str) -> str | None:
        return (await world.services.query.job(job_id, ADMIN)).reason

    assert [await reason(i) for i in (later, held, queued)] == ["time", "hold", "no_worker"]
    assert await reason(queued) == "no_worker"
    await world.worker()
    world.clock.pass_seconds(0.2)
    assert await reason(queued) is None
    assert await reason(queued) is None


async def test_other_namespaces_see_nothing(world: World) -> None:
    job_id = await world.submit(job_id="mine")
    stranger = Caller(name="eve", namespace="other")
    for look in (
        world.services.query.job(job_id, stranger),
        world.services.control.cancel(job_id, if_match=None, caller=stranger),
        world.services.query.job("j_0000000000000001", ADMIN),
        world.services.query.result(job_id, ADMIN),
    ):
        with pytest.raises(NotFound):
            await look
    worker = await world.worker()
    world.clock.pass_seconds(5)
    with pytest.raises(Gone):
        await world.services.workers.exchange(worker, ExchangeBody(), stranger)


async def test_failures_are_retried_then_final_with_the_handlers_code(world: World) -> None:
    job_id = await world.submit(retry={"max_attempts": 2, "initial": 0, "jitter": 0})
    worker = await world.worker()
    error = ErrorInfo(type="ValueError", message="no", code="bad\x00news")
    await world.report(worker, await world.take_one(worker), "retriable_failure", error="flaky")
    assert await world.status(job_id) == "queued"
    info = await world.services.query.job(job_id, ADMIN)
    assert (info.last_error, info.attempt, info.worker_id) == ("flaky", 1, worker)
    await world.report(worker, await world.take_one(worker), "retriable_failure", error=error, exit_code=3)
    info = await world.services.query.job(job_id, ADMIN)
    assert (info.status, info.reason, info.retries, info.last_error) == ("failed", "bad_news", 1, error)
    assert [e.exit_code for e in await world.services.query.executions(job_id, ADMIN)] == [None, 3]


async def test_a_retry_waits_its_backoff_or_what_the_handler_asks(world: World) -> None:
    worker = await world.worker()
    job_id = await world.submit(retry={"initial": "10s", "jitter": 0})
    await world.report(worker, await world.take_one(worker), "retriable_failure", retry_after="40s")
    assert (await world.record(job_id)).row.due == world.clock.now() + 40_000_000
    assert await world.status(job_id) == "retrying"
    other = await world.submit(retry={"initial": "10s", "jitter": 0})
    await world.report(worker, await world.take_one(worker), "timed_out")
    assert (await world.record(other)).row.due == world.clock.now() + 10_000_000


async def test_fatal_failures_releases_and_progress(world: World) -> None:
    worker = await world.worker()
    job_id = await world.submit()
    job = await world.take_one(worker)
    await world.report(worker, job, "processing", progress=ProgressInfo(value=0.5, note="half"))
    info = await world.services.query.job(job_id, ADMIN)
    assert (info.status, info.progress) == ("running", ProgressInfo(value=0.5, note="half"))
    await world.report(worker, job, "released")
    assert (await world.services.query.job(job_id, ADMIN)).retries == 0
    job = await world.take_one(worker)
    assert job.attempt == 2
    await world.report(worker, job, "fatal_failure", error=ErrorInfo(message="broken"))
    assert await world.status(job_id) == "failed"


async def test_a_result_that_is_too_large_fails_the_job_for_good(world: World) -> None:
    worker = await world.worker()
    job_id = await world.submit()
    await world.report(worker, await world.take_one(worker), "success", result="x" * (1024 * 1024))
    info = await world.services.query.job(job_id, ADMIN)
    assert (info.status, info.reason) == ("failed", "result_too_large")


async def test_reports_are_fenced_and_a_repeated_one_is_taken_as_the_first(world: World) -> None:
    worker = await world.worker()
    job_id = await world.submit(retry={"initial": 0, "jitter": 0})
    job = await world.take_one(worker)
    assert not (await world.report(worker, job, "success")).rejected
    assert not (await world.report(worker, job, "success")).rejected
    (late,) = (await world.report(worker, job, "fatal_failure")).rejected
    assert (late.job_id, late.reason) == (job_id, "the attempt ended as success before")
    assert (await world.report(worker, job, "retriable_failure")).rejected
    forged = msgspec.structs.replace(job, token="nonsense")
    assert "not one of ours" in (await world.report(worker, forged, "success")).rejected[0].reason
    unknown = msgspec.structs.replace(job, token=f"{1:016x}{2:016x}")
    assert "not that of the current attempt" in (await world.report(worker, unknown, "success")).rejected[0].reason
    assert (await world.report(worker, unknown, "retriable_failure")).rejected
    assert await world.status(job_id) == "completed"


async def test_several_reports_of_one_job_in_one_call_are_taken_in_order(world: World) -> None:
    worker = await world.worker()
    job_id = await world.submit()
    job = await world.take_one(worker)
    answer = await world.exchange(
        worker, reports=[report(job, "processing", progress=ProgressInfo(value=1.0)), report(job, "success")]
    )
    assert not answer.rejected
    assert await world.status(job_id) == "completed"


async def test_reports_that_are_wrong_in_themselves_are_refused_before_any_is_taken(world: World) -> None:
    worker = await world.worker()
    job_id = await world.submit()
    job = await world.take_one(worker)
    with pytest.raises(BadInput, match="retry_after"):
        await world.exchange(worker, reports=[report(job, "retriable_failure", retry_after="soon")])
    broken = msgspec.structs.replace(report(job, "success"), result=Raw(b'"\xff"'))
    with pytest.raises(BadInput, match="UTF-8"):
        await world.exchange(worker, reports=[broken])
    assert await world.status(job_id) == "running"


async def test_cancel_of_a_running_job_is_told_to_its_worker_once(world: World) -> None:
    worker = await world.worker()
    job_id = await world.submit(job_id="named")
    job = await world.take_one(worker)
    waiting = asyncio.create_task(world.exchange(worker, wait=10))
    await asyncio.sleep(0)
    answer = await world.services.control.cancel(job_id, if_match=None, caller=ADMIN)
    assert answer.status == "cancelling"
    assert [(s.job_id, s.token) for s in (await waiting).stop] == [("named", job.token)]
    assert (await world.exchange(worker)).stop == []
    assert (await world.services.control.cancel(job_id, if_match=None, caller=ADMIN)).status == "cancelling"
    assert (await world.services.query.job(job_id, ADMIN)).cancel_requested
    await world.report(worker, job, "cancelled")
    assert await world.status(job_id) == "cancelled"
    assert (await world.services.control.cancel(job_id, if_match=None, caller=ADMIN)).status == "cancelled"


async def test_a_stop_that_nobody_asked_for_counts_as_a_failure(world: World) -> None:
    worker = await world.worker()
    job_id = await world.submit(retry={"max_attempts": 1})
    await world.report(worker, await world.take_one(worker), "cancelled")
    assert await world.status(job_id) == "failed"


async def test_waiting_jobs_are_cancelled_paused_resumed_and_run_early(world: World) -> None:
    control = world.services.control
    first, second = await world.submit(delay="1h"), await world.submit()
    assert (await control.pause(first, if_match=None, caller=ADMIN)).status == "paused"
    assert (await control.pause(first, if_match=None, caller=ADMIN)).status == "paused"
    assert (await control.resume(first, if_match=None, caller=ADMIN)).status == "scheduled"
    assert (await control.resume(first, if_match=None, caller=ADMIN)).status == "scheduled"
    assert (await control.run(first, if_match=None, caller=ADMIN)).status == "queued"
    assert (await control.cancel(second, if_match=None, caller=ADMIN)).status == "cancelled"
    for wrong in (control.pause, control.resume, control.run):
        with pytest.raises(Conflict, match="cancelled"):
            await wrong(second, if_match=None, caller=ADMIN)


async def test_a_failed_job_is_retried_with_another_payload_and_a_completed_one_never(world: World) -> None:
    worker = await world.worker()
    job_id = await world.submit(payload={"a": 1})
    await world.report(worker, await world.take_one(worker), "fatal_failure")
    answer = await world.services.control.retry(
        job_id, RetryJobBody(payload=Raw(b'{"a":2}')), if_match=None, caller=ADMIN
    )
    assert answer.status == "queued"
    job = await world.take_one(worker)
    assert (bytes(job.payload), job.attempt) == (b'{"a":2}', 2)
    await world.report(worker, job, "success")
    with pytest.raises(Conflict, match="completed"):
        await world.services.control.retry(job_id, RetryJobBody(), if_match=None, caller=ADMIN)
    with pytest.raises(Conflict, match="completed"):
        await world.services.control.cancel(job_id, if_match=None, caller=ADMIN)


async def test_update_changes_what_is_given_and_null_sets_back(world: World) -> None:
    control = world.services.control
    job_id = await world.submit(
        payload={"a": 1}, priority="low", queue="q", delay="1h", timeout=5, retry={"max_attempts": 9}, tags=["t"],
        owner="ada", deadline="2099-01-01T00:00:00Z",
    )  # fmt: skip
    version = (await world.services.query.job(job_id, ADMIN)).version
    changes = {
        "priority": "high", "payload": {"a": 2}, "delay": "2h", "queue": "r", "job_type": "other", "timeout": "7s",
        "retry": {"max_attempts": 2}, "tags": ["u"], "owner": "bob", "deadline": "2098-01-01T00:00:00Z",
    }  # fmt: skip
    await control.update(job_id, _update(changes), if_match=version, caller=ADMIN)
    info = await world.services.query.job(job_id, ADMIN)
    assert (info.priority, info.queue, info.job_type, info.timeout, info.tags, info.owner) == (
        "high", "r", "other", 7, ["u"], "bob",
    )  # fmt: skip
    assert (bytes(info.payload), info.retry.max_attempts) == (b'{"a":2}', 2)  # type: ignore[arg-type, union-attr]
    assert info.status == "scheduled"
    with pytest.raises(Stale):
        await control.update(job_id, UpdateBody(priority=1), if_match=version, caller=ADMIN)
    nulls = dict.fromkeys(("priority", "queue", "timeout", "retry", "tags", "owner", "deadline", "payload"))
    await control.update(job_id, _update(nulls), if_match=None, caller=ADMIN)
    info = await world.services.query.job(job_id, ADMIN)
    assert (info.priority, info.queue, info.timeout, info.tags, info.owner, info.deadline) == (
        "medium", "default", 3600, [], "admin", None,
    )  # fmt: skip
    assert bytes(info.payload) == b"{}"  # type: ignore[arg-type]
    await control.update(job_id, UpdateBody(), if_match=None, caller=ADMIN)
    assert await world.status(job_id) == "scheduled"
    await control.update(job_id, UpdateBody(schedule_time=None), if_match=None, caller=ADMIN)
    assert await world.status(job_id) == "queued"


def _update(fields: Mapping[str, object]) -> UpdateBody:
    return msgspec.json.decode(msgspec.json.encode(fields), type=UpdateBody)


async def test_an_update_of_a_running_job_is_refused(world: World) -> None:
    worker = await world.worker()
    job_id = await world.submit()
    await world.take_one(worker)
    with pytest.raises(Conflict, match="running"):
        await world.services.control.update(job_id, UpdateBody(priority=1), if_match=None, caller=ADMIN)


async def test_many_jobs_are_changed_by_filter(world: World) -> None:
    control = world.services.control
    ids = [await world.submit("bulk") for _ in range(3)]
    other = await world.submit("other")
    all_bulk = FilterBody(job_type="bulk")
    assert await control.many("pause", ManyBody(filter=all_bulk, dry_run=True), ADMIN) == _counts(3, 0)
    assert await control.many("pause", ManyBody(filter=all_bulk), ADMIN) == _counts(3, 3)
    assert await control.many("pause", ManyBody(filter=all_bulk), ADMIN) == _counts(3, 0)
    assert await control.many("resume", ManyBody(filter=FilterBody(status="paused")), ADMIN) == _counts(3, 3)
    assert await control.many("cancel", ManyBody(filter=FilterBody(status=["waiting"])), ADMIN) == _counts(4, 4)
    assert await control.many(
        "retry", ManyBody(filter=FilterBody(job_type="bulk", status="cancelled")), ADMIN
    ) == _counts(3, 3)
    assert [await world.status(i) for i in (*ids, other)] == ["queued"] * 3 + ["cancelled"]
    assert await control.many("retry", ManyBody(filter=FilterBody(job_type="none")), ADMIN) == _counts(0, 0)


def _counts(matched: int, changed: int) -> ManyChanged:
    return ManyChanged(matched=matched, changed=changed)


async def test_lists_are_paged_and_filtered(world: World) -> None:
    ids = [await world.submit(tags=["even"] if n % 2 == 0 else []) for n in range(5)]
    query = world.services.query
    first, cursor = await query.jobs(FilterBody(), limit=2, cursor=None, caller=ADMIN)
    assert [info.job_id for info in first] == ids[:2:-1]
    assert first[0].payload is msgspec.UNSET
    second, _ = await query.jobs(FilterBody(), limit=2, cursor=cursor, caller=ADMIN)
    assert [info.job_id for info in second] == [ids[2], ids[1]]
    even, _ = await query.jobs(
        FilterBody(tag="even", start_time=first[0].created_time), limit=9, cursor=None, caller=ADMIN
    )
    assert [info.job_id for info in even] == ids[::-2]
    none, _ = await query.jobs(
        FilterBody(tag=["even"], end_time=first[0].created_time), limit=9, cursor=None, caller=ADMIN
    )
    assert none == []
    with pytest.raises(BadInput, match="cursor"):
        await query.jobs(FilterBody(), limit=2, cursor="x", caller=ADMIN)
    with pytest.raises(BadInput, match="no status"):
        await query.jobs(FilterBody(status="done"), limit=2, cursor=None, caller=ADMIN)
