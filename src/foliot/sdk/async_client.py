"""Every call of the API as a method.

A call that is safe to do again is repeated with growing waits while the node is unreachable or asks for patience, for
up to `patience` seconds. Reads, cancels, holds and changes are safe; a submit is made safe by a key of its own.
"""

import asyncio
import secrets
from collections.abc import AsyncIterator, Iterable
from typing import Any, Literal
from urllib.parse import quote, urlencode
from weakref import WeakKeyDictionary

import msgspec
from msgspec import UNSET, Raw, UnsetType

from foliot import wire
from foliot.sdk.access_calls import AccessCalls
from foliot.sdk.failures import ended_otherwise
from foliot.sdk.log_stream import follow
from foliot.sdk.queue_calls import QueueCalls
from foliot.sdk.requester import PATIENCE_SECONDS, Key
from foliot.sdk.schedule_calls import ScheduleCalls
from foliot.sdk.stats_calls import StatsCalls
from foliot.sdk.submitter import Submitter
from foliot.sdk.transport import Transport
from foliot.sdk.waiting import Waits
from foliot.sdk.watch_calls import WatchCalls
from foliot.sdk.webhook_calls import WebhookCalls
from foliot.wire import FilterBody, JobInfo, LogInfo, LogLevel, UpdateBody

Answers = list[wire.Submitted]  # by name, because `list` is a method below
Executions = list[wire.Execution]
Infos = list[JobInfo]
Lines = list[LogInfo]
Workers = list[wire.WorkerInfo]
Nodes = list[wire.NodeView]
Limits = list[wire.LimitInfo]


