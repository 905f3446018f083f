"""`foliot serve`: a node, its HTTP API and the built-in worker in one process; or several such processes over
PostgreSQL."""

import asyncio
import contextlib
import gc
import logging
import os
import signal
import socket
import subprocess
import sys
import threading

import msgspec

from foliot.api import create_app
from foliot.clock import monotonic
from foliot.domain.errors import BadInput, FoliotError
from foliot.handlers import load_handlers
from foliot.handlers.permissions import permissions_of
from foliot.main import open_node
from foliot.main.admin_key import ensure_admin_key
from foliot.main.database_transit import warn_of_open_transit
from foliot.main.embedded import InProcess
from foliot.main.greeting import greeting
from foliot.main.listener import bind, make_room
from foliot.main.telemetry import start_logs, start_traces, stop_traces
from foliot.main.tls import server_tls
from foliot.main.web_server import WebServer
from foliot.settings import PREFIX, Settings, SettingsError
from foliot.worker import Worker
from foliot.worker.room import offer_of

log = logging.getLogger("foliot")

LISTEN_FD = f"{PREFIX}LISTEN_FD"
READY_FD = f"{PREFIX}READY_FD"
COLLECT_EVERY = 20_000  # objects made and not freed
SHORT_LIFE = 5_000_000  # microseconds: a process that ends sooner has hardly started


def run_server(settings: Settings) -> int:
    """Until a signal ends it; the exit code. Raises `SettingsError` or `FoliotError` where it can not start."""
    start_logs(settings)
    try:
        offer_of(settings.worker_concurrency, settings.worker_resources)
    except BadInput as error:  # before anything is started
        raise SettingsError(error.detail) from None
    if settings.worker:
        permissions_of(settings)
    server_tls(settings)
    listener = socket.socket(fileno=int(os.environ[LISTEN_FD])) if LISTEN_FD in os.environ else bind(settings)
    settings = msgspec.structs.replace(settings, port=listener.getsockname()[1])
    if settings.processes > 1:
        return _supervise(settings, listener)
    start_traces(settings, service="foliot")
    try:
        import uvloop
    except ImportError:  # not made for Windows
        return asyncio.run(_serve(settings, listener))
    return uvloop.run(_serve(settings, listener))


async def _serve(settings: Settings, listener: socket.socket) -> int:
    key, made_now = ensure_admin_key(settings)
    node = await open_node(settings)
    app = create_app(node.services, admin_key=key)
    server = WebServer(
        app,
        listener,
        tls=server_tls(settings),
        connections=make_room(settings.max_connections),
        seconds=settings.client_seconds,
    )
    stopping = asyncio.Event()
    loop = asyncio.get_running_loop()
    _leave_alone_what_stays()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stopping.set)
    serving = asyncio.create_task(server.serve())
    worker = await _start_worker(settings, InProcess(app, key)) if settings.worker else None
    if READY_FD in os.environ:
        os.write(int(os.environ[READY_FD]), b".")
    else:
        _greet(settings, key if made_now else "")
    ends = [asyncio.create_task(event.wait()) for event in (stopping, node.lost)]
    await asyncio.wait([serving, *ends], return_when=asyncio.FIRST_COMPLETED)
    for end in ends:
        end.cancel()
    if node.lost.is_set():
        log.error("this node's number was given to another one while it did not answer; stopping")
    elif not serving.done():
        print("stopping: running jobs are given a moment to end", flush=True)
    if worker is not None:
        await worker.stop()
    node.services.close()
    server.should_exit = True
    await asyncio.wait([serving])
    with contextlib.suppress(FoliotError):
        await node.stop()
    stop_traces()
    return 1 if node.lost.is_set() else 0


def _leave_alone_what_stays() -> None:
    """What was made for the start lives as long as the process: the garbage collector need not look at it again and
    again. Nor so often at the rest: what requests leave behind is freed by its reference counts."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(COLLECT_EVERY, 20, 20)


async def _start_worker(settings: Settings, node: InProcess) -> Worker:
    """The built-in worker calls its node without a socket: no certificate stands between the two."""
    worker = Worker(
        "",
        "",
        load_handlers(permissions_of(settings)),
        name=f"built-in@{socket.gethostname()}",
        concurrency=settings.worker_concurrency,
        resources=settings.worker_resources,
        labels=settings.worker_labels,
        transport=node,
    )
    await worker.start()
    return worker


def _supervise(settings: Settings, listener: socket.socket) -> int:
    """Several processes on one socket. One that dies is started again; when none lives for long, that is told and all
    end."""
    key, made_now = ensure_admin_key(settings)
    ready, tell_ready = os.pipe()
    environ = os.environ | {LISTEN_FD: str(listener.fileno()), READY_FD: str(tell_ready)}
    environ |= {
        f"{PREFIX}{name.upper()}": str(value)
        for name, value in msgspec.structs.asdict(settings).items()
        if name not in ("processes", "worker")
    }
    environ |= {f"{PREFIX}PROCESSES": "1", f"{PREFIX}ADMIN_KEY": key}
    children: dict[int, subprocess.Popen[bytes]] = {}
    stopping = False

    def spawn(index: int) -> None:
        worker = {f"{PREFIX}WORKER": str(settings.worker and index == 0)}
        children[index] = subprocess.Popen(
            [sys.executable, "-m", "foliot", "serve"],
            env=environ | worker,
            pass_fds=[listener.fileno(), tell_ready],
        )
        if stopping:  # the signal came before this one could be told
            children[index].terminate()

    def stop(*_: object) -> None:
        nonlocal stopping
        stopping = True
        for child in children.values():
            child.terminate()

    signal.signal(signal.SIGTERM, stop)
    signal.signal(signal.SIGINT, stop)
    greet = threading.Thread(target=_greet_when_ready, args=(settings, key if made_now else "", ready), daemon=True)
    greet.start()
    for index in range(settings.processes):
        spawn(index)
    begun, failures, result = monotonic(), 0, 0
    while children:
        pid, status = os.wait()
        index = next((number for number, child in children.items() if child.pid == pid), -1)
        if index < 0:  # as the first process of a container it inherits strangers
            continue
        children.pop(index).returncode = code = os.waitstatus_to_exitcode(status)
        if stopping:
            continue
        failures = failures + 1 if monotonic() - begun < SHORT_LIFE else 1
        if failures > settings.processes:
            log.error("processes keep ending at once; giving up")
            result = max(1, code)
            stop()
            continue
        log.error("process %d ended with %d; starting another", pid, code)
        begun = monotonic()
        spawn(index)
    return result


def _greet(settings: Settings, new_key: str) -> None:
    print(greeting(settings, new_key=new_key), flush=True)
    warn_of_open_transit(settings.store_url)


def _greet_when_ready(settings: Settings, new_key: str, ready: int) -> None:
    """One process that takes calls is enough to say so."""
    os.read(ready, 1)
    _greet(settings, new_key)
