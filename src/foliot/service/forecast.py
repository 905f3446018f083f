"""What is due in the next 24 hours, minute by minute, and how much the workers can take."""

import asyncio
from collections import Counter
from collections.abc import Sequence

from foliot.clock import Clock
from foliot.domain.access import Caller
from foliot.domain.duration import DAY, MINUTE, Micros
from foliot.domain.ids import ScheduleKey
from foliot.domain.job import Ended
from foliot.domain.schedule import Schedule
from foliot.domain.timetable.forecast import per_minute
from foliot.domain.timetable.timetable import Timetable
from foliot.store.base import Filter, Store
from foliot.wire import Forecast, ForecastMinute, to_time

SCHEDULES_PAGE = 1000
PACE_OF = 100  # the pace is that of so many jobs, the newest that completed


class Forecasts:
    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._one_at_a_time = asyncio.Lock()

    async def next_day(self, caller: Caller) -> Forecast:
        """Each due time of a schedule that is not paused counts as a run, whatever its rule for overlaps will make of
        it. In a thread and one at a time, since a schedule of every second has 86,400 due times a day."""
        async with self._one_at_a_time:
            now = self._clock.now()
            jobs = await self._store.due_by_minute(caller.namespace, now, now + DAY)
            runs = await self._runs(caller, now)
            slots = await self._slots(caller, now)
            mean = await self._mean_run(caller)
        return Forecast(
            minutes=[
                ForecastMinute(time=to_time(minute), jobs=jobs.get(minute, 0), runs=runs.get(minute, 0))
                for minute in sorted(jobs.keys() | runs.keys())
            ],
            jobs=sum(jobs.values()),
            runs=sum(runs.values()),
            slots=slots,
            capacity_per_minute=None if mean is None else slots * MINUTE / mean,
        )

    async def _runs(self, caller: Caller, now: Micros) -> Counter[Micros]:
        found: Counter[Micros] = Counter()
        before: ScheduleKey | None = None
        while page := await self._store.list_schedules(caller.namespace, limit=SCHEDULES_PAGE, before=before):
            found.update(await asyncio.to_thread(_due_of, page, now, now + DAY))
            before = page[-1].id
        return found

    async def _slots(self, caller: Caller, now: Micros) -> float:
        workers = await self._store.workers(caller.namespace)
        return sum(
            worker.resources.get("slot", 0) for worker, _ in workers if worker.until > now and not worker.draining
        )

    async def _mean_run(self, caller: Caller) -> float | None:
        """How long a job takes its slot, by those that completed last; None where there is none to go by."""
        page = await self._store.list_jobs(
            Filter(namespace=caller.namespace, statuses=("completed",)), limit=PACE_OF, before=None
        )
        lengths = [
            record.row.ended - record.row.last.claimed
            for record in page.records
            if isinstance(record.row, Ended) and record.row.last is not None
        ]
        return sum(lengths) / len(lengths) if sum(lengths) > 0 else None


def _due_of(schedules: Sequence[Schedule], since: Micros, until: Micros) -> Counter[Micros]:
    """The due times of all these by minute. Schedules of one timetable are worked out once."""
    alike: Counter[tuple[Timetable, Micros, int]] = Counter()
    for schedule in schedules:
        timetable, due = schedule.plan.timetable, schedule.next_due
        if due is not None and due < until and not schedule.paused:
            alike[timetable, max(since, due), 0 if timetable.max_runs is None else schedule.runs] += 1
    found: Counter[Micros] = Counter()
    for (timetable, first, runs), times in alike.items():
        for minute, count in per_minute(timetable, first, until, runs=runs).items():
            found[minute] += count * times
    return found
