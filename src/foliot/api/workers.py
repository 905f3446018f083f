"""The calls that workers make, and those about them."""

from foliot.api.call import Answer, Call
from foliot.api.connection import while_connected
from foliot.api.jobs import NoFields
from foliot.wire import ExchangeBody, RegisterBody


async def register_worker(call: Call[RegisterBody, None]) -> Answer:
    return Answer(await call.services.workers.register(call.body, call.caller))


async def exchange(call: Call[ExchangeBody, None]) -> Answer:
    """A worker that hangs up while it waits is not given jobs that it would never see; what was claimed for it just
    before is sent again when it names what it holds."""
    work = call.services.workers.exchange(call.worker_id, call.body, call.caller)
    return Answer(await (while_connected(call.receive, work) if call.body.wait else work))


async def leave_worker(call: Call[None, None]) -> Answer:
    await call.services.workers.leave(call.worker_id, call.caller)
    return Answer(None)


async def drain_worker(call: Call[NoFields, None]) -> Answer:
    await call.services.workers.drain(call.worker_id, call.caller)
    return Answer(None)


async def list_workers(call: Call[None, None]) -> Answer:
    return Answer(await call.services.workers.list(call.caller))
