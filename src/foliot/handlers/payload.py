"""Reads a built-in handler's payload and says which field is wrong."""

import re
from typing import TypeVar

import msgspec

from foliot.sdk.errors import Fatal

T = TypeVar("T")

_AT = re.compile(r"^(?P<what>.*) - at `\$\.?(?P<field>[^`]*)`$", re.DOTALL)


def read_payload(payload: bytes, kind: type[T]) -> T:
    """The payload as `kind`; what is wrong with it ends the job, since it will be as wrong the next time."""
    try:
        return msgspec.json.decode(payload, type=kind)
    except msgspec.MsgspecError as error:
        raise bad_payload(*_told(str(error))) from None


def bad_payload(field: str, message: str) -> Fatal:
    return Fatal(f"payload.{field}: {message}" if field else f"payload: {message}", code="bad_payload")


def _told(text: str) -> tuple[str, str]:
    found = _AT.match(text)
    return (found["field"], found["what"]) if found else ("", text)
