"""The calls for figures: how late jobs were, how full a queue is, and all of it for Prometheus."""

import asyncio
from collections.abc import Sequence
from typing import Annotated, Literal

from msgspec import UNSET, Meta, UnsetType

from foliot.api.call import Answer, Call
from foliot.api.query import given
from foliot.telemetry.families import Reading
from foliot.wire import Body, JobType, QueueName, Time, to_micros


class LatenessQuery(Body, frozen=True, kw_only=True):
    """Which jobs, by when they ended, to the minute."""

    queue: QueueName | UnsetType = UNSET
    job_type: JobType | UnsetType = UNSET
    since: Annotated[Time, Meta(description="from then on; unless given an hour before `until`")] | UnsetType = UNSET
    until: Annotated[Time, Meta(description="before then; unless given now")] | UnsetType = UNSET
    by: Annotated[Literal["queue", "job_type", "both"], Meta(description="what is told apart")] = "both"


async def read_lateness(call: Call[None, LatenessQuery]) -> Answer:
    asked = call.query
    return Answer(
        await call.services.lateness.percentiles(
            call.caller,
            since=None if asked.since is UNSET else to_micros(asked.since),
            until=None if asked.until is UNSET else to_micros(asked.until),
            queue=given(asked.queue),
            job_type=given(asked.job_type),
            by=asked.by,
        )
    )


async def read_depth(call: Call[None, None]) -> Answer:
    return Answer(await call.services.metrics.depth(call.names["queue"], call.caller))


async def read_metrics(call: Call[None, None]) -> Answer:
    """Written in a thread: there may be thousands of series."""
    readings = await call.services.metrics.collect(call.caller)
    accept = call.headers.get(b"accept", b"").decode("latin-1")
    text, content_type = await asyncio.to_thread(_write, readings, accept, process=call.caller.root)
    return Answer(text, content_type=content_type)


def _write(readings: Sequence[Reading], accept: str, *, process: bool) -> tuple[bytes, bytes]:
    # Not needed by a node that nobody scrapes, and slow to load.
    from foliot.telemetry.exposition import render
    from foliot.telemetry.process import process_readings

    return render([*readings, *(process_readings() if process else ())], accept)
