"""How the engine's records look to the outside."""

from collections.abc import Sequence
from typing import Literal

import msgspec

from foliot.domain.duration import show_duration
from foliot.domain.errors import Unreadable
from foliot.domain.graph import Edge, On
from foliot.domain.ids import JOB, LOG, WORKER, show
from foliot.domain.job import Attempt, Ended, Job, Lease, Ready, Record, Waiting
from foliot.domain.needs import read_needs, show_amount
from foliot.domain.priority import show_priority
from foliot.domain.retry import Retry
from foliot.domain.secret_fields import mask
from foliot.domain.status import status_of
from foliot.service.alert_telling import read_notify, show_notify
from foliot.service.sealing import Sealer
from foliot.store.base import LogLine
from foliot.wire import (
    ConcurrencyInfo,
    DependsOn,
    ErrorInfo,
    Execution,
    JobInfo,
    LogInfo,
    ProgressInfo,
    RetryInfo,
    to_time,
)

_ON: dict[On, Literal["success", "failure", "any"]] = {On.SUCCESS: "success", On.FAILURE: "failure", On.ANY: "any"}
_LEVELS = {10: "DEBUG", 20: "INFO", 30: "WARNING", 40: "ERROR"}
_decode_error = msgspec.json.Decoder(ErrorInfo | str).decode
_decode_progress = msgspec.json.Decoder(ProgressInfo).decode


def shown_id(job: Job) -> str:
    """A job's id as clients know it: their own, or ours."""
    return job.name or show(JOB, job.id)


def show_job(
    record: Record,
    sealer: Sealer,
    *,
    reason: str | None = None,
    whole: bool = True,
    concurrency: ConcurrencyInfo | None = None,
    depends_on: Sequence[DependsOn] = (),
) -> JobInfo:
    """A job as read; `reason` is why it does not run yet. A list item is not `whole`: it has no payload, no error.
    `Unreadable` where the payload does not open."""
    job, row = record.job, record.row
    last = row.last if isinstance(row, Ended) and row.last else record.last
    lease = row if isinstance(row, Lease) else None
    needs = read_needs(job.lane.needs)
    started = (lease.started or lease.claimed) if lease else (last.started or last.claimed) if last else None
    info = JobInfo(
        job_id=shown_id(job),
        job_type=job.lane.job_type,
        status=status_of(row),
        reason=row.reason if isinstance(row, Ended) else reason,
        queue=job.lane.queue,
        priority=show_priority(job.priority),
        schedule_time=to_time(job.due),
        start_time=None if started is None else to_time(started),
        end_time=to_time(row.ended) if isinstance(row, Ended) else None,
        created_time=to_time(job.created),
        last_updated=to_time(lease.claimed if lease else row.ended if isinstance(row, Ended) else row.since),
        attempt=row.attempt,
        retries=max(0, row.counted - 1),
        worker_id=show(WORKER, lease.worker) if lease else show(WORKER, last.worker) if last else None,
        cancel_requested=lease is not None and lease.cancel_asked is not None,
        progress=_show_progress(lease, sealer) if lease and lease.progress else None,
        retry=show_retry(job.retry),
        timeout=show_duration(job.timeout),
        deadline=None if job.deadline is None else to_time(job.deadline),
        resources={name: show_amount(amount) for name, amount in needs.amounts},
        requires=dict(needs.labels),
        concurrency=concurrency,
        unique_key=job.unique_key,
        fair_key=job.fair_key,
        secret_fields=list(job.secret_fields),
        depends_on=list(depends_on),
        tags=list(job.tags),
        owner=job.owner,
        schedule_id=job.schedule_id,
        notify=None if job.notify is None else show_notify(read_notify(job.notify)),
        version=row.version,
    )
    if not whole:
        return info
    payload = mask(sealer.payload_of(job), job.secret_fields)
    return msgspec.structs.replace(
        info, payload=msgspec.Raw(payload.encode()), last_error=show_error(last, sealer) if last else None
    )


def waiting_reason(record: Record, *, offered: bool, held: bool) -> str | None:
    """Why a live job does not run yet, in one word."""
    match record.row:
        case Waiting(hold=True):
            return "hold"
        case Waiting(parents=parents, for_key=for_key):
            return "dependency" if parents else "limit" if for_key else "time"
        case Ready() if held:
            return "queue_hold"
        case Ready() if not offered:
            return "no_worker"
    return None


def show_on(edge: Edge) -> Literal["success", "failure", "any"]:
    """Which end of its parent an edge asks for."""
    return _ON[edge.on]


def show_error(attempt: Attempt, sealer: Sealer) -> ErrorInfo | str | None:
    """Why an attempt failed. One that does not open says so in its place."""
    if attempt.error is None:
        return None
    try:
        told: ErrorInfo | str = _decode_error(sealer.open(attempt.error, attempt.id, "error"))
    except Unreadable as error:
        return ErrorInfo(code=error.code, message=error.detail)
    return told


def _show_progress(lease: Lease, sealer: Sealer) -> ProgressInfo:
    try:
        return _decode_progress(sealer.open(lease.progress or "{}", lease.id, "progress"))
    except Unreadable as error:
        return ProgressInfo(note=error.detail)


def show_retry(retry: Retry) -> RetryInfo:
    return RetryInfo(
        max_attempts=retry.max_attempts,
        backoff=retry.backoff,
        initial=show_duration(retry.initial),
        max=show_duration(retry.max),
        jitter=retry.jitter,
        delays=[show_duration(delay) for delay in retry.delays],
        on_lost=retry.on_lost,
        max_lost=retry.max_lost,
    )


def show_attempt(attempt: Attempt, sealer: Sealer) -> Execution:
    return Execution(
        attempt=attempt.attempt,
        status=attempt.status.name.lower(),
        worker_id=show(WORKER, attempt.worker),
        due_time=to_time(attempt.due),
        admitted_time=None if attempt.admitted is None else to_time(attempt.admitted),
        claimed_time=to_time(attempt.claimed),
        start_time=None if attempt.started is None else to_time(attempt.started),
        end_time=None if attempt.ended is None else to_time(attempt.ended),
        error=show_error(attempt, sealer),
        exit_code=attempt.exit_code,
    )


def show_log(line: LogLine, job_id: str) -> LogInfo:
    return LogInfo(
        log_id=show(LOG, line.log_id),
        job_id=job_id,
        attempt=line.attempt,
        log_time=to_time(line.time),
        log_level=_LEVELS[line.level],
        log_message=line.message,
    )
