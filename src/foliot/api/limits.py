"""The calls on concurrency keys."""

from foliot.api.call import Answer, Call
from foliot.api.paging import paged
from foliot.api.query import PageQuery, given
from foliot.wire import LimitBody


async def list_limits(call: Call[None, PageQuery]) -> Answer:
    page, cursor = await call.services.limits.page(
        limit=call.query.limit, cursor=given(call.query.cursor), caller=call.caller
    )
    return paged(call, page, cursor)


async def read_limit(call: Call[None, None]) -> Answer:
    return Answer(await call.services.limits.read(call.names["key"], call.caller))


async def set_limit(call: Call[LimitBody, None]) -> Answer:
    return Answer(await call.services.limits.set(call.names["key"], call.body, call.caller))
