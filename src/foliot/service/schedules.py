"""The life of a schedule: made, read, changed, paused, triggered, backfilled, deleted. `service.firing` fires it."""

import asyncio
import hashlib
from collections.abc import Callable

import msgspec
from msgspec import UNSET, Raw

from foliot.clock import Clock
from foliot.domain.access import Caller
from foliot.domain.duration import Micros, parse_duration
from foliot.domain.errors import BadInput, Conflict, NotFound, Stale
from foliot.domain.firing import Outcome, backfill, pause, resume, trigger
from foliot.domain.ids import JOB, SCHEDULE, IdMaker, JobKey, ScheduleKey, parse, show
from foliot.domain.job import Lane
from foliot.domain.schedule import STANDING_LIMIT, Plan, Schedule, run_name
from foliot.domain.secret_fields import amend
from foliot.domain.status import WAITING_STATUSES
from foliot.domain.timetable.due_times import due_times, next_after, tally
from foliot.service.alert_telling import Telling, write_notify
from foliot.service.control import Control
from foliot.service.definition import (
    decode_body,
    read_definition,
    read_readable,
    split_definition,
    with_sealed,
    write_definition,
)
from foliot.service.firing import Firing, next_run
from foliot.service.job_fields import DEFAULT_QUEUE, lane_of, parse_job, parse_payload, within
from foliot.service.preview import timetable_of
from foliot.service.schedule_view import show_run, show_schedule
from foliot.service.sealing import Sealer
from foliot.store.base import Filter, Store
from foliot.wire import (
    BACKFILL_LIMIT,
    LIST_LIMIT,
    BackfillBody,
    Backfilled,
    RunInfo,
    ScheduleBody,
    ScheduleChanged,
    ScheduleInfo,
    ScheduleUpdateBody,
    SubmitBody,
    TemplateBody,
    Triggered,
    UpdateBody,
    encode,
    to_micros,
    to_time,
)

ROUNDS = 20
TRIGGERS = ("cron", "every", "rrule")
PREVIEW = "preview"  # what stands in a path where a schedule's id would

_decode_fields = msgspec.json.Decoder(dict[str, Raw]).decode
_NULL = b"null"


