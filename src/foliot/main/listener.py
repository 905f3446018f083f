"""Where connections come in: a socket that listens, and the loop that takes connections from it.

Connections are counted from the moment they are taken, so that those which never finish their TLS handshake count as
well. Above the limit a few more are taken, to be told so (503); then no more until one has gone.
"""

import asyncio
import contextlib
import errno
import ipaddress
import logging
import socket
import ssl
import sys
from collections.abc import Callable
from typing import Any

from foliot.main.http_connection import HttpConnection
from foliot.sdk.tls import Reloaded
from foliot.settings import Settings, SettingsError

BACKLOG = 2048
TOLD = 100  # connections above the limit that are taken to be told so
OWN_FILES = 200  # what a process has open besides its clients
PAUSE_SECONDS = 0.5

log = logging.getLogger("foliot")


def bind(settings: Settings) -> socket.socket:
    """The socket, listening. Raises `SettingsError` where it can not be had, or must not: beyond this machine
    keys and jobs would be there for everybody on the way to read, unless TLS hides them."""
    where = f"{settings.host}:{settings.port}"
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    bound = socket.socket(family, socket.SOCK_STREAM)
    try:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        bound.bind((settings.host, settings.port))
        if settings.tls_cert or settings.insecure or is_loopback(bound.getsockname()[0]):
            bound.listen(BACKLOG)
            return bound
    except OSError as error:
        bound.close()
        raise SettingsError(
            f"can not listen on {where}: {error.strerror}. Is another node running there? "
            "Stop it, or choose another port with --port (0 picks a free one)"
        ) from None
    bound.close()
    raise SettingsError(
        f"{where} can be reached from other machines, and without TLS keys and jobs would cross the network for "
        "everybody to read. Give a certificate with --tls-cert and --tls-key, or listen on 127.0.0.1; where "
        "something in front speaks TLS, or the network is trusted, say --insecure (FOLIOT_INSECURE=true)"
    )


def is_loopback(address: str) -> bool:
    found = ipaddress.ip_address(address.partition("%")[0])
    if isinstance(found, ipaddress.IPv6Address) and found.ipv4_mapped is not None:
        return found.ipv4_mapped.is_loopback
    return found.is_loopback


def make_room(connections: int) -> int:
    """How many connections can be had of those wished for: the system's limit of open files is raised as far as it
    lets itself be."""
    if sys.platform == "win32":
        return connections
    import resource

    now, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = connections + TOLD + OWN_FILES
    if now == resource.RLIM_INFINITY or now >= wanted:
        return connections
    reached = wanted if most == resource.RLIM_INFINITY else min(wanted, most)
    with contextlib.suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (reached, most))
        now = reached
    if now >= wanted:
        return connections
    room = max(now - TOLD - OWN_FILES, 1)
    log.warning("max_connections is %d, but the limit of open files leaves room for %d (ulimit -n)", connections, room)
    return room


class Listener:
    """Takes connections from `start` to `close`. To uvicorn it is what asyncio calls a server."""

    def __init__(
        self, bound: socket.socket, *, tls: Reloaded[ssl.SSLContext] | None, limit: int, seconds: float
    ) -> None:
        self._socket = bound
        self._tls = tls
        self._limit = limit
        self._seconds = seconds
        self._open: set[HttpConnection] = set()
        self._room = asyncio.Event()
        self._room.set()
        self._greeting: set[asyncio.Task[None]] = set()
        self._accepting: asyncio.Task[None] | None = None

    def start(self, make: Callable[..., HttpConnection]) -> None:
        """`make` is called with `seconds`, `full` and `gone`, as a connection wants them."""
        self._socket.setblocking(False)
        self._accepting = asyncio.create_task(self._accept(make))

    def close(self) -> None:
        if self._accepting is not None:
            self._accepting.cancel()
        for task in self._greeting:
            task.cancel()
        self._socket.close()

    async def wait_closed(self) -> None:
        if self._accepting is not None:
            await asyncio.wait([self._accepting, *self._greeting])

    async def _accept(self, make: Callable[..., HttpConnection]) -> None:
        loop = asyncio.get_running_loop()
        while True:
            await self._room.wait()
            try:
                taken, _ = await loop.sock_accept(self._socket)
            except OSError as error:
                if error.errno != errno.ECONNABORTED:  # out of files or memory: connections wait until some are free
                    log.warning("no connection can be taken: %s", error.strerror)
                    await asyncio.sleep(PAUSE_SECONDS)
                continue
            made = make(seconds=self._seconds, full=len(self._open) >= self._limit, gone=self._forget)
            self._open.add(made)
            if len(self._open) >= self._limit + TOLD:
                self._room.clear()
            task = asyncio.create_task(self._greet(taken, made))
            self._greeting.add(task)
            task.add_done_callback(self._greeting.discard)
            await asyncio.sleep(0)

    async def _greet(self, taken: socket.socket, made: HttpConnection) -> None:
        """Up to the end of the TLS handshake; from there on the connection is on its own."""
        options: dict[str, Any] = {}
        if self._tls is not None:
            options = {"ssl": self._tls.current(), "ssl_handshake_timeout": self._seconds}
        try:
            taken.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            await asyncio.get_running_loop().connect_accepted_socket(lambda: made, taken, **options)
        except OSError as error:  # ssl's errors and timeouts are among these
            log.debug("a connection did not come about: %s", error)
            taken.close()
            self._forget(made)
        except BaseException:
            taken.close()
            self._forget(made)
            raise

    def _forget(self, connection: HttpConnection) -> None:
        self._open.discard(connection)
        self._room.set()
