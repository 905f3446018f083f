"""Sends notices by Apprise. It is loaded when the first one is to go out, in a thread: it knows a hundred services, and
most nodes never ask for one."""

import asyncio
import logging
import re
import threading
import warnings
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar
from urllib.parse import unquote

from foliot.alerts.guard import Guard, current, guarded
from foliot.alerts.text import Words
from foliot.outbound import AllowList

LOCAL = frozenset(  # they show a message on this machine's own screen, or write it into its own files
    {"blink1", "dbus", "file", "gio", "glib", "gnome", "kde", "macosx", "qt", "syslog", "windows"}
)
THREADS = 8
SECONDS = 20.0
LONGEST_ERROR = 300

_SCHEME = re.compile(r"^([A-Za-z0-9]{2,32})://")
_PARTS = re.compile(r"[/?&=@:#,;+ ]+")
Answer = TypeVar("Answer")


class BadChannel(Exception):
    """The address of a channel that nothing can be sent to; the message tells why, and holds nothing of it."""


class Sender:
    """`allowed` is what may be called besides public addresses; `seconds` is for one notice by one channel."""

    def __init__(self, allowed: AllowList, *, seconds: float = SECONDS) -> None:
        self._allowed = allowed
        self._seconds = seconds
        self._threads: ThreadPoolExecutor | None = None

    async def check(self, url: str) -> None:
        """Raises `BadChannel`. Nothing is sent."""
        scheme_of(url)
        await self._run(lambda: _instance(url, Guard(self._allowed)))

    async def send(self, url: str, words: Words) -> str | None:
        """None once it has gone out, else why it has not, without the address's secrets."""
        guard = Guard(self._allowed)
        try:
            return await asyncio.wait_for(self._run(lambda: _send(url, words, guard)), self._seconds)
        except TimeoutError:
            guard.cut()
            return f"no answer within {self._seconds:g} s"
        except BadChannel as error:
            return str(error)

    def close(self) -> None:
        if self._threads is not None:
            self._threads.shutdown(wait=False, cancel_futures=True)
            self._threads = None

    async def _run(self, work: Callable[[], Answer]) -> Answer:
        if self._threads is None:
            self._threads = ThreadPoolExecutor(THREADS, thread_name_prefix="notice")
        return await asyncio.get_running_loop().run_in_executor(self._threads, work)


def scheme_of(url: str) -> str:
    """What stands before the `://`, in lower case. Raises `BadChannel`."""
    found = _SCHEME.match(url)
    if found is None:
        raise BadChannel("is no Apprise URL; it must begin with a service and ://, as in slack:// or mailto://")
    scheme = found[1].lower()
    if scheme in LOCAL:
        raise BadChannel(
            f"{scheme}:// would speak on the node's own machine; use a service that is called over the net"
        )
    return scheme


def _send(url: str, words: Words, guard: Guard) -> str | None:
    service = _instance(url, guard)
    with guarded(guard):
        try:
            sent = bool(service.notify(title=words.title, body=words.body, notify_type=words.tone, body_format="text"))
        except Exception as error:  # of whatever service: one that fails in its own way must not end the others
            guard.said.append(type(error).__name__)
            sent = False
    return None if sent else guard.refused or without_secrets(" ".join(guard.said[-2:]), url) or "it was not accepted"


def _instance(url: str, guard: Guard) -> Any:
    scheme = scheme_of(url)
    apprise = _apprise()
    if scheme not in apprise.manager_plugins.NotificationManager():
        raise BadChannel(f"there is no service {scheme}://; see the list of Apprise")
    asset = apprise.AppriseAsset(
        app_id="Foliot", app_desc="Foliot", app_url="", async_mode=False, secure_logging=True, http_redirects=False
    )
    with guarded(guard):
        try:
            service = apprise.Apprise.instantiate(url, asset=asset, suppress_exceptions=True)
        except Exception:
            service = None
    if guard.refused:
        raise BadChannel(guard.refused)
    if service is None:
        raise BadChannel(f"is no complete {scheme}:// address; see what Apprise needs for this service")
    return service


def without_secrets(text: str, url: str) -> str:
    """What Apprise said, without any part of the address."""
    _, _, rest = url.partition("://")
    parts = {part for part in _PARTS.split(rest) + _PARTS.split(unquote(rest)) if len(part) > 3}
    for part in sorted(parts, key=len, reverse=True):
        text = text.replace(part, "***")
    return text[:LONGEST_ERROR]


class _Listener(logging.Handler):
    """Takes what Apprise says about a notice, for the one who asked for it."""

    def emit(self, record: logging.LogRecord) -> None:
        guard = current()
        if guard is not None:
            guard.said.append(record.getMessage())


_listener = _Listener(logging.WARNING)
_loading = threading.Lock()


def _apprise() -> Any:
    """What it and the libraries below it log may hold parts of an address: none of it goes to the node's log. Loading
    all services takes half a second, and warns of what is old in their libraries."""
    with _loading, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import apprise

        logger = logging.getLogger("apprise")
        if _listener not in logger.handlers:
            services: Any = apprise.manager_plugins.NotificationManager
            services().load_modules()
            logger.addHandler(_listener)
            logger.propagate = False
            logger.setLevel(logging.WARNING)
            logging.getLogger("urllib3").setLevel(logging.WARNING)
    return apprise
