"""What depends on what: a job's graph, and what a job is told of its parents."""

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Raw

from foliot.domain.access import Caller
from foliot.domain.errors import Unreadable
from foliot.domain.graph import Edge
from foliot.domain.ids import JOB, JobKey, show
from foliot.domain.job import Ended, Record, Ties
from foliot.domain.status import status_of
from foliot.service.query import Query
from foliot.service.sealing import Sealer
from foliot.service.view import show_on, shown_id
from foliot.store.base import Claimed, Store, Upstream
from foliot.telemetry import traceparent, tracing
from foliot.wire import GraphEdge, GraphInfo, GraphNode

NODES_SHOWN = 10_000
EDGES_SHOWN = 50_000
UPSTREAM_LIMIT = 64 * 1024  # of one result
PARENTS = int(Ties.PARENTS)  # a flag of an enum is slow to compare, and every job that is handed out is
UPSTREAM_TOTAL = 4 * 1024 * 1024  # of all results that one job is told


class Graphs:
    def __init__(self, store: Store, query: Query, sealer: Sealer) -> None:
        self._store = store
        self._sealer = sealer
        self._query = query

    async def graph(self, job_id: str, caller: Caller) -> GraphInfo:
        """The job, all above and all below it, and what hangs on those, as far as they are still there; up to
        `NODES_SHOWN` jobs and `EDGES_SHOWN` edges."""
        reader = self._store.reader(caller.namespace)
        start = (await self._query.find(job_id, caller)).job.id
        known: dict[JobKey, None] = {start: None}
        edges: dict[tuple[JobKey, JobKey], Edge] = {}
        fresh = [start]
        while fresh and len(known) <= NODES_SHOWN and len(edges) < EDGES_SHOWN:
            found = await reader.edges(fresh, EDGES_SHOWN)
            edges |= {(edge.parent, edge.child): edge for edge in found}
            ends = [key for edge in found for key in (edge.parent, edge.child)]
            fresh = [key for key in dict.fromkeys(ends) if key not in known]
            known |= dict.fromkeys(fresh)
        records = await reader.load(list(known)[:NODES_SHOWN])
        records = {key: record for key, record in records.items() if caller.reaches(record.job.lane)}
        shown = {key: shown_id(records[key].job) for key in known if key in records}
        return GraphInfo(
            nodes=[_node(records[key]) for key in known if key in records],
            edges=[
                GraphEdge(parent=shown[edge.parent], child=shown[edge.child], on=show_on(edge))
                for edge in edges.values()
                if edge.parent in shown and edge.child in shown
            ],
            complete=not fresh and len(known) <= NODES_SHOWN and len(edges) < EDGES_SHOWN,
        )

    async def upstream(
        self, claimed: Sequence[Claimed]
    ) -> tuple[dict[JobKey, dict[str, Any]], dict[JobKey, list[str]]]:
        """What these jobs are told of their parents, and where this node traces the contexts of the spans in which
        those ran last; most have none and cost nothing."""
        keys = [one.lease.id for one in claimed if one.lease.ties & PARENTS]
        if not keys:
            return {}, {}
        found = await self._store.upstream(keys, self._sealer.room(UPSTREAM_LIMIT))
        told = {key: self._told(parents) for key, parents in found.items()}
        return told, {} if tracing.active() is None else await self._runs(found)

    async def _runs(self, found: Mapping[JobKey, Sequence[Upstream]]) -> dict[JobKey, list[str]]:
        few = {key: [parent.id for parent in parents[: tracing.LINKS]] for key, parents in found.items()}
        records = await self._store.load(list({parent for parents in few.values() for parent in parents}))
        runs = {key: run for key, record in records.items() if (run := _run_of(record)) is not None}
        return {key: [runs[parent] for parent in parents if parent in runs] for key, parents in few.items()}

    def _told(self, parents: Sequence[Upstream]) -> dict[str, Any]:
        """How each parent ended and what it returned, as far as that fits and can be opened."""
        told: dict[str, Any] = {}
        room = UPSTREAM_TOTAL
        for parent in parents:
            note: str | None = f"too long: GET /jobs/{parent.name}/result"
            result = ""
            try:
                result = self._sealer.open(parent.result or "", parent.id, "result")
                room -= len(result)
                if room >= 0 and not parent.too_long and len(result) <= UPSTREAM_LIMIT:
                    note = None
            except Unreadable as error:
                note = error.detail
            shown = Raw(result.encode()) if result and note is None else None
            told[parent.name] = {"status": parent.state.name.lower(), "result": shown}
            if note is not None:
                told[parent.name]["note"] = note
        return told


def _run_of(record: Record) -> str | None:
    """The span of its last attempt, where it was submitted in a trace and has run."""
    job, row = record.job, record.row
    last = row.last if isinstance(row, Ended) else None
    if job.trace is None or last is None:
        return None
    return traceparent.of_run(job.trace, show(JOB, job.id), last.attempt)


def _node(record: Record) -> GraphNode:
    return GraphNode(job_id=shown_id(record.job), job_type=record.job.lane.job_type, status=status_of(record.row))