class AsyncClient(ScheduleCalls, QueueCalls, AccessCalls, WatchCalls, WebhookCalls, StatsCalls):
    """A node as seen over its API. Usable on one event loop, as `async with`, or with `close`."""

    def __init__(
        self,
        url: str = "http://127.0.0.1:7070",
        key: Key = None,
        *,
        patience: float = PATIENCE_SECONDS,
        transport: Transport | None = None,
    ) -> None:
        super().__init__(url, key, patience=patience, transport=transport)
        self._submitter = Submitter(self._post)
        self._waits = WeakKeyDictionary[asyncio.AbstractEventLoop, Waits]()  # an app's client is used from any loop

    # Jobs

    async def submit(self, body: wire.SubmitBody) -> str:
        """Hands in one job and gives its id. Submits under way at the same time share a request, in order."""
        return (await self.hand_in(body)).job_id

    async def submit_many(self, bodies: Iterable[wire.SubmitBody]) -> list[str]:
        """Hands in many, up to 10,000 a request; each request is kept whole or not at all. Ids in the order given."""
        return [answer.job_id for answer in await self.hand_in_many(bodies)]

    async def hand_in(self, body: wire.SubmitBody) -> wire.Submitted:
        """As `submit`; tells also whether it is an earlier job that waits under the same `unique_key`."""
        return await self._submitter.submit(wire.encode(body))

    async def hand_in_many(self, bodies: Iterable[wire.SubmitBody], *, whole: bool = False) -> Answers:
        """As `submit_many`, telling also which are earlier jobs. `whole` are sent in one request, kept whole or not at
        all, in which they may depend on each other by their `job_id`; ValueError where they do not fit into one."""
        encoded = (wire.encode(body) for body in bodies)
        return await (self._submitter.submit_whole(list(encoded)) if whole else self._submitter.submit_many(encoded))

    async def get(self, job_id: str) -> JobInfo:
        return await self._ask(JobInfo, "GET", _job(job_id))

    async def page(
        self, which: FilterBody | None = None, *, limit: int = 50, cursor: str | None = None
    ) -> tuple[list[JobInfo], str | None]:
        """One page of jobs, newest first, and the cursor of the next one. A page may be short and still have a next."""
        return await self._page(JobInfo, "/jobs", _query(which), limit=limit, cursor=cursor)

    def list(
        self, which: FilterBody | None = None, *, limit: int | None = None, page_size: int = 200
    ) -> AsyncIterator[JobInfo]:
        """The jobs that `which` names, newest first, page by page as they are wanted; at most `limit`."""
        return self._pages(JobInfo, "/jobs", _query(which), limit=limit, page_size=page_size)

    async def update(self, job_id: str, body: UpdateBody, *, if_match: int | None = None) -> wire.Changed:
        """Changes a job that waits: the fields given, None meaning back to the default."""
        return await self._ask(wire.Changed, "PUT", _job(job_id), body, if_match=if_match)

    async def cancel(self, job_id: str, *, if_match: int | None = None) -> wire.Changed:
        """Ends a job: at once where it waits (`cancelled`), by asking its worker where it runs (`cancelling`)."""
        return await self._ask(wire.Changed, "DELETE", _job(job_id), if_match=if_match)

    async def pause(self, job_id: str, *, if_match: int | None = None) -> wire.Changed:
        return await self._ask(wire.Changed, "POST", _job(job_id, "pause"), if_match=if_match)

    async def resume(self, job_id: str, *, if_match: int | None = None) -> wire.Changed:
        return await self._ask(wire.Changed, "POST", _job(job_id, "resume"), if_match=if_match)

    async def run(self, job_id: str, *, if_match: int | None = None) -> wire.Changed:
        """Now instead of at its time."""
        return await self._ask(wire.Changed, "POST", _job(job_id, "run"), if_match=if_match)

    async def retry(
        self, job_id: str, *, payload: object = UNSET, dependents: bool = False, if_match: int | None = None
    ) -> wire.Changed:
        """Runs a failed or cancelled job again, its tries anew, with another payload where one is given, and with
        `dependents` also those jobs that were cancelled because of it. Not repeated after a lost answer."""
        body = wire.RetryJobBody(payload=_raw(payload), dependents=dependents)
        return await self._ask(wire.Changed, "POST", _job(job_id, "retry"), body, if_match=if_match, again=False)

    async def change_many(
        self, action: Literal["cancel", "pause", "resume", "retry"], which: FilterBody, *, dry_run: bool = False
    ) -> wire.ManyChanged:
        """The same to every job that `which` names; `dry_run` only counts."""
        if action == "retry":
            return await self.retry_many(which, dry_run=dry_run)
        body = wire.ManyBody(filter=which, dry_run=dry_run)
        return await self._ask(wire.ManyChanged, "POST", f"/jobs/{action}", body)

    async def cancel_many(self, which: FilterBody, *, dry_run: bool = False) -> wire.ManyChanged:
        return await self.change_many("cancel", which, dry_run=dry_run)

    async def pause_many(self, which: FilterBody, *, dry_run: bool = False) -> wire.ManyChanged:
        return await self.change_many("pause", which, dry_run=dry_run)

    async def resume_many(self, which: FilterBody, *, dry_run: bool = False) -> wire.ManyChanged:
        return await self.change_many("resume", which, dry_run=dry_run)

    async def retry_many(
        self, which: FilterBody, *, payload: object = UNSET, dry_run: bool = False
    ) -> wire.ManyChanged:
        """Runs all failed and cancelled jobs that `which` names again, all with another payload where one is given. Not
        repeated after a lost answer."""
        body = wire.RetryManyBody(filter=which, payload=_raw(payload), dry_run=dry_run)
        return await self._ask(wire.ManyChanged, "POST", "/jobs/retry", body, again=dry_run)

    async def graph(self, job_id: str) -> wire.GraphInfo:
        """The job with all that it depends on and all that depends on it."""
        return await self._ask(wire.GraphInfo, "GET", _job(job_id, "graph"))

    async def why(self, job_id: str) -> wire.WhyInfo:
        """Every reason that holds the job back now, and its start where that can be told; or how it ended."""
        return await self._ask(wire.WhyInfo, "GET", _job(job_id, "why"))

    async def executions(self, job_id: str) -> Executions:
        """Each attempt, oldest first."""
        return await self._ask(Executions, "GET", _job(job_id, "executions"))

    async def logs(
        self, job_id: str, *, after: str | None = None, level: LogLevel | None = None, limit: int | None = None
    ) -> Lines:
        """The lines so far, oldest first, from behind the log id `after` on."""
        given = {"after": after, "level": level, "limit": None if limit is None else str(limit)}
        query = urlencode({name: value for name, value in given.items() if value is not None})
        return await self._ask(Lines, "GET", _job(job_id, "logs") + (f"?{query}" if query else ""))

    def follow_logs(
        self, job_id: str, *, after: str | None = None, level: LogLevel | None = None
    ) -> AsyncIterator[LogInfo]:
        """The lines so far and those to come, until the job has ended. A lost connection is taken up again."""
        return follow(self, job_id, after=after, level=level)

    async def result(self, job_id: str) -> Any:
        """What the handler returned; NotFound where there is nothing yet."""
        _, _, body = await self.request("GET", _job(job_id, "result"))
        return msgspec.json.decode(body) if body else None

    async def wait(self, job_id: str, *, timeout: float | None = None) -> JobInfo:
        """The job once it has ended; TimeoutError where it did not within `timeout` seconds. The node tells when it
        has: a long wait costs next to nothing."""
        async with asyncio.timeout(timeout):
            return await self._waiting().ended(job_id)

    async def wait_all(self, job_ids: Iterable[str], *, timeout: float | None = None) -> Infos:
        """All of these jobs, in the order given, once each has ended; TimeoutError where one did not within `timeout`
        seconds. Waits for a hundred at a time over one stream."""
        async with asyncio.timeout(timeout):
            return await self._waiting().all_ended([*job_ids])

    async def outcome(self, job_id: str, *, timeout: float | None = None) -> Any:
        """The result once the job has completed; raises JobFailed or JobCancelled where it ended otherwise."""
        info = await self.wait(job_id, timeout=timeout)
        if info.status != "completed":
            raise ended_otherwise(info)
        return await self.result(job_id)

    # Concurrency keys

    async def limits(self, *, limit: int = 50) -> Limits:
        """Concurrency keys by name, up to `limit` (at most 1000), each with who holds a token and who waits for one.
        `all_limits` goes through all of them."""
        return (await self.limit_page(limit=limit))[0]

    async def limit_page(self, *, limit: int = 50, cursor: str | None = None) -> tuple[Limits, str | None]:
        """One page of concurrency keys, by name, and the cursor of the next one."""
        return await self._page(wire.LimitInfo, "/limits", limit=limit, cursor=cursor)

    def all_limits(self, *, limit: int | None = None, page_size: int = 200) -> AsyncIterator[wire.LimitInfo]:
        """The concurrency keys by name, page by page as they are wanted; at most `limit`."""
        return self._pages(wire.LimitInfo, "/limits", limit=limit, page_size=page_size)

    async def limit(self, key: str) -> wire.LimitInfo:
        """One concurrency key; NotFound where no job has named it and nobody has set it."""
        return await self._ask(wire.LimitInfo, "GET", _limit(key))

    async def set_limit(self, key: str, limit: int) -> wire.LimitInfo:
        """From now on so many jobs of the key at once. Where that is fewer than run, nobody is thrown out."""
        return await self._ask(wire.LimitInfo, "PUT", _limit(key), wire.LimitBody(limit=limit))

    # Workers, nodes, figures

    async def workers(self) -> Workers:
        return await self._ask(Workers, "GET", "/workers")

    async def drain_worker(self, worker_id: str) -> None:
        """Lets a worker finish what it has and gives it nothing more."""
        await self.request("POST", f"/workers/{quote(worker_id, safe='')}/drain")

    async def nodes(self) -> Nodes:
        return await self._ask(Nodes, "GET", "/nodes")

    async def stats(self) -> wire.Stats:
        return await self._ask(wire.Stats, "GET", "/stats")

    def _waiting(self) -> Waits:
        loop = asyncio.get_running_loop()
        if (waits := self._waits.get(loop)) is None:
            waits = self._waits[loop] = Waits(self, self.get)
        return waits

    async def _post(self, path: str, body: bytes, trace: str | None) -> bytes:
        """A submit: repeated with the same key and the same body, so that a lost answer stores nothing twice."""
        headers = {"Idempotency-Key": secrets.token_hex(16)}
        if trace is not None:
            headers["traceparent"] = trace
        _, _, answer = await self.request("POST", path, body, headers)
        return answer


def _job(job_id: str, *more: str) -> str:
    return "/".join(("/jobs", quote(job_id, safe=":@"), *more))


def _limit(key: str) -> str:
    return f"/limits/{quote(key, safe='')}"


def _raw(payload: object) -> Raw | UnsetType:
    return payload if isinstance(payload, Raw | UnsetType) else Raw(wire.encode(payload))


def _query(which: FilterBody | None) -> list[tuple[str, str]]:
    given = {} if which is None else msgspec.to_builtins(which)
    return [
        (name, each)
        for name, value in given.items()
        if value is not None
        for each in (value if isinstance(value, list) else [value])
    ]
