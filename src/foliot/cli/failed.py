"""`foliot jobs failed`: the jobs that failed for good, and how to run them again."""

import shlex
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import click

from foliot.cli.attempts import one_line
from foliot.cli.connection import with_client
from foliot.cli.filters import filter_body, filter_words, other_filter_options
from foliot.cli.paging import collect, page_options, tell_of_more
from foliot.cli.show import json_option, print_json, print_table
from foliot.cli.times import read_clock, show_relative
from foliot.cli.tree import Command

if TYPE_CHECKING:
    from datetime import datetime

    from foliot.sdk.client import AsyncClient, Client
    from foliot.wire import JobInfo

READ_AT_ONCE = 8


@click.command(
    cls=Command,
    examples="""
    foliot jobs failed
    foliot jobs failed --type report --due-after -1d
    foliot jobs retry --status failed --type report --payload '{"region": "eu"}'
    """,
)
@other_filter_options
@page_options
@json_option
@with_client
def failed(client: "Client", limit: int, everything: bool, as_json: bool, **filters: Any) -> None:
    """List the jobs that failed for good, newest first, each with its last error.

    They stay for as long as history is kept. Run them again one by one with 'foliot jobs retry JOB_ID', or all that a
    filter finds, also with another payload.
    """
    filters["status"] = ("failed",)
    listed, more = collect(partial(client.page, filter_body(filters)), None if everything else limit)
    found = client.thread.run(lambda: _read(client.aio, [job.job_id for job in listed]))
    if as_json:
        print_json(found)
        return
    now = read_clock()
    print_table(
        ("JOB", "TYPE", "QUEUE", "FAILED", "TRY", "REASON", "ERROR"), [_row(job, now) for job in found], empty="none"
    )
    if more:
        tell_of_more(len(listed))
    if found:
        all_of_them = shlex.join(["foliot", "jobs", "retry", *filter_words(filters)])
        click.echo(f"run one again with: foliot jobs retry {found[0].job_id}\nor all with: {all_of_them}", err=True)


async def _read(client: "AsyncClient", job_ids: Sequence[str]) -> "list[JobInfo]":
    """The jobs with their errors, which a list does not carry; without those that are gone or run again by now."""
    import asyncio

    from foliot.sdk.failures import NotFound

    room = asyncio.Semaphore(READ_AT_ONCE)

    async def one(job_id: str) -> "JobInfo | None":
        async with room:
            try:
                return await client.get(job_id)
            except NotFound:
                return None

    found = await asyncio.gather(*(one(job_id) for job_id in job_ids))
    return [job for job in found if job is not None and job.status == "failed"]


def _row(job: "JobInfo", now: "datetime") -> tuple[Any, ...]:
    return (
        job.job_id,
        job.job_type,
        job.queue,
        show_relative(job.end_time, now),
        f"{job.attempt} of {job.retry.max_attempts}" if job.retry else str(job.attempt),
        job.reason or "",
        one_line(job.last_error or None),
    )
