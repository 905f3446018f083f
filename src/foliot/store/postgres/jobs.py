"""Reading jobs, their attempts and their logs."""

from collections.abc import Iterable, Sequence

from foliot.domain.ids import JobKey
from foliot.domain.job import Attempt, AttemptStatus, Record
from foliot.store.base import Fenced, LogLine
from foliot.store.postgres.connections import columns
from foliot.store.postgres.part import SQL, Part
from foliot.store.postgres.rows import JOB_WIDTH, Values, attempt_of, record_of


class Jobs(Part):
    async def load(self, keys: Sequence[JobKey]) -> dict[JobKey, Record]:
        if not keys:
            return {}
        rows = await self._connections.read(SQL["load"], sorted(set(keys)))
        return {record.job.id: record for record in await self._records([tuple(row) for row in rows])}

    async def find(self, namespace: str, names: Sequence[str]) -> dict[str, JobKey]:
        rows = await self._connections.read(SQL["find"], namespace, list(names))
        return {row[0]: row[1] for row in rows}

    async def outcomes(self, attempts: Sequence[tuple[JobKey, int]]) -> dict[tuple[JobKey, int], AttemptStatus]:
        rows = await self._connections.read(SQL["outcomes"], *columns(attempts, 2))
        return {(key, nonce): AttemptStatus(status) for key, nonce, status in rows}

    async def executions(self, key: JobKey) -> list[Attempt]:
        return [_execution(key, tuple(row)) for row in await self._connections.read(SQL["executions"], key)]

    async def result(self, key: JobKey) -> str | None:
        rows = await self._connections.read(SQL["result"], key)
        return rows[0][0] if rows else None

    async def append_logs(self, lines: Sequence[Fenced]) -> set[int]:
        ordered = sorted(lines, key=lambda fenced: (fenced.line.id, fenced.line.log_id))
        values = [(f.line.log_id, f.line.id, f.nonce, *_line_values(f.line)) for f in ordered]
        kept = {row[0] for row in await self._connections.write(SQL["append_logs"], *columns(values, 7))}
        return {fenced.line.log_id for fenced in lines} - kept

    async def logs(self, key: JobKey, *, after: int, level: int, limit: int) -> list[LogLine]:
        return [
            LogLine(log_id=log_id, id=id_, attempt=attempt, time=time, level=level_, message=message)
            for log_id, id_, attempt, time, level_, message in await self._connections.read(
                SQL["logs"], key, after, level, limit
            )
        ]

    async def _records(self, rows: Iterable[Values]) -> list[Record]:
        rows = list(rows)
        await self._meet_lanes({lane_id for row in rows for lane_id in (row[1], row[JOB_WIDTH + 1])})
        return [record_of(row, self._lanes) for row in rows]


def _line_values(line: LogLine) -> Values:
    return (line.attempt, line.time, line.level, line.message)


def _execution(key: JobKey, values: Values) -> Attempt:
    """An attempt; one without a status still runs, and has begun when its worker said so."""
    attempt, status, *rest = values
    if status is None:
        started = rest[4]
        status = AttemptStatus.CLAIMED if started is None else AttemptStatus.PROCESSING
    return attempt_of(key, (attempt, status, *rest))
