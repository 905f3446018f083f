"""`foliot jobs`: find jobs and look at them. The commands that change them are in `control`."""

from functools import partial
from typing import TYPE_CHECKING, Any

import click

from foliot.cli import attempts, control
from foliot.cli.attempts import error_text, ran_text
from foliot.cli.connection import with_client
from foliot.cli.failed import failed
from foliot.cli.filters import filter_body, filter_options
from foliot.cli.graph import graph
from foliot.cli.notify_options import notify_text
from foliot.cli.paging import collect, page_options, tell_of_more
from foliot.cli.show import (
    amounts_text,
    json_option,
    plain,
    print_fields,
    print_json,
    print_table,
    progress_text,
    some,
    status_text,
)
from foliot.cli.times import read_clock, show_moment, show_relative, show_span
from foliot.cli.tree import Group
from foliot.cli.why import why

if TYPE_CHECKING:
    from datetime import datetime

    from foliot.sdk.client import Client
    from foliot.wire import DependsOn, JobInfo

PARENTS_SHOWN = 20


@click.group(
    cls=Group,
    aliases={"list": "ls", "show": "get"},  # as schedules have them
    examples="""
    foliot jobs ls --status running
    foliot jobs get j_2x9k4
    foliot jobs logs j_2x9k4 -f
    """,
)
def jobs() -> None:
    """Find jobs, look at them, change them."""


@jobs.command(
    examples="""
    foliot jobs ls
    foliot jobs ls --status failed --status cancelled --type report --due-after -2h
    foliot jobs ls --tag nightly --all --json
    """
)
@filter_options
@page_options
@json_option
@with_client
def ls(client: "Client", limit: int, everything: bool, as_json: bool, **filters: Any) -> None:
    """List jobs, newest first."""
    which = filter_body(filters)
    found, more = collect(partial(client.page, which), None if everything else limit)
    if as_json:
        print_json(found)
        return
    now = read_clock()
    print_table(
        ("JOB", "TYPE", "STATUS", "QUEUE", "PRIORITY", "DUE", "RAN", "TRY", "PROGRESS"),
        [_row(job, now) for job in found],
        empty="no such jobs",
    )
    if more:
        tell_of_more(len(found))


def _row(job: "JobInfo", now: "datetime") -> tuple[Any, ...]:
    status = status_text("cancelling" if job.cancel_requested and job.status == "running" else job.status)
    if job.reason:
        status.append(f" {job.reason}", "dim")
    return (
        job.job_id,
        job.job_type,
        status,
        job.queue,
        str(job.priority),
        show_relative(job.schedule_time, now),
        ran_text(job.start_time, job.end_time, now),
        str(job.attempt),
        progress_text(job.progress) if job.status == "running" else "",
    )


@jobs.command(examples="foliot jobs get j_2x9k4\nfoliot jobs get nightly-report --json")
@click.argument("job_id")
@json_option
@with_client
def get(client: "Client", job_id: str, as_json: bool) -> None:
    """Show one job."""
    job = client.get(job_id)
    if as_json:
        print_json(job)
        return
    from msgspec import UNSET

    now = read_clock()
    retry = job.retry
    print_fields(
        (
            ("job", job.job_id),
            ("type", job.job_type),
            ("status", status_text(job.status)),
            ("reason", job.reason),
            ("cancel", "asked for; the worker is being told" if job.cancel_requested else None),
            ("progress", progress_text(job.progress) or None),
            ("queue", job.queue),
            ("priority", str(job.priority)),
            ("due", show_moment(job.schedule_time, now)),
            ("started", show_moment(job.start_time, now) if job.start_time else None),
            ("ended", show_moment(job.end_time, now) if job.end_time else None),
            ("ran", ran_text(job.start_time, job.end_time, now) or None),
            ("attempt", f"{job.attempt} of {retry.max_attempts}" if retry else str(job.attempt)),
            ("worker", job.worker_id),
            ("timeout", show_span(job.timeout)),
            ("deadline", show_moment(job.deadline, now) if job.deadline else None),
            ("after", some([_parent_text(each) for each in job.depends_on], PARENTS_SHOWN) or None),
            ("concurrency", _concurrency_text(job)),
            ("resources", _resources_text(job)),
            ("requires", ", ".join(f"{name}={value}" for name, value in job.requires.items()) or None),
            ("unique key", plain(job.unique_key) if job.unique_key else None),
            ("fair key", plain(job.fair_key) if job.fair_key else None),
            ("tags", ", ".join(job.tags) or None),
            ("owner", job.owner or None),
            ("schedule", job.schedule_id),
            ("notify", notify_text(job.notify)),
            ("created", show_moment(job.created_time, now)),
            ("payload", bytes(job.payload).decode() if job.payload is not UNSET else None),
            ("error", error_text(job.last_error, full=True) if job.last_error is not UNSET else None),
        )
    )


def _parent_text(parent: "DependsOn") -> str:
    return parent.job_id if parent.on == "success" else f"{parent.job_id} (on {parent.on})"


def _concurrency_text(job: "JobInfo") -> str | None:
    return f"{plain(job.concurrency.key)}, {job.concurrency.limit:,} at once" if job.concurrency else None


def _resources_text(job: "JobInfo") -> str | None:
    """None for a slot and nothing else, which is what nearly all ask for."""
    asked = "" if job.resources == {"slot": 1} else amounts_text(job.resources)
    return asked or None


@jobs.command(examples="foliot jobs executions j_2x9k4")
@click.argument("job_id")
@json_option
@with_client
def executions(client: "Client", job_id: str, as_json: bool) -> None:
    """Show each attempt of a job, oldest first."""
    found = client.executions(job_id)
    if as_json:
        print_json(found)
        return
    print_table(attempts.COLUMNS, attempts.rows(found, read_clock()), empty=f"{job_id} has not been tried yet")


@jobs.command(examples="foliot jobs result j_2x9k4\nfoliot jobs result j_2x9k4 --json | jq .total")
@click.argument("job_id")
@json_option
@with_client
def result(client: "Client", job_id: str, as_json: bool) -> None:
    """Print what a job's handler returned, as JSON.

    Ends with 4 where there is no result: the job has not completed, or its handler returned nothing.
    """
    print_json(client.result(job_id))


@jobs.command(
    examples="""
    foliot jobs logs j_2x9k4
    foliot jobs logs j_2x9k4 -f --level WARNING
    """
)
@click.argument("job_id")
@click.option("-f", "--follow", is_flag=True, help="Go on until the job has ended.")
@click.option(
    "--level",
    type=click.Choice(["DEBUG", "INFO", "WARNING", "ERROR"], case_sensitive=False),
    help="Only lines of this level or above.",
)
@json_option
@with_client
def logs(client: "Client", job_id: str, follow: bool, level: str | None, as_json: bool) -> None:
    """Show a job's log, oldest line first.

    With --json one array; with --follow and --json one line of JSON for each line of the log.
    """
    from foliot.cli import watching

    watching.show_log(client, job_id, follow=follow, level=level, as_json=as_json)


@jobs.command(examples="foliot jobs watch j_2x9k4")
@click.argument("job_id")
@json_option
@with_client
@click.pass_context
def watch(ctx: click.Context, client: "Client", job_id: str, as_json: bool) -> None:
    """Follow a job's log and progress to its end.

    Ends with 0 where it completed, 1 where it failed, 3 where it was cancelled.
    """
    from foliot.cli import watching

    ctx.exit(watching.watch_to_end(client, job_id, as_json=as_json))


for command in (failed, why, graph, *control.COMMANDS):
    jobs.add_command(command)