class Schedules:
    def __init__(
        self,
        store: Store,
        clock: Clock,
        ids: IdMaker,
        firing: Firing,
        control: Control,
        sealer: Sealer,
        telling: Telling,
    ) -> None:
        self._store = store
        self._telling = telling
        self._sealer = sealer
        self._clock = clock
        self._ids = ids
        self._firing = firing
        self._control = control
        self._triggered: Micros = 0

    async def create(self, body: ScheduleBody, caller: Caller, request_key: str | None = None) -> ScheduleChanged:
        """Keep a schedule. The same body under the same id, or the same `request_key`, again is answered as the first
        was."""
        _check_name(body.schedule_id)
        now = self._clock.now()
        key = ScheduleKey(self._ids.one(now))
        name = body.schedule_id or (_name_for(request_key) if request_key else show(SCHEDULE, key))
        body = msgspec.structs.replace(body, schedule_id=name)
        plan = _plan(body, now)
        _check_job(body.job, caller, now)
        await self._expect(body.job, caller)
        made = Schedule(
            id=key,
            namespace=caller.namespace,
            name=name,
            definition=write_definition(self._sealer, key, body),
            plan=plan,
            owner=caller.name,
            created=now,
            changed=now,
            paused=bool(body.paused),
            next_due=next_after(plan.timetable, now),
        )
        if not await self._firing.save([Outcome(schedule=made)], tell=True):
            found = await self._store.schedule(caller.namespace, name)
            if found is None or encode(read_definition(self._sealer, found)) != encode(body):
                raise Conflict(
                    f"schedule_id {name!r} is taken by another schedule; change that with PUT, or use another id"
                )
            made = found
        return _changed("created", made)

    async def read(self, schedule_id: str, caller: Caller) -> ScheduleInfo:
        schedule = await self._find(schedule_id, caller)
        return show_schedule(schedule, read_definition(self._sealer, schedule))

    async def page(self, *, limit: int, cursor: str | None, caller: Caller) -> tuple[list[ScheduleInfo], str | None]:
        """Schedules, newest first, and where the next page begins."""
        found = await self._store.reader(caller.namespace).list_schedules(
            caller.namespace, limit=limit + 1, before=None if cursor is None else ScheduleKey(_parse_cursor(cursor))
        )
        page = found[:limit]
        shown = [
            show_schedule(each, read_readable(self._sealer, each)[0]) for each in page if caller.reaches(_lane(each))
        ]
        return shown, show("", page[-1].id) if len(found) > limit else None

    async def update(
        self, schedule_id: str, body: ScheduleUpdateBody, *, if_match: int | None, caller: Caller
    ) -> ScheduleChanged:
        """Change the fields given, for every due time from now on. What was due before is decided by the old ones
        first; runs that have not started get the new job."""
        given = _decode_fields(encode(body))
        if body.job is not UNSET:
            await self._expect(body.job, caller)

        def change(schedule: Schedule, now: Micros) -> Outcome | None:
            sealed, rest = split_definition(schedule)
            fields = _decode_fields(rest.encode())
            if any(bytes(given.get(name, _NULL)) != _NULL for name in TRIGGERS):
                fields = {name: value for name, value in fields.items() if name not in TRIGGERS}
            fields = {name: value for name, value in {**fields, **given}.items() if bytes(value) != _NULL}
            merged = decode_body(encode(fields))
            if body.job is not UNSET:
                merged = msgspec.structs.replace(merged, job=self._with_secrets(schedule, merged.job))
            _check_job(merged.job, caller, now)
            if merged.job.secret_fields and self._is_as_it_was(schedule, merged):
                return None
            if sealed is not None and body.job is UNSET:
                definition = with_sealed(sealed, merged)
            else:
                definition = write_definition(self._sealer, schedule.id, merged)
            plan = _plan(merged, schedule.created)
            outcome = resume(schedule, now) if schedule.paused else pause(schedule, now)
            next_due = outcome.schedule.next_due
            if plan.timetable != schedule.plan.timetable:
                next_due = next_after(plan.timetable, now, runs=schedule.runs)
            changed = msgspec.structs.replace(
                outcome.schedule,
                definition=definition,
                plan=plan,
                paused=schedule.paused if body.paused is UNSET else bool(body.paused),
                next_due=next_due,
            )
            return msgspec.structs.replace(outcome, schedule=changed)

        changed = await self._change(schedule_id, change, if_match, caller)
        if body.job is not UNSET:
            await self._renew_runs(changed)
        return _changed("updated", changed)

    async def delete(self, schedule_id: str, *, if_match: int | None, caller: Caller) -> ScheduleChanged:
        for _ in range(ROUNDS):
            schedule = await self._find(schedule_id, caller, if_match)
            if await self._store.remove_schedule(schedule.id, schedule.version):
                return ScheduleChanged(status="deleted", schedule_id=schedule.name, next_run=None)
        raise _too_busy(schedule_id)

    async def pause(self, schedule_id: str, *, if_match: int | None, caller: Caller) -> ScheduleChanged:
        return _changed("paused", await self._change(schedule_id, pause, if_match, caller))

    async def resume(self, schedule_id: str, *, if_match: int | None, caller: Caller) -> ScheduleChanged:
        schedule = await self._change(schedule_id, resume, if_match, caller)
        await self._firing.settle([schedule.id])
        return _changed("active", schedule)

    async def trigger(self, schedule_id: str, caller: Caller) -> Triggered:
        """A run now, paused or not, whatever is under way."""
        schedule = await self._find(schedule_id, caller)
        for _ in range(ROUNDS):
            self._triggered = max(self._clock.now(), self._triggered + 1)  # no two of one name
            outcome = trigger(schedule, self._triggered)
            name = run_name(schedule.name, outcome.starts[0].due)
            if await self._firing.save([outcome]) or await self._store.find(caller.namespace, [name]):
                return Triggered(job_id=name)
            schedule = await self._find(schedule_id, caller)
        raise _too_busy(schedule_id)

    async def backfill(self, schedule_id: str, body: BackfillBody, caller: Caller) -> Backfilled:
        """Run past due times, except those that have their job or wait for it."""
        since, until = to_micros(body.since), to_micros(body.until)
        if until < since:
            raise BadInput.at("to", "lies before from; give a later one")
        if until > self._clock.now():
            raise BadInput.at("to", "lies in the future; only past due times can be backfilled")
        for _ in range(ROUNDS):
            schedule = await self._find(schedule_id, caller)
            if schedule.backfill_limit:
                raise Conflict(f"schedule {schedule_id!r} has a backfill under way; wait until it is through")
            dues = await asyncio.to_thread(_past_dues, schedule, since, until)
            taken = await self._store.settled_dues(schedule.id, since, until)
            wanted = [due for due in dues if due not in taken]
            limit = body.max_concurrency or schedule.plan.max_concurrency
            if not wanted:
                return Backfilled(runs=0)
            outcome = backfill(schedule, wanted, limit, self._clock.now())
            if await self._firing.save([outcome]):
                return Backfilled(runs=len(outcome.runs))
        raise _too_busy(schedule_id)

    async def runs(
        self, schedule_id: str, *, limit: int, cursor: str | None, caller: Caller
    ) -> tuple[list[RunInfo], str | None]:
        """A page of the ledger, newest due time first, and where the next one begins."""
        schedule = await self._find(schedule_id, caller)
        before = None if cursor is None else _parse_cursor(cursor)
        found = await self._store.reader(caller.namespace).runs(schedule.id, limit=limit + 2, before=before)
        page = found[:limit]
        if len(found) > limit:  # rows of one due time stay on one page
            whole = [run for run in page if run.due != found[limit].due]
            page = whole or found[: limit + 1]
        more = len(found) > len(page)
        return [show_run(schedule, run) for run in page], show("", page[-1].due) if more else None

    async def _find(self, schedule_id: str, caller: Caller, if_match: int | None = None) -> Schedule:
        schedule = await self._store.schedule(caller.namespace, schedule_id)
        if schedule is None or not caller.reaches(_lane(schedule)):
            raise NotFound(f"there is no schedule {schedule_id!r}")
        _check_match(schedule, if_match)
        return schedule

    async def _change(
        self,
        schedule_id: str,
        change: Callable[[Schedule, Micros], Outcome | None],
        if_match: int | None,
        caller: Caller,
    ) -> Schedule:
        """Decide and save, again from what is there now where somebody else was faster. What is due already is decided
        first, as the schedule was until now. Where the decision is None there is nothing to change."""
        for _ in range(ROUNDS):
            schedule = await self._find(schedule_id, caller, if_match)
            now = self._clock.now()
            due = next_run(schedule)
            if due is not None and due <= now:
                await self._firing.fire(list((await self._store.standings([schedule.id])).values()))
                continue
            outcome = change(schedule, now)
            if outcome is None:
                return schedule
            changed = msgspec.structs.replace(outcome.schedule, changed=now, edition=schedule.edition + 1)
            if await self._firing.save([msgspec.structs.replace(outcome, schedule=changed)], tell=True):
                return changed
        raise _too_busy(schedule_id)

    async def _expect(self, template: TemplateBody, caller: Caller) -> None:
        """Let the watch know what the runs will say of themselves."""
        if template.notify:
            try:
                lane = lane_of(template, caller.namespace)
                await self._telling.expect(lane, write_notify(template.notify))
            except BadInput as error:
                raise within(error, "job") from None

    def _is_as_it_was(self, schedule: Schedule, body: ScheduleBody) -> bool:
        """Who declares secret fields can not know, and hands them in each time: that is no change of the schedule."""
        before, unread = read_readable(self._sealer, schedule)
        paused = schedule.paused if body.paused is None else body.paused
        return unread is None and paused == schedule.paused and encode(before) == encode(body)

    def _with_secrets(self, schedule: Schedule, template: TemplateBody) -> TemplateBody:
        """The new job, with what it keeps of the old one's secret fields."""

        def old() -> str:
            payload = read_definition(self._sealer, schedule).job.payload
            return "null" if payload is UNSET else bytes(payload).decode()

        before = read_readable(self._sealer, schedule)[0].job.secret_fields or ()
        if template.payload is UNSET or not (template.secret_fields or before):
            return template
        payload = amend(old, before, parse_payload(template), template.secret_fields or ())
        return msgspec.structs.replace(template, payload=Raw(payload.encode()))

    async def _renew_runs(self, schedule: Schedule) -> None:
        """Give the new job to all that have not started. A standing shows neither those of a backfill nor all of very
        many; then they are looked for among the jobs."""
        standing = (await self._store.standings([schedule.id])).get(schedule.id)
        if standing is None:
            return
        keys = standing.under_way
        if standing.backfilling or len(keys) >= STANDING_LIMIT:
            keys = await self._unstarted(schedule)
        if keys:
            template = read_definition(self._sealer, schedule).job
            fields = dict.fromkeys(TemplateBody.__struct_fields__)
            given = {name: value for name, value in msgspec.structs.asdict(template).items() if value is not UNSET}
            fixed = {"unique_key": UNSET}  # a job keeps the one that it was made with
            body = UpdateBody(**{**fields, "payload": Raw(b"{}"), **given, **fixed})
            owner = Caller(name=schedule.owner, namespace=schedule.namespace)
            await self._control.amend_all(keys, body, owner)

    async def _unstarted(self, schedule: Schedule) -> list[JobKey]:
        filter = Filter(namespace=schedule.namespace, statuses=WAITING_STATUSES, schedule_id=schedule.name)
        keys: list[JobKey] = []
        page = await self._store.list_jobs(filter, limit=LIST_LIMIT, before=None)
        while True:
            keys += [record.job.id for record in page.records]
            if page.next is None:
                return keys
            page = await self._store.list_jobs(filter, limit=LIST_LIMIT, before=page.next)


