"""What a thread that sends a notice may touch: addresses that are allowed, files of Python's own, nothing else."""

import os
import site
import socket
import sys
import sysconfig
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from typing import Any

from foliot.outbound import AllowList
from foliot.outbound.address import WORDS, kind_of, read_address

_PROGRAMS = frozenset(
    {"os.exec", "os.fork", "os.forkpty", "os.posix_spawn", "os.spawn", "os.startfile", "os.system", "subprocess.Popen"}
)
_here = threading.local()
_installing = threading.Lock()
_installed = False


class Guard:
    """Of one notice. `refused` tells what was not let through, "" where nothing was; `said` is what Apprise had to say
    meanwhile."""

    def __init__(self, allowed: AllowList) -> None:
        self._allowed = allowed
        self._host = ""
        self._lines: list[socket.socket] = []
        self.refused = ""
        self.said: list[str] = []

    def look(self, event: str, values: tuple[Any, ...]) -> None:
        """Raises `PermissionError`, which whoever asked takes for the system's own."""
        match event:
            case "socket.getaddrinfo":
                self._host = os.fsdecode(values[0] or "")
            case "socket.connect":
                self._connect(values[1])
                self._lines.append(socket.socket(fileno=os.dup(values[0].fileno())))
            case "socket.sendto":
                self._connect(values[1])
            case "socket.sendmsg" if values[1] is not None:
                self._connect(values[1])
            case "open":
                self._open(values[0])
            case _ if event in _PROGRAMS:
                self._refuse("it would start a program on this machine")

    def cut(self) -> None:
        """End the connections that were made: who waits at one of them for an answer waits no longer."""
        for line in self._lines:
            with suppress(OSError):
                line.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        while self._lines:
            self._lines.pop().close()

    def _connect(self, place: Any) -> None:
        if not isinstance(place, tuple):
            self._refuse("it leads to a socket of this machine")
        host, port, *_ = place
        address = read_address(str(host))
        if address is None:
            self._refuse("it connects to a name, so that nobody can tell where that leads")
        elif not self._allowed.permits(self._host or str(host), address, port):
            kind = kind_of(address)
            what = WORDS[kind] if kind else "no address"
            self._refuse(f"{self._host or host}:{port} leads to {what}; the node's operator can allow it: http_allow")

    def _open(self, file: Any) -> None:
        if isinstance(file, int):
            return
        name = os.path.realpath(os.fsdecode(file))
        if not name.startswith(_own_folders()):
            self._refuse("it would read or write a file of this machine")

    def _refuse(self, why: str) -> None:
        self.refused = why
        raise PermissionError(why)


@contextmanager
def guarded(guard: Guard) -> Iterator[Guard]:
    """Watch this thread."""
    _install()
    _here.guard = guard
    try:
        yield guard
    finally:
        _here.guard = None
        guard.close()


def current() -> Guard | None:
    """The one that watches this thread."""
    return getattr(_here, "guard", None)


def _install() -> None:
    """Once for the process: it can not be taken away again."""
    global _installed
    with _installing:
        if not _installed:
            sys.addaudithook(_look)
            _installed = True


def _look(event: str, values: tuple[Any, ...]) -> None:
    guard = getattr(_here, "guard", None)
    if guard is not None:
        guard.look(event, values)


@cache
def _own_folders() -> tuple[str, ...]:
    """Where Python and what is installed with it live. Not all of `sys.path`: a program's own folder may hold secrets
    beside its modules."""
    paths = sysconfig.get_paths()
    own = {paths[name] for name in ("stdlib", "platstdlib", "purelib", "platlib")}
    return tuple(f"{os.path.realpath(folder)}{os.sep}" for folder in own.union(site.getsitepackages()))
