"""Change jobs on a user's word: load, decide, save; when somebody else was faster, again from what is there now."""

from collections.abc import Callable, Mapping, Sequence
from typing import Literal, assert_never

import msgspec
from msgspec import UNSET, Raw, UnsetType

from foliot.clock import Clock
from foliot.domain import events as e
from foliot.domain.access import Caller
from foliot.domain.changes import Change, End, Mark, Refusal, Requeue
from foliot.domain.errors import BadInput, Conflict, Forbidden, NotFound, Stale
from foliot.domain.ids import JobKey
from foliot.domain.job import DEFAULT_TIMEOUT, Ended, Job, Lane, Lease, Record, State, Waiting
from foliot.domain.retry import DEFAULT as DEFAULT_RETRY
from foliot.domain.secret_fields import amend, exposed
from foliot.domain.states import transition
from foliot.domain.status import status_of
from foliot.service.alert_telling import Telling, write_notify
from foliot.service.announce import announce
from foliot.service.gate import Gate
from foliot.service.group import persist
from foliot.service.job_fields import (
    amended_lane,
    parse_due,
    parse_payload,
    parse_priority,
    parse_retry,
    parse_timeout,
    set_limits,
)
from foliot.service.limits import limits_of
from foliot.service.query import find_key, parse_filter
from foliot.service.redrive import Rewrite, cancelled_below, redrive, with_parents
from foliot.service.sealing import Sealer
from foliot.service.view import shown_id
from foliot.service.wake import Wake
from foliot.store.base import Store
from foliot.wire import Changed, ManyBody, ManyChanged, RetryJobBody, RetryManyBody, UpdateBody, to_micros

Action = Literal["cancel", "pause", "resume", "retry"]
Decide = Callable[[Record, int], Change | Refusal | None]

ROUNDS = 20
CHUNK = 500


