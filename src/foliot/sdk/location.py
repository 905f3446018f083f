"""Where the node is and which key to show it, when a program does not say."""

import ipaddress
import os
import shlex
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import urlsplit

from foliot.domain.errors import FoliotError

DEFAULT_URL = "http://127.0.0.1:7070"
KEY_FILE = "admin.key"


def find_url(url: str | None = None, environ: Mapping[str, str] = os.environ) -> str:
    return (url or environ.get("FOLIOT_URL") or DEFAULT_URL).rstrip("/")


def find_key(url: str, key: str | None = None, environ: Mapping[str, str] = os.environ) -> str | None:
    """What was given, else FOLIOT_KEY or FOLIOT_ADMIN_KEY, else the key that a node on this machine wrote into its data
    directory. That one is never shown to another machine."""
    if found := key or environ.get("FOLIOT_KEY") or environ.get("FOLIOT_ADMIN_KEY"):
        return found
    if not is_loopback(url):
        return None
    try:
        return read_key_file(Path(environ.get("FOLIOT_DATA_DIR") or "foliot-data") / KEY_FILE) or None
    except OSError:
        return None


class ReadableByOthers(FoliotError):
    """A key that others on this machine can read, or change, is nobody's own. The message tells how to mend it."""


def read_key_file(file: Path) -> str:
    """The key in it. Raises `ReadableByOthers`, and `OSError` where it can not be read at all."""
    with file.open(encoding="utf-8") as opened:
        mode = os.fstat(opened.fileno()).st_mode & 0o777
        if os.name == "posix" and mode & 0o077:
            raise ReadableByOthers(
                f"{file} can be read by others (its mode is {mode:o}), so its key is not used. If only you have read "
                f"it: chmod 600 {shlex.quote(str(file))}; else delete it, and the node's next start makes a new one"
            )
        return opened.read().strip()


def is_loopback(url: str) -> bool:
    host = urlsplit(url).hostname or ""
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
