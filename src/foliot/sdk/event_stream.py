"""Following what happens at a node, over as many connections as it takes: a stream may break off at any time, and goes
on at whichever node answers then, behind the last event that was seen."""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from urllib.parse import urlencode

from msgspec import Struct

from foliot.sdk.event import Event, read_event
from foliot.sdk.failures import EventsGone, EventsOff, FoliotHttpError, Gone, Unavailable, Unreachable
from foliot.sdk.requester import Requester
from foliot.sdk.server_events import Message, messages
from foliot.sdk.transport import StreamingTransport
from foliot.wire import BASE_PATH

NOW = "now"
MOST_JOBS = 100  # that one stream can name
FIRST_WAIT_SECONDS = 0.05
LONGEST_WAIT_SECONDS = 2.0
STEADY_SECONDS = 5.0  # a connection that held so long was a good one

Wanted = Sequence[tuple[str, str]]


class Opened(Struct, frozen=True):
    """Connected: of what happens from here on nothing is missed. `again`: after it was lost."""

    again: bool


class Lost(Struct, frozen=True):
    """No longer connected; it is tried again. `error` tells why, where the node did not just end the stream."""

    error: FoliotHttpError | None


async def follow(client: Requester, wanted: Wanted, since: str = NOW) -> AsyncGenerator[Event | Opened | Lost, None]:
    """Events in order, each once. Ends only by an error: what the node refuses, or where it is away for longer than the
    client has patience."""
    loop = asyncio.get_running_loop()
    seen: str | None = None
    again, wait, end = False, FIRST_WAIT_SECONDS, loop.time() + client.patience
    while True:
        error, opened = None, None
        try:
            async with aclosing(_connect(client, wanted, since, seen)) as told:
                async for message in told:
                    seen = message.id or seen
                    if opened is None:
                        opened = loop.time()
                        yield Opened(again)
                        again = True
                    if message.data is not None:
                        wait = FIRST_WAIT_SECONDS
                        yield read_event(message.data, seen or "")
        except Gone as gone:
            raise EventsGone(gone.detail, problem=gone.problem, http_status=gone.http_status) from gone
        except Unavailable as unavailable:
            error = unavailable
        if opened is not None:
            if loop.time() - opened >= STEADY_SECONDS:
                wait = FIRST_WAIT_SECONDS
            end = loop.time() + client.patience
            yield Lost(error)
        pause = max(wait, (error.retry_after if error else None) or 0.0)
        if loop.time() + pause > end:
            raise error or Unreachable(f"{client.url} ended the stream of events", sent=True)
        await asyncio.sleep(pause)
        wait = min(wait * 2, LONGEST_WAIT_SECONDS)


async def _connect(client: Requester, wanted: Wanted, since: str, seen: str | None) -> AsyncGenerator[Message, None]:
    """One connection: behind the event that was seen last, else from `since` on."""
    transport = client.transport
    if not isinstance(transport, StreamingTransport):
        raise EventsOff("events can not be followed here: this client's transport does not stream")
    headers = {**client.headers, "Accept": "text/event-stream"}
    if seen is not None:
        headers["Last-Event-ID"] = seen
    query = urlencode([*wanted, *([] if seen is not None else [("after", since)])])
    async with aclosing(transport.stream(f"{BASE_PATH}/events?{query}", headers)) as chunks:  # type: ignore[type-var]
        async for message in messages(chunks):
            yield message
