"""The calls on schedules: so far, when one would run."""

from foliot.api.call import Answer, Call
from foliot.api.query import PreviewQuery
from foliot.wire import PreviewBody


async def preview_trigger(call: Call[None, PreviewQuery]) -> Answer:
    return Answer(await call.services.schedules.preview(call.query.body()))


async def preview_schedule(call: Call[PreviewBody, None]) -> Answer:
    return Answer(await call.services.schedules.preview(call.body))
