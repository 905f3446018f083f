"""Schedules, the ledger of their due times, and what is under way of their runs.

A step compares and sets the schedule's version first. Who has done so holds its row until the commit, so that what the
later statements write (the ledger, the names, the jobs) is written for one state of the schedule, and by nobody else.
"""

from collections.abc import Iterable, Sequence
from operator import itemgetter
from typing import Any, Final

import msgspec

from foliot.domain.duration import Micros
from foliot.domain.ids import JobKey, ScheduleKey
from foliot.domain.schedule import STANDING_LIMIT, WITH_JOB, Plan, Run, Schedule, Standing, Verdict, run_name
from foliot.store.base import NewJob, Step
from foliot.store.postgres.connections import Connection, columns
from foliot.store.postgres.intake import job_columns, put_unique_keys
from foliot.store.postgres.journal import Journal
from foliot.store.postgres.part import SQL, Part
from foliot.store.postgres.rows import Values

_SCHEDULE_WIDTH: Final = 14
_BEYOND: Final = (1 << 63) - 1  # above every id and every time

_encode_plan = msgspec.json.Encoder().encode
_decode_plan = msgspec.json.Decoder(Plan).decode


class Schedules(Part):
    async def save_schedules(self, steps: Sequence[Step]) -> set[ScheduleKey]:
        if not steps:
            return set()
        ordered = sorted(steps, key=_key)
        try:
            return await self._transact(lambda connection: _save(connection, ordered))
        finally:
            # Also after a failure: the rows may be there all the same.
            self._marks.lower_to(new.row for step in steps for new in step.jobs)

    async def schedule(self, namespace: str, name: str) -> Schedule | None:
        rows = await self._connections.read(SQL["schedule"], namespace, name)
        return _schedule_of(tuple(rows[0])) if rows else None

    async def list_schedules(self, namespace: str, *, limit: int, before: ScheduleKey | None) -> Sequence[Schedule]:
        below = _BEYOND if before is None else before
        rows = await self._connections.read(SQL["list_schedules"], namespace, below, limit)
        return [_schedule_of(tuple(row)) for row in rows]

    async def remove_schedule(self, key: ScheduleKey, version: int) -> bool:
        return bool(await self._connections.write(SQL["remove_schedule"], key, version))

    async def peek_schedules(self, until: Micros, limit: int) -> list[Standing]:
        rows = await self._connections.read(SQL["peek_schedules"], until, limit, STANDING_LIMIT)
        return [_standing_of(tuple(row)) for row in rows]

    async def standings(self, keys: Sequence[ScheduleKey]) -> dict[ScheduleKey, Standing]:
        if not keys:
            return {}
        rows = await self._connections.read(SQL["standings"], sorted(set(keys)), STANDING_LIMIT)
        return {row[0]: _standing_of(tuple(row)) for row in rows}

    async def waiting_schedules(self, limit: int, *, after: int = 0) -> list[ScheduleKey]:
        return [row[0] for row in await self._connections.read(SQL["waiting_schedules"], limit, after)]

    async def runs(self, key: ScheduleKey, *, limit: int, before: Micros | None) -> list[Run]:
        below = _BEYOND if before is None else before
        return [_run_of(*row) for row in await self._connections.read(SQL["runs"], key, below, limit)]

    async def settled_dues(self, key: ScheduleKey, since: Micros, until: Micros) -> set[Micros]:
        rows = await self._connections.read(SQL["settled_dues"], key, since, until, WITH_JOB)
        return set(map(itemgetter(0), rows))

    async def due_by_minute(self, namespace: str, since: Micros, until: Micros) -> dict[Micros, int]:
        rows = await self._connections.read(SQL["due_by_minute"], namespace, since, until)
        return {row[0]: row[1] for row in rows}


async def _save(connection: Connection, steps: Sequence[Step]) -> set[ScheduleKey]:
    values = [(*_schedule_values(step.schedule), step.not_before) for step in steps]
    rows = await connection.fetch(SQL["change_schedules"], *columns(values, _SCHEDULE_WIDTH + 1))
    changed = {row[0] for row in rows}
    taken = [step for step in steps if step.schedule.id in changed]
    runs = [values for step in taken for values in _run_values(step)]
    if runs:
        await connection.execute(SQL["note_runs"], *columns(runs, 9), WITH_JOB)
    await _start(connection, taken)
    journal = Journal()
    for step in taken:
        journal.happened(step.happenings)
    await journal.write(connection)
    return changed


