"""A worker as a program of its own: loop, signals, exit code."""

import asyncio
import logging
import math
import os
import signal
import sys
import threading
from collections.abc import Sequence

from foliot import __version__
from foliot.sdk.apply import apply_at_start
from foliot.sdk.async_client import AsyncClient
from foliot.sdk.transport import HttpTransport
from foliot.settings import PREFIX
from foliot.telemetry import logs, tracing
from foliot.wire import ScheduleBody
from foliot.worker.node import WorkerRefused
from foliot.worker.worker import Worker

REFUSED = 1
FORCED = 130

_log = logging.getLogger("foliot.worker")


def run_worker(worker: Worker, schedules: Sequence[ScheduleBody] = ()) -> int:
    """Run it to its end and return the exit code. SIGTERM or SIGINT drains, a second one hurries, a third ends at
    once. `schedules` are made or changed on the node once it has taken the worker."""
    if not logging.getLogger().handlers:
        logs.set_up(os.environ.get(f"{PREFIX}LOG_LEVEL") or "info", os.environ.get(f"{PREFIX}LOG_FORMAT") or "auto")
    endpoint = os.environ.get(f"{PREFIX}OTLP_ENDPOINT")
    if endpoint:  # whoever has read all settings has started it already
        tracing.start(endpoint, service="foliot-worker", version=__version__)
    before = set(threading.enumerate())
    loop = _new_loop()
    try:
        asyncio.set_event_loop(loop)
        code = loop.run_until_complete(_run(worker, schedules))
        loop.run_until_complete(loop.shutdown_asyncgens())
    finally:
        asyncio.set_event_loop(None)
        loop.close()
    tracing.stop()
    if any(not thread.daemon for thread in set(threading.enumerate()) - before):
        # A handler's own thread still runs; at exit the interpreter would wait for it without end.
        _log.warning("threads that handlers have started are still running and are ended with the worker")
        _exit(code)
    return code


async def _run(worker: Worker, schedules: Sequence[ScheduleBody]) -> int:
    loop = asyncio.get_running_loop()
    signals = 0

    def stop() -> None:
        nonlocal signals
        signals += 1
        if signals > 2:
            _exit(FORCED)
        worker.drain(worker.grace)

    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop)
    await worker.start()
    applying = asyncio.create_task(_apply(worker, schedules))
    try:
        await worker.wait()
    except WorkerRefused as error:
        _log.error("%s", error)
        return REFUSED
    except asyncio.CancelledError:  # the last reports could not be handed in; the log has said so
        return 0
    finally:
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.remove_signal_handler(number)
        applying.cancel()
        await asyncio.wait([applying])
    return 0


async def _apply(worker: Worker, schedules: Sequence[ScheduleBody]) -> None:
    """For as long as it takes: a node that is away now must not leave a schedule unmade."""
    if schedules:
        await worker.started.wait()
        transport = HttpTransport(worker.url, worker.trust)
        async with AsyncClient(worker.url, worker.key, patience=math.inf, transport=transport) as client:
            await apply_at_start(client, schedules)


def _new_loop() -> asyncio.AbstractEventLoop:
    try:
        import uvloop
    except ImportError:
        return asyncio.new_event_loop()
    return uvloop.new_event_loop()


def _exit(code: int) -> None:
    logging.shutdown()
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    os._exit(code)
