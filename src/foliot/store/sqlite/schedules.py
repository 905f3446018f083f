"""Schedules: their steps, the ledger of their due times, and what a decision is made from."""

import sqlite3
from collections.abc import Iterable, Sequence
from typing import Any, Final

from foliot.domain.duration import Micros
from foliot.domain.ids import ScheduleKey
from foliot.domain.schedule import STANDING_LIMIT, Run, Schedule, Standing, Verdict, run_name
from foliot.store.base import Step
from foliot.store.sqlite.batch import fetch, write
from foliot.store.sqlite.changes import Moves
from foliot.store.sqlite.connection import SQL
from foliot.store.sqlite.records import INLINE
from foliot.store.sqlite.rows import keys_json, run_columns, run_of, schedule_columns, schedule_of, to_json
from foliot.store.sqlite.threads import Threads

_ABOVE_ALL: Final = (1 << 63) - 1


class SqliteSchedules(Threads):
    """`ScheduleStore` on SQLite."""

    async def save_schedules(self, steps: Sequence[Step]) -> set[ScheduleKey]:
        return await self._write(lambda connection: _save(connection, steps, self._moves(self._clock.now())))

    async def schedule(self, namespace: str, name: str) -> Schedule | None:
        def work(connection: sqlite3.Connection) -> Schedule | None:
            found = connection.execute(SQL["schedule_named"], (namespace, name)).fetchall()
            return next(iter(_load(connection, [key for (key,) in found]).values()), None)

        return await self._read(work)

    async def list_schedules(self, namespace: str, *, limit: int, before: ScheduleKey | None) -> Sequence[Schedule]:
        def work(connection: sqlite3.Connection) -> Sequence[Schedule]:
            below = _ABOVE_ALL if before is None else before
            found = fetch(connection, "list_schedules", (namespace, below, limit))
            return list(_load(connection, [key for (key,) in found]).values())

        return await self._read(work)

    async def remove_schedule(self, key: ScheduleKey, version: int) -> bool:
        def work(connection: sqlite3.Connection) -> bool:
            if not connection.execute(SQL["remove_schedule"], (key, version)).fetchall():
                return False
            connection.execute(SQL["remove_waiting"], (key,))
            connection.execute(SQL["remove_open_runs"], (key,))
            return True

        return await self._write(work)

    async def peek_schedules(self, until: Micros, limit: int) -> list[Standing]:
        def work(connection: sqlite3.Connection) -> list[Standing]:
            due = fetch(connection, "schedules_due", (until, limit))
            found = due or connection.execute(SQL["next_schedule"]).fetchall()
            return list(_standings(connection, [key for (key,) in found]).values())

        return await self._read(work)

    async def standings(self, keys: Sequence[ScheduleKey]) -> dict[ScheduleKey, Standing]:
        return await self._read(lambda connection: _standings(connection, keys))

    async def waiting_schedules(self, limit: int, *, after: int = 0) -> list[ScheduleKey]:
        return await self._read(
            lambda connection: [ScheduleKey(key) for (key,) in fetch(connection, "waiting_schedules", (limit, after))]
        )

    async def runs(self, key: ScheduleKey, *, limit: int, before: Micros | None) -> list[Run]:
        bounds = (key, _ABOVE_ALL if before is None else before, limit)
        return await self._read(
            lambda connection: [run_of(columns) for columns in fetch(connection, "runs_of", bounds)]
        )

    async def settled_dues(self, key: ScheduleKey, since: Micros, until: Micros) -> set[Micros]:
        return await self._read(
            lambda connection: {due for (due,) in fetch(connection, "settled_dues", (key, since, until))}
        )

    async def due_by_minute(self, namespace: str, since: Micros, until: Micros) -> dict[Micros, int]:
        return await self._read(lambda connection: dict(fetch(connection, "due_by_minute", (namespace, since, until))))


def _save(connection: sqlite3.Connection, steps: Sequence[Step], moves: Moves) -> set[ScheduleKey]:
    taken = _in_turn(connection, [step for step in steps if step.not_before <= moves.now])
    write(connection, "put_schedule", [schedule_columns(step.schedule) for step in taken])
    _start_runs(connection, taken, moves)
    write(connection, "put_run", [run_columns(step.schedule.id, run) for step in taken for run in step.runs])
    return {step.schedule.id for step in taken}


def _in_turn(connection: sqlite3.Connection, steps: Sequence[Step]) -> list[Step]:
    """The steps whose schedule stands at the version before theirs, or whose name is free."""
    versions: dict[ScheduleKey, int] = dict(
        fetch(connection, "schedule_versions", (keys_json(step.schedule.id for step in steps),))
    )
    made: set[tuple[str, str]] = set()
    in_turn = []
    for step in steps:
        schedule = step.schedule
        if schedule.version == 1:
            name = (schedule.namespace, schedule.name)
            if name in made or schedule.id in versions or connection.execute(SQL["schedule_named"], name).fetchall():
                continue
            made.add(name)
        elif versions.get(schedule.id) != schedule.version - 1:
            continue
        in_turn.append(step)
    return in_turn


def _start_runs(connection: sqlite3.Connection, steps: Sequence[Step], moves: Moves) -> None:
    """Keep the jobs whose name is free, each as a run under way."""
    taken = _taken_names(connection, steps)
    open_runs = []
    for step in steps:
        schedule = step.schedule
        moves.happen(step.happenings)
        backfilled = {
            run_name(schedule.name, run.due) for run in step.runs if run.verdict is Verdict.BACKFILLED and step.jobs
        }
        for new in step.jobs:
            if (schedule.namespace, new.job.name) not in taken:
                moves.add(schedule.namespace, new)
                open_runs.append((new.job.id, schedule.id, new.job.name in backfilled))
    moves.write(connection)
    write(connection, "open_run", open_runs)


def _taken_names(connection: sqlite3.Connection, steps: Sequence[Step]) -> set[tuple[str, str | None]]:
    """The names of these steps' jobs that are taken; two of them never share one, since a name has its schedule's."""
    names: dict[str, list[str | None]] = {}
    for step in steps:
        if step.jobs:
            names.setdefault(step.schedule.namespace, []).extend(new.job.name for new in step.jobs)
    return {
        (namespace, name)
        for namespace, given in names.items()
        for name, *_ in connection.execute(SQL["job_keys"], (namespace, to_json(given)))
    }


def _load(connection: sqlite3.Connection, keys: Iterable[ScheduleKey]) -> dict[ScheduleKey, Schedule]:
    """Each of these that there is, in the order given."""
    wanted = list(keys)
    rows = {columns[0]: columns for columns in fetch(connection, "schedules_of", (keys_json(wanted), INLINE))}
    long = [key for key, columns in rows.items() if columns[-1] is None]
    definitions: dict[ScheduleKey, Any] = {}
    if long:
        definitions.update(connection.execute(SQL["definitions_of"], (keys_json(long),)).fetchall())
    return {key: schedule_of(rows[key], definitions.get(key) or rows[key][-1]) for key in wanted if key in rows}


def _standings(connection: sqlite3.Connection, keys: Iterable[ScheduleKey]) -> dict[ScheduleKey, Standing]:
    schedules = _load(connection, keys)
    return {
        key: Standing(
            schedule=schedules[key],
            under_way=tuple(under_way),
            backfilling=backfilling,
            waiting=tuple(run_of(columns) for columns in waiting),
        )
        for key, under_way, backfilling, waiting in fetch(
            connection, "standings_of", (keys_json(schedules), STANDING_LIMIT)
        )
    }
