"""Between the database's rows and the domain's values. Columns go by position: the queries name them in this order."""

from collections.abc import Mapping, Sequence
from typing import Any, Final, assert_never

import msgspec

from foliot.domain.changes import Place
from foliot.domain.job import Attempt, AttemptStatus, Ended, Job, Lane, Lease, Ready, Record, Row, State, Waiting
from foliot.domain.queue import DEFAULT_RULES, Queue, QueueRules
from foliot.domain.rank import rank
from foliot.domain.retry import DEFAULT as DEFAULT_RETRY
from foliot.domain.retry import Retry
from foliot.domain.worker import Worker
from foliot.store.base import NewJob

Values = Sequence[Any]

JOB_WIDTH: Final = 19
ROW_WIDTH: Final = 32

JOB_COLUMNS: Final = (
    "id", "lane_id", "priority", "name", "due", "created", "payload", "retry", "timeout", "deadline", "tags", "owner",
    "schedule_id", "limit_key", "unique_key", "fair_key", "secret_fields", "notify",
    "trace",
)  # fmt: skip
READY_COLUMNS: Final = (
    "id", "due", "rank", "deadline", "since", "lane_id", "attempt", "counted", "tries_left", "lost", "version",
    "priority", "limit_id", "ties",
)  # fmt: skip
WAITING_COLUMNS: Final = (*READY_COLUMNS, "parents", "hold", "for_key")

_encode_retry = msgspec.json.Encoder().encode
_decode_retry = msgspec.json.Decoder(Retry).decode
_decode_rules = msgspec.json.Decoder(QueueRules).decode
_decode_resources = msgspec.json.Decoder(dict[str, float]).decode
_decode_labels = msgspec.json.Decoder(dict[str, str]).decode


def retry_text(retry: Retry) -> str | None:
    """A policy as it is kept; None stands for the default one, which most jobs have."""
    return None if retry == DEFAULT_RETRY else _encode_retry(retry).decode()


def array_text(words: Sequence[str]) -> str | None:
    """Words as PostgreSQL writes an array, since `unnest` would flatten an array of arrays; None for none."""
    if not words:
        return None
    return "{" + ",".join('"' + word.replace("\\", "\\\\").replace('"', '\\"') + '"' for word in words) + "}"


def new_job_values(new: NewJob) -> Values:
    """A new job's columns, as `insert_jobs` takes them: the wide row, then what its first narrow row adds."""
    job, row = new.job, new.row
    parts = (row.parents, row.hold, row.for_key) if isinstance(row, Waiting) else (None, None, None)
    (*wide, _, owner, schedule_id, limit_key, unique_key, fair_key, _, notify, trace) = job_record(job)
    narrow = (row.due, row.since, row.tries_left, row.version, rank_of(row), row.limit_id, int(row.ties), *parts)
    keys = (limit_key, unique_key, fair_key)
    secret_fields = array_text(job.secret_fields)
    return (*wide, array_text(job.tags), owner, schedule_id, *keys, *narrow, secret_fields, notify, trace)


def job_record(job: Job) -> Values:
    """A wide row's columns in the order of `JOB_COLUMNS`."""
    return (
        job.id,
        job.lane_id,
        job.priority,
        job.name,
        job.due,
        job.created,
        job.payload,
        None if job.retry is DEFAULT_RETRY else retry_text(job.retry),
        job.timeout,
        job.deadline,
        job.tags or None,
        job.owner,
        job.schedule_id,
        job.limit_key,
        job.unique_key,
        job.fair_key,
        job.secret_fields or None,
        job.notify,
        job.trace,
    )


def rank_of(row: Waiting | Ready) -> int:
    """The rank it has, or will have when its time has come."""
    return row.rank if isinstance(row, Ready) else rank(row.priority, row.due)


