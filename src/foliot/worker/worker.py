"""The worker as a whole: registers, runs, registers anew when its lease is lost, drains, leaves."""

import asyncio
import logging
import os
import socket
from collections.abc import Awaitable, Mapping, Sequence
from typing import cast

from foliot.domain.needs import show_amounts
from foliot.sdk.handler import Handler
from foliot.sdk.tls import Trust
from foliot.sdk.transport import Transport
from foliot.wire import RegisterBody
from foliot.worker.capture import captured
from foliot.worker.exchange import Backoff, Exchange
from foliot.worker.heartbeat import Heartbeat
from foliot.worker.lease import Lease
from foliot.worker.node import CallRefused, LeaseLost, Node, Unreachable, WorkerRefused
from foliot.worker.outbox import Outbox
from foliot.worker.room import offer_of
from foliot.worker.runner import Runner

DRAIN_SECONDS = 30.0
STOP_SECONDS = 5.0  # below the ten that a node waits after a cancel
HAND_IN_SECONDS = 10.0

_log = logging.getLogger("foliot.worker")


class Worker:
    """Runs the jobs of `handlers` for the node at `url`. Without `queues` it takes from every queue; without
    `job_types` it offers what it has handlers for. `concurrency` is how many slots it has, `resources` what else there
    is of anything countable (`{"cpu": 4, "memory": "8Gi"}`): what runs at once never holds more. Raises `BadInput` for
    an amount that makes no sense.

    `start` returns at once; `started` is set with the first registration; `stop` drains; `wait` returns when all is
    over, and raises WorkerRefused where the node will not have it.
    """

    def __init__(
        self,
        url: str,
        key: str,
        handlers: Mapping[str, Handler],
        *,
        name: str | None = None,
        queues: Sequence[str] = (),
        concurrency: int = 20,
        job_types: Sequence[str] | None = None,
        resources: Mapping[str, float | str] | None = None,
        labels: Mapping[str, str] | None = None,
        grace: float = DRAIN_SECONDS,
        stop_grace: float = STOP_SECONDS,
        transport: Transport | None = None,
        trust: Trust | None = None,
    ) -> None:
        if concurrency < 1:
            raise ValueError(f"concurrency is {concurrency}; it must be 1 or more")
        self.url = url
        self.key = key
        self.grace = grace
        self.started = asyncio.Event()
        self.worker_id: str | None = None
        self.trust = trust
        self._node = Node(url, key, transport, trust)
        self._handlers = handlers
        self._concurrency = concurrency
        self._offer = offer_of(concurrency, resources or {})
        self._stop_grace = stop_grace
        self._body = RegisterBody(
            name=name or f"{socket.gethostname()}-{os.getpid()}",
            queues=list(queues),
            job_types=sorted(handlers) if job_types is None else list(job_types),
            resources=cast(dict[str, float | str], show_amounts(self._offer.items())),
            labels=dict(labels or {}),
        )
        self._hurry = asyncio.Event()
        self._outbox: Outbox
        self._runner: Runner
        self._exchange: Exchange
        self._main: asyncio.Task[None] | None = None
        self._draining: asyncio.Task[None] | None = None

    @property
    def running(self) -> int:
        """How many attempts are at work."""
        return len(self._runner.attempts)

    @property
    def unacknowledged(self) -> int:
        """How many attempts have ended here without a node knowing it."""
        return len(self._outbox.tokens)

    async def start(self) -> None:
        loop = asyncio.get_running_loop()
        self._outbox = outbox = Outbox(loop, lambda: self._exchange.wake())
        self._runner = Runner(self._handlers, outbox, offer=self._offer, stop_grace=self._stop_grace)
        self._exchange = Exchange(self._node, outbox, self._runner, slots=self._concurrency)
        self._main = asyncio.create_task(self._run())

    async def wait(self) -> None:
        """Until the worker has ended."""
        if self._main is not None:
            await asyncio.shield(self._main)

    async def stop(self, grace: float | None = None) -> None:
        """Take no more, let what runs end within `grace` seconds, give back the rest, leave. Called again it
        hurries."""
        if self._main is None:
            return
        self.drain(self.grace if grace is None else grace)
        await asyncio.wait([self._main])
        if not self._main.cancelled() and isinstance(error := self._main.exception(), WorkerRefused):
            _log.warning("%s", error)

    def drain(self, grace: float | None) -> None:
        """Begin to stop, without waiting for the end; None waits for running jobs as long as they take."""
        if self._draining is not None:
            self._hurry.set()
        elif self._main is not None and not self._main.done():
            _log.info("worker is draining: %d jobs are running", len(self._runner.attempts))
            self._draining = asyncio.create_task(self._drain(grace, self._main))

    async def _run(self) -> None:
        heartbeat = Heartbeat(self._node, self._exchange, self._runner)
        watch = asyncio.create_task(self._drain_when_asked())
        with captured():
            try:
                heartbeat.start()
                while True:
                    lease = await self._register()
                    heartbeat.attend(lease)
                    self.worker_id = lease.worker_id
                    self.started.set()
                    try:
                        await self._exchange.run(lease)
                        break
                    except LeaseLost as lost:
                        running = len(self._runner.attempts)
                        _log.warning("the lease is lost (%s): %d running jobs are stopped here", lost, running)
                        self._runner.fence_all()
                    finally:
                        heartbeat.attend(None)
                await self._leave(lease)
            finally:
                watch.cancel()
                heartbeat.stop()
                self._runner.take_no_more()
                self._runner.stop_all("fence")
                await self._runner.close()
                await self._node.close()

    async def _register(self) -> Lease:
        backoff = Backoff()
        while True:
            try:
                registered = await self._node.register(self._body)
            except Unreachable as error:
                pause = backoff.next(error.wait)
                if pause:
                    _log.warning("%s; trying again in %.1f s", error, pause)
                await asyncio.sleep(pause)
                continue
            _log.info("registered as %s at %s", registered.worker_id, self._node.url)
            return Lease(
                registered.worker_id,
                lease_seconds=registered.lease_seconds,
                heartbeat_seconds=registered.heartbeat_seconds,
            )

    async def _drain_when_asked(self) -> None:
        await self._exchange.drain_asked.wait()
        _log.info("the node asks this worker to drain")
        self.drain(None)

    async def _drain(self, grace: float | None, main: asyncio.Task[None]) -> None:
        self._runner.take_no_more()
        self._exchange.stop_fetching()
        await self._first_of(self._runner.wait_idle(), self._hurry.wait(), timeout=grace)
        if self._runner.attempts:
            _log.info("giving back %d running jobs", len(self._runner.attempts))
            self._runner.stop_all("leave")
            await self._first_of(self._runner.wait_idle(), timeout=0.5 if self._hurry.is_set() else None)
            self._runner.give_up_all()
        self._exchange.finish()
        if self._exchange.is_needed:
            await asyncio.wait([main], timeout=2.0 if self._hurry.is_set() else HAND_IN_SECONDS)
        if not main.done():
            _log.warning("no node is there to take leave of")
            main.cancel()

    async def _first_of(self, *waits: Awaitable[object], timeout: float | None) -> None:
        tasks = [asyncio.ensure_future(wait) for wait in waits]
        await asyncio.wait(tasks, timeout=timeout, return_when=asyncio.FIRST_COMPLETED)
        for task in tasks:
            task.cancel()

    async def _leave(self, lease: Lease) -> None:
        try:
            await self._node.leave(lease.worker_id)
        except (Unreachable, LeaseLost, CallRefused, WorkerRefused) as error:
            _log.info("left without a goodbye: %s", error)