class Control:
    def __init__(self, store: Store, clock: Clock, wake: Wake, gate: Gate, sealer: Sealer, telling: Telling) -> None:
        self._store = store
        self._telling = telling
        self._sealer = sealer
        self._clock = clock
        self._wake = wake
        self._gate = gate

    async def cancel(self, job_id: str, *, if_match: int | None, caller: Caller) -> Changed:
        return await self._one(job_id, _cancel, if_match, caller, "cancelled")

    async def pause(self, job_id: str, *, if_match: int | None, caller: Caller) -> Changed:
        return await self._one(job_id, _pause, if_match, caller, "paused")

    async def resume(self, job_id: str, *, if_match: int | None, caller: Caller) -> Changed:
        return await self._one(job_id, _resume, if_match, caller, "resumed")

    async def run(self, job_id: str, *, if_match: int | None, caller: Caller) -> Changed:
        return await self._one(job_id, _run_now, if_match, caller, "started early")

    async def retry(self, job_id: str, body: RetryJobBody, *, if_match: int | None, caller: Caller) -> Changed:
        """Run it again; with `dependents` also those that were cancelled because of it, each waiting for its parents
        once more."""
        rewrite = self._rewriter(body.payload)
        if body.dependents:
            return await self._retry_with_dependents(job_id, rewrite, if_match, caller)
        for _ in range(ROUNDS):
            record = await self._load(job_id, if_match, caller)
            told = await with_parents(self._store, [record])
            event = redrive(record, await limits_of(self._store, [record]), rewrite, has_parents=record.job.id in told)
            decided = transition(record.row, event, self._clock.now(), retry=record.job.retry)
            change = _allowed(record, decided, "retried")
            if await self._save([change], [record]):
                return Changed(status=_status_after(change), job_id=shown_id(record.job))
        raise _too_busy(job_id)

    async def update(self, job_id: str, body: UpdateBody, *, if_match: int | None, caller: Caller) -> Changed:
        for _ in range(ROUNDS):
            record = await self._load(job_id, if_match, caller)
            caller.check_reach(amended_lane(record.job, body))
            lane, lane_id = await self._lane(record.job, body)
            now = self._clock.now()
            job, due = self._amended(record, body, lane, lane_id, caller, now)
            event = e.Reschedule(job=job, due=due)
            _allowed(record, transition(record.row, event, now, retry=record.job.retry), "changed")
            await self._telling.expect(lane, job.notify, new=body.notify is not UNSET)
            limits = await set_limits(self._store, [body], caller.namespace)  # not if refused
            event = msgspec.structs.replace(event, limit_id=_limit_after(record, body, limits))
            decided = transition(record.row, event, now, retry=record.job.retry)
            if await self._save([_allowed(record, decided, "changed")], [record]):
                return Changed(status="updated", job_id=shown_id(record.job))
        raise _too_busy(job_id)

    async def cancel_all(self, keys: Sequence[JobKey]) -> int:
        """Cancel those that have not ended; how many were cancelled or asked to stop."""
        return await self._change_all(list((await self._store.load(keys)).values()), _cancel)

    async def amend_all(self, keys: Sequence[JobKey], body: UpdateBody, caller: Caller) -> int:
        """Change those that have not started, each at the time it has; how many."""
        records = [record for record in (await self._store.load(keys)).values() if not isinstance(record.row, Lease)]
        lanes = {record.job.id: await self._lane(record.job, body) for record in records}
        limits = await set_limits(self._store, [body], caller.namespace)

        def decide(record: Record, now: int) -> Change | Refusal | None:
            job, due = self._amended(record, body, *lanes[record.job.id], caller, now)
            event = e.Reschedule(job=job, due=due, limit_id=_limit_after(record, body, limits))
            return transition(record.row, event, now, retry=record.job.retry)

        return await self._change_all(records, decide)

    async def many(self, action: Action, body: ManyBody, caller: Caller) -> ManyChanged:
        """All jobs that match, in batches. Jobs that the action does not suit are left as they are and not counted as
        changed."""
        filter = parse_filter(body.filter, caller)
        rewrite = self._rewriter(body.payload) if isinstance(body, RetryManyBody) else None
        matched = changed = 0
        before: JobKey | None = None
        while True:
            page = await self._store.list_jobs(filter, limit=CHUNK, before=before)
            matched += len(page.records)
            if page.records and not body.dry_run:
                whole = await self._store.load([record.job.id for record in page.records])  # a list has no payloads
                records = list(whole.values())
                decide = _MANY.get(action) or await self._redriver(records, rewrite)
                changed += await self._change_all(records, decide)
            if page.next is None:
                return ManyChanged(matched=matched, changed=changed)
            before = page.next

    async def _change_all(self, records: Sequence[Record], decide: Decide) -> int:
        changed = 0
        for _ in range(ROUNDS):
            now = self._clock.now()
            changes: dict[JobKey, Change] = {}
            for record in records:
                decided = decide(record, now)
                if decided is not None and not isinstance(decided, Refusal):
                    changes[record.job.id] = decided
            if not changes:
                break
            won = await self._save(list(changes.values()), records)
            changed += len(won)
            lost = [key for key in changes if key not in won]
            if not lost:
                break
            records = list((await self._store.load(lost)).values())
        return changed

    async def _one(self, job_id: str, decide: Decide, if_match: int | None, caller: Caller, done: str) -> Changed:
        for _ in range(ROUNDS):
            record = await self._load(job_id, if_match, caller)
            decided = decide(record, self._clock.now())
            if decided is None:
                return Changed(status=_status_now(record), job_id=shown_id(record.job))
            change = _allowed(record, decided, done)
            if await self._save([change], [record]):
                return Changed(status=_status_after(change), job_id=shown_id(record.job))
        raise _too_busy(job_id)

    async def _retry_with_dependents(
        self, job_id: str, rewrite: Rewrite | None, if_match: int | None, caller: Caller
    ) -> Changed:
        for _ in range(ROUNDS):
            record = await self._load(job_id, if_match, caller)
            family = await cancelled_below(self._store, record)
            if not all(caller.reaches(member.job.lane) for member in family.records):
                raise Forbidden("some of its dependents are in queues or of job types that this key does not reach")
            limits = await limits_of(self._store, family.records)
            now = self._clock.now()
            changes: list[Change] = []
            for member in family.records:
                event = family.event(member, limits, rewrite if member is record else None)
                decided = transition(member.row, event, now, retry=member.job.retry)
                changes.append(_allowed(member, decided, "retried"))
            if record.job.id in await self._save(changes, family.records):  # others that moved on are somebody else's
                return Changed(status=_status_after(changes[0]), job_id=shown_id(record.job))
        raise _too_busy(job_id)

    async def _redriver(self, records: Sequence[Record], rewrite: Rewrite | None) -> Decide:
        limits, told = await limits_of(self._store, records), await with_parents(self._store, records)

        def decide(record: Record, now: int) -> Change | Refusal | None:
            event = redrive(record, limits, rewrite, has_parents=record.job.id in told)
            return transition(record.row, event, now, retry=record.job.retry)

        return decide

    def _rewriter(self, given: Raw | UnsetType) -> Rewrite | None:
        """What gives a job another payload; None where none is given."""
        if given is UNSET:
            return None
        payload = parse_payload(UpdateBody(payload=given))
        return lambda job: self._with_payload(job, payload, job.secret_fields)

    def _with_payload(self, job: Job, payload: str, secret_fields: tuple[str, ...]) -> Job:
        payload = amend(lambda: self._sealer.payload_of(job), job.secret_fields, payload, secret_fields)
        return self._sealer.seal_job(msgspec.structs.replace(job, payload=payload, secret_fields=secret_fields))

    def _amended(
        self, record: Record, body: UpdateBody, lane: Lane, lane_id: int, caller: Caller, now: int
    ) -> tuple[Job, int]:
        """The wide row as changed, and when the job is due then."""
        job, due = _amended(record, body, lane, lane_id, caller, now)
        secret_fields = job.secret_fields if body.secret_fields is UNSET else tuple(body.secret_fields or ())
        if body.payload is not UNSET:
            return self._with_payload(job, _payload(body), secret_fields), due
        if shown := exposed(job.secret_fields, secret_fields):
            raise BadInput.at("secret_fields", f"{', '.join(shown)} would be shown from now on; give a new payload too")
        return msgspec.structs.replace(job, secret_fields=secret_fields), due

    async def _lane(self, job: Job, body: UpdateBody) -> tuple[Lane, int]:
        lane = amended_lane(job, body)
        return lane, (await self._store.lane_ids([lane]))[0]

    async def _load(self, job_id: str, if_match: int | None, caller: Caller) -> Record:
        key = await find_key(self._store, job_id, caller)
        record = (await self._store.load([key])).get(key) if key is not None else None
        if record is None or not caller.reaches(record.job.lane):
            raise NotFound(f"there is no job {job_id!r}; it may be past the time that history is kept")
        if if_match is not None and record.row.version != if_match:
            raise Stale(
                f"job {job_id!r} is at version {record.row.version}, not {if_match}; read it again and decide anew"
            )
        return record

    async def _save(self, changes: Sequence[Change], records: Sequence[Record]) -> set[JobKey]:
        saved = await persist(lambda _again: self._store.save(changes, self._clock.now()))
        announce(self._wake, changes, saved)
        await self._gate.refund([record for record in records if record.job.id in saved.done])
        for record in records:
            if record.job.id in saved.done and isinstance(record.row, Lease):
                self._wake.stop(record.row.worker)
        return saved.done


