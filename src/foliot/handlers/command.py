"""`command`: runs a program, as a list of arguments and never through a shell, in a session of its own, so that it
can be ended together with all it has started. Refused unless the worker was told to allow it: whoever may submit jobs
could run anything."""

import asyncio
import errno
import os
import shutil
import signal
from codecs import getincrementaldecoder
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from subprocess import DEVNULL, PIPE, Popen
from tempfile import TemporaryFile
from threading import Thread
from typing import IO, Annotated, Any

from msgspec import Meta, Struct

from foliot.handlers.limits import Limits, set_limits
from foliot.handlers.payload import bad_payload, read_payload
from foliot.sdk.context import JobContext
from foliot.sdk.errors import Fatal, Retry
from foliot.sdk.handler import Handler

OUTPUT_KEPT = 64 * 1024
SHOWN_IN_ERROR = 500
LINE_KEPT = 16 * 1024
END_SECONDS = 3.0  # below the time that a worker gives a handler to end
LEFTOVER_SECONDS = 0.5

_Text = Annotated[str, Meta(pattern=r"^[^\x00]*\Z")]


class CommandPayload(Struct, forbid_unknown_fields=True, frozen=True, kw_only=True):
    """`env` is added to the worker's own environment."""

    argv: Annotated[list[_Text], Meta(min_length=1)]
    cwd: _Text | None = None
    env: dict[Annotated[str, Meta(pattern=r"^[^=\x00]+\Z")], _Text] = {}
    stdin: str | None = None


def command_handler(*, allowed: bool) -> Handler:
    return Handler(name="command", function=run_command if allowed else refuse_command)


async def refuse_command(_payload: bytes, _context: JobContext) -> None:
    raise Fatal(
        "this worker does not run commands; start it with --allow-commands (or FOLIOT_ALLOW_COMMANDS=true) "
        "if everyone who may submit jobs may run programs on its machine",
        code="commands_not_allowed",
    )


async def run_command(payload: bytes, context: JobContext) -> dict[str, Any]:
    wanted = read_payload(payload, CommandPayload)
    limits = set_limits(context)
    try:
        return await _run(wanted, context, limits)
    finally:
        if limits is not None:
            await limits.close()


async def _run(wanted: CommandPayload, context: JobContext, limits: Limits | None) -> dict[str, Any]:
    program = Program(wanted, context, limits)
    tail = Tail()
    talk = asyncio.gather(
        _follow(program.stdout, context.log.info, tail), _follow(program.stderr, context.log.warning, tail)
    )
    try:
        code = await asyncio.shield(program.exited)
        # What it has started and left behind may hold its output open: that is not waited for.
        await asyncio.wait([talk], timeout=LEFTOVER_SECONDS)
    finally:
        await program.end()
        talk.cancel()
        with suppress(asyncio.CancelledError):
            await talk
    if code != 0:
        what = f"exit code {code}" if code > 0 else _signal_name(-code)
        if limits is not None and limits.broken:
            what = f"{what}, {limits.broken}"
        raise Retry(
            f"{wanted.argv[0]} ended with {what}: {tail.text()[-SHOWN_IN_ERROR:].strip()}",
            code="exit_code",
            exit_code=code,
        )
    return {"exit_code": code, "output": tail.text()}


class Program:
    """A running program. Not asyncio's own: that one holds a program for running while anything holds its output
    open."""

    def __init__(self, wanted: CommandPayload, context: JobContext, limits: Limits | None) -> None:
        self._loop = asyncio.get_running_loop()
        self._process = _start(wanted, context, limits)
        self.exited: asyncio.Future[int] = self._loop.create_future()
        assert self._process.stdout is not None
        assert self._process.stderr is not None
        self.stdout = self._process.stdout
        self.stderr = self._process.stderr
        Thread(target=self._wait, name=f"foliot-command-{self._process.pid}", daemon=True).start()

    async def end(self) -> None:
        """Ask all that is left of its group to end, then make it."""
        if not self.exited.done():
            self._signal(signal.SIGTERM)
            with suppress(asyncio.CancelledError):
                await asyncio.wait([self.exited], timeout=END_SECONDS)
        self._signal(signal.SIGKILL)

    def _signal(self, number: signal.Signals) -> None:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, number)

    def _wait(self) -> None:
        code = self._process.wait()
        with suppress(RuntimeError):  # the loop is closed
            self._loop.call_soon_threadsafe(self._gone, code)

    def _gone(self, code: int) -> None:
        if not self.exited.done():
            self.exited.set_result(code)


def _start(wanted: CommandPayload, context: JobContext, limits: Limits | None) -> Popen[bytes]:
    environment = os.environ | wanted.env
    environment |= {"FOLIOT_JOB_ID": context.job_id, "FOLIOT_ATTEMPT": str(context.attempt)}
    try:
        with TemporaryFile() as given:  # a file and not a pipe: nobody has to feed it while the program runs
            given.write((wanted.stdin or "").encode())
            given.seek(0)
            if limits is not None:
                _find_program(wanted, environment)
            return Popen(
                wanted.argv if limits is None else limits.words(wanted.argv),
                cwd=wanted.cwd,
                env=environment,
                stdin=given if wanted.stdin else DEVNULL,
                stdout=PIPE,
                stderr=PIPE,
                start_new_session=True,
            )
    except FileNotFoundError:
        if wanted.cwd is not None and not Path(wanted.cwd).is_dir():
            raise bad_payload("cwd", f"there is no folder {wanted.cwd}") from None
        raise bad_payload("argv[0]", f"there is no program {wanted.argv[0]!r}") from None
    except (PermissionError, NotADirectoryError) as error:
        raise bad_payload("argv", f"{wanted.argv[0]!r} can not be run: {error.strerror}") from None
    except OSError as error:
        raise Retry(f"{wanted.argv[0]!r} can not be started: {error.strerror}", code="not_started") from None


def _find_program(wanted: CommandPayload, environment: Mapping[str, str]) -> None:
    """Raises as starting it would; the shell that sets its limits could only end with an exit code."""
    name = wanted.argv[0]
    file = Path(wanted.cwd or ".", name) if "/" in name else shutil.which(name, path=environment.get("PATH"))
    if file is None or not Path(file).exists():
        raise FileNotFoundError(name)
    if not os.access(file, os.X_OK) or Path(file).is_dir():
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), name)


class Tail:
    """The last of what a program wrote."""

    def __init__(self) -> None:
        self._kept = bytearray()

    def add(self, data: bytes) -> None:
        self._kept += data
        if len(self._kept) > OUTPUT_KEPT * 2:
            del self._kept[:-OUTPUT_KEPT]

    def text(self) -> str:
        return self._kept[-OUTPUT_KEPT:].decode("utf-8", "replace")


async def _follow(pipe: IO[bytes], line: Callable[[str], None], tail: Tail) -> None:
    """Every line to the log as it comes, a long one cut short."""
    stream = asyncio.StreamReader()
    transport, _ = await asyncio.get_running_loop().connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(stream), pipe
    )
    decoder = getincrementaldecoder("utf-8")("replace")
    rest = ""
    try:
        while data := await stream.read(64 * 1024):
            tail.add(data)
            *lines, rest = (rest + decoder.decode(data)).split("\n")
            for each in lines:
                line(each)
            rest = rest[: LINE_KEPT + 1]
    finally:
        transport.close()
        if rest:
            line(rest)


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
