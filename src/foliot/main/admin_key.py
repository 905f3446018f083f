"""The key that guards everything until roles come: given, or made on first start and kept in the data directory."""

import contextlib
import os
import secrets
from pathlib import Path

from foliot.settings import Settings, SettingsError

KEY_FILE = "admin.key"


def ensure_admin_key(settings: Settings) -> str:
    """The key that guards everything: given, or kept in the data directory, made on first start."""
    if settings.admin_key:
        return settings.admin_key
    file = Path(settings.data_dir) / KEY_FILE
    with contextlib.suppress(FileNotFoundError):
        key = file.read_text("ascii").strip()
        if len(key) >= 16:
            return key
        raise SettingsError(f"{file} holds no usable key; delete it to have a new one made")
    key = f"fk_{secrets.token_hex(32)}"
    file.parent.mkdir(parents=True, exist_ok=True)
    try:
        handle = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:  # another process was faster
        return ensure_admin_key(settings)
    with os.fdopen(handle, "w") as out:
        out.write(f"{key}\n")
    return key
