"""`command`: runs a program, as a list of arguments and never through a shell, in a session of its own, so that it
can be ended together with all it has started. Refused unless the worker was told to allow it: whoever may submit jobs
could run anything. It gets an environment without the worker's secrets, and is another user's where the worker is
root's."""

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
from msgspec.structs import replace

from foliot.handlers.command_rules import CommandRules
from foliot.handlers.limits import SHELL, Limits, set_limits
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
    """`env` is all of the program's environment but the few variables that every program needs."""

    argv: Annotated[list[_Text], Meta(min_length=1)]
    cwd: _Text | None = None
    env: dict[Annotated[str, Meta(pattern=r"^[^=\x00]+\Z")], _Text] = {}
    stdin: str | None = None


class CommandRunner:
    def __init__(self, rules: CommandRules) -> None:
        self._rules = rules

    async def run(self, payload: bytes, context: JobContext) -> dict[str, Any]:
        wanted = read_payload(payload, CommandPayload)
        ready = _permit(wanted, self._rules)
        limits = set_limits(context, own_user=self._rules.user is None)
        try:
            return await _run(ready, context, limits, self._rules)
        finally:
            if limits is not None:
                await limits.close()


def command_handler(rules: CommandRules | None) -> Handler:
    return Handler(name="command", function=refuse_command if rules is None else CommandRunner(rules).run)


async def refuse_command(_payload: bytes, _context: JobContext) -> None:
    raise Fatal(
        "this worker does not run commands; start it with --allow-command and the name of each program that everyone "
        "who may submit jobs may run on its machine (or FOLIOT_ALLOW_COMMAND), or with --allow-commands for any",
        code="commands_not_allowed",
    )


def _permit(wanted: CommandPayload, rules: CommandRules) -> CommandPayload:
    """What is to be started, where the rules let it."""
    program = rules.find(wanted.argv[0], wanted.cwd)
    if program is None:
        raise Fatal(
            f"this worker does not run {wanted.argv[0]!r}; it would with --allow-command (or FOLIOT_ALLOW_COMMAND)",
            code="command_not_allowed",
        )
    if name := rules.steering(wanted.env):
        raise Fatal(
            f"payload.env: {name} is not for a job to set where only named programs are allowed: it could make one of "
            "them run another",
            code="command_not_allowed",
        )
    return replace(wanted, argv=[program, *wanted.argv[1:]])


async def _run(
    wanted: CommandPayload, context: JobContext, limits: Limits | None, rules: CommandRules
) -> dict[str, Any]:
    program = Program(wanted, context, limits, rules)
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

    def __init__(self, wanted: CommandPayload, context: JobContext, limits: Limits | None, rules: CommandRules) -> None:
        self._loop = asyncio.get_running_loop()
        self._process = _start(wanted, context, limits, rules)
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


def _start(wanted: CommandPayload, context: JobContext, limits: Limits | None, rules: CommandRules) -> Popen[bytes]:
    environment = rules.environment(wanted.env, os.environ)
    environment |= {"FOLIOT_JOB_ID": context.job_id, "FOLIOT_ATTEMPT": str(context.attempt)}
    words, folder, user = wanted.argv, wanted.cwd, rules.user
    try:
        if limits is not None or user is not None:
            _find_program(wanted, environment)
        if user is not None:
            # The folder is entered by that user and not before: what it may not enter it shall not start in.
            words, folder = [SHELL, "-c", 'cd -- "$0" && exec "$@"', _absolute(wanted.cwd), *words], "/"
        with TemporaryFile() as given:  # a file and not a pipe: nobody has to feed it while the program runs
            given.write((wanted.stdin or "").encode())
            given.seek(0)
            process = Popen(
                words if limits is None else limits.words(words),
                cwd=folder,
                env=environment,
                stdin=given if wanted.stdin else DEVNULL,
                stdout=PIPE,
                stderr=PIPE,
                start_new_session=True,
                user=None if user is None else user.number,
                group=None if user is None else user.group,
                extra_groups=None if user is None else user.groups,
            )
        if limits is not None:
            _begin(process, limits)
        return process
    except FileNotFoundError:
        if wanted.cwd is not None and not Path(wanted.cwd).is_dir():
            raise bad_payload("cwd", f"there is no folder {wanted.cwd}") from None
        raise bad_payload("argv[0]", f"there is no program {wanted.argv[0]!r}") from None
    except (PermissionError, NotADirectoryError) as error:
        raise bad_payload("argv", f"{wanted.argv[0]!r} can not be run: {error.strerror}") from None
    except OSError as error:
        raise Retry(f"{wanted.argv[0]!r} can not be started: {error.strerror}", code="not_started") from None


def _begin(process: Popen[bytes], limits: Limits) -> None:
    try:
        limits.begin(process.pid)
    except OSError:
        process.kill()
        process.communicate()
        raise


def _find_program(wanted: CommandPayload, environment: Mapping[str, str]) -> None:
    """Raises as starting it would; the shell that sets its limits could only end with an exit code."""
    name = wanted.argv[0]
    if wanted.cwd is not None and not Path(wanted.cwd).is_dir():
        raise FileNotFoundError(wanted.cwd)
    file = Path(wanted.cwd or ".", name) if "/" in name else shutil.which(name, path=environment.get("PATH"))
    if file is None or not Path(file).exists():
        raise FileNotFoundError(name)
    if not os.access(file, os.X_OK) or Path(file).is_dir():
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), name)


def _absolute(folder: str | None) -> str:
    return "/" if folder is None else str(Path(folder).absolute())


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
