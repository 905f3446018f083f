"""An app whose jobs note when they begin and end, so that a test can tell which of them ran at the same time."""

import asyncio
import os
import time
from pathlib import Path

import msgspec

from foliot import Foliot, JobContext

app = Foliot(os.environ.get("FOLIOT_URL", "http://127.0.0.1:7070"))
_notes = os.open(os.environ.get("RUNS_FILE", os.devnull), os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)


class Note(msgspec.Struct, frozen=True, kw_only=True):
    """A begin or an end, by the clock that all processes of a machine share."""

    key: str
    job_id: str
    attempt: int
    process: int
    begins: bool
    time: int


def notes_in(file: Path) -> list[Note]:
    """What was noted so far; a line that is being written is left for later."""
    lines = file.read_bytes().splitlines(keepends=True) if file.exists() else []
    return [msgspec.json.decode(line, type=Note) for line in lines if line.endswith(b"\n")]


def now() -> int:
    return time.monotonic_ns()


@app.job
async def limited(key: str, context: JobContext) -> None:
    _note(key, context, begins=True)
    try:
        await asyncio.sleep(0.05)
    finally:
        _note(key, context, begins=False)


def _note(key: str, context: JobContext, *, begins: bool) -> None:
    note = Note(key=key, job_id=context.job_id, attempt=context.attempt, process=os.getpid(), begins=begins, time=now())
    os.write(_notes, msgspec.json.encode(note) + b"\n")
