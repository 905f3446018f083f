"""Why a job does not run yet, or how it ended. Fed by what decides: the row of the state table, and the same `serves`
and `holds` by which jobs are placed, so that it can not say otherwise than they do.

`reasons` are all that hold a job back now, in the order in which they are looked at: taking away one leaves the others,
and where there is none it starts as soon as a worker asks.
"""

from collections.abc import Sequence

import msgspec

from foliot.domain.duration import Micros, write_duration
from foliot.domain.graph import On
from foliot.domain.job import Lane, Ready, Waiting
from foliot.domain.needs import holds, read_needs, show_amount
from foliot.domain.placement import Demand
from foliot.domain.queue import Queue, Room
from foliot.domain.worker import Worker


class Reason(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that holds a job back: a word of the API, a sentence for people, who is behind it, and until when."""

    reason: str
    detail: str
    by: tuple[str, ...] = ()
    until: Micros | None = None


class OpenParent(msgspec.Struct, frozen=True, kw_only=True):
    """A parent that has not ended as its edge asks: its id as clients know it, its status."""

    name: str
    status: str
    on: On


class Key(msgspec.Struct, frozen=True, kw_only=True):
    """A job's concurrency key: how many at once, who holds a token, and how many wait before this job."""

    key: str
    most: int
    held: int
    holders: tuple[str, ...]
    before: int


def reasons(
    row: Waiting | Ready,
    lane: Lane,
    now: Micros,
    *,
    parents: Sequence[OpenParent] = (),
    key: Key | None = None,
    queue: Queue | None = None,
    room: Room | None = None,
    type_held: bool = False,
    demands: Sequence[Demand] = (),
) -> list[Reason]:
    """`room` is what the queue's limits leave, where it has any; `type_held` whether the job type is paused; `demands`
    are the living workers that are not draining, each with what it has free."""
    found: list[Reason] = []
    if isinstance(row, Waiting):
        if row.hold:
            found.append(Reason(reason="hold", detail="it is paused; resume it"))
        if row.parents:
            found.append(_dependency(row.parents, parents))
        if row.due > now:
            detail = f"after attempt {row.attempt} it waits for the next" if row.attempt else "its time has not come"
            found.append(Reason(reason="time", detail=detail, until=row.due))
        if key is not None and (row.for_key or key.held >= key.most):
            found.append(_limit(key))
    if queue is not None and queue.paused:
        found.append(Reason(reason="queue_hold", detail=f"the queue {lane.queue} is paused; resume it"))
    if type_held:
        found.append(Reason(reason="queue_hold", detail=f"the job type {lane.job_type} is paused; resume it"))
    if room is not None:
        found += _queue_limits(lane, room, now)
    return found + _place(lane, demands)


def missing(worker: Worker, lane: Lane) -> list[str]:
    """What keeps a worker from ever running a job of the lane; nothing where it serves it."""
    needs = read_needs(lane.needs)
    found: list[str] = []
    if worker.namespace != lane.namespace:
        found.append("works for another namespace")
    if worker.queues and lane.queue not in worker.queues:
        found.append(f"does not serve the queue {lane.queue}")
    if worker.job_types and lane.job_type not in worker.job_types:
        found.append(f"does not run {lane.job_type}")
    for name, value in needs.labels:
        if (has := worker.labels.get(name)) != value:
            found.append(f"has no label {name}" if has is None else f"has the label {name}={has}, not {value}")
    for name, amount in needs.amounts:
        offer = worker.offer(name)
        if offer is not None and offer < amount:
            found.append(f"has {show_amount(offer)} {name}, {show_amount(amount)} is asked for")
    return found


def _dependency(count: int, parents: Sequence[OpenParent]) -> Reason:
    ends = {On.SUCCESS: "complete", On.FAILURE: "fail", On.ANY: "end"}
    told = [f"{parent.name} ({parent.status}) to {ends[parent.on]}" for parent in parents[:3]]
    more = count - len(told)
    if more > 0:
        told.append(f"{more} more")
    return Reason(
        reason="dependency", detail=f"waits for {', '.join(told)}", by=tuple(parent.name for parent in parents)
    )


def _limit(key: Key) -> Reason:
    before = f"; {key.before} before it" if key.before else ""
    return Reason(
        reason="limit",
        detail=f"{key.held} of {key.most} with the concurrency key {key.key} are under way{before}",
        by=key.holders,
    )


def _queue_limits(lane: Lane, room: Room, now: Micros) -> list[Reason]:
    found: list[Reason] = []
    rate = room.rules.rate_limit
    if rate is not None and (until := room.wait_until(now)) is not None:
        burst = f" and {rate.burst} more" if rate.burst else ""
        detail = f"the queue {lane.queue} lets {rate.limit} start in {write_duration(rate.per)}{burst}"
        found.append(Reason(reason="rate", detail=f"{detail}; the next can start when its time comes", until=until))
    if room.full():
        detail = f"{room.running} of {room.rules.max_concurrency} jobs of the queue {lane.queue} run"
        found.append(Reason(reason="limit", detail=detail))
    return found


def _place(lane: Lane, demands: Sequence[Demand]) -> list[Reason]:
    able = [demand for demand in demands if demand.worker.serves(lane)]
    amounts = read_needs(lane.needs).amounts
    if any(holds(demand.free, amounts) for demand in able):
        return []
    if able:
        names = tuple(demand.worker.name for demand in able)
        return [
            Reason(reason="no_worker", detail=f"no worker has room for it; it is served by {_list(names)}", by=names)
        ]
    return [Reason(reason="no_worker", detail=_nobody(lane, demands))]


def _nobody(lane: Lane, demands: Sequence[Demand]) -> str:
    """What is missing: at the worker that comes nearest."""
    near = [
        (len(lacks), demand.worker.name, lacks)
        for demand in demands
        if demand.worker.namespace == lane.namespace
        for lacks in [missing(demand.worker, lane)]
    ]
    if not near:
        return "no worker is there; start one"
    _, name, lacks = min(near)
    return f"no worker can run it; the nearest, {name}, {' and '.join(lacks)}"


def _list(names: Sequence[str]) -> str:
    return ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
