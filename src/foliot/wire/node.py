"""The node itself: its peers, its figures, and how it says that something is wrong."""

from typing import Literal

from msgspec import Struct

from foliot.wire.base import Time


class NodeView(Struct, frozen=True, kw_only=True):
    node_id: str
    name: str
    version: str
    since: Time
    last_seen: Time
    alive: bool


class Stats(Struct, frozen=True, kw_only=True):
    """About how many jobs stand where, how many workers are there, and this node's rates over the last ten seconds."""

    jobs: dict[str, int]
    workers: int
    slots: float
    running: int
    submitted_per_second: float
    started_per_second: float
    ended_per_second: float


class HealthCheck(Struct, frozen=True, kw_only=True):
    """One thing that a node looks at to know whether it can do its work. With a `warning` it can."""

    name: str
    status: Literal["ok", "warning", "failed"]
    detail: str


class Readiness(Struct, frozen=True, kw_only=True):
    """Whether a node can do its work, and why not. As a 503 the same checks are part of a problem."""

    status: Literal["ready", "not ready"]
    checks: list[HealthCheck]


class StoreFact(Struct, frozen=True, kw_only=True):
    """Something measured of the store; `trouble` tells what is wrong with it, "" where nothing is."""

    name: str
    value: float
    trouble: str


class Problem(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """RFC 9457."""

    type: str
    title: str
    status: int
    detail: str
    request_id: str = ""
    errors: list["ProblemField"] = []
    checks: list[HealthCheck] = []


class ProblemField(Struct, frozen=True, kw_only=True):
    field: str
    message: str
