"""Following a job to its end: its log, its progress, its changes of status."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

import click

from foliot.cli.connection import be_patient
from foliot.cli.exits import code_of_status
from foliot.cli.show import LEVEL_STYLES, STATUS_STYLES, console, plain, print_json

if TYPE_CHECKING:
    from foliot.sdk.async_client import AsyncClient
    from foliot.sdk.client import Client
    from foliot.wire import JobInfo, LogInfo

PROGRESS_SECONDS = 0.5
LINES = 1000
INDENT = " " * 21  # up to where a message begins


def show_log(client: "Client", job_id: str, *, follow: bool, level: str | None, as_json: bool) -> None:
    """The log so far, or with `follow` until the job has ended."""
    words: Any = level.upper() if level else None
    lines = client.follow_logs(job_id, level=words) if follow else _lines_so_far(client, job_id, words)
    if as_json and not follow:
        print_json(list(lines))
        return
    for line in lines:
        be_patient(client)
        if as_json:
            from foliot.wire import encode

            click.echo(encode(line))
        else:
            click.echo(log_line(line))


def _lines_so_far(client: "Client", job_id: str, level: Any, after: str | None = None) -> "Iterator[LogInfo]":
    while lines := client.logs(job_id, after=after, level=level, limit=LINES):
        yield from lines
        after = lines[-1].log_id


def log_line(line: "LogInfo") -> str:
    """Local time, level, message; the attempt where it is not the first. Further lines of a message stand in from the
    edge, so that none passes for a line of the log."""
    level = click.style(f"{line.log_level:<7}", fg=LEVEL_STYLES.get(line.log_level))
    attempt = f"[attempt {line.attempt}] " if line.attempt > 1 else ""
    message = plain(line.log_message).replace("\n", f"\n{INDENT}")
    return f"{line.log_time.astimezone():%H:%M:%S.%f}"[:-3] + f" {level} {attempt}{message}"


def watch_to_end(client: "Client", job_id: str, *, as_json: bool) -> int:
    """Shows the job until it has ended, or with `as_json` only then; the exit code that tells how it ended."""
    job = watch(client, job_id, quiet=as_json)
    if as_json:
        print_json(job)
    return code_of_status(job.status)


def watch(client: "Client", job_id: str, *, quiet: bool = False) -> "JobInfo":
    """Log lines to stdout, status and progress to stderr, until the job has ended. `quiet` only waits."""
    try:
        return _watch(client, job_id, quiet=quiet)
    except KeyboardInterrupt:
        click.echo(f"\n{job_id} goes on; see: foliot jobs watch {job_id}", err=True)
        raise


def _watch(client: "Client", job_id: str, *, quiet: bool) -> "JobInfo":
    client.get(job_id)
    be_patient(client)
    if quiet:
        return client.wait(job_id)
    with _screen() as screen:
        return client.thread.run(lambda: _follow(client.aio, job_id, screen))


async def _follow(client: "AsyncClient", job_id: str, screen: "_Screen") -> "JobInfo":
    """Its log up to its end, which is the end of the log; what else is seen of it meanwhile is told as it comes."""
    import asyncio

    beside = [asyncio.create_task(_show_changes(client, job_id, screen))]
    if screen.moves:
        beside.append(asyncio.create_task(_show_progress(client, job_id, screen)))
    try:
        async for line in client.follow_logs(job_id):
            screen.log(line)
    finally:
        for task in beside:
            task.cancel()
        await asyncio.gather(*beside, return_exceptions=True)
    job = await client.get(job_id)
    screen.show(job)
    return job


async def _show_changes(client: "AsyncClient", job_id: str, screen: "_Screen") -> None:
    """Every change of status but the end, which is told when the log is through."""
    from foliot.domain.errors import FoliotError
    from foliot.domain.status import is_ended
    from foliot.sdk.event import Event
    from foliot.sdk.event_stream import Lost, follow

    try:
        async for told in follow(client, [("job_id", job_id)]):
            if isinstance(told, Lost):
                continue
            job = told.job if isinstance(told, Event) else await client.get(job_id)
            if job is not None and not is_ended(job.status):
                screen.show(job)
    except FoliotError:
        if not screen.moves:  # else it is looked at already
            await _show_progress(client, job_id, screen)


async def _show_progress(client: "AsyncClient", job_id: str, screen: "_Screen") -> None:
    """How far it is: nothing tells of that but a look."""
    import asyncio

    from foliot.domain.errors import FoliotError
    from foliot.domain.status import is_ended

    with suppress(FoliotError):  # the log, which is followed beside it, tells what is wrong
        while not is_ended((job := await client.get(job_id)).status):
            screen.show(job)
            await asyncio.sleep(PROGRESS_SECONDS)


class _Screen:
    """Where a watched job is shown: a bar that moves on a terminal, else only lines."""

    def __init__(self, bar: Any = None) -> None:
        self.moves = bar is not None
        self._bar = bar
        self._task = bar.add_task("", total=None, note="") if bar else None
        self._seen: tuple[str, int, bool] | None = None

    def log(self, line: "LogInfo") -> None:
        self._print(log_line(line), err=False)

    def show(self, job: "JobInfo") -> None:
        seen = (job.status, job.attempt, job.cancel_requested)
        if seen != self._seen:
            self._seen = seen
            self._print(_headline(job), err=True)
        if self._bar:
            progress = job.progress
            value = progress.value if progress else None
            self._bar.update(
                self._task,
                description=job.status,
                total=None if value is None else 1,
                completed=value or 0,
                note=plain((progress.note if progress else None) or ""),
            )

    def _print(self, text: str, *, err: bool) -> None:
        if self._bar and (err or sys.stdout.isatty()):
            from rich.text import Text

            self._bar.console.print(Text.from_ansi(text))  # through the bar, which moves down for it
        else:
            click.echo(text, err=err)


@contextmanager
def _screen() -> Iterator[_Screen]:
    if not sys.stderr.isatty():
        yield _Screen()
        return
    from rich.progress import BarColumn, Progress, SpinnerColumn, TaskProgressColumn, TextColumn, TimeElapsedColumn

    columns = (
        SpinnerColumn(),
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        TaskProgressColumn(),
        TimeElapsedColumn(),
        TextColumn("{task.fields[note]}", markup=False),
    )
    with Progress(*columns, console=console(stderr=True), transient=True) as bar:
        yield _Screen(bar)


def _headline(job: "JobInfo") -> str:
    """One line on where a job stands."""
    status = "cancelling" if job.cancel_requested and job.status == "running" else job.status
    parts = [f"{job.job_id} {click.style(status, fg=STATUS_STYLES.get(status))}"]
    if job.attempt > 1:
        parts.append(f"attempt {job.attempt}")
    if job.reason:
        parts.append(job.reason)
    if job.status == "failed" and job.last_error:
        error = job.last_error
        parts.append(plain(error if isinstance(error, str) else error.message or error.type or ""))
    return ", ".join(part for part in parts if part)
