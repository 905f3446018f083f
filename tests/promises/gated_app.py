"""An app whose jobs note when and where they run, and whose gated ones go on when a file lets them."""

import asyncio
import os
import time
from pathlib import Path

import msgspec

from foliot import Foliot, JobContext

GATES = Path(os.environ.get("GATES", "."))
WORKER = os.environ.get("WORKER_NAME", "")
NOTES = "runs"

app = Foliot(os.environ.get("FOLIOT_URL", "http://127.0.0.1:7070"))


class Run(msgspec.Struct, frozen=True, kw_only=True):
    """One start of a handler, by the clock of the machine it runs on."""

    job_id: str
    attempt: int
    worker: str
    idempotency_key: str
    time: int


def runs_in(folder: Path) -> list[Run]:
    """What was noted so far; a line that is being written is left for later."""
    file = folder / NOTES
    lines = file.read_bytes().splitlines(keepends=True) if file.exists() else []
    return [msgspec.json.decode(line, type=Run) for line in lines if line.endswith(b"\n")]


def gate(folder: Path, job_id: str, attempt: int) -> Path:
    return folder / f"gate-{job_id}-{attempt}"


def _note(context: JobContext) -> None:
    run = Run(
        job_id=context.job_id,
        attempt=context.attempt,
        worker=WORKER,
        idempotency_key=context.idempotency_key,
        time=time.time_ns() // 1000,
    )
    notes = os.open(GATES / NOTES, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    try:
        os.write(notes, msgspec.json.encode(run) + b"\n")
    finally:
        os.close(notes)


@app.job
async def mark(context: JobContext) -> str:
    _note(context)
    return WORKER


@app.job
async def gated(context: JobContext) -> str:
    """Runs until its gate, one for each attempt, is opened; says so in its log."""
    _note(context)
    while not gate(GATES, context.job_id, context.attempt).exists():  # noqa: ASYNC110 (a file has no event)
        await asyncio.sleep(0.02)
    context.log.info("%s is past the gate", WORKER)
    return WORKER
