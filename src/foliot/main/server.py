"""`foliot serve`: a node, its HTTP API and the built-in worker in one process; or several such processes over
PostgreSQL."""

import asyncio
import contextlib
import logging
import os
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import msgspec
import uvicorn

from foliot.api import create_app
from foliot.clock import monotonic
from foliot.domain.errors import BadInput, FoliotError
from foliot.handlers import load_handlers
from foliot.main import open_node
from foliot.main.admin_key import KEY_FILE, ensure_admin_key
from foliot.settings import PREFIX, Settings, SettingsError
from foliot.worker import Worker
from foliot.worker.room import offer_of

log = logging.getLogger("foliot")

LISTEN_FD = f"{PREFIX}LISTEN_FD"
READY_FD = f"{PREFIX}READY_FD"
SHUTDOWN_SECONDS = 10
SHORT_LIFE = 5_000_000  # microseconds: a process that ends sooner has hardly started


class Server(uvicorn.Server):
    """uvicorn, with the signals left to us: the worker must drain before the API goes."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


def run_server(settings: Settings) -> int:
    """Until a signal ends it; the exit code. Raises `SettingsError` or `FoliotError` where it can not start."""
    logging.basicConfig(level=settings.log_level.upper(), format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    try:
        offer_of(settings.worker_concurrency, settings.worker_resources)
    except BadInput as error:  # before anything is started
        raise SettingsError(error.detail) from None
    listener = _listen(settings)
    settings = msgspec.structs.replace(settings, port=listener.getsockname()[1])
    if settings.processes > 1:
        return _supervise(settings, listener)
    try:
        import uvloop
    except ImportError:  # not made for Windows
        return asyncio.run(_serve(settings, listener))
    return uvloop.run(_serve(settings, listener))


def _listen(settings: Settings) -> socket.socket:
    if LISTEN_FD in os.environ:
        return socket.socket(fileno=int(os.environ[LISTEN_FD]))
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((settings.host, settings.port))
    except OSError as error:
        listener.close()
        where = f"{settings.host}:{settings.port}"
        raise SettingsError(
            f"can not listen on {where}: {error.strerror}. Is another node running there? "
            "Stop it, or choose another port with --port (0 picks a free one)"
        ) from None
    listener.listen(2048)
    return listener


async def _serve(settings: Settings, listener: socket.socket) -> int:
    key = ensure_admin_key(settings)
    node = await open_node(settings)
    server = Server(
        uvicorn.Config(
            create_app(node.services, admin_key=key),
            loop="none",
            http="httptools",
            ws="none",
            lifespan="off",
            log_config=None,
            log_level="warning",
            access_log=False,
            server_header=False,
            proxy_headers=False,
            timeout_keep_alive=75,
            timeout_graceful_shutdown=SHUTDOWN_SECONDS,
        )
    )
    stopping = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stopping.set)
    serving = asyncio.create_task(server.serve(sockets=[listener]))
    worker = await _start_worker(settings, key) if settings.worker else None
    if READY_FD in os.environ:
        os.write(int(os.environ[READY_FD]), b".")
    else:
        _greet(settings)
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
    return 1 if node.lost.is_set() else 0


async def _start_worker(settings: Settings, key: str) -> Worker:
    worker = Worker(
        f"http://{_loopback(settings.host)}:{settings.port}",
        key,
        load_handlers(allow_commands=settings.allow_commands),
        name=f"built-in@{socket.gethostname()}",
        concurrency=settings.worker_concurrency,
        resources=settings.worker_resources,
        labels=settings.worker_labels,
    )
    await worker.start()
    return worker


def _loopback(host: str) -> str:
    return {"0.0.0.0": "127.0.0.1", "::": "[::1]", "": "127.0.0.1"}.get(host, f"[{host}]" if ":" in host else host)


def _greet(settings: Settings) -> None:
    """What a person needs next, ready to paste."""
    file = shlex.quote(str(Path(settings.data_dir) / KEY_FILE))
    shown = '"$FOLIOT_ADMIN_KEY"' if settings.admin_key else f'"$(cat {file})"'
    store = f"SQLite in {settings.store_url.removeprefix('sqlite:///')}" if settings.is_sqlite else "PostgreSQL"
    usual = Settings()
    where = "" if settings.node_url == usual.node_url else f" --url {settings.node_url}"
    where += "" if settings.data_dir == usual.data_dir else f" --data-dir {shlex.quote(settings.data_dir)}"
    print(
        f"Foliot is ready on {settings.node_url} ({store}; the API is described at {settings.node_url}/docs)\n"
        f"A first job, from another terminal:\n"
        f"  curl -s {settings.node_url}/api/v1/jobs -H 'Authorization: Bearer '{shown} "
        """-d '{"job_type":"echo","payload":{"message":"hello"}}'\n"""
        f"or:\n"
        f'  {_own_command()} submit echo \'{{"message":"hello"}}\' --wait{where}',
        flush=True,
    )


def _own_command() -> str:
    """How this program is called from here."""
    found = shutil.which("foliot")
    own = os.path.realpath(sys.argv[0])
    if found and os.path.realpath(found) == own:
        return "foliot"
    return shlex.quote(os.path.relpath(own)) if Path(own).name == "foliot" else "python -m foliot"


def _supervise(settings: Settings, listener: socket.socket) -> int:
    """Several processes on one socket. One that dies is started again; when none lives for long, that is told and all
    end."""
    key = ensure_admin_key(settings)
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
    threading.Thread(target=_greet_when_ready, args=(settings, ready), daemon=True).start()
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


def _greet_when_ready(settings: Settings, ready: int) -> None:
    """One process that takes calls is enough to say so."""
    os.read(ready, 1)
    _greet(settings)
