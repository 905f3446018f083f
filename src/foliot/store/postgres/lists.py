"""Lists of jobs, newest first, each one statement that looks at a bounded number of rows."""

from itertools import product
from typing import Final

from foliot.domain.ids import JobKey
from foliot.domain.job import ENDED_STATES, State, Waiting
from foliot.domain.status import status_of
from foliot.store.base import Filter, Page
from foliot.store.postgres.jobs import Jobs
from foliot.store.postgres.part import SQL

SCANNED: Final = 2000
_END: Final = (1 << 63) - 1


def _waiting_kinds() -> dict[int, str]:
    """How a waiting row is shown, by what the lists can ask of it: for a token (8), held (4), with parents (2), with
    attempts (1)."""
    kinds = {}
    for for_key, held, parents, attempt in product((0, 1), repeat=4):
        row = Waiting(
            id=JobKey(0),
            lane_id=0,
            priority=0,
            due=0,
            deadline=None,
            attempt=attempt,
            counted=0,
            tries_left=0,
            lost=0,
            version=0,
            since=0,
            hold=bool(held),
            parents=parents,
            for_key=bool(for_key),
        )
        kinds[for_key * 8 + held * 4 + parents * 2 + attempt] = status_of(row)
    return kinds


_KINDS: Final = _waiting_kinds()


class Lists(Jobs):
    async def list_jobs(self, filter: Filter, *, limit: int, before: JobKey | None) -> Page:
        statuses = set(filter.statuses)
        states = [int(state) for state in ENDED_STATES if state.name.lower() in statuses]
        kinds = [kind for kind, status in _KINDS.items() if status in statuses]
        by_row = statuses and State.COMPLETED not in states
        rows = await self._connections.read(
            SQL["list_by_row" if by_row else "list_by_id"],
            filter.namespace,
            filter.queue,
            filter.job_type,
            max(SCANNED, limit + 1),
            _END if before is None else before,
            filter.owner,
            list(filter.tags) or None,
            filter.schedule_id,
            filter.due_after,
            filter.due_before,
            limit + 1,
            kinds if statuses else None,
            State.QUEUED.name.lower() in statuses,
            State.RUNNING.name.lower() in statuses,
            states,
            list(filter.queues) or None,
            list(filter.job_types) or None,
        )
        last, looked = rows[0][:2]
        records = await self._records(tuple(row)[2:] for row in rows if row[2] is not None)
        if len(records) > limit:
            return Page(records[:limit], records[limit - 1].job.id)
        return Page(records, last if looked >= max(SCANNED, limit + 1) else None)
