"""An app whose jobs write down what they hold of their worker, in the order in which it happens there."""

import asyncio
import os
from pathlib import Path

import msgspec

from foliot import Foliot, JobContext

NOTES = Path(os.environ.get("NOTES", "notes"))

app = Foliot(os.environ.get("FOLIOT_URL", "http://127.0.0.1:7070"))


class Note(msgspec.Struct, frozen=True, kw_only=True):
    """A start (1) or an end (-1), of one attempt in one process."""

    process: int
    job_id: str
    sign: int
    resources: dict[str, float]


def notes_in(file: Path) -> list[Note]:
    """What was noted so far; a line that is being written is left for later."""
    lines = file.read_bytes().splitlines(keepends=True) if file.exists() else []
    return [msgspec.json.decode(line, type=Note) for line in lines if line.endswith(b"\n")]


def _note(context: JobContext, sign: int) -> None:
    note = Note(process=os.getpid(), job_id=context.job_id, sign=sign, resources=dict(context.resources))
    file = os.open(NOTES, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    try:
        os.write(file, msgspec.json.encode(note) + b"\n")
    finally:
        os.close(file)


@app.job
async def hold(seconds: float, context: JobContext) -> None:
    _note(context, 1)
    try:
        await asyncio.sleep(seconds)
    finally:
        _note(context, -1)
