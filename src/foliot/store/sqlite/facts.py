"""How the file is doing, and from which figures on that is trouble."""

import os
import sqlite3
from pathlib import Path
from typing import Final

from foliot.store.base import Fact
from foliot.store.sqlite.connection import SQL

_GIB: Final = 1 << 30

# Little room: less than a busy day may need, or a small share of a disk where that is not much either.
DISK_BYTES: Final = _GIB
DISK_SHARE: Final = 0.05
DISK_AMPLE: Final = 20 * _GIB

WAL_BYTES: Final = _GIB // 2  # checkpoints keep it near 4 MiB, and under 64 once a burst is over


def facts(connection: sqlite3.Connection) -> list[Fact]:
    (path,) = connection.execute(SQL["database_file"]).fetchone()
    pages, free = connection.execute(SQL["pages"]).fetchone()
    found = [Fact(name="free_pages_share", value=free / pages if pages else 0.0)]
    if path:
        room = os.statvfs(path)
        found.append(disk_free(room.f_bavail * room.f_frsize, room.f_blocks * room.f_frsize))
        log = Path(f"{path}-wal")
        found.append(wal(log.stat().st_size if log.exists() else 0))
    return found


def disk_free(free: int, size: int) -> Fact:
    trouble = ""
    if free < DISK_BYTES or (free < DISK_SHARE * size and free < DISK_AMPLE):
        trouble = f"The disk of the database has {free / _GIB:.1f} GiB left of {size / _GIB:.1f}: make room."
    return Fact(name="disk_free_bytes", value=free, trouble=trouble)


def wal(size: int) -> Fact:
    trouble = ""
    if size > WAL_BYTES:
        trouble = (
            f"The write-ahead log of the database has grown to {size / _GIB:.1f} GiB: another program reads the file "
            "without an end (a shell, a backup), so that the log can not be written back. Close it."
        )
    return Fact(name="wal_bytes", value=size, trouble=trouble)
