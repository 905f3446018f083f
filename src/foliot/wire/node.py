"""The node itself: its peers, its figures, and how it says that something is wrong."""

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


class Problem(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """RFC 9457."""

    type: str
    title: str
    status: int
    detail: str
    request_id: str = ""
    errors: list["ProblemField"] = []


class ProblemField(Struct, frozen=True, kw_only=True):
    field: str
    message: str