class _Kind(msgspec.Struct):
    job_type: str
    queue: str | None = None


class _Definition(msgspec.Struct):
    job: _Kind


_decode_kind = msgspec.json.Decoder(_Definition).decode


def _lane(schedule: Schedule) -> Lane:
    """The lane of its runs, as far as it matters for who reaches it."""
    kind = _decode_kind(split_definition(schedule)[1]).job
    return Lane(schedule.namespace, kind.queue or DEFAULT_QUEUE, kind.job_type)


def _check_name(schedule_id: str | None) -> None:
    if schedule_id is not None and schedule_id.startswith(JOB):
        raise BadInput.at("schedule_id", f"the prefix {JOB} is for generated job ids, and its runs would have it")
    if schedule_id == PREVIEW:
        raise BadInput.at("schedule_id", f"{PREVIEW} is a call of its own; choose another")


def _plan(body: ScheduleBody, created: Micros) -> Plan:
    return Plan(
        timetable=timetable_of(body, created),
        overlap=body.overlap or "skip",
        max_concurrency=body.max_concurrency or 1,
        catch_up=body.catch_up or "latest",
        catch_up_window=parse_duration(
            "1h" if body.catch_up_window is None else body.catch_up_window, "catch_up_window"
        ),
    )


def _check_job(template: TemplateBody, caller: Caller, now: Micros) -> None:
    """Refuse at once what could never become a run."""
    try:
        body = SubmitBody(**msgspec.structs.asdict(template))
        lane = lane_of(body, caller.namespace)
        caller.check_reach(lane)
        parse_job(body, JobKey(0), lane, 0, caller, now)
    except BadInput as error:
        raise within(error, "job") from None


