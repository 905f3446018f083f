"""Take jobs in: check, number, decide where each begins, keep them in a group commit, then say so."""

import hashlib
from collections.abc import Sequence
from typing import assert_never

from msgspec import UNSET

from foliot.clock import Clock
from foliot.domain import priority as priorities
from foliot.domain import retry as retries
from foliot.domain.access import Caller
from foliot.domain.duration import Micros, parse_duration
from foliot.domain.errors import BadInput, Conflict, TooLarge
from foliot.domain.ids import JOB, IdMaker, JobKey
from foliot.domain.job import DEFAULT_TIMEOUT, Job, Lane
from foliot.domain.retry import Retry
from foliot.domain.states import submit
from foliot.service.announce import announce_new
from foliot.service.group import Group
from foliot.service.rates import Rate
from foliot.service.wake import Wake
from foliot.store.base import Accepted, Clash, JobStore, NewJob, Submission
from foliot.wire import (
    PAYLOAD_LIMIT,
    BatchBody,
    BatchSubmitted,
    JobFields,
    RetryBody,
    SubmitBody,
    Submitted,
    UpdateBody,
    encode,
    to_micros,
)

DEFAULT_QUEUE = "default"


class Submit:
    def __init__(self, store: JobStore, clock: Clock, ids: IdMaker, wake: Wake, rate: Rate, *, width: int = 1) -> None:
        self._store = store
        self._clock = clock
        self._ids = ids
        self._wake = wake
        self._rate = rate
        self.group: Group[Submission, Accepted | Clash] = Group(
            self._keep, size=lambda submission: len(submission.jobs), width=width
        )

    async def one(self, body: SubmitBody, raw: bytes, caller: Caller, request_key: str | None = None) -> Submitted:
        ids = await self._submit([body], raw, caller, request_key, "")
        return Submitted(job_id=ids[0])

    async def batch(
        self, body: BatchBody, raw: bytes, caller: Caller, request_key: str | None = None
    ) -> BatchSubmitted:
        return BatchSubmitted(job_ids=await self._submit(body.jobs, raw, caller, request_key, "jobs"))

    async def _submit(
        self, bodies: Sequence[SubmitBody], raw: bytes, caller: Caller, request_key: str | None, where: str
    ) -> Sequence[str]:
        now = self._clock.now()
        keys = self._ids.take(len(bodies), now)
        lanes = await self._lanes(bodies, caller.namespace)
        jobs: list[NewJob] = []
        for index, (body, key) in enumerate(zip(bodies, keys, strict=True)):
            try:
                lane, lane_id = lanes[body.queue or DEFAULT_QUEUE, body.job_type]
                jobs.append(new_job(body, JobKey(key), lane, lane_id, caller, now))
            except BadInput as error:
                raise within(error, f"{where}[{index}]" if where else "") from None
        answer = await self.group.add(
            Submission(
                namespace=caller.namespace,
                jobs=jobs,
                request_key=request_key,
                request_hash=_hash(raw) if request_key else b"",
            )
        )
        match answer:
            case Accepted():
                return answer.ids
            case Clash(name=None):
                raise Conflict("this Idempotency-Key was used with another body; use a new key for a new request")
            case Clash():
                raise Conflict(f"job_id {answer.name!r} is taken by a job with another body; use another job_id")
            case _:
                assert_never(answer)

    async def _lanes(self, bodies: Sequence[SubmitBody], namespace: str) -> dict[tuple[str, str], tuple[Lane, int]]:
        wanted = {(body.queue or DEFAULT_QUEUE, body.job_type) for body in bodies}
        lanes = [Lane(namespace, queue, job_type) for queue, job_type in wanted]
        numbers = await self._store.lane_ids(lanes)
        return {(lane.queue, lane.job_type): (lane, number) for lane, number in zip(lanes, numbers, strict=True)}

    async def _keep(self, submissions: Sequence[Submission]) -> Sequence[Accepted | Clash]:
        answers = await self._store.insert_jobs(submissions, self._clock.now())
        for submission, answer in zip(submissions, answers, strict=True):
            if isinstance(answer, Accepted):
                self._rate.add(len(answer.new))
                announce_new(self._wake, submission.jobs)  # also after a repeat: the first try may have been cut off
        return answers


def new_job(
    body: SubmitBody,
    key: JobKey,
    lane: Lane,
    lane_id: int,
    caller: Caller,
    now: Micros,
    *,
    schedule_id: str | None = None,
) -> NewJob:
    """The job that a body asks for, and where it begins. Raises `BadInput`."""
    name = body.job_id or None
    if name is not None and name.startswith(JOB):
        raise BadInput.at("job_id", f"the prefix {JOB} is for generated ids; choose another job_id, or leave it out")
    job = Job(
        id=key,
        name=name,
        lane=lane,
        lane_id=lane_id,
        priority=priorities.DEFAULT if body.priority is UNSET else parse_priority(body),
        due=parse_due(body, now) or now,
        created=now,
        payload="{}" if body.payload is UNSET else parse_payload(body),
        retry=parse_retry(body.retry) if body.retry else retries.DEFAULT,
        timeout=parse_timeout(body),
        deadline=to_micros(body.deadline) if body.deadline else None,
        tags=tuple(body.tags) if body.tags else (),
        owner=body.owner or caller.name,
        schedule_id=schedule_id,
    )
    return NewJob(job=job, row=submit(job, now), body_hash=_hash(encode(body)) if name else b"")


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


def _hash(body: bytes) -> bytes:
    return hashlib.blake2b(body, digest_size=16).digest()
