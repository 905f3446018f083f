"""`echo`: logs a message, waits, fails as often as asked, returns the message. To try things out."""

import asyncio
from typing import Annotated

from msgspec import Meta, Struct

from foliot.handlers.payload import read_payload
from foliot.sdk.context import JobContext
from foliot.sdk.errors import Retry
from foliot.sdk.handler import Handler


class EchoPayload(Struct, forbid_unknown_fields=True, frozen=True, kw_only=True):
    seconds: Annotated[float, Meta(ge=0)] = 0
    fail: Annotated[int, Meta(ge=0)] = 0
    message: str = ""


def echo_handler() -> Handler:
    return Handler(name="echo", function=echo)


async def echo(payload: bytes, context: JobContext) -> str:
    wanted = read_payload(payload, EchoPayload)
    if wanted.message:
        context.log.info(wanted.message)
    if wanted.seconds:
        await asyncio.sleep(wanted.seconds)
    if context.attempt <= wanted.fail:
        raise Retry(f"attempt {context.attempt} of {wanted.fail} that are to fail", code="asked_to_fail")
    return wanted.message
