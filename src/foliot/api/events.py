"""Following what happens."""

from typing import Annotated

from msgspec import UNSET, Meta, UnsetType, field

from foliot.api.call import Call, EventStream
from foliot.api.query import given
from foliot.domain.errors import BadInput
from foliot.wire import Body, JobId, JobType, QueueName


class EventsQuery(Body, frozen=True, kw_only=True):
    """Which events; each may be given more than once, and then any of them will do."""

    job_id: Annotated[list[JobId], Meta(description="of these jobs, at most 100")] = field(default_factory=list)
    queue: Annotated[list[QueueName], Meta(description="of jobs of these queues")] = field(default_factory=list)
    job_type: Annotated[list[JobType], Meta(description="of jobs of these types")] = field(default_factory=list)
    status: Annotated[
        list[str], Meta(description="changes to these statuses; waiting is every status before running")
    ] = field(default_factory=list)
    after: (
        Annotated[
            str, Meta(max_length=20_000, description="the id of an event, or `now` (so unless given), or `start`")
        ]
        | UnsetType
    ) = UNSET


async def follow_events(call: Call[None, EventsQuery]) -> EventStream:
    feed, query = call.services.feed, call.query
    position = feed.begin(_last_event(call))
    selection = await feed.select(
        call.caller, job_ids=query.job_id, queues=query.queue, job_types=query.job_type, statuses=query.status
    )
    return EventStream(feed.follow(selection, position))


def _last_event(call: Call[None, EventsQuery]) -> str | None:
    """Where to go on: what the client saw last, else where it asked to begin."""
    last = call.headers.get(b"last-event-id")
    if last is None:
        return given(call.query.after)
    if not last.isascii():
        raise BadInput.at("Last-Event-ID", "is no position of ours; take it from an event")
    return last.decode("ascii")
