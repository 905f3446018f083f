"""When a schedule runs next, worked out here from what the node says of it."""

from typing import TYPE_CHECKING, Any

import click

from foliot.cli.cron import print_times
from foliot.cli.times import read_clock

if TYPE_CHECKING:
    from datetime import datetime

    from foliot.wire import PreviewTime, ScheduleInfo


def print_upcoming(info: "ScheduleInfo", count: int) -> None:
    """The next runs as a table; where there are none, one line that says why."""
    if info.status == "paused":
        click.echo(f"paused: it makes no runs until: foliot schedules resume {info.schedule_id}")
    elif info.status == "ended":
        click.echo("ended: nothing is due any more")
    else:
        now = read_clock()
        print_times(upcoming(info, now, count), now)


def upcoming(info: "ScheduleInfo", now: "datetime", count: int) -> "list[PreviewTime]":
    """The next `count` due times after `now`. What the schedule has behind it counts: its beat began with it, and its
    `max_runs` are used up by its runs."""
    from foliot.domain.timetable.preview import preview
    from foliot.service.preview import timetable_of
    from foliot.wire import PlanBody, PreviewTime, to_micros, to_time

    fields: dict[str, Any] = {name: getattr(info, name) for name in PlanBody.__struct_fields__}
    timetable = timetable_of(PlanBody(**fields), to_micros(info.created_time))
    left = count if info.max_runs is None else min(count, info.max_runs - info.runs)
    return [
        PreviewTime(time=to_time(row.time), local=row.local, note=row.note)
        for row in preview(timetable, to_micros(now), left)
    ]
