"""One call of the API: what it takes, answers and asks for."""

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from msgspec import Struct

from foliot.api.call import Handler
from foliot.domain.access import Permission

Method = Literal["GET", "POST", "PUT", "DELETE"]
Group = Literal[
    "Jobs", "Many jobs", "Events", "Limits", "Queues", "Schedules", "Workers", "Alerts", "Webhooks", "Access", "Node"
]

HEADERS = {
    "Idempotency-Key": "1 to 255 printable ASCII characters; the same request within 24 h is answered as the first",
    "If-Match": "the ETag that a read gave; refused with 412 where it has changed since",
    "traceparent": "the trace that the jobs belong to, as W3C's Trace Context has it; what is none is ignored",
    "Last-Event-ID": "the id of the last event seen (of a log its log_id); goes on after it",
}


class Route(Struct, frozen=True, kw_only=True):
    """One call. `answer` None is no JSON body, a `page` is HTML, `metrics` are text for Prometheus; `also` are further
    statuses worth a word; a body that is not `body_required` may be left out. What it makes may carry its owner, and is
    then not noted elsewhere."""

    method: Method
    path: str
    handler: Handler
    group: Group
    summary: str
    detail: str = ""
    permission: Permission
    body: type[Struct] | None = None
    body_required: bool = True
    query: type[Struct] | None = None
    headers: Sequence[str] = ()
    answer: Any = None
    page: bool = False
    metrics: bool = False
    status: int = 200
    carries_owner: bool = False
    also: Mapping[int, str] = {}

    @property
    def audited(self) -> bool:
        """Every change is noted, but what carries its owner and what workers do."""
        return self.method != "GET" and self.permission not in ("none", "read", "work") and not self.carries_owner
