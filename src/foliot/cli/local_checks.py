"""What `foliot doctor` can tell without a node: the settings here, the disk, the certificates in files."""

import difflib
import os
import shutil
from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from foliot.cli.finding import Finding, fail, ok, warn

if TYPE_CHECKING:
    from foliot.settings import Settings

# What the programs look at besides the settings themselves.
OTHER_VARIABLES = frozenset(
    ("FOLIOT_CONFIG", "FOLIOT_KEY", "FOLIOT_LISTEN_FD", "FOLIOT_READY_FD", "FOLIOT_JOB_ID", "FOLIOT_ATTEMPT")
)
SOON = timedelta(days=30)
LOW_SHARE, LOW_BYTES, NO_BYTES = 0.05, 1 << 30, 100 << 20


def check_settings(environ: Mapping[str, str]) -> Iterator[Finding]:
    from foliot.settings import PREFIX, Settings

    file = Path(environ.get(f"{PREFIX}CONFIG") or "foliot.toml")
    yield ok("settings", f"read from {file} and the environment" if file.exists() else "read from the environment")
    known = {f"{PREFIX}{name.upper()}" for name in Settings.__struct_fields__} | OTHER_VARIABLES
    for name in sorted(name for name in environ if name.startswith(PREFIX) and name not in known):
        near = difflib.get_close_matches(name, known, n=1)
        todo = f"did you mean {near[0]}?" if near else "take it away; docs/reference/settings.md lists all there are"
        yield warn("settings", f"{name} is set, and no setting has that name", todo)


def check_disk(settings: "Settings") -> Iterator[Finding]:
    """Of the data directory, where a node keeps one here."""
    folder = Path(settings.data_dir)
    if not folder.is_dir():
        return
    usage = shutil.disk_usage(folder)
    share = usage.free / usage.total if usage.total else 1.0
    detail = f"{usage.free / (1 << 30):,.1f} GiB ({share:.0%}) free where {folder} is"
    todo = "make room, or move the data directory with --data-dir"
    if usage.free < NO_BYTES:
        yield fail("disk", detail, todo)
    elif usage.free < LOW_BYTES or share < LOW_SHARE:
        yield warn("disk", detail, todo)
    else:
        yield ok("disk", detail)


def check_certificate_files(settings: "Settings", now: datetime) -> Iterator[Finding]:
    for setting in ("tls_cert", "client_cert"):
        file = getattr(settings, setting)
        if not file:
            continue
        from cryptography import x509

        try:
            chain = x509.load_pem_x509_certificates(Path(file).read_bytes())
        except OSError as error:
            why = os.strerror(error.errno) if error.errno else str(error)
            yield fail("certificate", f"{file} ({setting}) can not be read: {why.lower()}", "name a file that can")
        except ValueError:
            yield fail("certificate", f"{file} ({setting}) holds no certificate as PEM", "give one")
        else:
            yield expiry(f"{file} ({setting})", min(each.not_valid_after_utc for each in chain), now)


def expiry(whose: str, until: datetime, now: datetime) -> Finding:
    """How long a certificate is still good for."""
    day = f"{until:%Y-%m-%d}"
    todo = "have it renewed; a node takes up the new file by itself"
    if until <= now:
        return fail("certificate", f"{whose} ended on {day}", todo)
    left = until - now
    if left < SOON:
        return warn("certificate", f"{whose} ends on {day}, in {some_days(left)}", todo)
    return ok("certificate", f"{whose} is good until {day}")


def some_days(left: timedelta) -> str:
    return f"{left.days} days" if left.days > 1 else f"{left.total_seconds() / 3600:.0f} hours"
