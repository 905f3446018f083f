"""The calls on queues and job types."""

from typing import Any

import msgspec

from foliot.api.call import Answer, Call
from foliot.api.headers import etag, if_match
from foliot.api.jobs import NoFields
from foliot.api.messages import explain
from foliot.api.paging import paged
from foliot.api.query import PageQuery, given
from foliot.wire import JobType, QueueBody, QueueInfo, QueueName


class QueuePath(msgspec.Struct, frozen=True):
    queue: QueueName


class TypePath(msgspec.Struct, frozen=True):
    job_type: JobType


async def list_queues(call: Call[None, PageQuery]) -> Answer:
    page, cursor = await call.services.queues.page(
        limit=call.query.limit, cursor=given(call.query.cursor), caller=call.caller
    )
    return paged(call, page, cursor)


async def read_queue(call: Call[None, None]) -> Answer:
    return _answer(await call.services.queues.read(call.names["queue"], call.caller))


async def set_queue(call: Call[QueueBody, None]) -> Answer:
    name = _checked(call, QueuePath).queue
    queue = await call.services.queues.set(name, call.body, if_match=if_match(call.headers), caller=call.caller)
    return _answer(queue)


async def pause_queue(call: Call[NoFields, None]) -> Answer:
    name = _checked(call, QueuePath).queue
    queue = await call.services.queues.pause(name, if_match=if_match(call.headers), caller=call.caller)
    return _answer(queue)


async def resume_queue(call: Call[NoFields, None]) -> Answer:
    name = _checked(call, QueuePath).queue
    queue = await call.services.queues.resume(name, if_match=if_match(call.headers), caller=call.caller)
    return _answer(queue)


async def list_held_types(call: Call[None, None]) -> Answer:
    return Answer(await call.services.queues.held_types(call.caller))


async def pause_type(call: Call[NoFields, None]) -> Answer:
    name = _checked(call, TypePath).job_type
    return Answer(await call.services.queues.hold_type(name, held=True, caller=call.caller))


async def resume_type(call: Call[NoFields, None]) -> Answer:
    name = _checked(call, TypePath).job_type
    return Answer(await call.services.queues.hold_type(name, held=False, caller=call.caller))


def _checked(call: Call[Any, Any], kind: type[QueuePath] | type[TypePath]) -> Any:
    """The name in the path, where a queue or a job type may have it."""
    try:
        return msgspec.convert(call.names, kind)
    except msgspec.ValidationError as error:
        raise explain(error, kind) from None


def _answer(queue: QueueInfo) -> Answer:
    return Answer(queue, headers=(etag(queue.version),))