def _allowed(record: Record, decided: Change | Refusal, done: str) -> Change:
    if isinstance(decided, Refusal):
        raise Conflict(f"job {shown_id(record.job)!r} is {status_of(record.row)} and can not be {done}")
    return decided


def _cancel(record: Record, now: int) -> Change | Refusal | None:
    if isinstance(record.row, Ended) and record.row.state is State.CANCELLED:
        return None
    if isinstance(record.row, Lease) and record.row.cancel_asked is not None:
        return None
    return transition(record.row, e.Cancel(), now, retry=record.job.retry)


def _pause(record: Record, now: int) -> Change | Refusal | None:
    if isinstance(record.row, Waiting) and record.row.hold:
        return None
    return transition(record.row, e.Pause(), now, retry=record.job.retry)


def _resume(record: Record, now: int) -> Change | Refusal | None:
    if not (isinstance(record.row, Waiting) and record.row.hold) and not isinstance(record.row, Ended):
        return None
    return transition(record.row, e.Resume(), now, retry=record.job.retry)


def _run_now(record: Record, now: int) -> Change | Refusal | None:
    job = msgspec.structs.replace(record.job, due=now)
    limit_id = None if isinstance(record.row, Ended) else record.row.limit_id
    event = e.Reschedule(job=job, due=now, limit_id=limit_id)
    return transition(record.row, event, now, retry=record.job.retry)