def narrow_values(row: Waiting | Ready) -> Values:
    """A narrow row's columns, as `enter_ready` and `enter_waiting` take them."""
    values = (
        row.id,
        row.due,
        rank_of(row),
        row.deadline,
        row.since,
        row.lane_id,
        row.attempt,
        row.counted,
        row.tries_left,
        row.lost,
        row.version,
        row.priority,
        row.limit_id,
        int(row.ties),  # a flag of an enum would be taken for a list of flags
    )
    return (*values, row.parents, row.hold, row.for_key) if isinstance(row, Waiting) else values


def attempt_values(attempt: Attempt) -> Values:
    return (
        attempt.id,
        attempt.attempt,
        attempt.status,
        attempt.exit_code,
        attempt.worker,
        attempt.nonce,
        attempt.due,
        attempt.claimed,
        attempt.started,
        attempt.ended,
        attempt.error,
        attempt.admitted,
    )


def changed_job_values(job: Job) -> Values:
    """What a user's change may touch of a wide row, as `change_jobs` takes it."""
    return (
        job.id,
        job.lane_id,
        job.priority,
        job.due,
        job.payload,
        retry_text(job.retry),
        job.timeout,
        job.deadline,
        array_text(job.tags),
        job.owner,
        job.schedule_id,
        job.limit_key,
        job.unique_key,
        job.fair_key,
        array_text(job.secret_fields),
        job.notify,
    )


def job_of(values: Values, lanes: Mapping[int, Lane]) -> Job:
    """The first `JOB_WIDTH` columns of a row."""
    (
        key,
        lane_id,
        priority,
        name,
        due,
        created,
        payload,
        retry,
        timeout,
        deadline,
        tags,
        owner,
        schedule_id,
        limit_key,
        unique_key,
        fair_key,
        secret_fields,
        notify,
        trace,
    ) = values
    job = Job(
        id=key,
        name=name,
        lane=lanes[lane_id],
        lane_id=lane_id,
        priority=priority,
        due=due,
        created=created,
        payload=payload,
        retry=DEFAULT_RETRY if retry is None else _decode_retry(retry),
        timeout=timeout,
        deadline=deadline,
        tags=() if tags is None else tuple(tags),
        owner=owner,
        schedule_id=schedule_id,
    )
    # Apart, since few jobs have them: a call with more than fifteen names is four times as slow.
    if limit_key is unique_key is fair_key is secret_fields is notify is trace is None:
        return job
    return msgspec.structs.replace(
        job,
        limit_key=limit_key,
        unique_key=unique_key,
        fair_key=fair_key,
        secret_fields=() if secret_fields is None else tuple(secret_fields),
        notify=notify,
        trace=trace,
    )


def lease_of(values: Values) -> Lease:
    """A lease's columns as `leases_of`, `beat` and `workers` give them."""
    (
        key,
        lane_id,
        priority,
        due,
        attempt,
        counted,
        tries_left,
        lost,
        version,
        since,
        limit_id,
        ties,
        worker,
        nonce,
        claimed,
        check_at,
        started,
        cancel_asked,
        progress,
    ) = values
    return Lease(
        id=key,
        lane_id=lane_id,
        priority=priority,
        due=due,
        deadline=None,
        attempt=attempt,
        counted=counted,
        tries_left=tries_left,
        lost=lost,
        version=version,
        since=since,
        limit_id=limit_id,
        ties=ties,
        worker=worker,
        nonce=nonce,
        claimed=claimed,
        check_at=check_at,
        started=started,
        cancel_asked=cancel_asked,
        progress=progress,
    )


