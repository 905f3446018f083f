"""Handlers that misbehave, and some that do not. At the top of a module, so that a process of its own finds them."""

import asyncio
import logging
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import msgspec

from foliot.sdk.context import JobContext
from foliot.sdk.handler import Handler, Isolation

log = logging.getLogger("sample")


async def add(payload: bytes, context: JobContext) -> int:
    given = msgspec.json.decode(payload)
    return int(given["a"] + given["b"])


def add_plain(payload: bytes, context: JobContext) -> dict[str, Any]:
    given = msgspec.json.decode(payload)
    return {"sum": given["a"] + given["b"], "pid": os.getpid(), "key": context.idempotency_key}


async def talk(payload: bytes, context: JobContext) -> None:
    print("printed", "words")
    print("to stderr", file=sys.stderr)
    log.error("logged %d", 7)
    context.log.debug("told")
    context.progress(0.5, "half")
    print("no newline", end="")


def talk_plain(payload: bytes, context: JobContext) -> None:
    print("printed", "words")
    print("to stderr", file=sys.stderr)
    log.error("logged %d", 7)
    context.log.debug("told")
    context.progress(0.5, "half")
    print("no newline", end="")


async def fail(payload: bytes, context: JobContext) -> None:
    raise ValueError("a bad\0value")


def fail_plain(payload: bytes, context: JobContext) -> None:
    raise ValueError("a bad\0value")


async def not_json(payload: bytes, context: JobContext) -> object:
    return object()


async def too_large(payload: bytes, context: JobContext) -> str:
    return "x" * (2 * 1024 * 1024)


async def leave_program(payload: bytes, context: JobContext) -> None:
    sys.exit(3)


async def print_much(payload: bytes, context: JobContext) -> str:
    line = "x" * 1023
    for _ in range(100 * 1024):
        print(line)
    return "done"


def print_much_plain(payload: bytes, context: JobContext) -> str:
    line = "x" * 1023
    for _ in range(100 * 1024):
        print(line)
    return "done"


async def long_line(payload: bytes, context: JobContext) -> None:
    print("y" * 100_000)


async def block(payload: bytes, context: JobContext) -> str:
    context.log.info("blocking")
    time.sleep(msgspec.json.decode(payload)["seconds"])  # noqa: ASYNC251
    return "done"


async def sleep(payload: bytes, context: JobContext) -> str:
    context.log.info("begun")
    await asyncio.sleep(msgspec.json.decode(payload).get("seconds", 3600))
    return "slept"


async def deaf(payload: bytes, context: JobContext) -> None:
    """Swallows every cancel until the test's loop ends."""
    context.log.info("begun")
    for _ in range(3):
        with suppress(asyncio.CancelledError):
            await asyncio.sleep(3600)


def listening(payload: bytes, context: JobContext) -> str:
    context.log.info("begun")
    context.wait_cancelled(3600)
    return "left early"


def deaf_thread(payload: bytes, context: JobContext) -> None:
    context.log.info("begun")
    time.sleep(msgspec.json.decode(payload).get("seconds", 15))


def stubborn_process(payload: bytes, context: JobContext) -> None:
    """Starts a child and ignores every request to end."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    child = subprocess.Popen(["sleep", "3600"])
    context.log.info("begun %d %d", os.getpid(), child.pid)
    child.wait()


def tidy_process(payload: bytes, context: JobContext) -> None:
    context.log.info("begun")
    try:
        time.sleep(3600)
    finally:
        print("tidied up")


def kill_itself(payload: bytes, context: JobContext) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def fork(payload: bytes, context: JobContext) -> str:
    """Both copies return; only the original's word counts."""
    child = os.fork()
    if child == 0:
        return "copy"
    os.waitpid(child, 0)
    return "original"


async def fork_async(payload: bytes, context: JobContext) -> str:
    return fork(payload, context)


def handler(name: str, function: Callable[..., Any], isolation: Isolation) -> Handler:
    return Handler(name=name, function=function, isolation=isolation)


HANDLERS = {
    each.name: each
    for each in (
        handler("add", add, "async"),
        handler("add.thread", add_plain, "thread"),
        handler("add.process", add_plain, "process"),
        handler("talk", talk, "async"),
        handler("talk.thread", talk_plain, "thread"),
        handler("talk.process", talk_plain, "process"),
        handler("fail", fail, "async"),
        handler("fail.thread", fail_plain, "thread"),
        handler("fail.process", fail_plain, "process"),
        handler("not_json", not_json, "async"),
        handler("too_large", too_large, "async"),
        handler("leave_program", leave_program, "async"),
        handler("print_much", print_much, "async"),
        handler("print_much.process", print_much_plain, "process"),
        handler("long_line", long_line, "async"),
        handler("block", block, "async"),
        handler("sleep", sleep, "async"),
        handler("deaf", deaf, "async"),
        handler("listening.thread", listening, "thread"),
        handler("deaf.thread", deaf_thread, "thread"),
        handler("stubborn.process", stubborn_process, "process"),
        handler("tidy.process", tidy_process, "process"),
        handler("kill_itself.process", kill_itself, "process"),
        handler("fork", fork_async, "async"),
        handler("fork.thread", fork, "thread"),
        handler("fork.process", fork, "process"),
    )
}
