"""What a submit body says, checked and turned into the engine's own values."""

from collections.abc import Iterable, Mapping, Sequence

from msgspec import UNSET

from foliot.domain import priority as priorities
from foliot.domain import retry as retries
from foliot.domain.access import Caller
from foliot.domain.duration import Micros, parse_duration
from foliot.domain.errors import BadInput, Forbidden, TooLarge
from foliot.domain.ids import JOB, JobKey
from foliot.domain.job import DEFAULT_TIMEOUT, Job, Lane, Ties
from foliot.domain.needs import PLAIN, Needs, parse_needs, read_needs, show_needs
from foliot.domain.retry import Retry
from foliot.domain.secret_fields import amend
from foliot.domain.states import submit
from foliot.service.alert_telling import write_notify
from foliot.service.sealing import Sealer
from foliot.store.base import LimitStore, NewJob, Parent
from foliot.wire import PAYLOAD_LIMIT, JobFields, RetryBody, SubmitBody, UpdateBody, encode, to_micros

DEFAULT_QUEUE = "default"


async def set_limits(store: LimitStore, bodies: Iterable[JobFields], namespace: str) -> dict[str, int]:
    """The numbers of the concurrency keys that are named; the newest limit given applies."""
    wanted = {body.concurrency.key: body.concurrency.limit for body in bodies if body.concurrency}
    numbers = await store.set_limits([(namespace, key, limit) for key, limit in wanted.items()]) if wanted else []
    return dict(zip(wanted, numbers, strict=True))


def lane_of(body: JobFields, namespace: str) -> Lane:
    """The lane of a job as it is submitted. Raises `BadInput`."""
    assert body.job_type is not UNSET
    needs = parse_needs(body.resources or None, body.requires or None) if body.resources or body.requires else PLAIN
    return Lane(namespace, body.queue or DEFAULT_QUEUE, body.job_type, show_needs(needs))


def amended_lane(job: Job, body: UpdateBody) -> Lane:
    """The lane of a job after a change. Raises `BadInput`."""
    queue = job.lane.queue if body.queue is UNSET else body.queue or DEFAULT_QUEUE
    job_type = job.lane.job_type if body.job_type is UNSET else body.job_type
    needs = job.lane.needs
    if body.resources is not UNSET or body.requires is not UNSET:
        asked, known = parse_needs(body.resources or None, body.requires or None), read_needs(needs)
        needs = show_needs(
            Needs(
                amounts=known.amounts if body.resources is UNSET else asked.amounts,
                labels=known.labels if body.requires is UNSET else asked.labels,
            )
        )
    return Lane(job.lane.namespace, queue, job_type, needs)


def parse_job(
    body: SubmitBody,
    key: JobKey,
    lane: Lane,
    lane_id: int,
    caller: Caller,
    now: Micros,
    *,
    schedule_id: str | None = None,
    trace: str | None = None,
) -> Job:
    """The job that a body asks for. Raises `BadInput`, `Forbidden`."""
    if body.owner and body.owner != caller.name and not caller.may("control"):
        raise Forbidden(f"owner: only who may control jobs names another owner than itself, {caller.name}")
    name = body.job_id or None
    if name is not None and name.startswith(JOB):
        raise BadInput.at("job_id", f"the prefix {JOB} is for generated ids; choose another job_id, or leave it out")
    return Job(
        id=key,
        name=name,
        lane=lane,
        lane_id=lane_id,
        priority=priorities.DEFAULT if body.priority is UNSET else parse_priority(body),
        due=parse_due(body, now) or now,
        created=now,
        payload="{}" if body.payload is UNSET else parse_new_payload(body),
        retry=parse_retry(body.retry) if body.retry else retries.DEFAULT,
        timeout=parse_timeout(body),
        deadline=to_micros(body.deadline) if body.deadline else None,
        tags=tuple(body.tags) if body.tags else (),
        owner=body.owner or caller.name,
        schedule_id=schedule_id,
        limit_key=body.concurrency.key if body.concurrency else None,
        unique_key=body.unique_key or None,
        fair_key=body.fair_key or None,
        secret_fields=tuple(body.secret_fields or ()),
        notify=write_notify(body.notify) if body.notify else None,
        trace=trace,
    )


def new_job(
    body: SubmitBody,
    job: Job,
    now: Micros,
    *,
    limits: Mapping[str, int],
    sealer: Sealer,
    parents: Sequence[Parent] = (),
    has_children: bool = False,
) -> NewJob:
    """A job with where it begins; `limits` are the numbers of concurrency keys, its own among them."""
    limit_id = None if job.limit_key is None else limits[job.limit_key]
    ties = (Ties.CHILDREN if has_children else 0) | (Ties.PARENTS if parents else 0)
    row = submit(job, now, parents=len(parents), limit_id=limit_id, ties=ties)
    text = encode(body) if job.name else b""
    return NewJob(
        job=sealer.seal_job(job),
        row=row,
        body_hash=sealer.hash(text) if text else b"",
        older_hashes=sealer.older_hashes(text) if text else (),
        parents=parents,
    )


def parse_priority(body: JobFields) -> int:
    return priorities.parse_priority(body.priority) if isinstance(body.priority, int | str) else priorities.DEFAULT


def parse_due(body: UpdateBody, now: Micros) -> Micros | None:
    """The time asked for, or None where none was given."""
    if body.schedule_time and body.delay is not UNSET and body.delay is not None:
        raise BadInput.at("delay", "give schedule_time or delay, not both")
    if body.schedule_time:
        return to_micros(body.schedule_time)
    if body.delay is not UNSET and body.delay is not None:
        return now + parse_duration(body.delay, "delay")
    return None


def parse_payload(body: JobFields) -> str:
    raw = bytes(body.payload) if body.payload is not UNSET else b"{}"
    if len(raw) > PAYLOAD_LIMIT:
        raise TooLarge.at(
            "payload", f"{len(raw):,} bytes; at most {PAYLOAD_LIMIT:,}. Keep it elsewhere and send its address"
        )
    try:
        return raw.decode()
    except UnicodeDecodeError:
        raise BadInput.at("payload", "not valid UTF-8") from None


def parse_new_payload(body: JobFields) -> str:
    payload = parse_payload(body)
    return amend(lambda: "null", (), payload, body.secret_fields) if body.secret_fields else payload


def parse_timeout(body: JobFields) -> Micros:
    if body.timeout is UNSET or body.timeout is None:
        return DEFAULT_TIMEOUT
    timeout = parse_duration(body.timeout, "timeout")
    if timeout <= 0:
        raise BadInput.at("timeout", "must be above zero")
    return timeout


def parse_retry(body: RetryBody) -> Retry:
    return Retry(
        max_attempts=body.max_attempts,
        backoff=body.backoff,
        initial=parse_duration(body.initial, "retry.initial"),
        max=parse_duration(body.max, "retry.max"),
        jitter=body.jitter,
        delays=tuple(parse_duration(delay, f"retry.delays[{i}]") for i, delay in enumerate(body.delays)),
        on_lost=body.on_lost,
        max_lost=body.max_lost,
    )


def within(error: BadInput, where: str) -> BadInput:
    """The same error, its fields named from the top of the request."""
    if not where:
        return error
    fields = tuple(type(f)(f"{where}.{f.field}", f.message) for f in error.errors)
    return type(error)(f"{where}.{error.detail}", fields)
