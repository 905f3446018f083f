"""How schedules and their ledger look to the outside."""

import msgspec
from msgspec import UNSET, Raw

from foliot.domain.duration import show_duration
from foliot.domain.schedule import WITH_JOB, Run, Schedule, run_name
from foliot.domain.secret_fields import mask
from foliot.domain.timetable.describe import describe
from foliot.domain.timetable.interval import Every
from foliot.service.firing import next_run
from foliot.wire import RunInfo, ScheduleBody, ScheduleInfo, TemplateBody, encode, to_time


def show_schedule(schedule: Schedule, body: ScheduleBody) -> ScheduleInfo:
    """A schedule as read; `body` is what its definition says."""
    plan = schedule.plan
    timetable = plan.timetable
    due = next_run(schedule)
    return ScheduleInfo(
        schedule_id=schedule.name,
        status="ended" if schedule.next_due is None else "paused" if schedule.paused else "active",
        description=describe(timetable),
        next_run=None if due is None else to_time(due),
        runs=schedule.runs,
        job=Raw(encode(_shown(body.job))),
        cron=body.cron,
        every=show_duration(timetable.trigger.interval) if isinstance(timetable.trigger, Every) else None,
        rrule=body.rrule,
        timezone=timetable.timezone,
        start_time=body.start_time,
        end_time=body.end_time,
        max_runs=body.max_runs,
        jitter=show_duration(timetable.jitter),
        overlap=plan.overlap,
        max_concurrency=plan.max_concurrency,
        catch_up=plan.catch_up,
        catch_up_window=show_duration(plan.catch_up_window),
        calendar=body.calendar,
        on_holiday=None if body.calendar is None else timetable.on_holiday,
        paused=schedule.paused,
        owner=schedule.owner,
        created_time=to_time(schedule.created),
        last_updated=to_time(schedule.changed),
        version=schedule.edition,
    )


def _shown(job: TemplateBody) -> TemplateBody:
    if job.payload is UNSET or not job.secret_fields:
        return job
    payload = mask(bytes(job.payload).decode(), job.secret_fields)
    return msgspec.structs.replace(job, payload=Raw(payload.encode()))


def show_run(schedule: Schedule, run: Run) -> RunInfo:
    return RunInfo(
        due_time=to_time(run.due),
        verdict=None if run.verdict is None else run.verdict.name.lower(),  # type: ignore[arg-type]
        reason="waiting" if run.verdict is None else run.reason,
        job_id=run_name(schedule.name, run.due) if run.verdict in WITH_JOB else None,
        until=None if run.until == run.due else to_time(run.until),
        count=run.count,
        exact=run.exact,
    )