async def _start(connection: Connection, steps: Iterable[Step]) -> None:
    """Write the jobs whose names are free."""
    jobs: dict[JobKey, NewJob] = {}
    names = []
    for step in steps:
        backfilled = {run_name(step.schedule.name, r.due) for r in step.runs if r.verdict is Verdict.BACKFILLED}
        for new in step.jobs:
            key, name = new.job.id, new.job.name
            jobs[key] = new
            names.append((step.schedule.namespace, name, key, new.body_hash, step.schedule.id, name in backfilled))
    if names:
        names.sort(key=lambda row: (row[0], row[1] or "", row[2]))
        free = [row[0] for row in await connection.fetch(SQL["open_runs"], *columns(names, 6))]
        if free:
            started = [jobs[key].job for key in free]
            writer, number = connection.stamp()
            await connection.execute(
                SQL["insert_jobs"], *job_columns([jobs[key] for key in free]), number, writer, number
            )
            unique = [(job.lane.namespace, job.unique_key, job.id) for job in started if job.unique_key is not None]
            await put_unique_keys(connection, unique)


def _key(step: Step) -> int:
    return step.schedule.id


def _schedule_values(schedule: Schedule) -> Values:
    return (
        schedule.id,
        schedule.namespace,
        schedule.name,
        schedule.definition,
        _encode_plan(schedule.plan).decode(),
        schedule.owner,
        schedule.created,
        schedule.changed,
        schedule.paused,
        schedule.next_due,
        schedule.runs,
        schedule.backfill_limit,
        schedule.version,
        schedule.edition,
    )


def _schedule_of(values: Values) -> Schedule:
    (
        key,
        namespace,
        name,
        definition,
        plan,
        owner,
        created,
        changed,
        paused,
        next_due,
        runs,
        limit,
        version,
        edition,
    ) = values
    return Schedule(
        id=key,
        namespace=namespace,
        name=name,
        definition=definition,
        plan=_decode_plan(plan),
        owner=owner,
        created=created,
        changed=changed,
        paused=paused,
        next_due=next_due,
        runs=runs,
        backfill_limit=limit,
        version=version,
        edition=edition,
    )


def _run_values(step: Step) -> list[Values]:
    """Rows of the ledger in the order of its key. One statement can not write a row twice: of two with the same key the
    later one counts, unless the first has its job."""
    runs: dict[tuple[Micros, Micros], Run] = {}
    for run in step.runs:
        known = runs.get((run.due, run.until))
        if known is None or known.verdict not in WITH_JOB:
            runs[run.due, run.until] = run
    return [
        (step.schedule.id, *key, r.count, r.exact, r.verdict, r.promised, r.reason, r.decided)
        for key, r in sorted(runs.items(), key=itemgetter(0))
    ]


def _run_of(
    due: Micros,
    until: Micros,
    count: int,
    exact: bool,
    verdict: int | None,
    promised: int,
    reason: str | None,
    decided: Micros,
) -> Run:
    return Run(
        due=due,
        until=until,
        count=count,
        exact=exact,
        verdict=None if verdict is None else Verdict(verdict),
        promised=Verdict(promised),
        reason=reason,
        decided=decided,
    )


def _standing_of(values: Values) -> Standing:
    under_way, backfilling, *waiting = values[_SCHEDULE_WIDTH:]
    return Standing(
        schedule=_schedule_of(values[:_SCHEDULE_WIDTH]),
        under_way=tuple(under_way),
        backfilling=backfilling,
        waiting=_waiting_of(waiting),
    )


def _waiting_of(arrays: Sequence[Any]) -> tuple[Run, ...]:
    """Rows that came as one array a column, each null where there is none."""
    if arrays[0] is None:
        return ()
    return tuple(
        _run_of(due, until, count, exact, None, promised, reason, decided)
        for due, until, count, exact, promised, reason, decided in zip(*arrays, strict=True)
    )
