"""Rows of the tables as values of the domain, and back. Column orders are those of the named queries."""

from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from typing import Any

import msgspec

from foliot.domain.ids import ScheduleKey, WorkerKey
from foliot.domain.job import Attempt, AttemptStatus, Ended, Job, Lane, Lease, Ready, State, Waiting
from foliot.domain.queue import DEFAULT_RULES, Queue, QueueRules
from foliot.domain.retry import DEFAULT as DEFAULT_RETRY
from foliot.domain.retry import Retry
from foliot.domain.schedule import Plan, Run, Schedule, Verdict
from foliot.domain.worker import Worker

Columns = tuple[Any, ...]
Lanes = Mapping[int, Lane]

as_columns: Callable[[Waiting | Ready | Lease | Attempt], Columns] = msgspec.structs.astuple
"""A narrow row or an attempt as its table's columns: the queries have the order of the fields."""

_encoder = msgspec.json.Encoder()
_tags = msgspec.json.Decoder(tuple[str, ...])
_resources = msgspec.json.Decoder(dict[str, float])
_labels = msgspec.json.Decoder(dict[str, str])


def to_json(value: object) -> str:
    return _encoder.encode(value).decode()


def keys_json(keys: Iterable[int]) -> str:
    """Ids as the one parameter of a query that reads them with json_each."""
    return to_json(list(keys))


@lru_cache(maxsize=1024)
def _retry_of(text: str) -> Retry:
    return msgspec.json.decode(text, type=Retry)


@lru_cache(maxsize=1024)
def _plan_of(text: str) -> Plan:
    return msgspec.json.decode(text, type=Plan)


@lru_cache(maxsize=1024)
def rules_of(text: str) -> QueueRules:
    return msgspec.json.decode(text, type=QueueRules) if text else DEFAULT_RULES


def rules_text(rules: QueueRules) -> str:
    return "" if rules == DEFAULT_RULES else to_json(rules)


def queue_of(columns: Columns) -> Queue:
    return Queue(
        queue_id=columns[0],
        namespace=columns[1],
        name=columns[2],
        version=columns[3],
        ordered=columns[4],
        paused=bool(columns[5]),
        rules=rules_of(columns[6]),
    )


def job_columns(job: Job) -> Columns:
    """Without `notify` and `trace`, which come last and most jobs do not have."""
    return (
        job.id,
        job.lane_id,
        job.name,
        job.priority,
        job.due,
        job.created,
        None if job.retry is DEFAULT_RETRY or job.retry == DEFAULT_RETRY else to_json(job.retry),
        job.timeout,
        job.deadline,
        to_json(job.tags) if job.tags else None,
        job.owner,
        job.schedule_id,
        job.limit_key,
        job.unique_key,
        job.fair_key,
        to_json(job.secret_fields) if job.secret_fields else None,
        job.payload,
    )


def job_of(columns: Columns, payload: str, lanes: Lanes) -> Job:
    """A wide row; its payload is given, because a long one does not come with it."""
    key, lane_id, name, priority, due, created, retry, timeout, deadline, tags, owner, schedule_id, *keys, _ = columns
    limit_key, unique_key, fair_key, secret_fields, notify, trace = keys
    return Job(
        id=key,
        lane=lanes[lane_id],
        lane_id=lane_id,
        name=name,
        priority=priority,
        due=due,
        created=created,
        retry=DEFAULT_RETRY if retry is None else _retry_of(retry),
        timeout=timeout,
        deadline=deadline,
        tags=() if tags is None else _tags.decode(tags),
        owner=owner,
        schedule_id=schedule_id,
        limit_key=limit_key,
        unique_key=unique_key,
        fair_key=fair_key,
        secret_fields=() if secret_fields is None else _tags.decode(secret_fields),
        notify=notify,
        trace=trace,
        payload=payload,
    )


def waiting_of(columns: Columns) -> Waiting:
    return Waiting(
        id=columns[0],
        lane_id=columns[1],
        priority=columns[2],
        due=columns[3],
        deadline=columns[4],
        attempt=columns[5],
        counted=columns[6],
        tries_left=columns[7],
        lost=columns[8],
        version=columns[9],
        since=columns[10],
        limit_id=columns[11],
        ties=columns[12],
        hold=bool(columns[13]),
        parents=columns[14],
        for_key=bool(columns[15]),
    )


