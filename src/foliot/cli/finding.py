"""What `foliot doctor` finds: one line each."""

from typing import Literal

import msgspec

Status = Literal["ok", "warn", "fail"]


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """`todo` is what to do next; "" where nothing is."""

    name: str
    status: Status
    detail: str
    todo: str = ""


def ok(name: str, detail: str) -> Finding:
    return Finding(name=name, status="ok", detail=detail)


def warn(name: str, detail: str, todo: str) -> Finding:
    return Finding(name=name, status="warn", detail=detail, todo=todo)


def fail(name: str, detail: str, todo: str) -> Finding:
    return Finding(name=name, status="fail", detail=detail, todo=todo)
