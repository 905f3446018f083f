"""What a schedule is, as options: those that `schedules create` and `schedules change` share, and the bodies that they
become."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from foliot.cli import job_options
from foliot.cli.exits import WrongUse
from foliot.cli.submit import PRIORITIES, payload_of, priority_of
from foliot.cli.times import DURATION, TIME

Body = TypeVar("Body")

if TYPE_CHECKING:
    from foliot.wire import ScheduleBody, ScheduleInfo, ScheduleUpdateBody

# The words of the API, named here so that help needs no heavy import; a test compares.
OVERLAPS = ("skip", "queue", "replace", "allow")
CATCH_UPS = ("none", "latest", "all")
ON_HOLIDAY = ("skip", "next", "previous")
WEEKDAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")

TRIGGERS = ("cron", "every", "rrule")
PLAN_FIELDS = (
    *TRIGGERS,
    *("timezone", "start_time", "end_time", "max_runs", "jitter", "overlap", "max_concurrency"),
    *("catch_up", "catch_up_window", "on_holiday", "paused"),
)
CALENDAR_FIELDS = ("country", "subdivision", "weekend", "closed")
RESETTABLE = tuple(field for field in (*PLAN_FIELDS, "calendar") if field not in (*TRIGGERS, "paused"))

OPTIONS = (
    click.option("--cron", metavar="EXPRESSION", help="5 fields, or 6 with seconds first, or @daily and its kin."),
    click.option("--every", type=DURATION, help="Instead of --cron, an even beat: 30s, 5m, 2h."),
    click.option("--rrule", metavar="RULE", help="Instead of --cron, a rule of RFC 5545."),
    click.option("--timezone", "--tz", "timezone", metavar="ZONE", help="The IANA time zone.  [default: UTC]"),
    click.option("--start", "start_time", type=TIME, help="No run before; --every counts from it."),
    click.option("--end", "end_time", type=TIME, help="No run after."),
    click.option("--max-runs", type=click.IntRange(min=1), metavar="N", help="End after so many runs."),
    click.option("--jitter", type=DURATION, help="Start each run up to so much later, always by the same."),
    click.option(
        "--overlap",
        type=click.Choice(OVERLAPS),
        help="What happens to a run that is due while --max-concurrency are under way.  [default: skip]",
    ),
    click.option(
        "--max-concurrency", type=click.IntRange(1, 1000), metavar="N", help="How many runs at once.  [default: 1]"
    ),
    click.option(
        "--catch-up",
        type=click.Choice(CATCH_UPS),
        help="Which of the runs missed while no node was up are made later.  [default: latest]",
    ),
    click.option("--catch-up-window", type=DURATION, help="How late at most.  [default: 1h]"),
    click.option("--country", metavar="CODE", help="Close this country's holidays and weekends: ES, US."),
    click.option("--subdivision", metavar="CODE", help="With --country: a part of it, for its own holidays: MD, CA."),
    click.option(
        "--closed", "--except", "closed", multiple=True, metavar="DATE", help="Close this date too; may repeat."
    ),
    click.option(
        "--weekend",
        multiple=True,
        type=click.Choice(WEEKDAYS),
        metavar="DAY",
        help="Close this day of the week (mon … sun); may repeat.  [default: the country's, else sat and sun]",
    ),
    click.option(
        "--on-holiday",
        type=click.Choice(ON_HOLIDAY),
        help="What becomes of a run on a closed day: left out, or moved to the next or previous open one."
        "  [default: skip]",
    ),
    click.option(
        "--paused/--active", "paused", default=None, help="Make no runs until it is resumed.  [default: active]"
    ),
    click.option("--payload", metavar="JSON", help="Each run's payload: JSON, @FILE, or - for stdin.  [default: {}]"),
    click.option("--queue", metavar="QUEUE", help="Each run's queue.  [default: default]"),
    click.option(
        "--priority", type=click.Choice(PRIORITIES), metavar="P", help="high, medium, low, or 0 to 9 (9 first)."
    ),
    click.option("--timeout", type=DURATION, help="Longest run of one attempt.  [default: 1h]"),
    click.option("--max-attempts", type=click.IntRange(1, 1000), metavar="N", help="How often to try.  [default: 3]"),
    click.option("--tag", "tags", multiple=True, metavar="TAG", help="A word to find the runs by; may repeat."),
    *job_options.OPTIONS,
    click.option(
        "--file",
        type=click.Path(path_type=Path, allow_dash=True),
        metavar="FILE",
        help="Take everything from a file with the JSON body of the API's call ('-' is stdin).",
    ),
)


def schedule_options(function: Callable[..., None]) -> Callable[..., None]:
    for option in reversed(OPTIONS):
        function = option(function)
    return function


def create_body(*, job_type: str | None, schedule_id: str | None, **given: Any) -> "ScheduleBody":
    """The body of `POST /schedules`. What was not given is left to the node."""
    from foliot.wire import CalendarBody, ScheduleBody, TemplateBody

    if _from_file(given, job_type, schedule_id):
        return _read_body(given["file"], ScheduleBody)
    if job_type is None:
        raise click.UsageError('which job type? For example: foliot schedules create report --cron "0 9 * * *"')
    if _count_triggers(given) != 1:
        raise click.UsageError(
            f'when? Give one of --cron, --every and --rrule: foliot schedules create {job_type} --cron "0 9 * * *"'
        )
    calendar = _calendar_fields(given)
    return ScheduleBody(
        schedule_id=schedule_id,
        job=TemplateBody(job_type=job_type, **_job_fields(given)),
        calendar=CalendarBody(**calendar) if calendar else None,
        **_plan_fields(given),
    )


def change_body(
    *, present: "Callable[[], ScheduleInfo]", job_type: str | None, reset: tuple[str, ...], **given: Any
) -> "tuple[ScheduleUpdateBody, int | None]":
    """The body of `PUT /schedules/{id}`, and the version that it was made from: None where none had to be read. The
    API replaces job and calendar as a whole, so that to change a part of one, what is there now is filled up."""
    import msgspec

    from foliot.wire import CalendarBody, ScheduleUpdateBody, TemplateBody

    if _from_file(given, job_type, reset):
        return _read_body(given["file"], ScheduleUpdateBody), None
    if _count_triggers(given) > 1:
        raise click.UsageError("give one of --cron, --every and --rrule: it takes the place of the one before")
    plan, calendar, job = _plan_fields(given), _calendar_fields(given), _job_fields(given)
    if job_type is not None:
        job["job_type"] = job_type
    if twice := {*reset} & {*plan, *(("calendar",) if calendar else ())}:
        raise click.UsageError(f"{min(twice)} can not be given and reset at once")
    if not (plan or calendar or job or reset):
        raise click.UsageError("change what? Give at least one option, such as --cron or --queue")
    fields: dict[str, Any] = {**plan, **dict.fromkeys(reset)}
    if not (job or calendar):
        return ScheduleUpdateBody(**fields), None
    info = present()
    if job:
        before = msgspec.json.decode(info.job, type=TemplateBody)
        if "retry" in job and before.retry:
            job["retry"] = msgspec.structs.replace(before.retry, max_attempts=job["retry"].max_attempts)
        fields["job"] = msgspec.structs.replace(before, **job)
    if calendar:
        if "country" in calendar:  # a part of the country before is none of this one
            calendar.setdefault("subdivision", None)
        fields["calendar"] = msgspec.structs.replace(info.calendar or CalendarBody(), **calendar)
    return ScheduleUpdateBody(**fields), info.version


def _plan_fields(given: Mapping[str, Any]) -> dict[str, Any]:
    return {name: given[name] for name in PLAN_FIELDS if given[name] is not None}


def _calendar_fields(given: Mapping[str, Any]) -> dict[str, Any]:
    return {
        name: list(given[name]) if isinstance(given[name], tuple) else given[name]
        for name in CALENDAR_FIELDS
        if given[name] not in (None, ())
    }


def _job_fields(given: Mapping[str, Any]) -> dict[str, Any]:
    from foliot.wire import RetryBody

    fields = {
        "payload": None if given["payload"] is None else payload_of(given["payload"]),
        "queue": given["queue"],
        "priority": priority_of(given["priority"]),
        "timeout": given["timeout"],
        "retry": RetryBody(max_attempts=given["max_attempts"]) if given["max_attempts"] else None,
        "tags": list(given["tags"]) or None,
        **job_options.asked_fields(given),
    }
    return {name: value for name, value in fields.items() if value is not None}


def _count_triggers(given: Mapping[str, Any]) -> int:
    return sum(given[name] is not None for name in TRIGGERS)


def _from_file(given: Mapping[str, Any], *more: Any) -> bool:
    if given["file"] is None:
        return False
    others = (*more, *(value for name, value in given.items() if name != "file"))
    if any(value not in (None, ()) for value in others):
        raise click.UsageError("--file takes everything from the file; leave out the other options")
    return True


def _read_body(file: Path, kind: type[Body]) -> Body:
    """A file's JSON as a body; what is wrong with it is told by field."""
    import msgspec

    from foliot.api.messages import explain

    try:
        with click.open_file(str(file), "rb") as stream:
            return msgspec.json.decode(stream.read(), type=kind)
    except OSError as error:
        raise WrongUse(f"{file} can not be read: {error.strerror}") from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise WrongUse(f"{'stdin' if str(file) == '-' else file}: {explain(error, kind).detail}") from None
