"""Where the node is and which key to show it, when a program does not say."""

import ipaddress
import os
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import urlsplit

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
        return (Path(environ.get("FOLIOT_DATA_DIR") or "foliot-data") / KEY_FILE).read_text("utf-8").strip() or None
    except OSError:
        return None


def is_loopback(url: str) -> bool:
    host = urlsplit(url).hostname or ""
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
