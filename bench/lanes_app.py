"""The worker's side with many job types that do the same: one lane each. Run: foliot worker bench.lanes_app:app"""

import os

from bench.noop_app import app, note_started


async def _noop(number: int, pad: str) -> None:
    note_started(number)


for _number in range(int(os.environ["BENCH_LANES"])):
    app.job(name=f"noop-{_number}")(_noop)
