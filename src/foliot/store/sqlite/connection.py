"""The file: connections with their settings, the lock that keeps a second process away, and what its errors mean."""

import fcntl
import os
import sqlite3
from pathlib import Path
from typing import Final

from foliot.domain.errors import FoliotError, StoreFull, Unavailable, Unstorable
from foliot.store.migrate import migrations, pending
from foliot.store.queries import load_queries

SQL: Final = load_queries("sqlite")

OLDEST: Final = (3, 35, 0)  # the first with RETURNING
_BUSY_MS: Final = 5000
_CHECKPOINT_PAGES: Final = 1000  # 4 MiB of log between two checkpoints: more at once stalls the writer for longer
_MEMORY: Final = ":memory:"


def in_memory(path: str) -> bool:
    return path == _MEMORY


def connect(path: str, *, writes: bool) -> sqlite3.Connection:
    """A connection that commits durably, in autocommit mode, with small caches (a node is to stay small)."""
    if sqlite3.sqlite_version_info < OLDEST:
        raise Unavailable(
            f"The SQLite library of this Python is {sqlite3.sqlite_version}; Foliot needs 3.35 or later. "
            "Use a newer Python build, or PostgreSQL as the store."
        )
    connection = sqlite3.connect(path, isolation_level=None, cached_statements=256)
    try:
        connection.execute(f"PRAGMA busy_timeout = {_BUSY_MS}")
        if writes:
            connection.execute("PRAGMA journal_mode = WAL").fetchone()
            connection.execute("PRAGMA synchronous = FULL")
            connection.execute(f"PRAGMA wal_autocheckpoint = {_CHECKPOINT_PAGES}").fetchone()
            connection.execute("PRAGMA journal_size_limit = 67108864").fetchone()
            # SQLite's own default; some builds overwrite what is deleted, which every move of a job would pay for.
            connection.execute("PRAGMA secure_delete = OFF").fetchone()
        else:
            connection.execute("PRAGMA query_only = 1")
        connection.execute(f"PRAGMA cache_size = {-8192 if writes else -2048}")
        connection.execute("PRAGMA mmap_size = 0").fetchone()
    except BaseException:
        connection.close()
        raise
    return connection


def migrate(connection: sqlite3.Connection, now: int) -> None:
    """Bring an empty or older database up to this code's schema, each step in its own transaction."""
    connection.execute(SQL["make_schema_version"])
    applied = {number for (number,) in connection.execute(SQL["applied_migrations"])}
    for migration in pending(migrations("sqlite"), applied):
        connection.execute("BEGIN IMMEDIATE")
        try:
            for statement in _statements(migration.sql):
                connection.execute(statement)
            connection.execute(SQL["note_migration"], (migration.number, migration.name, now))
        except BaseException:
            connection.execute("ROLLBACK")
            raise
        connection.execute("COMMIT")


def _statements(script: str) -> list[str]:
    found, text = [], ""
    for line in script.splitlines(keepends=True):
        text += line
        if sqlite3.complete_statement(text):
            found.append(text)
            text = ""
    return found


class FileLock:
    """An operating-system lock beside the database, held while it is open and gone with the process."""

    def __init__(self, path: str) -> None:
        self._path = f"{Path(path).resolve()}.lock"
        self._descriptor: int | None = None

    def take(self) -> None:
        try:
            descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        except OSError as error:
            raise Unavailable(
                f"Can not open {self._path} ({error.strerror}). Make sure that the folder exists and may be written to."
            ) from error
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            os.close(descriptor)
            raise Unavailable(
                f"{self._path.removesuffix('.lock')} is in use by another Foliot process. Stop that one, give this one "
                "another file, or use PostgreSQL, which serves many nodes."
            ) from error
        self._descriptor = descriptor

    def release(self) -> None:
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None


_DATA_ERRORS = (OverflowError, UnicodeEncodeError, sqlite3.DataError)

_ADVICE = {
    sqlite3.SQLITE_BUSY: "Another program holds the database; close it (a shell, a backup) and try again.",
    sqlite3.SQLITE_LOCKED: "Another program holds the database; close it (a shell, a backup) and try again.",
    sqlite3.SQLITE_READONLY: "Make the database file and its folder writable for this user.",
    sqlite3.SQLITE_CANTOPEN: "Make sure that the folder exists and that this user may read and write it.",
    sqlite3.SQLITE_PERM: "Make the database file and its folder writable for this user.",
    sqlite3.SQLITE_IOERR: "Look at the disk and the system's log.",
    sqlite3.SQLITE_CORRUPT: "The file is damaged: stop Foliot and restore a backup.",
    sqlite3.SQLITE_NOTADB: "The file is not an SQLite database: give another path.",
    sqlite3.SQLITE_NOMEM: "The machine is out of memory.",
}


def explained(error: BaseException, *, committing: bool = False) -> BaseException:
    """The error of ours that `error` stands for, or itself where it is a fault in the code.

    A commit that failed for lack of room left nothing behind; after a failed write it may be on the disk all the same.
    """
    if isinstance(error, FoliotError):
        return error
    if isinstance(error, _DATA_ERRORS):
        return Unstorable(
            f"The store can not keep this: {error}. Numbers must fit in 64 bits, text must be valid Unicode."
        )
    code = getattr(error, "sqlite_errorcode", None)
    if not isinstance(error, sqlite3.Error) or code is None:
        return error
    code &= 0xFF
    if code == sqlite3.SQLITE_FULL:
        return StoreFull("The disk of the SQLite database is full. Make room; nothing that was accepted is lost.")
    if code in _ADVICE:
        return Unavailable(
            f"SQLite: {error}. {_ADVICE[code]}", fate_unknown=committing and code == sqlite3.SQLITE_IOERR
        )
    return error
