"""What those who watch keep: channels, rules and subscriptions as users define them, incidents, deliveries, who is on
watch, and how late jobs were."""

from collections.abc import Sequence
from typing import Literal, Protocol

import msgspec

from foliot.domain.duration import Micros

Kind = Literal[
    "channel", "alert", "webhook", "queue"
]  # `queue`: what is to be told of a queue's jobs, and its objective


class Definition(msgspec.Struct, frozen=True, kw_only=True):
    """Something that users define by name; `body` is JSON text that its own service reads."""

    kind: Kind
    namespace: str
    name: str
    body: str
    created: Micros
    version: int = 1


class Incident(msgspec.Struct, frozen=True, kw_only=True):
    """Something that is wrong since `opened`, of one rule and one subject (what it is about, such as a queue and a job
    type). At most one of them is open (`resolved` is None). `body` is JSON text of the alert service's. `notify_at` is
    when the next notice about it is to go out; None: none is."""

    id: int
    namespace: str
    rule: str
    subject: str
    body: str
    opened: Micros
    resolved: Micros | None = None
    notify_at: Micros | None = None
    version: int = 1


class Delivery(msgspec.Struct, frozen=True, kw_only=True):
    """An event for a webhook. `next_try` is None once it is delivered or given up (`state`)."""

    id: int
    namespace: str
    webhook: str
    event_id: str
    event_type: str
    body: str  # the CloudEvent, JSON text
    created: Micros
    state: Literal["pending", "delivered", "failed"] = "pending"
    attempts: int = 0
    next_try: Micros | None
    last_status: int | None = None  # of HTTP
    last_error: str | None = None
    changed: Micros


class Post(msgspec.Struct, frozen=True, kw_only=True):
    """Who is on watch under a name: one node at a time, until `until`; and how far it has read (a position's text, ""
    at first)."""

    name: str
    node: int
    until: Micros
    position: str


class LatenessRow(msgspec.Struct, frozen=True, kw_only=True):
    """How late a queue's and job type's jobs were in one minute, as one node counted. `counts` is JSON text: for each
    phase its histogram (see `domain.lateness`)."""

    minute: Micros
    node: int
    namespace: str
    queue: str
    job_type: str
    counts: str


class Waiter(msgspec.Struct, frozen=True, kw_only=True):
    """Of the jobs of a lane of which only a worker, or a place in their queue, is missing, or a token of their key: one
    of those that were due first."""

    lane_id: int  # the job's own
    id: int
    due: Micros


class Fact(msgspec.Struct, frozen=True, kw_only=True):
    """Something measured about the store: `name` such as `disk_free_bytes`, `dead_rows_share` or
    `oldest_snapshot_seconds`; `trouble` tells in words what is wrong, "" where nothing is."""

    name: str
    value: float
    trouble: str = ""


class WatchStore(Protocol):
    async def put_definition(self, definition: Definition, *, expected: int | None) -> Definition | None:
        """Make it, or replace its body; as it is then, its version one higher than before (1 where it is new) and
        `created` as it was. None where it stands at another version than `expected` (0: it must be new; None:
        whatever)."""
        ...

    async def definitions(self, kind: Kind | None = None, *, namespace: str | None = None) -> list[Definition]:
        """Of one kind or all, of one namespace or all, by kind, namespace and name."""
        ...

    async def remove_definition(self, kind: Kind, namespace: str, name: str) -> bool: ...

    async def take_post(self, name: str, node: int, now: Micros, until: Micros) -> Post | None:
        """Be on watch until then, where this node is already, or nobody is (any more). None: another one is."""
        ...

    async def leave_post(self, name: str, node: int) -> None: ...

    async def advance(
        self,
        post: Post,
        position: str,
        *,
        deliveries: Sequence[Delivery] = (),
        incidents: Sequence[Incident] = (),
    ) -> bool:
        """In one transaction: the post's position becomes this one, where the post's node and position are as given;
        the deliveries are added, the incidents saved as by `save_incidents`. False, and nothing is done, where the post
        is another's by now or stands elsewhere, or an incident was changed meanwhile."""
        ...

    async def open_incidents(self, namespace: str | None = None) -> list[Incident]:
        """All that are not resolved, oldest first."""
        ...

    async def incidents(self, namespace: str, *, limit: int, before: int | None = None) -> list[Incident]:
        """Newest first, those with an id below `before`, resolved ones too."""
        ...

    async def incident(self, namespace: str, incident_id: int) -> Incident | None: ...

    async def save_incidents(self, incidents: Sequence[Incident]) -> bool:
        """All or none: one of version 1 is new (and none of its namespace, rule and subject may be open), another
        replaces the one at the version before it. False where that is not so."""
        ...

    async def take_notices(self, now: Micros, until: Micros, limit: int) -> list[Incident]:
        """Incidents whose `notify_at` has come, earliest first; it is set to `until`, and the version goes one on, in
        the same transaction: the notices are this caller's to send until then. As they are after that."""
        ...

    async def take_deliveries(self, now: Micros, until: Micros, limit: int) -> list[Delivery]:
        """Pending ones whose `next_try` has come, earliest first, those that others hold stepped over; it is set to
        `until`: they are this caller's until then."""
        ...

    async def finish_deliveries(self, deliveries: Sequence[Delivery]) -> None:
        """How tries went: state, attempts, next_try, last_status, last_error and changed as given; one that is gone is
        left out."""
        ...

    async def next_delivery(self) -> Micros | None:
        """When the next try is due."""
        ...

    async def deliveries(
        self, namespace: str, webhook: str, *, limit: int, before: int | None = None, state: str | None = None
    ) -> list[Delivery]:
        """Newest first, those with an id below `before`."""
        ...

    async def delivery(self, namespace: str, webhook: str, delivery_id: int) -> Delivery | None: ...

    async def add_lateness(self, rows: Sequence[LatenessRow]) -> None:
        """Keep them; of the same minute, node, namespace, queue and job type the newest replaces the one before."""
        ...

    async def lateness(self, namespace: str | None, since: Micros, until: Micros) -> list[LatenessRow]:
        """Those of minutes from `since` on and before `until`."""
        ...

    async def waiters(self, lane_ids: Sequence[int], before: Micros, limit: int) -> list[Waiter]:
        """Of each of these lanes (jobs' own) up to `limit` jobs that only wait for a worker, a place in their queue or
        a token, and were due before that, those due first; of a fair or aging queue it may be others that were. Found
        through the indexes that claims use: no scan of all that waits."""
        ...

    async def overruns(self, claimed_before: Micros, limit: int) -> list[tuple[int, int, Micros]]:
        """(id, lane, started or claimed) of attempts that run since before that, oldest first."""
        ...

    async def depths(self) -> list[tuple[int, str, int]]:
        """(lane, status, jobs) for every lane (the jobs' own) and every status that has some: exact, and without
        counting jobs. Ended ones are all that ever ended. Makes this process meet the lanes."""
        ...

    async def facts(self) -> list[Fact]:
        """What can be told about the store's health, cheaply."""
        ...

    async def forget_watch(self, before: Micros, limit: int) -> int:
        """Take away resolved incidents, ended deliveries and lateness rows from before that; how many."""
        ...
