"""An app as a user writes it. Its address comes from the environment of whoever imports it."""

import asyncio
import os
from datetime import UTC, datetime, timedelta

import msgspec

from foliot import Fatal, Foliot, JobContext, Retry

app = Foliot()


class Receipt(msgspec.Struct):
    total: int
    due: datetime


@app.job
def bill(items: list[int], when: datetime) -> Receipt:
    return Receipt(total=sum(items), due=when + timedelta(days=30))


@app.job
async def greet(name: str, context: JobContext, *, loud: bool = False) -> str:
    context.log.info("greeting %s", name)
    context.log.warning("attempt %d", context.attempt)
    return name.upper() if loud else name


@app.job(retry=1)
async def fail(word: str) -> None:
    raise ValueError(word)


@app.job(retry={"max_attempts": 3, "initial": 0})
async def flaky(context: JobContext) -> int:
    if context.attempt < 2:
        raise Retry("not yet", after=0)
    return context.attempt


@app.job
async def refuse() -> None:
    raise Fatal("no", code="refused")


@app.job
async def hang(context: JobContext) -> None:
    context.log.info("started")
    await asyncio.Event().wait()


@app.job(isolation="process")
def where_am_i() -> int:
    return os.getpid()


@app.job(isolation="process", retry=3, fatal_for=ValueError)
def halve(n: int) -> int:
    if n % 2:
        raise ValueError(f"{n} is odd")
    return n // 2


@app.job
async def pass_on(name: str) -> str:
    """A job that submits another, on the worker's own event loop."""
    job = await greet.aio.submit(name)
    return job.job_id


NOON = datetime(2030, 1, 1, 12, tzinfo=UTC)
