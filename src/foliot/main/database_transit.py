"""Whether what a node says to its database can be read, or answered, by somebody in between."""

import ipaddress
import logging
import os
from collections.abc import Mapping
from urllib.parse import parse_qs, unquote, urlsplit

log = logging.getLogger("foliot")

_LIKE_VERIFY_FULL = "sslmode=verify-full&sslrootcert=/path/to/ca.pem"


def warn_of_open_transit(url: str, environ: Mapping[str, str] = os.environ) -> None:
    """Tells of a database on another machine whose certificate and name are not both checked."""
    if url.startswith("sqlite:"):
        return
    mode = _option(url, "sslmode") or environ.get("PGSSLMODE") or "prefer"
    away = [host for host in _hosts(url, environ) if not _is_here(host)]
    if away and mode != "verify-full":
        log.warning(
            "the database is on another machine (%s), and sslmode is %s: whoever is in between can pose as it. "
            "Add %s to the database's address",
            ", ".join(away),
            mode,
            _LIKE_VERIFY_FULL,
        )


def _hosts(url: str, environ: Mapping[str, str]) -> list[str]:
    netloc = urlsplit(url).netloc.rpartition("@")[2]
    named = netloc or _option(url, "host") or environ.get("PGHOST") or environ.get("PGHOSTADDR") or ""
    return [_without_port(unquote(each)) for each in named.split(",") if each]


def _without_port(host: str) -> str:
    if host.startswith("["):
        return host[1:].partition("]")[0]
    return host if host.startswith("/") or host.count(":") > 1 else host.partition(":")[0]


def _is_here(host: str) -> bool:
    if not host or host.startswith("/") or host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _option(url: str, name: str) -> str:
    return parse_qs(urlsplit(url).query).get(name, [""])[0]
