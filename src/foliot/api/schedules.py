"""The calls on schedules."""

from foliot.api.call import Answer, Call
from foliot.api.headers import etag, if_match, request_key
from foliot.api.jobs import NoFields
from foliot.api.paging import paged
from foliot.api.query import PageQuery, PreviewQuery, given
from foliot.wire import BASE_PATH, BackfillBody, PreviewBody, ScheduleBody, ScheduleUpdateBody


async def preview_trigger(call: Call[None, PreviewQuery]) -> Answer:
    return Answer(await call.services.preview.times(call.query.body()))


async def preview_schedule(call: Call[PreviewBody, None]) -> Answer:
    return Answer(await call.services.preview.times(call.body))


async def create_schedule(call: Call[ScheduleBody, None]) -> Answer:
    created = await call.services.schedules.create(call.body, call.caller, request_key(call.headers))
    return Answer(created, headers=((b"location", f"{BASE_PATH}/schedules/{created.schedule_id}".encode()),))


async def list_schedules(call: Call[None, PageQuery]) -> Answer:
    page, cursor = await call.services.schedules.page(
        limit=call.query.limit, cursor=given(call.query.cursor), caller=call.caller
    )
    return paged(call, page, cursor)


async def read_schedule(call: Call[None, None]) -> Answer:
    schedule = await call.services.schedules.read(call.schedule_id, call.caller)
    return Answer(schedule, headers=(etag(schedule.version),))


async def update_schedule(call: Call[ScheduleUpdateBody, None]) -> Answer:
    return Answer(
        await call.services.schedules.update(
            call.schedule_id, call.body, if_match=if_match(call.headers), caller=call.caller
        )
    )


async def delete_schedule(call: Call[None, None]) -> Answer:
    return Answer(
        await call.services.schedules.delete(call.schedule_id, if_match=if_match(call.headers), caller=call.caller)
    )


async def pause_schedule(call: Call[NoFields, None]) -> Answer:
    return Answer(
        await call.services.schedules.pause(call.schedule_id, if_match=if_match(call.headers), caller=call.caller)
    )


async def resume_schedule(call: Call[NoFields, None]) -> Answer:
    return Answer(
        await call.services.schedules.resume(call.schedule_id, if_match=if_match(call.headers), caller=call.caller)
    )


async def trigger_schedule(call: Call[NoFields, None]) -> Answer:
    return Answer(await call.services.schedules.trigger(call.schedule_id, call.caller))


async def backfill_schedule(call: Call[BackfillBody, None]) -> Answer:
    return Answer(await call.services.schedules.backfill(call.schedule_id, call.body, call.caller))


async def list_runs(call: Call[None, PageQuery]) -> Answer:
    page, cursor = await call.services.schedules.runs(
        call.schedule_id, limit=call.query.limit, cursor=given(call.query.cursor), caller=call.caller
    )
    return paged(call, page, cursor)
