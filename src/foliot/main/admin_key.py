"""The node's own key, which may do everything: given, or made on first start and kept in the data directory."""

import contextlib
import os
import secrets
from pathlib import Path

from foliot.sdk.location import KEY_FILE, ReadableByOthers, read_key_file
from foliot.settings import Settings, SettingsError


def ensure_admin_key(settings: Settings) -> tuple[str, bool]:
    """The key, and whether it was made just now. It is kept where only its owner can read it; a file that others can
    read is not used, since who knows who has read it."""
    if not settings.database or not settings.admin_key:  # else nothing is kept there
        _make_data_directory(settings)
    if settings.admin_key:
        return settings.admin_key, False
    file = Path(settings.data_dir) / KEY_FILE
    with contextlib.suppress(FileNotFoundError):
        try:
            key = read_key_file(file)
        except ReadableByOthers as error:
            raise SettingsError(str(error)) from None
        if len(key) >= 16:
            return key, False
        raise SettingsError(f"{file} holds no usable key; delete it to have a new one made")
    key = f"fk_{secrets.token_hex(32)}"
    # Written under another name first: whoever finds the file finds all of it.
    draft = file.with_name(f"{KEY_FILE}.{os.getpid()}")
    with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as out:
        out.write(f"{key}\n")
        out.flush()
        os.fsync(out.fileno())
    try:
        os.link(draft, file)
    except FileExistsError:  # another process was faster
        return ensure_admin_key(settings)
    except OSError:  # a file system without links
        draft.replace(file)
    finally:
        draft.unlink(missing_ok=True)
    return key, True


def _make_data_directory(settings: Settings) -> None:
    """For its owner only. One that is there already is left as it is: the key is guarded by its own file."""
    folder = Path(settings.data_dir)
    folder.parent.mkdir(parents=True, exist_ok=True)
    folder.mkdir(mode=0o700, exist_ok=True)
