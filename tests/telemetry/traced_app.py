"""An app whose handlers make spans of their own, call on, fail once, and submit further jobs."""

import os

from opentelemetry import trace

from foliot import Foliot, JobContext

app = Foliot(os.environ.get("FOLIOT_URL", "http://127.0.0.1:7070"))


def _own_span(name: str) -> None:
    with trace.get_tracer("app").start_as_current_span(name):
        pass


@app.job
async def nest() -> None:
    _own_span("own in a loop")


@app.job
def nest_in_thread() -> None:
    _own_span("own in a thread")


@app.job(isolation="process")
def nest_in_process() -> None:
    _own_span("own in a process")


@app.job
async def flaky(context: JobContext) -> int:
    if context.attempt < 3:
        raise ValueError("the payload's secret is in here")
    return context.attempt


@app.job
def parent() -> None:
    nest.submit()
