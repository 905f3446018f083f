"""Following a job to its end: its log, its progress, its changes of status."""

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import click

from foliot.cli.connection import be_patient
from foliot.cli.exits import code_of_status
from foliot.cli.show import LEVEL_STYLES, STATUS_STYLES, console, plain, print_json

if TYPE_CHECKING:
    from foliot.sdk.client import Client
    from foliot.wire import JobInfo, LogInfo

FIRST_LOOK_SECONDS = 0.05
LONGEST_LOOK_SECONDS = 0.5
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
    from foliot.domain.status import is_ended

    after, step = None, FIRST_LOOK_SECONDS
    with _screen(quiet=quiet) as screen:
        while True:
            # The job before its log: a line is stored before or with the end that follows it, so none is missed.
            job = client.get(job_id)
            be_patient(client)
            for line in () if quiet else _lines_so_far(client, job_id, None, after):
                screen.log(line)
                after, step = line.log_id, FIRST_LOOK_SECONDS
            screen.show(job)
            if is_ended(job.status):
                return job
            time.sleep(step)
            step = min(step * 1.3, LONGEST_LOOK_SECONDS)


class _Screen:
    """Where a watched job is shown: a bar that moves on a terminal, else only lines."""

    def __init__(self, bar: Any = None, *, quiet: bool = False) -> None:
        self._bar = bar
        self._task = bar.add_task("", total=None, note="") if bar else None
        self._quiet = quiet
        self._seen: tuple[str, int, bool] | None = None

    def log(self, line: "LogInfo") -> None:
        self._print(log_line(line), err=False)

    def show(self, job: "JobInfo") -> None:
        seen = (job.status, job.attempt, job.cancel_requested)
        if not self._quiet and seen != self._seen:
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
def _screen(*, quiet: bool) -> Iterator[_Screen]:
    if quiet or not sys.stderr.isatty():
        yield _Screen(quiet=quiet)
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
