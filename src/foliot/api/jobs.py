"""The calls on jobs."""

from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Protocol, TypeVar

from msgspec import Raw

from foliot.api.call import Answer, Call, EventStream
from foliot.api.headers import etag, if_match, request_key, wants_events
from foliot.api.paging import paged
from foliot.api.query import JobsQuery, LogsQuery, given, next_link
from foliot.domain.access import Caller
from foliot.domain.errors import BadInput
from foliot.telemetry import traceparent, tracing
from foliot.wire import (
    BASE_PATH,
    BatchBody,
    Body,
    Changed,
    LogInfo,
    ManyBody,
    RetryJobBody,
    RetryManyBody,
    SubmitBody,
    UpdateBody,
    encode,
)

Kept = TypeVar("Kept")

KEEP_ALIVE = b": \n\n"


class NoFields(Body, frozen=True, kw_only=True):
    """Nothing, or `{}`."""


async def submit_job(call: Call[SubmitBody, None]) -> Answer:
    key = request_key(call.headers)
    submitted = await _traced(
        call, 1, lambda trace: call.services.submit.one(call.body, call.raw, call.caller, key, trace)
    )
    return Answer(
        submitted,
        status=200 if submitted.duplicate else 201,
        headers=((b"location", f"{BASE_PATH}/jobs/{submitted.job_id}".encode()),),
    )


async def submit_batch(call: Call[BatchBody, None]) -> Answer:
    key = request_key(call.headers)
    return Answer(
        await _traced(
            call,
            len(call.body.jobs),
            lambda trace: call.services.submit.batch(call.body, call.raw, call.caller, key, trace),
        )
    )


async def read_job(call: Call[None, None]) -> Answer:
    job = await call.services.query.job(call.job_id, call.caller)
    return Answer(job, headers=(etag(job.version),))


async def list_jobs(call: Call[None, JobsQuery]) -> Answer:
    query = call.query
    jobs, cursor = await call.services.query.jobs(
        query.filter(), limit=query.limit, cursor=given(query.cursor), caller=call.caller
    )
    return paged(call, jobs, cursor)


async def update_job(call: Call[UpdateBody, None]) -> Answer:
    return Answer(
        await call.services.control.update(call.job_id, call.body, if_match=if_match(call.headers), caller=call.caller)
    )


async def cancel_job(call: Call[None, None]) -> Answer:
    changed = await _change(call, call.services.control.cancel)
    return Answer(changed, status=202 if changed.status == "cancelling" else 200)


async def pause_job(call: Call[NoFields, None]) -> Answer:
    return Answer(await _change(call, call.services.control.pause))


async def resume_job(call: Call[NoFields, None]) -> Answer:
    return Answer(await _change(call, call.services.control.resume))


async def run_job(call: Call[NoFields, None]) -> Answer:
    return Answer(await _change(call, call.services.control.run))


async def retry_job(call: Call[RetryJobBody, None]) -> Answer:
    return Answer(
        await call.services.control.retry(call.job_id, call.body, if_match=if_match(call.headers), caller=call.caller)
    )


async def cancel_jobs(call: Call[ManyBody, None]) -> Answer:
    return Answer(await call.services.control.many("cancel", call.body, call.caller))


async def pause_jobs(call: Call[ManyBody, None]) -> Answer:
    return Answer(await call.services.control.many("pause", call.body, call.caller))


async def resume_jobs(call: Call[ManyBody, None]) -> Answer:
    return Answer(await call.services.control.many("resume", call.body, call.caller))


async def retry_jobs(call: Call[RetryManyBody, None]) -> Answer:
    return Answer(await call.services.control.many("retry", call.body, call.caller))


async def read_graph(call: Call[None, None]) -> Answer:
    return Answer(await call.services.graphs.graph(call.job_id, call.caller))


async def read_why(call: Call[None, None]) -> Answer:
    return Answer(await call.services.explain.why(call.job_id, call.caller))


async def list_executions(call: Call[None, None]) -> Answer:
    return Answer(await call.services.query.executions(call.job_id, call.caller))


async def read_logs(call: Call[None, LogsQuery]) -> Answer | EventStream:
    """Lines as an array, or as events until the job has ended. The array's next page begins after its last line."""
    query, follow = call.query, wants_events(call.headers)
    after = _last_event(call) if follow else given(query.after)
    level = given(query.level)
    lines = await call.services.query.logs(
        call.job_id, after=after, level=level, limit=1 if follow else query.limit, caller=call.caller
    )
    if follow:  # the read above has told whether there is anything to follow, while a status can still say so
        return EventStream(
            _events(call.services.query.follow_logs(call.job_id, after=after, level=level, caller=call.caller))
        )
    more = len(lines) == query.limit
    return Answer(lines, headers=(next_link(call.path, call.query_string, after=lines[-1].log_id),) if more else ())


async def read_result(call: Call[None, None]) -> Answer:
    return Answer(Raw(await call.services.query.result(call.job_id, call.caller)))


async def _traced(
    call: Call[SubmitBody, None] | Call[BatchBody, None], jobs: int, work: Callable[[str | None], Awaitable[Kept]]
) -> Kept:
    """What `work` does with the trace that the jobs are to be kept with: the caller's; or, where this node traces, a
    span of its own within the caller's."""
    trace = traceparent.parse(call.headers.get(b"traceparent"))
    tracer = tracing.active()
    if tracer is None:
        return await work(trace)
    with tracer.submit(trace, route=call.path, jobs=jobs) as own:
        return await work(own)


class _Change(Protocol):
    def __call__(self, job_id: str, *, if_match: int | None, caller: Caller) -> Awaitable[Changed]: ...


async def _change(call: Call[NoFields, None] | Call[None, None], change: _Change) -> Changed:
    return await change(call.job_id, if_match=if_match(call.headers), caller=call.caller)


def _last_event(call: Call[None, LogsQuery]) -> str | None:
    """Where to go on: what the client saw last, else where it asked to begin."""
    last = call.headers.get(b"last-event-id")
    if last is None:
        return given(call.query.after)
    if not last.isascii():
        raise BadInput.at("Last-Event-ID", "is no log_id; take it from an earlier event")
    return last.decode("ascii")


async def _events(batches: AsyncIterator[list[LogInfo]]) -> AsyncIterator[bytes]:
    async for lines in batches:
        yield b"".join(b"id: %s\ndata: %s\n\n" % (line.log_id.encode(), encode(line)) for line in lines) or KEEP_ALIVE
