"""The worker's side: a job that does nothing but note that it started. Run: foliot worker bench.noop_app:app"""

import os

from bench.sheet import Sheet
from foliot import Foliot

app = Foliot()
note_started = Sheet(os.environ["BENCH_SHEET"]).note_started


@app.job
async def noop(number: int, pad: str) -> None:
    note_started(number)
