"""An app whose job notes each run in a file, so that tests count from the workers' side."""

import os

from foliot import Foliot

app = Foliot(os.environ.get("FOLIOT_URL", "http://127.0.0.1:7070"))
_runs = os.open(os.environ["RUNS_FILE"], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)


@app.job
async def count(number: int) -> int:
    os.write(_runs, f"{number}\n".encode())
    return number