_MANY: dict[Action, Decide] = {"cancel": _cancel, "pause": _pause, "resume": _resume}


def _amended(record: Record, body: UpdateBody, lane: Lane, lane_id: int, caller: Caller, now: int) -> tuple[Job, int]:
    """Without what concerns its payload."""
    job, row = record.job, record.row
    if body.unique_key is not UNSET and (body.unique_key or None) != job.unique_key:
        raise BadInput.at("unique_key", "can not be changed; cancel the job and submit it again with another")
    asked = parse_due(body, now)
    if body.schedule_time is None or body.delay is None:
        asked = now if asked is None else asked
    changed = msgspec.structs.replace(
        job,
        lane=lane,
        lane_id=lane_id,
        due=job.due if asked is None else asked,
        priority=job.priority if body.priority is UNSET else parse_priority(body),
        retry=job.retry if body.retry is UNSET else parse_retry(body.retry) if body.retry else DEFAULT_RETRY,
        timeout=job.timeout if body.timeout is UNSET else parse_timeout(body) if body.timeout else DEFAULT_TIMEOUT,
        deadline=job.deadline if body.deadline is UNSET else to_micros(body.deadline) if body.deadline else None,
        tags=job.tags if body.tags is UNSET else tuple(body.tags or ()),
        owner=job.owner if body.owner is UNSET else body.owner or caller.name,
        fair_key=job.fair_key if body.fair_key is UNSET else body.fair_key or None,
        notify=job.notify if body.notify is UNSET else write_notify(body.notify) if body.notify else None,
        limit_key=job.limit_key if body.concurrency is UNSET else body.concurrency.key if body.concurrency else None,
    )
    return changed, row.due if asked is None else max(asked, now)


def _limit_after(record: Record, body: UpdateBody, limits: Mapping[str, int]) -> int | None:
    """The number of a job's concurrency key after a change; `limits` has that of the key that is given."""
    if body.concurrency is UNSET:
        return None if isinstance(record.row, Ended) else record.row.limit_id
    return limits[body.concurrency.key] if body.concurrency else None


def _payload(body: UpdateBody) -> str:
    payload = parse_payload(body)
    return "{}" if payload == "null" else payload


def _status_now(record: Record) -> str:
    """What is answered where nothing had to change."""
    return "cancelling" if isinstance(record.row, Lease) and record.row.cancel_asked else status_of(record.row)


def _status_after(change: Change) -> str:
    match change:
        case Requeue():
            return status_of(change.row)
        case End():
            return change.state.name.lower()
        case Mark():
            return "cancelling"
        case _:
            assert_never(change)


def _too_busy(job_id: str) -> Conflict:
    return Conflict(f"job {job_id!r} changes faster than it can be changed; try again")
