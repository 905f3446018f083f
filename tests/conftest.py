"""What every test may ask for: a real PostgreSQL, a fresh database on it, a free port."""

import os
from collections.abc import Iterator

import hypothesis
import pytest

from tests import postgres_server
from tests.postgres_server import Databases, NoPostgres, PostgresServer

# A busy machine is no reason to fail; the limit per test is pytest's.
hypothesis.settings.register_profile("foliot", deadline=None, print_blob=True)
hypothesis.settings.load_profile("foliot")


def pytest_report_header() -> str:
    if address := os.environ.get("FOLIOT_TEST_DATABASE_URL"):
        return f"PostgreSQL: {Databases(address).version}, the server of FOLIOT_TEST_DATABASE_URL"
    try:
        programs = postgres_server.find_programs()
    except NoPostgres as error:
        return f"PostgreSQL: {error}"
    return f"PostgreSQL: {postgres_server.programs_version(programs)} from {programs}"


@pytest.fixture(scope="session")
def postgres() -> Iterator[Databases]:
    """The server of this test run. A test that stops or kills one starts its own with `PostgresServer.start`."""
    if address := os.environ.get("FOLIOT_TEST_DATABASE_URL"):
        yield Databases(address)
        return
    server = PostgresServer.start()
    yield server
    server.stop()


@pytest.fixture
def database_url(postgres: Databases) -> Iterator[str]:
    """The address of a fresh, empty database that is dropped after the test."""
    url = postgres.create_database()
    yield url
    postgres.drop_database(url)


@pytest.fixture
def free_port() -> int:
    return postgres_server.free_port()
