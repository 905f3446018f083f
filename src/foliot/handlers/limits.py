"""What a program may use: the `cpu` and `memory` that its job asked for, made to hold by the system.

A group of cgroup v2 holds for all that a program starts, together. Where the worker can make none there are rlimits,
which hold for each process by itself: `memory` is its address space, and `cpu` becomes processor time, as much as that
share comes to over the job's timeout. Which of them it is, and why, is a line in the job's log. The program is started
by a shell that sets the limit on itself first and then becomes the program; no argument is read by it.
"""

import functools
import math
import os
import resource
import signal
import sys
from collections.abc import Sequence
from typing import Protocol

from foliot.handlers.cgroup import Group, Groups, NoGroups, own_group
from foliot.sdk.context import JobContext

SHELL = "/bin/sh"
XCPU_SECONDS = 5  # between being told that the processor time is over and being killed


class Limits(Protocol):
    """How a program is kept to what its job asked for."""

    def words(self, argv: Sequence[str]) -> list[str]:
        """The command that starts it so."""
        ...

    def begin(self, process: int) -> None:
        """As soon as that command runs. Raises `OSError` where it can not be limited."""
        ...

    @property
    def broken(self) -> str | None:
        """Which limit it ran into, where that can be told."""
        ...

    async def close(self) -> None:
        """When it has ended."""
        ...


def set_limits(context: JobContext, *, own_user: bool = True) -> Limits | None:
    """The limits of a job's program, said in its log; None where it asked for nothing that can be limited. `own_user`
    tells whether it runs as the worker's own user."""
    memory = context.resources.get("memory") or None
    cpu = context.resources.get("cpu") or None
    if memory is None and cpu is None:
        return None
    try:
        group = groups().make(
            f"{context.job_id}-{context.attempt}", memory=None if memory is None else math.ceil(memory), cpu=cpu
        )
    except NoGroups as error:
        return _set_rlimits(context, memory, cpu, str(error))
    except OSError as error:
        return _set_rlimits(context, memory, cpu, f"{error.filename}: {error.strerror}")
    context.log.info("limited by cgroup v2 to %s", _shown(memory, cpu))
    return GroupLimits(group, _shown(memory, None), own_user=own_user)


def _set_rlimits(context: JobContext, memory: float | None, cpu: float | None, why: str) -> Limits | None:
    if not sys.platform.startswith("linux"):
        context.log.warning("not limited to %s: %s, and rlimits do not hold here", _shown(memory, cpu), why)
        return None
    space = None if memory is None else _at_most_now(resource.RLIMIT_AS, math.ceil(memory))
    seconds = None
    if cpu is not None and context.timeout < math.inf:
        seconds = _at_most_now(resource.RLIMIT_CPU, max(1, math.ceil(cpu * context.timeout)))
    told = [] if space is None else [f"{show_bytes(space)} of address space"]
    told += [] if seconds is None else [f"{seconds} s of processor time"]
    context.log.info(
        "limited by rlimits to %s for each process: no cgroup v2, %s", " and ".join(told) or "nothing", why
    )
    return Rlimits(space=space, seconds=seconds)


def groups() -> Groups:
    """This process's, made ready once. Raises `NoGroups`, the same at each call."""
    found = _open_groups()
    if isinstance(found, str):
        raise NoGroups(found)
    return found


@functools.cache
def _open_groups() -> Groups | str:
    try:
        return Groups(own_group())
    except NoGroups as error:
        return str(error)


class GroupLimits:
    """A group of cgroup v2, which the program is in from its first step. Another user's may not enter it: that one
    stops itself, and goes on when the worker has moved it."""

    def __init__(self, group: Group, memory: str, *, own_user: bool = True) -> None:
        self._group = group
        self._memory = memory
        self._own_user = own_user

    def words(self, argv: Sequence[str]) -> list[str]:
        if self._own_user:
            return [SHELL, "-c", 'echo $$ > "$0" && exec "$@"', str(self._group.path / "cgroup.procs"), *argv]
        return [SHELL, "-c", 'kill -STOP $$ && exec "$@"', SHELL, *argv]

    def begin(self, process: int) -> None:
        if self._own_user:
            return
        os.waitid(os.P_PID, process, os.WSTOPPED | os.WEXITED | os.WNOWAIT)
        (self._group.path / "cgroup.procs").write_text(str(process))
        os.killpg(process, signal.SIGCONT)

    @property
    def broken(self) -> str | None:
        return f"it used more than its {self._memory}" if self._group.ran_out_of_memory else None

    async def close(self) -> None:
        await self._group.remove()


class Rlimits:
    """Limits of each process by itself."""

    def __init__(self, *, space: int | None, seconds: int | None) -> None:
        self._commands = [] if space is None else [f"ulimit -v {max(1, space // 1024)}"]
        if seconds is not None:  # the soft one first: a hard limit may not be below it
            self._commands += [f"ulimit -S -t {seconds}", f"ulimit -H -t {seconds + XCPU_SECONDS}"]

    def words(self, argv: Sequence[str]) -> list[str]:
        return [SHELL, "-c", " && ".join([*self._commands, 'exec "$@"']), SHELL, *argv]

    def begin(self, process: int) -> None:
        return

    @property
    def broken(self) -> str | None:
        return None

    async def close(self) -> None:
        return


def _at_most_now(what: int, wanted: int) -> int:
    """No more than this process may have itself: nobody may raise a hard limit."""
    _, hard = resource.getrlimit(what)
    return wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)


def _shown(memory: float | None, cpu: float | None) -> str:
    told = [] if memory is None else [f"{show_bytes(memory)} of memory"]
    return " and ".join(told if cpu is None else [*told, f"{cpu:g} processors"])


def show_bytes(count: float) -> str:
    for unit, size in (("GiB", 2**30), ("MiB", 2**20), ("KiB", 2**10)):
        if count >= size:
            return f"{count / size:.4g} {unit}"
    return f"{count:g} bytes"
