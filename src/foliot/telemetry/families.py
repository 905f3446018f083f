"""Everything that `/metrics` tells, in one table: the page of metrics, the dashboard and the alert rules are checked
against it."""

from collections.abc import Mapping, Sequence
from typing import Final, Literal

import msgspec

Kind = Literal["gauge", "counter", "histogram", "info"]
Scope = Literal["namespace", "node"]


class Family(msgspec.Struct, frozen=True, kw_only=True):
    """One metric. A counter's samples end in `_total`, an info's in `_info`. Those of a `namespace` are shown to
    whoever reaches their jobs, those of the whole `node` to its admin key, unless they are `open` to all."""

    name: str
    kind: Kind
    about: str
    labels: Sequence[str] = ()
    scope: Scope = "node"
    open: bool = False


class Example(msgspec.Struct, frozen=True):
    """One of those that a bucket counts: a job, its value and when, in seconds."""

    job_id: str
    value: float
    time: float


class Buckets(msgspec.Struct, frozen=True, kw_only=True):
    """A histogram's value: (bound in seconds, how many were at most that, an example or None), the sum and the count of
    all."""

    at_most: Sequence[tuple[float, int, Example | None]]
    beyond: Example | None
    sum: float
    count: int


class Sample(msgspec.Struct, frozen=True):
    """One series: its label values in the family's order, and its value. An info's labels are all that it tells."""

    labels: Sequence[str]
    value: float | Buckets


class Reading(msgspec.Struct, frozen=True):
    family: Family
    samples: Sequence[Sample]


_LANE = ("namespace", "queue", "job_type")
_QUEUE = ("namespace", "queue")

FAMILIES: Final[Mapping[str, Family]] = {
    family.name: family
    for family in (
        Family(
            name="foliot_jobs",
            kind="gauge",
            about="Jobs by status, in the whole cluster. Of ended ones all that ever ended.",
            labels=(*_QUEUE, "status"),
            scope="namespace",
        ),
        Family(
            name="foliot_oldest_wait_seconds",
            kind="gauge",
            about="How long the job waits that was due first, of those of which only a worker, a place in their queue "
            "or a token is missing; 0 where none waits.",
            labels=_QUEUE,
            scope="namespace",
        ),
        Family(
            name="foliot_jobs_submitted",
            kind="counter",
            about="Jobs that this node took in, those of schedules included.",
            labels=_QUEUE,
            scope="namespace",
        ),
        Family(
            name="foliot_jobs_started",
            kind="counter",
            about="Attempts that this node gave to workers.",
            labels=_QUEUE,
            scope="namespace",
        ),
        Family(
            name="foliot_jobs_ended",
            kind="counter",
            about="Jobs whose last attempt ended at this node. What ended without an attempt (cancelled or expired "
            "while it waited) is in foliot_jobs.",
            labels=(*_QUEUE, "status"),
            scope="namespace",
        ),
        Family(
            name="foliot_start_lateness_seconds",
            kind="histogram",
            about="From the due time to the start of the attempt that ended the job, as this node counted; to its "
            "claim where the worker does not tell a start.",
            labels=_LANE,
            scope="namespace",
        ),
        Family(
            name="foliot_run_seconds",
            kind="histogram",
            about="How long attempts ran that ended their job, as this node counted.",
            labels=_LANE,
            scope="namespace",
        ),
        Family(
            name="foliot_workers",
            kind="gauge",
            about="Workers by status, in the whole cluster: alive, draining or lost.",
            labels=("namespace", "status"),
            scope="namespace",
        ),
        Family(
            name="foliot_worker_slots",
            kind="gauge",
            about="How many plain jobs the workers that are alive can run at once.",
            labels=("namespace",),
            scope="namespace",
        ),
        Family(
            name="foliot_nodes", kind="gauge", about="Nodes by status: alive or lost.", labels=("status",), open=True
        ),
        Family(
            name="foliot_node",
            kind="info",
            about="This node: its version, and the kind of its store.",
            labels=("node_id", "version", "store"),
            open=True,
        ),
        Family(
            name="foliot_clock_offset_seconds",
            kind="gauge",
            about="How far the store's clock, which all nodes go by, is ahead of this machine's.",
            open=True,
        ),
        Family(
            name="foliot_http_requests",
            kind="counter",
            about="Requests that this process answered, by route and class of status.",
            labels=("route", "status"),
        ),
        Family(
            name="foliot_events",
            kind="counter",
            about="Events that this process sent to subscribers.",
        ),
        Family(
            name="foliot_subscribers_dropped",
            kind="counter",
            about="Subscribers to events that were too slow and were let go.",
        ),
        Family(
            name="foliot_webhook_deliveries",
            kind="counter",
            about="Tries of this process to deliver an event to a webhook, by how they went: delivered, retried or "
            "failed.",
            labels=("outcome",),
        ),
        Family(
            name="foliot_notices",
            kind="counter",
            about="Notices about incidents that this process sent to channels, by how it went: sent or failed.",
            labels=("outcome",),
        ),
        Family(
            name="foliot_store_fact",
            kind="gauge",
            about="What the store measures about itself, by name.",
            labels=("fact",),
        ),
        Family(
            name="foliot_store_trouble",
            kind="gauge",
            about="1 where what the store measures is beyond what is well, by name.",
            labels=("fact",),
        ),
        Family(name="process_cpu_seconds", kind="counter", about="User and system time that this process has used."),
        Family(name="process_resident_memory_bytes", kind="gauge", about="Memory of this process that is in RAM."),
        Family(name="process_start_time_seconds", kind="gauge", about="When this process started, since 1970."),
        Family(name="process_open_fds", kind="gauge", about="Files and connections that this process has open."),
    )
}
