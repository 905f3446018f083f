"""`foliot submit`: hand in a job, or many from a file."""

import sys
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import click

from foliot.cli.connection import be_patient, with_client
from foliot.cli.exits import WrongUse
from foliot.cli.show import console, count_text, json_option, print_json
from foliot.cli.times import DURATION, TIME
from foliot.cli.tree import Command

if TYPE_CHECKING:
    from foliot.sdk.client import Client
    from foliot.wire import SubmitBody

PRIORITIES = ("high", "medium", "low", *"0123456789")
CHUNK = 1000


@click.command(
    cls=Command,
    examples="""
    foliot submit echo '{"message": "hello", "seconds": 2}' --wait
    foliot submit report @payload.json --id nightly-2027-03-01 --at 2027-03-01T02:00 --tag nightly
    foliot submit mail - --delay 10m --priority high --max-attempts 5 < payload.json
    foliot submit --batch jobs.jsonl
    """,
)
@click.argument("job_type", required=False)
@click.argument("payload", required=False)
@click.option("--id", "job_id", metavar="JOB_ID", help="Your own id: submitting it again changes nothing.")
@click.option("--at", type=TIME, help="When to run: RFC 3339, local time without an offset, or +10m.")
@click.option("--delay", type=DURATION, help="How long from now: 250ms, 30s, 5m, 2h, 1d.")
@click.option("--priority", type=click.Choice(PRIORITIES), metavar="P", help="high, medium, low, or 0 to 9 (9 first).")
@click.option("--queue", metavar="QUEUE", help="Which queue.  [default: default]")
@click.option("--timeout", type=DURATION, help="Longest run of one attempt.  [default: 1h]")
@click.option("--deadline", type=TIME, help="Fail it where it has not started by then.")
@click.option("--tag", multiple=True, metavar="TAG", help="A word to find it by; may repeat.")
@click.option("--max-attempts", type=click.IntRange(1, 1000), metavar="N", help="How often to try.  [default: 3]")
@click.option("--wait", is_flag=True, help="Follow its log and progress to the end.")
@click.option(
    "--batch",
    type=click.Path(path_type=Path, allow_dash=True),
    metavar="FILE",
    help="Hand in all jobs of a file of JSON lines, each the body of a submit ('-' is stdin).",
)
@json_option
@with_client
@click.pass_context
def submit(
    ctx: click.Context, /, client: "Client", batch: Path | None, as_json: bool, wait: bool, **given: Any
) -> None:
    """Hand in a job and print its id.

    PAYLOAD is JSON, @FILE to read it from a file, or - to read it from stdin; without one it is {}. With --wait the
    exit code tells how the job ended: 0 completed, 1 failed, 3 cancelled.

    With --batch the jobs are handed in a thousand at a time; each thousand is kept as a whole or not at all.
    """
    if batch is not None:
        if wait or any(given.values()):
            raise click.UsageError("--batch takes everything from the file; leave out the job type and its options")
        _submit_file(client, batch, as_json=as_json)
        return
    if given["job_type"] is None:
        raise click.UsageError("which job type? For example: foliot submit echo, or --batch FILE for many")
    job_id = client.submit(submit_body(**given))
    if wait:
        from foliot.cli import watching

        ctx.exit(watching.watch_to_end(client, job_id, as_json=as_json))
    from foliot.wire import Submitted

    print_json(Submitted(job_id=job_id)) if as_json else click.echo(job_id)


def submit_body(
    *,
    job_type: str,
    payload: str | None,
    job_id: str | None,
    at: datetime | None,
    delay: float | str | None,
    priority: str | None,
    queue: str | None,
    timeout: float | str | None,
    deadline: datetime | None,
    tag: tuple[str, ...],
    max_attempts: int | None,
) -> "SubmitBody":
    """The body of the API's call. What was not given is left to the node."""
    from foliot.wire import RetryBody, SubmitBody

    if at is not None and delay is not None:
        raise click.UsageError("--at and --delay both say when; give one of them")
    given = {
        "payload": None if payload is None else payload_of(payload),
        "job_id": job_id,
        "schedule_time": at,
        "delay": delay,
        "priority": priority_of(priority),
        "queue": queue,
        "timeout": timeout,
        "deadline": deadline,
        "tags": list(tag) or None,
        "retry": RetryBody(max_attempts=max_attempts) if max_attempts else None,
    }
    return SubmitBody(job_type=job_type, **{name: value for name, value in given.items() if value is not None})  # type: ignore[arg-type]


def priority_of(word: str | None) -> int | str | None:
    """As the API takes it: a number, or one of its words."""
    return int(word) if word and word.isdigit() else word


def payload_of(text: str) -> Any:
    """The payload as it was written, once it is known to be JSON."""
    import msgspec

    where = "the payload"
    if text == "-":
        text, where = sys.stdin.read(), "stdin"
    elif text.startswith("@"):
        where = text[1:]
        try:
            text = Path(where).read_text("utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise WrongUse(f"{where} can not be read: {getattr(error, 'strerror', None) or error}") from None
    try:
        msgspec.json.decode(text)
    except msgspec.DecodeError as error:
        raise WrongUse(
            f'{where} is not JSON ({error}); put it in single quotes, as in \'{{"message": "hello"}}\', or use @FILE'
        ) from None
    return msgspec.Raw(text.encode())


def _submit_file(client: "Client", file: Path, *, as_json: bool) -> None:
    from foliot.wire import BatchSubmitted

    ids: list[str] = []
    try:
        stream = click.open_file(str(file), "rb")
    except OSError as error:
        raise WrongUse(f"{file} can not be read: {error.strerror}") from None
    with stream, _bar(file) as bar:
        for bodies, size in _chunks(stream):
            ids += client.submit_many(bodies)
            be_patient(client)
            bar.update(bar.task_ids[0], advance=size, description=count_text(len(ids)))
    if as_json:
        print_json(BatchSubmitted(job_ids=ids))
    else:
        click.echo(f"{count_text(len(ids))} submitted")


def _chunks(stream: IO[bytes]) -> "Iterator[tuple[list[SubmitBody], int]]":
    """The file's jobs, a thousand at a time, with the bytes that they took."""
    import msgspec

    from foliot.wire import SubmitBody

    decoder = msgspec.json.Decoder(SubmitBody)
    bodies: list[SubmitBody] = []
    size = done = 0
    for number, line in enumerate(stream, 1):
        size += len(line)
        if not line.strip():
            continue
        try:
            bodies.append(decoder.decode(line))
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise WrongUse(
                f"line {number}: {error}. {done} jobs before it were submitted and stay; those with an id of their own "
                "may be submitted again without harm"
            ) from None
        if len(bodies) == CHUNK:
            yield bodies, size
            done += len(bodies)
            bodies, size = [], 0
    if bodies:
        yield bodies, size


def _bar(file: Path) -> Any:
    """A progress bar over the file's bytes, shown on a terminal only."""
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

    screen = console(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TimeRemainingColumn())
    bar = Progress(*columns, console=screen, disable=not screen.is_terminal)
    bar.add_task("0 jobs", total=file.stat().st_size if file.is_file() else None)
    return bar
