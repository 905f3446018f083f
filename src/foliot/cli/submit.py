"""`foliot submit`: hand in a job, or many from a file."""

import sys
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from foliot.cli.connection import with_client
from foliot.cli.exits import WrongUse
from foliot.cli.job_options import PARENT, Parent, asked_fields, job_options, parents_of
from foliot.cli.show import json_option, print_json
from foliot.cli.submit_file import submit_file
from foliot.cli.times import DURATION, TIME
from foliot.cli.tree import Command

if TYPE_CHECKING:
    from foliot.sdk.client import Client
    from foliot.wire import SubmitBody

PRIORITIES = ("high", "medium", "low", *"0123456789")


@click.command(
    cls=Command,
    examples="""
    foliot submit echo '{"message": "hello", "seconds": 2}' --wait
    foliot submit report @payload.json --id nightly-2027-03-01 --at 2027-03-01T02:00 --tag nightly
    foliot submit mail - --delay 10m --priority high --max-attempts 5 < payload.json
    foliot submit report --depends-on extract --depends-on audit:any --concurrency account-42=1
    foliot submit train --resource gpu=1 --resource memory=8Gi --require zone=eu --unique-key train-daily
    foliot submit report --notify-on failed --notify-on late --late-after 30s --channel ops
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
@click.option(
    "--depends-on",
    multiple=True,
    type=PARENT,
    metavar="ID[:success|failure|any]",
    help="Start once this job has ended so; may repeat.  [default: success]",
)
@job_options
@click.option("--wait", is_flag=True, help="Follow its log and progress to the end.")
@click.option(
    "--batch",
    type=click.Path(path_type=Path, allow_dash=True),
    metavar="FILE",
    help="Hand in all jobs of a file of JSON lines, each the body of a submit ('-' is stdin).",
)
@click.option("--whole", is_flag=True, help="With --batch: all jobs in one request, up to 10,000, or none.")
@json_option
@with_client
@click.pass_context
def submit(
    ctx: click.Context, /, client: "Client", batch: Path | None, whole: bool, as_json: bool, wait: bool, **given: Any
) -> None:
    """Hand in a job and print its id.

    PAYLOAD is JSON, @FILE to read it from a file, or - to read it from stdin; without one it is {}. With --wait the
    exit code tells how the job ended: 0 completed, 1 failed, 3 cancelled.

    With --batch the jobs are handed in a thousand at a time; each thousand is kept as a whole or not at all. A job may
    depend on those before it in the file; with --whole on any of them.
    """
    if batch is not None:
        if wait or any(given.values()):
            raise click.UsageError("--batch takes everything from the file; leave out the job type and its options")
        submit_file(client, batch, whole=whole, as_json=as_json)
        return
    if whole:
        raise click.UsageError("--whole goes with --batch FILE")
    if given["job_type"] is None:
        raise click.UsageError("which job type? For example: foliot submit echo, or --batch FILE for many")
    answer = client.hand_in(submit_body(**given))
    if answer.duplicate:
        click.echo(f"not taken in: {answer.job_id} has the same --unique-key and still waits", err=True)
    if wait:
        from foliot.cli import watching

        ctx.exit(watching.watch_to_end(client, answer.job_id, as_json=as_json))
    print_json(answer) if as_json else click.echo(answer.job_id)


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
    depends_on: Sequence[Parent],
    **asked: Any,
) -> "SubmitBody":
    """The body of the API's call. What was not given is left to the node."""
    from foliot.wire import RetryBody, SubmitBody

    if at is not None and delay is not None:
        raise click.UsageError("--at and --delay both say when; give one of them")
    given = {
        **asked_fields(asked),
        "payload": None if payload is None else payload_of(payload),
        "job_id": job_id,
        "schedule_time": at,
        "delay": delay,
        "priority": priority_of(priority),
        "queue": queue,
        "timeout": timeout,
        "deadline": deadline,
        "tags": list(tag) or None,
        "depends_on": parents_of(depends_on) or None,
        "retry": RetryBody(max_attempts=max_attempts) if max_attempts else None,
    }
    return SubmitBody(job_type=job_type, **{name: value for name, value in given.items() if value is not None})


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
