"""Handlers in processes of their own, each in its own session, so that it can be killed with all its children.

A process runs one job at a time and is used again, unless it was interrupted or died. What it writes to its standard
output and error is read here and becomes the log of the attempt it runs.
"""

import asyncio
import os
import signal
import socket
import subprocess
import sys
from codecs import getincrementaldecoder
from contextlib import suppress
from threading import Thread

import msgspec

from foliot.sdk.handler import Handler
from foliot.telemetry import tracing
from foliot.wire import LogLevel, encode
from foliot.worker import outcome
from foliot.worker.attempt import Attempt
from foliot.worker.child_frames import Begun, Finished, Frame, Progressed, Said, Work
from foliot.worker.outcome import Outcome
from foliot.worker.threads import Done

FRAME_LIMIT = 8 * 1024 * 1024
READ_SIZE = 64 * 1024
LEFTOVER_SECONDS = 0.5
IDLE_KEPT = 8

_decode = msgspec.json.Decoder(Frame).decode


class OutputPipe:
    """One of the process's output streams, without waiting."""

    def __init__(self, loop: asyncio.AbstractEventLoop, descriptor: int, level: LogLevel) -> None:
        self._loop = loop
        self._descriptor = descriptor
        self._level = level
        self._decoder = getincrementaldecoder("utf-8")("replace")
        self.attempt: Attempt | None = None
        os.set_blocking(descriptor, False)
        loop.add_reader(descriptor, self._read)

    def _read(self) -> bool:
        try:
            data = os.read(self._descriptor, READ_SIZE)
        except BlockingIOError:
            return False
        if not data:
            self._loop.remove_reader(self._descriptor)
            return False
        text = self._decoder.decode(data)
        if self.attempt is not None:
            self.attempt.log.write(self._level, text)
        return True

    def drain(self) -> None:
        """Read what is there by now. A pipe holds 64 KiB to 1 MiB; one that is filled on and on by a child is not
        waited for."""
        for _ in range(16):
            if not self._read():
                return

    def close(self) -> None:
        self._loop.remove_reader(self._descriptor)
        os.close(self._descriptor)


class Child:
    """A running process and the worker's ends of its socket and pipes."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        ours, theirs = socket.socketpair()
        outputs, errors = os.pipe(), os.pipe()
        try:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "foliot.worker.child", str(theirs.fileno())],
                stdin=subprocess.DEVNULL,
                stdout=outputs[1],
                stderr=errors[1],
                pass_fds=[theirs.fileno()],
                start_new_session=True,
            )
        except BaseException:
            ours.close()
            for descriptor in (outputs[0], errors[0]):
                os.close(descriptor)
            raise
        finally:
            theirs.close()
            os.close(outputs[1])
            os.close(errors[1])
        self._socket = ours
        self._pipes = (OutputPipe(loop, outputs[0], "INFO"), OutputPipe(loop, errors[0], "WARNING"))
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None
        self._exited: asyncio.Future[int] = loop.create_future()
        self.interrupted = False
        Thread(target=self._wait, name=f"foliot-wait-{self._process.pid}", daemon=True).start()

    @property
    def is_usable(self) -> bool:
        return not self.interrupted and not self._exited.done()

    async def run(self, attempt: Attempt, handler: Handler) -> Outcome:
        """The attempt's outcome, also when the process dies over it."""
        if self._streams is None:
            self._streams = await asyncio.open_connection(sock=self._socket, limit=FRAME_LIMIT)
        reader, writer = self._streams
        for pipe in self._pipes:
            pipe.attempt = attempt
        try:
            writer.write(encode(_work(attempt, handler)) + b"\n")
            while frame := await reader.readline():
                match _decode(frame):
                    case Begun(at=at):
                        attempt.started = at
                    case Said(level=level, message=message):
                        attempt.line(level, message)
                    case Progressed(value=value, note=note):
                        attempt.note_progress(value, note)
                    case Finished(outcome=ended):
                        return ended
        except (ConnectionError, ValueError, msgspec.MsgspecError) as error:
            attempt.line("WARNING", f"the job's process sent what can not be read: {error}")
            self.kill()
        finally:
            for pipe in self._pipes:
                pipe.drain()
                pipe.attempt = None
        return _of_exit(await self._exited)

    def interrupt(self) -> None:
        self.interrupted = True
        self._signal(signal.SIGTERM)

    def kill(self) -> None:
        self.interrupted = True
        self._signal(signal.SIGKILL)

    async def close(self) -> None:
        """End it and whatever it has started."""
        self.kill()
        await self._exited
        if self._streams is not None:
            self._streams[1].close()
            with suppress(ConnectionError):
                await self._streams[1].wait_closed()
        self._socket.close()
        for pipe in self._pipes:
            pipe.close()

    def _signal(self, number: signal.Signals) -> None:
        # The group outlives its leader while one of its children lives, and its number is not given out again until
        # then.
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, number)

    def _wait(self) -> None:
        code = self._process.wait()
        with suppress(RuntimeError):  # the loop is closed
            self._loop.call_soon_threadsafe(self._gone, code)

    def _gone(self, code: int) -> None:
        self._signal(signal.SIGKILL)  # its children hold the socket open, and nobody owns them any more
        if not self._exited.done():
            self._exited.set_result(code)
        if self._streams is not None:  # a child that made itself independent still holds the socket
            self._loop.call_later(LEFTOVER_SECONDS, self._streams[1].transport.abort)


