"""What `foliot doctor` asks a node: is it there, does it take the key, is it well, and is anything left waiting."""

import asyncio
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from typing import Any, TypeVar
from urllib.parse import urlsplit

import msgspec

from foliot.cli.connection import Connection
from foliot.cli.finding import Finding, fail, ok, warn
from foliot.cli.local_checks import expiry
from foliot.cli.show import count_text, some
from foliot.cli.times import read_clock
from foliot.domain.errors import FoliotError
from foliot.sdk.async_client import AsyncClient
from foliot.sdk.failures import Forbidden, NotAuthenticated, NotFound
from foliot.sdk.tls import tls_for
from foliot.sdk.transport import HttpTransport
from foliot.wire import FilterBody, Problem, QueueInfo, Readiness, StoreFact, WorkerInfo

T = TypeVar("T")

_READY = msgspec.json.Decoder(Readiness)
_PROBLEM = msgspec.json.Decoder(Problem)
TOLERANCE = timedelta(seconds=5)
SHOWN = 5
LOOKED_AT = 100  # jobs of a queue that wait
FRESH = 5.0  # seconds that a job may wait before it is asked whether anybody serves it
TLS_SECONDS = 5.0

# What to do about a check of the node's own.
TODO = {
    "store": "see that its database runs and that the node reaches it; the node's log tells more",
    "schema": "bring node and database to the same version: foliot migrate --status",
    "clock": "set the node's time, as by NTP",
}


async def check_node(connection: Connection) -> list[Finding]:
    """In the order in which they build on each other; what can not be asked any more is left out."""
    transport = HttpTransport(connection.url, connection.trust)
    async with AsyncClient(connection.url, connection.key or None, patience=0, transport=transport) as client:
        try:
            asked = read_clock()
            _, headers, _ = await transport.call("GET", "/healthz", None, {})
        except FoliotError as error:
            todo = "start it (foliot serve), or give its address with --url or FOLIOT_URL"
            return [fail("node", error.detail.partition("; start one")[0], todo)]
        found = [ok("node", f"{connection.url} answers"), *check_clock(headers.get("date", ""), asked)]
        found += [each async for each in check_tls(connection)]
        found += [each async for each in check_readiness(transport)]
        found.append(await check_key(client, connection))
        if found[-1].status == "ok":
            for check in (check_nodes, check_workers, check_queues, check_store, check_webhooks, check_incidents):
                found += await permitted(check.__name__.removeprefix("check_"), check, client)
        return found


async def permitted(
    name: str, check: Callable[[AsyncClient], Awaitable[list[Finding]]], client: AsyncClient
) -> list[Finding]:
    """What a check finds; nothing where the node is too old to be asked, or the key may not."""
    try:
        return await check(client)
    except (Forbidden, NotFound):
        return []
    except FoliotError as error:
        return [fail(name, error.detail, "see what is told above, and the node's log")]


def check_clock(date: str, asked: datetime) -> Iterator[Finding]:
    """By the answer's `Date`, which is cut to whole seconds."""
    try:
        there = parsedate_to_datetime(date).astimezone(UTC)
    except ValueError:
        return
    now = read_clock()
    early, late = there - now, there + timedelta(seconds=1) - asked
    off = max(early, -late, timedelta(0))
    if off > TOLERANCE:
        word = "behind" if early > timedelta(0) else "ahead of"
        yield warn("clock here", f"{off.total_seconds():.0f} s {word} the node's", "set this machine's time, as by NTP")
    else:
        yield ok("clock here", "agrees with the node's")


async def check_tls(connection: Connection) -> AsyncIterator[Finding]:
    parts = urlsplit(connection.url)
    tls = tls_for(connection.url, connection.trust)
    if tls is None or parts.hostname is None:
        return
    context = tls.context or ssl.create_default_context()
    try:
        async with asyncio.timeout(TLS_SECONDS):
            _, writer = await asyncio.open_connection(parts.hostname, parts.port or 443, ssl=context)
    except (OSError, TimeoutError) as error:
        yield fail("certificate", f"{connection.url}: {error}", "see that its certificate is trusted here")
        return
    shown: dict[str, Any] = writer.get_extra_info("peercert") or {}
    writer.close()
    if "notAfter" in shown:
        until = datetime.fromtimestamp(ssl.cert_time_to_seconds(shown["notAfter"]), UTC)
        yield expiry(f"the one of {connection.url}", until, read_clock())


async def check_readiness(transport: HttpTransport) -> AsyncIterator[Finding]:
    status, _, body = await transport.call("GET", "/readyz", None, {})
    try:
        answer: Readiness | Problem = (_READY if status == 200 else _PROBLEM).decode(body)
    except msgspec.MsgspecError:
        yield warn("readiness", f"/readyz answered {status} with what is not understood", "is this a Foliot node?")
        return
    for check in answer.checks:
        todo = TODO.get(check.name, "see the node's log")
        match check.status:
            case "ok":
                yield ok(check.name, check.detail)
            case "warning":
                yield warn(check.name, check.detail, todo)
            case "failed":
                yield fail(check.name, check.detail, todo)


