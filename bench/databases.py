"""Where the jobs of a run are kept: fresh databases of one kind, gone afterwards."""

import asyncio
import contextlib
import itertools
import shutil
import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Literal, Protocol

import asyncpg
import psutil

from bench.bare import BareStore
from bench.bare_postgres import BarePostgres
from bench.bare_sqlite import BareSqlite
from tests.postgres_server import PostgresServer

StoreName = Literal["sqlite", "postgres"]


class Databases(Protocol):
    name: StoreName
    title: str  # for people, with the version

    def fresh(self) -> str:
        """The address of a new, empty database."""
        ...

    def bare(self) -> BareStore:
        """The bare statements, on a new database of their own."""
        ...

    def size(self, url: str) -> int:
        """Bytes that a database takes, without room that was freed and will be used again."""
        ...

    def settle(self, url: str) -> None:
        """Do now what the server would do later about what was written, in its own time."""
        ...

    def cpu_seconds(self) -> float | None:
        """What the database server has used so far; None where it is part of the node."""
        ...


class Sqlite:
    name: StoreName = "sqlite"
    title = f"SQLite {sqlite3.sqlite_version}, WAL, synchronous=FULL"

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._numbers = itertools.count(1)

    def fresh(self) -> str:
        return f"sqlite:///{self._folder / f'{next(self._numbers)}.db'}"

    def bare(self) -> BareStore:
        return BareSqlite(str(self._folder / f"{next(self._numbers)}.db"))

    def size(self, url: str) -> int:
        connection = sqlite3.connect(url.removeprefix("sqlite:///"))
        try:
            pages, free, size = (
                int(connection.execute(f"pragma {name}").fetchone()[0])
                for name in ("page_count", "freelist_count", "page_size")
            )
            return (pages - free) * size
        finally:
            connection.close()

    def settle(self, url: str) -> None:
        pass

    def cpu_seconds(self) -> float | None:
        return None


class Postgres:
    name: StoreName = "postgres"

    def __init__(self, server: PostgresServer) -> None:
        self._server = server
        self.title = f"PostgreSQL {server.version}, fsync=on, synchronous_commit=on"

    def fresh(self) -> str:
        return self._server.create_database()

    def bare(self) -> BareStore:
        return BarePostgres(self._server.create_database())

    def size(self, url: str) -> int:
        async def ask() -> int:
            connection = await asyncpg.connect(url)
            try:
                await connection.execute("vacuum")
                used = "select sum(pg_total_relation_size(oid)) from pg_class where relkind = 'r' and relname ~ $1"
                return int(await connection.fetchval(used, "^(jobs|history|attempts|job_logs|job_keys|request_keys)"))
            finally:
                await connection.close()

        return asyncio.run(ask())

    def settle(self, url: str) -> None:
        async def work() -> None:
            connection = await asyncpg.connect(url)
            try:
                await connection.execute("vacuum analyze")
                await connection.execute("checkpoint")
            finally:
                await connection.close()

        asyncio.run(work())

    def cpu_seconds(self) -> float | None:
        server = psutil.Process(self._server.pid)
        found = sum(server.cpu_times()[:4])  # with what processes used that are gone
        for process in server.children(recursive=True):
            with contextlib.suppress(psutil.NoSuchProcess):
                found += sum(process.cpu_times()[:2])
        return found


@contextmanager
def open_databases(name: StoreName) -> Iterator[Databases]:
    if name == "postgres":
        server = PostgresServer.start(fsync=True)
        try:
            yield Postgres(server)
        finally:
            server.stop()
    else:
        folder = Path(tempfile.mkdtemp(prefix="foliot-bench-"))
        try:
            yield Sqlite(folder)
        finally:
            shutil.rmtree(folder, ignore_errors=True)
