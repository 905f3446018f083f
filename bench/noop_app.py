"""The worker's side: jobs that do nothing but note that they started. Run: foliot worker bench.noop_app:app"""

import os
import time
from datetime import datetime

from bench.sheet import Sheet
from foliot import Foliot, JobContext

app = Foliot()
_sheet = Sheet(os.environ["BENCH_SHEET"])
note_started = _sheet.note_started


@app.job
async def noop(number: int, pad: str) -> None:
    note_started(number)


@app.job
async def tick(number: int, start: datetime, context: JobContext) -> None:
    """A run of a schedule, one each second from `start`, which is the run with that number."""
    note_started(number + round((context.schedule_time - start).total_seconds()))


@app.job
async def parent(number: int, child: int) -> None:
    """The child is asked for when the last of its parents ends."""
    note_started(number)
    _sheet.note_asked(child, time.time_ns())
