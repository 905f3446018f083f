"""What a person needs next, ready to paste."""

import os
import shlex
import shutil
import sys
from pathlib import Path

from foliot.sdk.location import KEY_FILE
from foliot.settings import Settings


def greeting(settings: Settings, *, new_key: str) -> str:
    """`new_key` is a key that was made just now: the only time that it is shown."""
    file = Path(settings.data_dir) / KEY_FILE
    shown = '"$FOLIOT_ADMIN_KEY"' if settings.admin_key else f'"$(cat {shlex.quote(str(file))})"'
    store = f"SQLite in {settings.store_url.removeprefix('sqlite:///')}" if settings.is_sqlite else "PostgreSQL"
    usual = Settings()
    where = "" if settings.node_url == usual.node_url else f" --url {settings.node_url}"
    where += "" if settings.data_dir == usual.data_dir else f" --data-dir {shlex.quote(settings.data_dir)}"
    lines = [f"Foliot is ready on {settings.node_url} ({store}; the API is described at {settings.node_url}/docs)"]
    if new_key:
        lines.append(f"The admin key, shown this once and kept in {file}: {new_key}")
    job = """'{"job_type":"echo","payload":{"message":"hello"}}'"""
    lines += [
        "A first job, from another terminal:",
        f"  curl -s {settings.node_url}/api/v1/jobs -H 'Authorization: Bearer '{shown} -d {job}",
        "or:",
        f'  {_own_command()} submit echo \'{{"message":"hello"}}\' --wait{where}',
    ]
    return "\n".join(lines)


def _own_command() -> str:
    """How this program is called from here."""
    found = shutil.which("foliot")
    own = os.path.realpath(sys.argv[0])
    if found and os.path.realpath(found) == own:
        return "foliot"
    return shlex.quote(os.path.relpath(own)) if Path(own).name == "foliot" else "python -m foliot"
