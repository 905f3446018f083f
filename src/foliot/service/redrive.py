"""Running ended jobs again, alone or with those that were cancelled because of them."""

from collections.abc import Callable, Mapping, Sequence

import msgspec

from foliot.domain import events as e
from foliot.domain.graph import BROKEN_BY, Edge, holds
from foliot.domain.ids import JobKey
from foliot.domain.job import Ended, Job, Record, Ties
from foliot.store.base import Limit, Store

EDGES_READ = 100_000

Limits = Mapping[tuple[str, str], Limit]
Rewrite = Callable[[Job], Job]  # gives a job another payload


def redrive(record: Record, limits: Limits, rewrite: Rewrite | None = None, *, has_parents: bool = False) -> e.Redrive:
    """The event that runs a job again, whatever became of its parents, with its concurrency key and another payload
    where one is given."""
    job = record.job if rewrite is None else rewrite(record.job)
    limit = limits.get((job.lane.namespace, job.limit_key or ""))
    return e.Redrive(
        job=job,
        rewrite=rewrite is not None,
        limit_id=None if limit is None else limit.limit_id,
        ties=Ties.PARENTS if has_parents else 0,
    )


class Family:
    """A job, first, and those below it that were cancelled because of a parent; with the edges at all of them."""

    def __init__(self, records: Sequence[Record], edges: Sequence[Edge]) -> None:
        self.records = records
        members = {record.job.id for record in records}
        self._mothers = {edge.parent for edge in edges if edge.child in members}
        self._parents: dict[JobKey, list[JobKey]] = {}  # of each member, those that it waits for once more
        self._children = {edge.child for edge in edges}
        for edge in edges:
            if edge.child in members and (edge.parent in members or not edge.done):
                self._parents.setdefault(edge.child, []).append(edge.parent)

    def event(self, record: Record, limits: Limits, rewrite: Rewrite | None) -> e.Redrive:
        """What runs a member again. It waits for those of its parents that run again too, or still did not end."""
        key = record.job.id
        first = key == self.records[0].job.id
        return msgspec.structs.replace(
            redrive(record, limits, rewrite, has_parents=key in self._children),
            ties=(Ties.CHILDREN if key in self._mothers else 0) | (Ties.PARENTS if key in self._children else 0),
            reopened=() if first else self._parents.get(key, ()),
        )


async def cancelled_below(store: Store, record: Record) -> Family:
    family = {record.job.id: record}
    edges: dict[tuple[JobKey, JobKey], Edge] = {}
    fresh = [record.job.id]
    while fresh:
        found = await store.edges(fresh, EDGES_READ)
        edges |= {(edge.parent, edge.child): edge for edge in found}
        below = [edge.child for edge in found if edge.parent in family and edge.child not in family]
        records = await store.load(list(dict.fromkeys(below))) if below else {}
        fresh = [key for key, each in records.items() if _is_cancelled_by_parent(each)]
        family |= {key: records[key] for key in fresh}
    await _leave_out_broken(store, family, record.job.id, list(edges.values()))
    return Family(list(family.values()), list(edges.values()))


async def _leave_out_broken(store: Store, family: dict[JobKey, Record], first: JobKey, edges: Sequence[Edge]) -> None:
    """Take away those that could not run though the others do: another parent of theirs has ended otherwise than they
    ask. What is below them goes with them, so this is done until nothing changes."""
    outside = {edge.parent for edge in edges} - family.keys()
    ends = await store.load(list(outside)) if outside else {}
    above: dict[JobKey, list[Edge]] = {}
    for edge in edges:
        if edge.done and edge.child != first:
            above.setdefault(edge.child, []).append(edge)

    def is_broken(edge: Edge) -> bool:
        parent = ends.get(edge.parent)
        return parent is not None and isinstance(parent.row, Ended) and not holds(edge.on, parent.row.state)

    while broken := [key for key in family if any(map(is_broken, above.get(key, ())))]:
        ends |= {key: family.pop(key) for key in broken}


async def with_parents(store: Store, records: Sequence[Record]) -> set[JobKey]:
    """Those of these jobs that depend on others, whose results they are to be told again."""
    return {edge.child for edge in await store.edges([record.job.id for record in records], EDGES_READ)}


def _is_cancelled_by_parent(record: Record) -> bool:
    return isinstance(record.row, Ended) and record.row.reason in BROKEN_BY.values()
