"""A file of jobs, handed in: JSON lines, each the body of a submit."""

from collections.abc import Iterator
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import click

from foliot.cli.connection import be_patient
from foliot.cli.exits import WrongUse
from foliot.cli.show import console, count_text, print_json

if TYPE_CHECKING:
    from foliot.sdk.client import Client
    from foliot.wire import SubmitBody

CHUNK = 1000


def submit_file(client: "Client", file: Path, *, whole: bool, as_json: bool) -> None:
    """Hands in the file's jobs, a thousand to a request or as a `whole`, and tells how many were taken in."""
    from foliot.wire import BATCH_LIMIT, BatchSubmitted, Submitted

    answers: list[Submitted] = []
    try:
        stream = click.open_file(str(file), "rb")
    except OSError as error:
        raise WrongUse(f"{file} can not be read: {error.strerror}") from None
    with stream, _bar(file) as bar:
        for bodies, size in _chunks(stream, BATCH_LIMIT + 1 if whole else CHUNK):
            try:
                answers += client.hand_in_many(bodies, whole=whole)
            except ValueError as error:
                raise WrongUse(f"{error}; leave out --whole, with parents before those that depend on them") from None
            be_patient(client)
            bar.update(bar.task_ids[0], advance=size, description=count_text(len(answers)))
    earlier = [place for place, answer in enumerate(answers) if answer.duplicate]
    if as_json:
        print_json(BatchSubmitted(job_ids=[answer.job_id for answer in answers], duplicates=tuple(earlier)))
        return
    click.echo(f"{count_text(len(answers) - len(earlier))} submitted")
    if earlier:
        click.echo(f"{count_text(len(earlier))} not taken in: others with the same unique_key still wait", err=True)


def _chunks(stream: IO[bytes], chunk: int) -> "Iterator[tuple[list[SubmitBody], int]]":
    """The file's jobs, so many at a time, with the bytes that they took."""
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
        if len(bodies) == chunk:
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