def ready_of(columns: Columns) -> Ready:
    return Ready(
        id=columns[0],
        lane_id=columns[1],
        priority=columns[2],
        due=columns[3],
        deadline=columns[4],
        attempt=columns[5],
        counted=columns[6],
        tries_left=columns[7],
        lost=columns[8],
        version=columns[9],
        since=columns[10],
        limit_id=columns[11],
        ties=columns[12],
        rank=columns[13],
    )


def lease_of(columns: Columns) -> Lease:
    return Lease(
        id=columns[0],
        lane_id=columns[1],
        priority=columns[2],
        due=columns[3],
        deadline=columns[4],
        attempt=columns[5],
        counted=columns[6],
        tries_left=columns[7],
        lost=columns[8],
        version=columns[9],
        since=columns[10],
        limit_id=columns[11],
        ties=columns[12],
        worker=columns[13],
        nonce=columns[14],
        claimed=columns[15],
        check_at=columns[16],
        started=columns[17],
        cancel_asked=columns[18],
        progress=columns[19],
    )


def ended_of(columns: Columns) -> Ended:
    """A row of history."""
    status = columns[10]
    last = None
    if status is not None:
        last = Attempt(
            id=columns[0],
            attempt=columns[4],
            status=AttemptStatus(status),
            worker=columns[11],
            nonce=columns[12],
            due=columns[8],
            claimed=columns[13],
            started=columns[14],
            ended=columns[9],
            error=columns[16],
            exit_code=columns[15],
            admitted=columns[18],
        )
    return Ended(
        id=columns[0],
        lane_id=columns[1],
        state=State(columns[2]),
        reason=columns[3],
        attempt=columns[4],
        counted=columns[5],
        lost=columns[6],
        version=columns[7],
        due=columns[8],
        ended=columns[9],
        last=last,
        result=columns[17],
    )


def attempt_of(columns: Columns) -> Attempt:
    return Attempt(
        id=columns[0],
        attempt=columns[1],
        status=AttemptStatus(columns[2]),
        worker=columns[3],
        nonce=columns[4],
        due=columns[5],
        claimed=columns[6],
        started=columns[7],
        ended=columns[8],
        error=columns[9],
        exit_code=columns[10],
        admitted=columns[11],
    )


def worker_columns(worker: Worker) -> Columns:
    return (
        worker.id,
        worker.namespace,
        worker.name,
        to_json(worker.queues),
        to_json(worker.job_types),
        to_json(worker.resources),
        to_json(worker.labels),
        worker.since,
        worker.seen,
        worker.until,
        worker.draining,
    )


def worker_of(columns: Columns) -> Worker:
    return Worker(
        id=WorkerKey(columns[0]),
        namespace=columns[1],
        name=columns[2],
        queues=_tags.decode(columns[3]),
        job_types=_tags.decode(columns[4]),
        resources=_resources.decode(columns[5]),
        labels=_labels.decode(columns[6]),
        since=columns[7],
        seen=columns[8],
        until=columns[9],
        draining=bool(columns[10]),
    )


def schedule_columns(schedule: Schedule) -> Columns:
    return (
        schedule.id,
        schedule.namespace,
        schedule.name,
        schedule.owner,
        schedule.created,
        schedule.changed,
        schedule.paused,
        schedule.next_due,
        schedule.runs,
        schedule.backfill_limit,
        schedule.version,
        schedule.edition,
        to_json(schedule.plan),
        schedule.definition,
    )


def schedule_of(columns: Columns, definition: str) -> Schedule:
    """Its definition is given, because a long one does not come with it."""
    return Schedule(
        id=columns[0],
        namespace=columns[1],
        name=columns[2],
        owner=columns[3],
        created=columns[4],
        changed=columns[5],
        paused=bool(columns[6]),
        next_due=columns[7],
        runs=columns[8],
        backfill_limit=columns[9],
        version=columns[10],
        edition=columns[11],
        plan=_plan_of(columns[12]),
        definition=definition,
    )


def run_columns(schedule: ScheduleKey, run: Run) -> Columns:
    """A row of the ledger."""
    return (
        schedule,
        run.due,
        run.until,
        run.count,
        run.exact,
        None if run.verdict is None else int(run.verdict),
        int(run.promised),
        run.reason,
        run.decided,
    )


def run_of(columns: Columns) -> Run:
    """A row of the ledger without its schedule."""
    due, until, count, exact, verdict, promised, reason, decided = columns
    return Run(
        due=due,
        until=until,
        count=count,
        exact=bool(exact),
        verdict=None if verdict is None else Verdict(verdict),
        promised=Verdict(promised),
        reason=reason,
        decided=decided,
    )
