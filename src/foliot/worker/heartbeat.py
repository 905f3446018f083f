"""Keeps the lease when the event loop can not, and notices when it can not.

A thread with a blocking connection of its own: a handler that blocks the loop stops every call made on it, and would
lose the lease of all its neighbours.
"""

import asyncio
import logging
import sys
import traceback
from collections.abc import Callable
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from threading import Event, Thread, get_ident
from urllib.parse import urlsplit

import msgspec

from foliot import clock
from foliot.wire import BASE_PATH, ExchangeBody, encode
from foliot.worker.exchange import Exchange
from foliot.worker.lease import SECOND, Lease
from foliot.worker.node import (
    CallRefused,
    LeaseLost,
    Node,
    Unreachable,
    WorkerRefused,
    check,
    decode_answer,
    exchange_path,
)
from foliot.worker.runner import Runner

BLOCKED_SECONDS = 1.0
TICK_SECONDS = 0.5
FENCE_PART = 0.9
SILENT_PART = 1.2  # of the interval: the loop's own calls come first where it lives
AGED_PART = 0.6  # of the lease

_log = logging.getLogger("foliot.worker")
_EMPTY = encode(ExchangeBody())


class Heartbeat:
    """Beats from `start` to `stop`, for whichever lease is the current one."""

    def __init__(self, node: Node, exchange: Exchange, runner: Runner) -> None:
        self._node = node
        self._exchange = exchange
        self._runner = runner
        self._loop = asyncio.get_running_loop()
        self._lease: Lease | None = None
        self._stop = Event()
        self._connection: HTTPConnection | None = None
        self._pinged: int | None = None
        self._told = False
        self._not_before = 0
        self._loop_thread = 0
        self._thread = Thread(target=self._run, name="foliot-heartbeat", daemon=True)

    def start(self) -> None:
        self._loop_thread = get_ident()
        self._thread.start()

    def stop(self) -> None:
        self._stop.set()

    def attend(self, lease: Lease | None) -> None:
        self._lease = lease

    def _run(self) -> None:
        tick = TICK_SECONDS
        while not self._stop.wait(tick):
            lease = self._lease
            tick = min(TICK_SECONDS, lease.interval / 4) if lease is not None else TICK_SECONDS
            try:
                self._watch_loop()
                if lease is not None and self._node.transport is None:  # else the node stands on the same loop
                    self._keep(lease)
            except RuntimeError:  # the loop is closed
                return
            except Exception:
                _log.exception("the heartbeat met something unexpected and goes on")
        if self._connection is not None:
            self._connection.close()

    def _keep(self, lease: Lease) -> None:
        if lease.age >= lease.seconds * FENCE_PART:
            self._lease = None
            self._tell(lease, self._exchange.lose, f"no node was reached for {lease.age:.1f} s")
        elif clock.monotonic() >= self._not_before and (
            lease.silence >= lease.interval * SILENT_PART or lease.age >= lease.seconds * AGED_PART
        ):
            self._beat(lease)

    def _beat(self, lease: Lease) -> None:
        sent = lease.sending()
        try:
            answer = decode_answer(self._post(exchange_path(lease.worker_id), max(1.0, lease.seconds / 4)))
        except LeaseLost as error:
            self._lease = None
            self._tell(lease, self._exchange.lose, str(error))
        except WorkerRefused as error:
            self._lease = None
            self._tell(lease, self._exchange.refuse, str(error))
        except (Unreachable, CallRefused, msgspec.MsgspecError, HTTPException, OSError) as error:
            self._drop_connection()
            if isinstance(error, Unreachable):  # a longer wait would cost the lease
                self._not_before = clock.monotonic() + round(min(error.wait, lease.seconds / 8) * SECOND)
            _log.warning("heartbeat to %s failed: %s", self._node.url, error)
        else:
            lease.answered(sent)
            self._loop.call_soon_threadsafe(self._exchange.heed, answer)

    def _tell(self, lease: Lease, call: Callable[[str], None], why: str) -> None:
        def on_loop() -> None:
            # By now a new lease may have been taken, to which this does not apply.
            if self._lease is None or self._lease is lease:
                call(why)

        self._loop.call_soon_threadsafe(on_loop)

    def _post(self, path: str, timeout: float) -> bytes:
        address = urlsplit(self._node.url)
        if self._connection is None:
            self._connection = (
                HTTPSConnection(address.hostname or "", address.port, timeout=timeout, context=self._node.tls)
                if address.scheme == "https"
                else HTTPConnection(address.hostname or "", address.port, timeout=timeout)
            )
        try:
            self._connection.request("POST", address.path + BASE_PATH + path, body=_EMPTY, headers=self._node.headers)
            response = self._connection.getresponse()
            data = response.read()
        except BaseException:
            self._drop_connection()
            raise
        check(response.status, data, self._node.url, response.headers.get("Retry-After"))
        return data

    def _drop_connection(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _watch_loop(self) -> None:
        """The loop answers a ping at once, unless something blocks it: then say which job that is, once."""
        if self._pinged is None:
            if self._runner.attempts:
                self._told = False
                self._pinged = clock.monotonic()
                self._loop.call_soon_threadsafe(self._answer_ping)
            return
        blocked = (clock.monotonic() - self._pinged) / SECOND
        if blocked >= BLOCKED_SECONDS and not self._told:
            self._told = True
            self._name_blocker(blocked)

    def _answer_ping(self) -> None:
        self._pinged = None

    def _name_blocker(self, seconds: float) -> None:
        task = asyncio.current_task(self._loop)
        attempt = None if task is None else self._runner.running(task)
        if attempt is None:
            _log.warning("the worker's event loop has been blocked for %.1f s", seconds)
            return
        message = f"the handler blocks the worker's event loop since {seconds:.1f} s; use isolation 'thread' for it"
        frame = sys._current_frames().get(self._loop_thread)  # noqa: SLF001
        if frame is not None:
            place = traceback.extract_stack(frame, limit=1)[0]
            message += f" (at {place.filename}:{place.lineno}, in {place.name})"
        _log.warning("job %s (%s): %s", attempt.job.job_id, attempt.job.job_type, message)
        attempt.line("WARNING", message)