class ProcessExecution:
    """A handler in a process. The task waits for the process; it is never cancelled, the process is signalled
    instead."""

    def __init__(self, pool: "ProcessPool", attempt: Attempt, handler: Handler) -> None:
        self._pool = pool
        self._child: Child | None = None
        self._stop = False
        self.task = asyncio.create_task(self._run(attempt, handler))

    def interrupt(self) -> None:
        self._stop = True
        if self._child is not None:
            self._child.interrupt()

    def abandon(self) -> None:
        if self._child is not None:
            self._child.kill()

    async def _run(self, attempt: Attempt, handler: Handler) -> None:
        attempt.begin()
        try:
            self._child = self._pool.take()
        except OSError as error:
            self._pool.done(attempt, outcome.retriable(f"a process for the job can not be started: {error}"))
            return
        if self._stop:
            self._child.interrupt()
        ended = await self._child.run(attempt, handler)
        self._pool.give_back(self._child)
        self._pool.done(attempt, ended)


class ProcessPool:
    """Processes that wait for the next job."""

    def __init__(self, loop: asyncio.AbstractEventLoop, done: Done) -> None:
        self._loop = loop
        self.done = done
        self._idle: list[Child] = []
        self._running: set[ProcessExecution] = set()
        self._closing: set[asyncio.Task[None]] = set()

    def run(self, attempt: Attempt, handler: Handler) -> ProcessExecution:
        execution = ProcessExecution(self, attempt, handler)
        self._running.add(execution)
        execution.task.add_done_callback(lambda _: self._running.discard(execution))
        return execution

    def take(self) -> Child:
        while self._idle:
            child = self._idle.pop()
            if child.is_usable:
                return child
            self._close(child)
        return Child(self._loop)

    def give_back(self, child: Child) -> None:
        if child.is_usable and len(self._idle) < IDLE_KEPT:
            self._idle.append(child)
        else:
            self._close(child)

    async def close(self) -> None:
        for execution in list(self._running):
            execution.abandon()
        if self._running:
            await asyncio.wait([execution.task for execution in self._running], timeout=LEFTOVER_SECONDS * 4)
        for child in self._idle:
            self._close(child)
        self._idle.clear()
        if self._closing:
            await asyncio.wait(self._closing, timeout=LEFTOVER_SECONDS * 4)

    def _close(self, child: Child) -> None:
        task = self._loop.create_task(child.close())
        self._closing.add(task)
        task.add_done_callback(self._closing.discard)


def _work(attempt: Attempt, handler: Handler) -> Work:
    job = attempt.job
    tracer = tracing.active()
    function = handler.function
    origin = handler.origin or f"{function.__module__}:{function.__qualname__}"
    return Work(
        name=handler.name,
        origin=origin,
        pass_context=handler.pass_context,
        path=sys.path,
        main=getattr(sys.modules.get("__main__"), "__file__", None),
        payload=job.payload,
        job_id=job.job_id,
        job_type=job.job_type,
        attempt=job.attempt,
        idempotency_key=job.idempotency_key,
        schedule_time=job.schedule_time,
        upstream=job.upstream,
        resources=job.resources,
        timeout=job.timeout,
        trace=None if attempt.span is None else attempt.span.traceparent,
        otlp_endpoint="" if tracer is None else tracer.endpoint,
    )


def _of_exit(code: int) -> Outcome:
    if code >= 0:
        return outcome.retriable(f"the job's process ended with exit code {code}", code="process_ended", exit_code=code)
    try:
        name = signal.Signals(-code).name
    except ValueError:
        name = f"signal {-code}"
    return outcome.retriable(f"the job's process ended by {name}", code="process_ended", exit_code=code)
