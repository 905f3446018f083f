"""A node that can not start says in one line what it looked for, where, and what to check; never a password."""

import asyncio
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import asyncpg
import pytest

from tests.postgres_server import Databases, PostgresServer
from tests.processes import Programs, eventually

SECRET = "sesame-in-the-open"


@pytest.fixture(scope="module")
def guarded() -> Iterator[Databases]:
    """A server that asks the user `somebody` for a password."""
    server = PostgresServer.start()
    rules = server._data / "pg_hba.conf"
    rules.write_text(f"host all somebody 127.0.0.1/32 scram-sha-256\n{rules.read_text()}")
    server._ask("create role somebody login password 'another one'")
    server._ask("select pg_reload_conf()")
    yield server
    server.stop()


def test_no_server(programs: Programs, free_port: int) -> None:
    said = refused(programs, f"postgresql://somebody:{SECRET}@127.0.0.1:{free_port}/jobs")
    assert f"No PostgreSQL answers at 127.0.0.1:{free_port} (for database 'jobs'): Connection refused." in said
    assert "Is it running there" in said
    assert "--database" in said


def test_no_such_host(programs: Programs) -> None:
    said = refused(programs, f"postgresql://somebody:{SECRET}@nowhere.invalid/jobs")
    assert "No PostgreSQL answers at nowhere.invalid:5432 (for database 'jobs')" in said


def test_a_wrong_password(programs: Programs, guarded: Databases) -> None:
    host = urlsplit(guarded.url("")).netloc.rpartition("@")[2]
    said = refused(programs, f"postgresql://somebody:{SECRET}@{host}/postgres")
    assert f"PostgreSQL at {host}, database 'postgres': password authentication failed" in said
    assert "Check the user and the password in --database" in said


def test_no_such_database(programs: Programs, postgres: Databases) -> None:
    url = postgres.url("not_there")
    host = urlsplit(url).netloc.rpartition("@")[2]
    assert f"PostgreSQL at {host} has no database 'not_there': create it, or name another" in refused(programs, url)


@pytest.mark.parametrize(
    ("url", "why"),
    [
        ("postgresql://127.0.0.1:five/jobs", "invalid literal"),
        (f"postgresql://somebody:{SECRET}:more@127.0.0.1:five/jobs", "can not be taken apart"),
        (f"postgresql://somebody:{SECRET}@more@127.0.0.1/jobs", "more than one @"),
        ("postgresql://127.0.0.1/jobs?sslmode=maybe", "sslmode"),
    ],
)
def test_an_address_that_is_none(url: str, why: str, programs: Programs) -> None:
    said = refused(programs, url)
    assert "The database's address can not be used" in said
    assert why in said


@pytest.mark.parametrize("processes", ["1", "2"])
def test_a_database_of_a_newer_version(processes: str, programs: Programs, database_url: str) -> None:
    migrated = programs.start("migrate", "migrate", "--database", database_url)
    eventually(lambda: migrated.process.poll() == 0, "the schema is there")
    asyncio.run(_advance(database_url))
    node = programs.start("node", "serve", "--port", "0", "--database", database_url, "--processes", processes)
    eventually(lambda: node.process.poll() is not None, "it ends")
    assert node.process.returncode == 1
    assert "schema is version 9999" in node.said
    assert "a newer Foliot has used the database. Install that version or a later one" in node.said
    assert "ready" not in node.said
    assert "Traceback" not in node.said


async def _advance(url: str) -> None:
    database = await asyncpg.connect(url)
    try:
        await database.execute("insert into schema_version values (9999, 'from_the_future', 0)")
    finally:
        await database.close()


def refused(programs: Programs, url: str) -> str:
    """What it says; the same for `migrate`."""
    said = []
    for name, words in {"serve": ("--port", "0"), "migrate": ()}.items():
        program = programs.start(name, name, *words, "--database", url)
        eventually(lambda: program.process.poll() is not None, "it ends")  # noqa: B023 (called before the next)
        assert program.process.returncode == 1
        (line,) = program.said.splitlines()
        assert line.startswith("Error: ")
        assert SECRET not in line
        said.append(line)
    assert said[0] == said[1]
    return said[0]


def test_the_data_directory_is_left_usable(programs: Programs, tmp_path: Path, free_port: int) -> None:
    """What a failed start leaves behind is in nobody's way."""
    refused(programs, f"postgresql://127.0.0.1:{free_port}/jobs")
    node, _ = programs.serve("node")
    assert node.stop() == 0
