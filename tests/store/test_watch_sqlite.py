"""What only SQLite tells of watching: by which ways rows are found, and how the file is doing."""

import sqlite3
from pathlib import Path

import pytest

from foliot.clock import WallClock
from foliot.store.sqlite import SqliteStore
from foliot.store.sqlite.connection import SQL, connect, migrate
from foliot.store.sqlite.facts import disk_free, wal
from foliot.testing.memory_store import MemoryStore
from tests.store.contract.test_watch import an_incident, on_watch

GIB = 1 << 30


@pytest.fixture
def connection() -> sqlite3.Connection:
    connection = connect(":memory:", writes=True)
    migrate(connection, 0)
    return connection


@pytest.mark.parametrize(
    ("query", "parameters", "index"),
    [
        ("first_ready", ("[[1,1,0,9]]", 5), "ready_order (lane_id=? AND rank>? AND rank<?)"),
        ("first_for_key", ("[1]", 5, 9), "waiting_for_key_by_due (lane_id=? AND due<?)"),
        ("lanes_in_order", ("[1]",), "lanes_of_base (base=?)"),
        ("incidents_to_notify", (9, 5), "incidents_to_notify (notify_at>? AND notify_at<?)"),
        ("incidents", ("default", 9, 5), "incidents_of_namespace (namespace=? AND id<?)"),
        ("deliveries_to_try", (9, 5), "deliveries_to_try (next_try>? AND next_try<?)"),
        ("next_delivery", (), "deliveries_to_try"),
        ("deliveries_in_state", ("a", "b", "c", 9, 5), "deliveries_of_webhook (namespace=? AND webhook=? AND state=?"),
        ("lateness", (0, 9), "lateness_by_age (minute>? AND minute<?)"),
        ("lateness_of", (0, 9, "a"), "PRIMARY KEY (namespace=? AND minute>? AND minute<?)"),
        ("forget_incidents", (9, 5), "incidents_resolved (resolved>? AND resolved<?)"),
        ("forget_deliveries", (9, 5), "deliveries_ended (changed<?)"),
        ("forget_lateness", (9, 5), "lateness_by_age (minute<?)"),
    ],
)
def test_rows_are_found_through_an_index(
    connection: sqlite3.Connection, query: str, parameters: tuple[object, ...], index: str
) -> None:
    plan = "\n".join(row[3] for row in connection.execute(f"EXPLAIN QUERY PLAN {SQL[query]}", parameters))
    assert index in plan
    tables = ("ready", "waiting", "lanes", "incidents", "deliveries", "lateness")
    assert [line for line in plan.splitlines() if line in {f"SCAN {table}" for table in tables}] == []
    connection.close()


def wal_size(path: Path) -> int:
    return Path(f"{path}-wal").stat().st_size


async def test_a_database_in_memory_tells_of_no_disk() -> None:
    store = SqliteStore(":memory:")
    await store.open()
    assert [fact.name for fact in await store.facts()] == ["free_pages_share"]
    await store.close()


async def test_a_step_that_is_refused_leaves_nothing_behind_in_a_store_without_threads() -> None:
    store = MemoryStore(WallClock())
    await store.open()
    post, known = await on_watch(store), an_incident()
    assert await store.save_incidents([known])
    assert not await store.advance(post, "1-1", incidents=[an_incident(), known])
    assert await on_watch(store) == post
    assert await store.open_incidents() == [known]
    await store.close()


async def test_the_log_and_free_pages_are_measured_on_the_file(folder: Path) -> None:
    path = folder / "foliot.db"
    store = SqliteStore(str(path))
    await store.open()
    facts = {fact.name: fact.value for fact in await store.facts()}
    assert facts["wal_bytes"] == wal_size(path) > 0
    assert facts["disk_free_bytes"] > 0
    await store._write(lambda c: c.execute("CREATE TABLE filler AS SELECT randomblob(1000000) AS data").close())
    await store._write(lambda c: c.execute("DROP TABLE filler").close())
    assert {fact.name: fact.value for fact in await store.facts()}["free_pages_share"] > facts["free_pages_share"]
    await store.close()


@pytest.mark.parametrize(
    ("free", "size", "trouble"),
    [
        (GIB, 10 * GIB, False),
        (GIB - 1, 10 * GIB, True),
        (4 * GIB, 100 * GIB, True),
        (5 * GIB, 100 * GIB, False),
        (20 * GIB, 1000 * GIB, False),
        (19 * GIB, 1000 * GIB, True),
    ],
)
def test_a_disk_with_little_room_is_trouble(free: int, size: int, trouble: bool) -> None:
    fact = disk_free(free, size)
    assert (fact.name, fact.value, bool(fact.trouble)) == ("disk_free_bytes", free, trouble)


def test_a_log_that_is_never_written_back_is_trouble() -> None:
    assert not wal(GIB // 2).trouble
    assert "0.6 GiB" in wal(600 << 20).trouble
