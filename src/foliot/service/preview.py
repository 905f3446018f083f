"""When a schedule would run. Nothing of it is kept."""

import asyncio
from datetime import UTC, datetime

import msgspec

from foliot.clock import Clock
from foliot.domain.duration import Micros, parse_duration
from foliot.domain.timetable.fields import parse_timetable
from foliot.domain.timetable.preview import preview
from foliot.domain.timetable.timetable import Timetable
from foliot.domain.timetable.zone import LAST_YEAR
from foliot.wire import PlanBody, PreviewBody, PreviewTime, to_micros, to_time

_LAST_SHOWN = to_micros(datetime(LAST_YEAR, 12, 31, tzinfo=UTC))  # zones are not worked out any further


class Preview:
    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._one_at_a_time = asyncio.Lock()

    async def times(self, body: PreviewBody) -> list[PreviewTime]:
        """See `preview_times`. In a thread, because a calendar over a thousand years takes a second or two; one at a
        time, so that the node's own work never shares the interpreter with more than one."""
        async with self._one_at_a_time:
            return await asyncio.to_thread(preview_times, body, self._clock.now())


def preview_times(body: PreviewBody, now: Micros) -> list[PreviewTime]:
    """The first due times from the schedule's `start_time` on, in the past too, so that what was due can be looked at;
    without one those after `now`. Raises `BadInput` for what could not be a schedule."""
    timetable = timetable_of(body, now)
    after = now if timetable.start is None else timetable.start - 1
    shown = msgspec.structs.replace(
        timetable, end=_LAST_SHOWN if timetable.end is None else min(timetable.end, _LAST_SHOWN)
    )
    return [
        PreviewTime(time=to_time(row.time), local=row.local, note=row.note) for row in preview(shown, after, body.count)
    ]


def timetable_of(body: PlanBody, created: Micros) -> Timetable:
    """When the runs of a schedule are due that is made at `created`."""
    if body.catch_up_window is not None:
        parse_duration(body.catch_up_window, "catch_up_window")
    return parse_timetable(
        created=created,
        cron=body.cron,
        every=body.every,
        rrule=body.rrule,
        timezone=body.timezone,
        start_time=None if body.start_time is None else to_micros(body.start_time),
        end_time=None if body.end_time is None else to_micros(body.end_time),
        max_runs=body.max_runs,
        jitter=body.jitter,
        calendar=None if body.calendar is None else msgspec.to_builtins(body.calendar),
        on_holiday=body.on_holiday,
    )
