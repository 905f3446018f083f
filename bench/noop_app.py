"""The worker's side: jobs that do nothing but note that they started. Run: foliot worker bench.noop_app:app"""

import os
from datetime import datetime

from bench.sheet import Sheet
from foliot import Foliot, JobContext

app = Foliot()
note_started = Sheet(os.environ["BENCH_SHEET"]).note_started


@app.job
async def noop(number: int, pad: str) -> None:
    note_started(number)


@app.job
async def tick(number: int, start: datetime, context: JobContext) -> None:
    """A run of a schedule, one each second from `start`, which is the run with that number."""
    note_started(number + round((context.schedule_time - start).total_seconds()))
