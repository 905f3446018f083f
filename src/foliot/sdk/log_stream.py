"""Following a job's log: as server-sent events where the transport can stream, by looking again where it can not."""

import asyncio
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING
from urllib.parse import quote, urlencode

import msgspec

from foliot.domain.status import is_ended
from foliot.sdk.failures import EventsOff, Unavailable
from foliot.sdk.server_events import messages
from foliot.sdk.transport import StreamingTransport
from foliot.wire import BASE_PATH, LogInfo, LogLevel

if TYPE_CHECKING:
    from foliot.sdk.async_client import AsyncClient

FIRST_LOOK_SECONDS = 0.05
LONGEST_LOOK_SECONDS = 1.0
_LINE = msgspec.json.Decoder(LogInfo)


async def follow(
    client: "AsyncClient", job_id: str, *, after: str | None, level: LogLevel | None
) -> AsyncIterator[LogInfo]:
    """Lines in order, each once. A stream may break off at any time: only the job's own end is the end."""
    step = FIRST_LOOK_SECONDS
    while True:
        if isinstance(client.transport, StreamingTransport):
            async for line in _streamed(client, client.transport, job_id, after, level):
                after, step = line.log_id, FIRST_LOOK_SECONDS
                yield line
        ended = is_ended((await client.get(job_id)).status)
        while lines := await client.logs(job_id, after=after, level=level):
            for line in lines:
                after, step = line.log_id, FIRST_LOOK_SECONDS
                yield line
        if ended:
            return
        await asyncio.sleep(step)
        step = min(step * 1.5, LONGEST_LOOK_SECONDS)


async def _streamed(
    client: "AsyncClient", transport: StreamingTransport, job_id: str, after: str | None, level: LogLevel | None
) -> AsyncIterator[LogInfo]:
    query = urlencode({name: value for name, value in (("after", after), ("level", level)) if value is not None})
    path = f"{BASE_PATH}/jobs/{quote(job_id, safe=':@')}/logs" + (f"?{query}" if query else "")
    try:
        async for message in messages(transport.stream(path, {**client.headers, "Accept": "text/event-stream"})):
            if message.data is not None:
                yield _LINE.decode(message.data)
    except (Unavailable, EventsOff):
        return  # the caller looks at the job itself, with patience, and comes back
