"""Read: one job, lists, attempts, logs, results. Strict: a read shows every acknowledged write."""

import asyncio
from collections.abc import AsyncIterator, Collection, Mapping

import msgspec

from foliot.clock import Clock
from foliot.domain.access import Caller
from foliot.domain.errors import BadInput, NotFound
from foliot.domain.ids import JOB, LOG, NODE, JobKey, parse, show
from foliot.domain.job import Ended, Ready, Record
from foliot.domain.status import STATUSES, WAITING_STATUSES
from foliot.service.gate import Gate
from foliot.service.limits import limits_of
from foliot.service.rates import Rate
from foliot.service.roster import Roster
from foliot.service.sealing import Sealer
from foliot.service.view import show_attempt, show_job, show_log, show_on, shown_id, waiting_reason
from foliot.service.wake import Wake
from foliot.store.base import Filter, Limit, Reader, Store
from foliot.wire import (
    LOG_LEVELS,
    ConcurrencyInfo,
    DependsOn,
    Execution,
    FilterBody,
    JobInfo,
    LogInfo,
    NodeView,
    Stats,
    to_micros,
    to_time,
)

LOG_PAGE = 1000
EDGES_SHOWN = 10_000
KEEP_ALIVE = 15.0
LOG_POLL = 1.0  # another node may have written


class Query:
    def __init__(
        self,
        store: Store,
        clock: Clock,
        wake: Wake,
        roster: Roster,
        sealer: Sealer,
        gate: Gate,
        *,
        submitted: Rate,
        started: Rate,
        ended: Rate,
    ) -> None:
        self._store = store
        self._sealer = sealer
        self._clock = clock
        self._roster = roster
        self._gate = gate
        self._rates = submitted, started, ended
        self._watched: dict[JobKey, set[asyncio.Event]] = {}
        self._closed = False
        wake.on_log.append(self._logged)

    async def find(self, job_id: str, caller: Caller) -> Record:
        """The job behind an id, or `NotFound`."""
        reader = self._store.reader(caller.namespace)
        key = await find_key(reader, job_id, caller)
        record = (await reader.load([key])).get(key) if key is not None else None
        if record is None or not caller.reaches(record.job.lane):
            raise NotFound(f"there is no job {job_id!r}; it may be past the time that history is kept")
        return record

    async def job(self, job_id: str, caller: Caller) -> JobInfo:
        record = await self.find(job_id, caller)
        reader = self._store.reader(caller.namespace)
        info = await self._show(record, await limits_of(reader, [record]))
        return msgspec.structs.replace(info, depends_on=await _parents_of(reader, record, caller))

    async def jobs(
        self, filter: FilterBody, *, limit: int, cursor: str | None, caller: Caller
    ) -> tuple[list[JobInfo], str | None]:
        before = None if cursor is None else parse("", cursor)
        if cursor is not None and before is None:
            raise BadInput.at("cursor", "not one of ours; take it from the Link header of the page before")
        reader = self._store.reader(caller.namespace)
        page = await reader.list_jobs(
            parse_filter(filter, caller), limit=limit, before=None if before is None else JobKey(before)
        )
        limits = await limits_of(reader, page.records)
        shown = [await self._show(record, limits, whole=False) for record in page.records]
        return shown, None if page.next is None else show("", page.next)

    async def executions(self, job_id: str, caller: Caller) -> list[Execution]:
        record = await self.find(job_id, caller)
        attempts = await self._store.reader(caller.namespace).executions(record.job.id)
        return [show_attempt(attempt, self._sealer) for attempt in attempts]

    async def result(self, job_id: str, caller: Caller) -> bytes:
        record = await self.find(job_id, caller)
        result = await self._store.reader(caller.namespace).result(record.job.id)
        if result is None:
            raise NotFound(f"job {job_id!r} has no result (yet); its status tells whether one is to come")
        return self._sealer.open(result, record.job.id, "result").encode()

    async def logs(
        self, job_id: str, *, after: str | None, level: str | None, limit: int, caller: Caller
    ) -> list[LogInfo]:
        record = await self.find(job_id, caller)
        lines = await self._store.reader(caller.namespace).logs(
            record.job.id, after=_parse_after(after), level=_parse_level(level), limit=min(limit, LOG_PAGE)
        )
        return [show_log(line, shown_id(record.job)) for line in lines]

    async def follow_logs(
        self, job_id: str, *, after: str | None, level: str | None, caller: Caller
    ) -> AsyncIterator[list[LogInfo]]:
        """Lines as they come, until the job has ended and all of them were given; an empty list now and then to keep
        the connection alive."""
        record = await self.find(job_id, caller)
        key, shown, last, least = record.job.id, shown_id(record.job), _parse_after(after), _parse_level(level)
        news = asyncio.Event()
        self._watched.setdefault(key, set()).add(news)
        silent = 0.0
        try:
            while not self._closed:
                news.clear()
                ended = isinstance((await self.find(job_id, caller)).row, Ended)
                lines = await self._store.reader(caller.namespace).logs(key, after=last, level=least, limit=LOG_PAGE)
                if lines:
                    last, silent = lines[-1].log_id, 0.0
                    yield [show_log(line, shown) for line in lines]
                elif ended:
                    return
                else:
                    try:
                        async with asyncio.timeout(LOG_POLL):
                            await news.wait()
                    except TimeoutError:
                        silent += LOG_POLL
                    if silent >= KEEP_ALIVE:
                        silent = 0.0
                        yield []
        finally:
            self._watched[key].discard(news)
            if not self._watched[key]:
                del self._watched[key]

    def close(self) -> None:
        """End all streams."""
        self._closed = True
        self._logged(list(self._watched))

    async def nodes(self) -> list[NodeView]:
        now = self._clock.now()
        return [
            NodeView(
                node_id=show(NODE, node.number),
                name=node.name,
                version=node.version,
                since=to_time(node.since),
                last_seen=to_time(node.seen),
                alive=node.until > now,
            )
            for node in await self._store.nodes()
        ]

    async def stats(self, caller: Caller) -> Stats:
        now = self._clock.now()
        workers = [(w, held) for w, held in await self._store.workers(caller.namespace) if w.until > now]
        submitted, started, ended = self._rates
        return Stats(
            jobs=dict(await self._store.counts(caller.namespace)),
            workers=len(workers),
            slots=sum(worker.resources.get("slot", 0) for worker, _ in workers),
            running=sum(len(held) for _, held in workers),
            submitted_per_second=submitted.per_second(),
            started_per_second=started.per_second(),
            ended_per_second=ended.per_second(),
        )

    async def _show(self, record: Record, limits: Mapping[tuple[str, str], Limit], *, whole: bool = True) -> JobInfo:
        job = record.job
        offered = not isinstance(record.row, Ready) or await self._roster.offers(job.lane)
        limit = limits.get((job.lane.namespace, job.limit_key or ""))
        return show_job(
            record,
            self._sealer,
            reason=waiting_reason(record, offered=offered, held=self._gate.book.held(job.lane)),
            whole=whole,
            concurrency=None if limit is None else ConcurrencyInfo(key=limit.key, limit=limit.most),
        )

    def _logged(self, keys: Collection[JobKey]) -> None:
        for key in self._watched.keys() & set(keys):
            for news in self._watched[key]:
                news.set()


