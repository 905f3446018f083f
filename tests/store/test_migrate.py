"""Schema versions: which steps are known, which are missing, and what a person is told."""

import pytest

from foliot.domain.errors import SchemaMismatch
from foliot.store.migrate import Migration, check, migrations, pending

KNOWN = [Migration(number=number, name=f"step{number}", sql="select 1") for number in (1, 2, 3)]


@pytest.mark.parametrize("dialect", ["sqlite", "postgres"])
def test_a_dialect_has_its_steps_in_order(dialect: str) -> None:
    known = migrations(dialect)
    assert [migration.number for migration in known] == list(range(1, len(known) + 1))
    assert [migration.name for migration in known] == [
        "core",
        "schedules",
        "graphs_and_limits",
        "queues",
        "access",
        *(name for name in [migration.name for migration in known][5:]),
    ]
    assert "leases" in known[0].sql
    assert "ledger" in known[1].sql
    assert "edges" in known[2].sql


def test_steps_not_taken_are_pending() -> None:
    assert [migration.number for migration in pending(KNOWN, set())] == [1, 2, 3]
    assert [migration.number for migration in pending(KNOWN, {1, 2})] == [3]
    assert pending(KNOWN, {1, 2, 3}) == []


def test_a_newer_database_is_refused_with_what_to_do() -> None:
    with pytest.raises(SchemaMismatch, match=r"version 4.*up to 3.*Install that version"):
        pending(KNOWN, {1, 2, 3, 4})


def test_a_check_wants_every_step_taken() -> None:
    check(KNOWN, {1, 2, 3})
    with pytest.raises(SchemaMismatch, match=r"version 2.*needs version 3.*foliot migrate"):
        check(KNOWN, {1, 2})
    with pytest.raises(SchemaMismatch, match=r"version 0"):
        check(KNOWN, set())