def _past_dues(schedule: Schedule, since: Micros, until: Micros) -> list[Micros]:
    timetable = msgspec.structs.replace(schedule.plan.timetable, max_runs=None)
    found = tally(timetable, since - 1, until, limit=BACKFILL_LIMIT)
    if found.count > BACKFILL_LIMIT or not found.exact:
        count = f"{found.count:,}" if found.exact else f"more than {found.count:,}"
        raise BadInput.at("from", f"that is {count} runs; at most {BACKFILL_LIMIT:,} at a time, take a shorter range")
    return list(due_times(timetable, since - 1, until))


def _check_match(schedule: Schedule, if_match: int | None) -> None:
    if if_match is not None and schedule.edition != if_match:
        raise Stale(
            f"schedule {schedule.name!r} is at version {schedule.edition}, not {if_match}; read it and decide anew"
        )


def _changed(status: str, schedule: Schedule) -> ScheduleChanged:
    due = next_run(schedule)
    return ScheduleChanged(
        status=status,  # type: ignore[arg-type]
        schedule_id=schedule.name,
        next_run=None if due is None else to_time(due),
    )


def _name_for(request_key: str) -> str:
    """The same id for the same key, so that a repeated request finds what the first one made."""
    return f"{SCHEDULE}{hashlib.blake2b(request_key.encode(), digest_size=8).hexdigest()}"


def _parse_cursor(cursor: str) -> int:
    key = parse("", cursor)
    if key is None:
        raise BadInput.at("cursor", "not one of ours; take it from the Link header of the page before")
    return key


def _too_busy(schedule_id: str) -> Conflict:
    return Conflict(f"schedule {schedule_id!r} changes faster than it can be changed; try again")
