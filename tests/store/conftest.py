"""The stores under test. A test that asks for `store` runs on each of them, on a fresh database."""

import asyncio
import shutil
import tempfile
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path

import pytest

from foliot.store.base import Store
from foliot.store.sqlite import SqliteStore
from tests.postgres_server import Databases
from tests.store.builders import Scene

MakeStore = Callable[..., Store]

_FAST = Path("/dev/shm")  # where the system has it: commits there wait for no disk


@pytest.fixture
def folder() -> Iterator[Path]:
    path = Path(tempfile.mkdtemp(prefix="foliot-store-", dir=_FAST if _FAST.is_dir() else None))
    yield path
    shutil.rmtree(path)


@pytest.fixture(scope="session")
def migrated(postgres: Databases) -> str:
    """The address of a PostgreSQL database with the schema, to be copied."""
    from foliot.store.postgres import migrate

    url = postgres.create_database()
    thread = threading.Thread(target=lambda: asyncio.run(migrate(url)))
    thread.start()
    thread.join()
    return url


@pytest.fixture(params=["sqlite", "postgres"])
def make_store(request: pytest.FixtureRequest) -> Iterator[MakeStore]:
    """Makes closed stores, all on the same fresh database; what else a store is to know is passed on."""
    if request.param == "sqlite":
        path = request.getfixturevalue("folder") / "foliot.db"
        yield lambda **options: SqliteStore(str(path), **options)
        return
    from foliot.store.postgres import PostgresStore

    databases: Databases = request.getfixturevalue("postgres")
    url = databases.create_database(template=request.getfixturevalue("migrated"))
    yield lambda **options: PostgresStore(url, **options)
    databases.drop_database(url)


@pytest.fixture
async def store(make_store: MakeStore) -> AsyncIterator[Store]:
    store = make_store()
    await store.open()
    await store.prepare_days(await store.now())
    yield store
    await store.close()


@pytest.fixture
async def scene(store: Store) -> Scene:
    return Scene(store, await store.now())