def row_of(key: Any, values: Values) -> Row:
    """A row of the view `job_rows`, without its id."""
    place, lane_id, priority, due, deadline, attempt, counted, tries_left, lost, version, since, *rest = values
    (
        limit_id,
        ties,
        hold,
        parents,
        for_key,
        rank_,
        worker,
        nonce,
        claimed,
        check_at,
        started,
        cancel_asked,
        progress,
        *end,
    ) = rest
    match Place(place):
        case Place.WAITING:
            return Waiting(
                id=key,
                lane_id=lane_id,
                priority=priority,
                due=due,
                deadline=deadline,
                attempt=attempt,
                counted=counted,
                tries_left=tries_left,
                lost=lost,
                version=version,
                since=since,
                limit_id=limit_id,
                ties=ties,
                hold=hold,
                parents=parents,
                for_key=for_key,
            )
        case Place.READY:
            return Ready(
                id=key,
                lane_id=lane_id,
                priority=priority,
                due=due,
                deadline=deadline,
                attempt=attempt,
                counted=counted,
                tries_left=tries_left,
                lost=lost,
                version=version,
                since=since,
                limit_id=limit_id,
                ties=ties,
                rank=rank_,
            )
        case Place.LEASES:
            narrow = (key, lane_id, priority, due, attempt, counted, tries_left, lost, version, since, limit_id, ties)
            return lease_of((*narrow, worker, nonce, claimed, check_at, started, cancel_asked, progress))
        case Place.HISTORY:
            state, ended, status, exit_code, reason, error, result, admitted = end
            last = (attempt, status, worker, nonce, due, claimed, started, ended, error, exit_code, admitted)
            return Ended(
                id=key,
                lane_id=lane_id,
                state=State(state),
                reason=reason,
                attempt=attempt,
                counted=counted,
                lost=lost,
                version=version,
                due=due,
                ended=ended,
                last=None if status is None else attempt_of(key, last),
                result=result,
            )
        case place_:
            assert_never(place_)


def attempt_of(key: Any, values: Values) -> Attempt:
    attempt, status, worker, nonce, due, claimed, started, ended, error, exit_code, admitted = values
    return Attempt(
        id=key,
        attempt=attempt,
        status=AttemptStatus(status),
        worker=worker,
        nonce=nonce,
        due=due,
        claimed=claimed,
        started=started,
        ended=ended,
        error=error,
        exit_code=exit_code,
        admitted=admitted,
    )


def record_of(values: Values, lanes: Mapping[int, Lane]) -> Record:
    """A job, its row and its latest ended attempt, as `load` and the lists give them."""
    job = job_of(values[:JOB_WIDTH], lanes)
    row = row_of(job.id, values[JOB_WIDTH : JOB_WIDTH + ROW_WIDTH])
    last = values[JOB_WIDTH + ROW_WIDTH :]
    if isinstance(row, Ended) and row.last is not None:
        return Record(job=job, row=row, last=row.last)
    return Record(job=job, row=row, last=None if last[0] is None else attempt_of(job.id, last))


def worker_values(worker: Worker) -> Values:
    return (
        worker.id,
        worker.namespace,
        worker.name,
        worker.queues,
        worker.job_types,
        msgspec.json.encode(worker.resources).decode(),
        msgspec.json.encode(worker.labels).decode(),
        worker.since,
        worker.seen,
        worker.until,
        worker.draining,
    )


WORKER_WIDTH: Final = 11


def worker_of(values: Values) -> Worker:
    key, namespace, name, queues, job_types, resources, labels, since, seen, until, draining = values
    return Worker(
        id=key,
        namespace=namespace,
        name=name,
        queues=tuple(queues),
        job_types=tuple(job_types),
        resources=_decode_resources(resources),
        labels=_decode_labels(labels),
        since=since,
        seen=seen,
        until=until,
        draining=draining,
    )


def rules_text(rules: QueueRules) -> str:
    """Rules as they are kept; empty for the default ones, which most queues have."""
    return "" if rules == DEFAULT_RULES else msgspec.json.encode(rules).decode()


def rules_of(text: str) -> QueueRules:
    return _decode_rules(text) if text else DEFAULT_RULES


def queue_of(values: Values) -> Queue:
    queue_id, namespace, name, version, ordered, paused, rules = values
    return Queue(
        queue_id=queue_id,
        namespace=namespace,
        name=name,
        version=version,
        ordered=ordered,
        paused=paused,
        rules=rules_of(rules),
    )
