"""The program of a process that runs handlers, one job at a time: `python -m foliot.worker.child FD`.

Its standard output and error are pipes to the worker; FD is a socket with the frames. SIGTERM raises `Interrupted` in
the handler, so that its `finally` blocks run; when the socket closes, the worker is gone, and everything here is
killed.
"""

import asyncio
import importlib
import inspect
import logging
import os
import runpy
import signal
import socket
import sys
from collections.abc import Callable
from contextvars import copy_context
from queue import SimpleQueue
from threading import Event, Lock, Thread
from types import FrameType
from typing import Any, cast

import msgspec

from foliot import __version__, clock
from foliot.sdk.context import JobContext
from foliot.sdk.handler import Handler
from foliot.telemetry import tracing
from foliot.wire import LOG_LINE_LIMIT, LogLevel, encode
from foliot.worker import outcome
from foliot.worker.attempt_log import clean
from foliot.worker.child_frames import Begun, Finished, Frame, Progressed, Said, Work
from foliot.worker.outcome import Outcome

MAIN = "__foliot_main__"
BATCH_SECONDS = 0.5


class Interrupted(BaseException):
    """The attempt is to end: cancelled, out of time, or its worker is leaving."""


class Link:
    """The process's end of the socket, and what the handler's context stands on."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self._process = os.getpid()
        self._sending = Lock()
        self._stop = Event()
        self._running = False
        self.work: SimpleQueue[Work | None] = SimpleQueue()

    @property
    def stopping(self) -> bool:
        return self._stop.is_set()

    def wait_stopping(self, seconds: float | None) -> bool:
        return self._stop.wait(seconds)

    def line(self, level: LogLevel, message: str) -> None:
        self.send(Said(level, clean(message, LOG_LINE_LIMIT)))

    def note_progress(self, value: float | None, note: str | None) -> None:
        self.send(Progressed(None if value is None else float(value), note))

    def send(self, frame: Frame) -> None:
        if os.getpid() == self._process:  # a fork of the handler's must not speak in its name
            with self._sending:
                self._connection.sendall(encode(frame) + b"\n")

    def listen(self) -> None:
        """Runs in a thread of its own."""
        decoder = msgspec.json.Decoder(Work)
        with self._connection.makefile("rb") as lines:
            for line in lines:
                self.work.put(decoder.decode(line))
        if self._running:
            os.killpg(0, signal.SIGKILL)
        self.work.put(None)

    def interrupt(self, _signal: int, _frame: FrameType | None) -> None:
        self._stop.set()
        if not self._running:
            os._exit(0)
        raise Interrupted

    def run(self, work: Work) -> None:
        self._running = True
        try:
            ended = copy_context().run(self._call, work)
        except Interrupted:
            ended = outcome.retriable("the process was asked to end")
        if os.getpid() != self._process:
            os._exit(0)  # the handler forked and let the copy return: only the original goes on
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
        self.send(Finished(ended))
        self._running = False

    def _call(self, work: Work) -> Outcome:
        try:
            handler = find_handler(work)
        except Exception as error:
            return outcome.of_error(error)
        if work.trace is not None:
            _trace(work.trace, work.otlp_endpoint)
        self.send(Begun(clock.wall()))
        context = JobContext(
            job_id=work.job_id,
            job_type=work.job_type,
            attempt=work.attempt,
            idempotency_key=work.idempotency_key,
            schedule_time=work.schedule_time,
            upstream=work.upstream,
            resources=work.resources,
            timeout=work.timeout,
            attendant=self,
        )
        try:
            value = handler(bytes(work.payload), context)
            if inspect.iscoroutine(value):
                value = asyncio.run(value)
            return outcome.of_value(value)
        except Interrupted:
            raise
        except BaseException as error:
            return outcome.of_error(error)


def _trace(trace: str, endpoint: str) -> None:
    """The handler's own spans belong to the worker's. They go out often: a process may be killed at any time."""
    tracing.start(endpoint, service="foliot-worker", version=__version__, batch_seconds=BATCH_SECONDS)
    tracing.resume(trace)


class FrameLogging(logging.Handler):
    """Root handler: records become lines of the job's log with their own level."""

    def __init__(self, link: Link) -> None:
        super().__init__()
        self._link = link

    def emit(self, record: logging.LogRecord) -> None:
        level: LogLevel = "DEBUG"
        if record.levelno >= logging.ERROR:
            level = "ERROR"
        elif record.levelno >= logging.WARNING:
            level = "WARNING"
        elif record.levelno >= logging.INFO:
            level = "INFO"
        self._link.line(level, self.format(record))


def find_handler(work: Work) -> Callable[[bytes, JobContext], Any]:
    """The function that `origin` names: see Handler."""
    sys.path[:] = work.path
    module, _, attribute = work.origin.partition(":")
    if module == "__main__":
        if MAIN not in sys.modules:
            if work.main is None:
                raise LookupError(f"{work.origin} was not defined in a file: define the handler in a module")
            loaded = type(sys)(MAIN)
            sys.modules[MAIN] = loaded
            loaded.__dict__.update(runpy.run_path(work.main, run_name=MAIN))
        module = MAIN
    found: Any = importlib.import_module(module)
    for part in attribute.split("."):
        found = getattr(found, part)
    if not isinstance(found, Handler) and hasattr(found, "handlers"):
        found = found.handlers[work.name]
    if isinstance(found, Handler):
        return found.call
    return Handler(name=work.name, function=found, pass_context=work.pass_context).call


def main(descriptor: int) -> None:
    connection = socket.socket(fileno=descriptor)
    connection.set_inheritable(False)
    link = Link(connection)
    for stream in (sys.stdout, sys.stderr):
        cast(Any, stream).reconfigure(line_buffering=True, errors="backslashreplace")
    root = logging.getLogger()
    root.addHandler(FrameLogging(link))
    root.setLevel(logging.INFO)
    signal.signal(signal.SIGTERM, link.interrupt)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    Thread(target=link.listen, name="foliot-listen", daemon=True).start()
    while (work := link.work.get()) is not None:
        link.run(work)


if __name__ == "__main__":
    main(int(sys.argv[1]))