async def _parents_of(reader: Reader, record: Record, caller: Caller) -> list[DependsOn]:
    """What a job depends on, as it was submitted, as far as those are still there and the caller reaches them."""
    edges = [edge for edge in await reader.edges([record.job.id], EDGES_SHOWN) if edge.child == record.job.id]
    records = await reader.load([edge.parent for edge in edges]) if edges else {}
    return [
        DependsOn(job_id=shown_id(records[edge.parent].job), on=show_on(edge))
        for edge in edges
        if edge.parent in records and caller.reaches(records[edge.parent].job.lane)
    ]


async def find_key(reader: Reader, job_id: str, caller: Caller) -> JobKey | None:
    """The number behind a job's id: read off ours, looked up for a client's own."""
    key = parse(JOB, job_id)
    if key is not None:
        return JobKey(key)
    return (await reader.find(caller.namespace, [job_id])).get(job_id)


def parse_filter(body: FilterBody, caller: Caller) -> Filter:
    statuses: list[str] = []
    for word in _words(body.status):
        if word != "waiting" and word not in STATUSES:
            raise BadInput.at("status", f"{word!r} is no status; use {', '.join(STATUSES)} or waiting")
        statuses += WAITING_STATUSES if word == "waiting" else (word,)
    after, before = body.due_after or body.start_time, body.due_before or body.end_time
    return Filter(
        namespace=caller.namespace,
        statuses=tuple(dict.fromkeys(statuses)),
        job_type=body.job_type,
        queue=body.queue,
        owner=body.owner,
        tags=tuple(_words(body.tag)),
        schedule_id=body.schedule_id,
        due_after=None if after is None else to_micros(after),
        due_before=None if before is None else to_micros(before),
        queues=caller.queues,
        job_types=caller.job_types,
    )


def _words(value: str | list[str] | None) -> list[str]:
    return [] if value is None else [value] if isinstance(value, str) else value


def _parse_after(after: str | None) -> int:
    if after is None:
        return 0
    key = parse(LOG, after)
    if key is None:
        raise BadInput.at("after", f"{after!r} is no log_id; take one from an earlier answer")
    return key


def _parse_level(level: str | None) -> int:
    if level is None:
        return 0
    if level.upper() not in LOG_LEVELS:
        raise BadInput.at("level", f"{level!r} is no level; use {', '.join(LOG_LEVELS)}")
    return LOG_LEVELS[level.upper()]