async def check_key(client: AsyncClient, connection: Connection) -> Finding:
    todo = "give a good one with --key or FOLIOT_KEY, or name the node's --data-dir"
    if not connection.key:
        return fail("key", "none was found", todo)
    try:
        who = await client.whoami()
    except NotAuthenticated:
        return fail("key", f"the one from {connection.origin} is not taken", todo)
    except FoliotError as error:
        return fail("key", f"could not be checked: {error.detail}", "see what is told above")
    return ok("key", f"the one from {connection.origin} is taken: {who.name}, {who.role} of {who.namespace}")


async def check_nodes(client: AsyncClient) -> list[Finding]:
    nodes = await client.nodes()
    lost = [node.name for node in nodes if not node.alive]
    if lost:
        return [warn("nodes", f"not heard of for a while: {some(lost, SHOWN)}", "start them again if they are missed")]
    return [ok("nodes", f"{count_text(len(nodes), 'node')}, all alive")]


async def check_workers(client: AsyncClient) -> list[Finding]:
    workers = await client.workers()
    lost = [worker.name for worker in workers if worker.status == "lost"]
    alive = [worker for worker in workers if worker.status == "alive"]
    found = []
    if lost:
        todo = "start them again if they are missed; what they ran goes to others"
        found.append(warn("workers", f"lost: {some(lost, SHOWN)}", todo))
    if not alive:
        found.append(warn("workers", "none is there, so that no job runs", "start one: foliot worker"))
    return found or [ok("workers", f"{count_text(len(alive), 'worker')} alive")]


async def check_queues(client: AsyncClient) -> list[Finding]:
    """Jobs that wait for a worker of a kind that is not there."""
    workers = [worker for worker in await client.workers() if worker.status != "lost"]
    found = []
    async for queue in client.all_queues():
        if queue.waiting and not queue.paused and (queue.oldest_wait or 0) >= FRESH:
            found += await _unserved(client, queue, workers)
    return found or [ok("queues", "every job that waits is of a kind that some worker runs")]


async def _unserved(client: AsyncClient, queue: QueueInfo, workers: list[WorkerInfo]) -> list[Finding]:
    waiting = count_text(queue.waiting)
    if not any(not worker.queues or queue.queue in worker.queues for worker in workers):
        todo = f"start a worker for it: foliot worker … --queues {queue.queue}"
        return [warn("queues", f"{queue.queue}: no worker serves it, and {waiting} waiting", todo)]
    jobs, _ = await client.page(FilterBody(queue=queue.queue, status=["queued"]), limit=LOOKED_AT)
    types = list(dict.fromkeys(job.job_type for job in jobs if job.reason == "no_worker"))
    if not types:
        return []
    todo = "start a worker that can; foliot why JOB tells what is missing"
    return [warn("queues", f"{queue.queue}: no worker can run what waits, of type {some(types, SHOWN)}", todo)]


async def check_store(client: AsyncClient) -> list[Finding]:
    facts = await _read(client, "/stats/store", list[StoreFact])
    troubles = [
        warn("storage", f"{fact.name} is {fact.value:,.6g}: {fact.trouble}", "see docs/how-to/check-health.md")
        for fact in facts
        if fact.trouble
    ]
    return troubles or [ok("storage", f"{count_text(len(facts), 'measurement')} without trouble")]


async def check_webhooks(client: AsyncClient) -> list[Finding]:
    hooks = await _read(client, "/webhooks", list[dict[str, Any]])
    failing = [str(hook.get("webhook_id")) for hook in hooks if hook.get("failing_since") or hook.get("off_reason")]
    if failing:
        return [
            warn(
                "webhooks", f"failing or off: {some(failing, SHOWN)}", "foliot webhooks tells why; then switch them on"
            )
        ]
    return [ok("webhooks", f"{count_text(len(hooks), 'webhook')}, none failing")]


async def check_incidents(client: AsyncClient) -> list[Finding]:
    incidents = await _read(client, "/alerts/incidents", list[dict[str, Any]])
    still = [f"{each.get('rule')} ({each.get('subject')})" for each in incidents if each.get("status") == "open"]
    if still:
        return [warn("incidents", f"open: {some(still, SHOWN)}", "foliot alerts tells more")]
    return [ok("incidents", "none is open")]


async def _read(client: AsyncClient, path: str, kind: type[T]) -> T:
    _, _, body = await client.request("GET", path)
    return msgspec.json.decode(body, type=kind)
