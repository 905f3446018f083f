"""How a database's schema stands against the steps that this version knows."""

import sqlite3
from pathlib import Path

from foliot.main.stores import sqlite_path
from foliot.store.migrate import Migration, migrations, pending


async def read_schema(url: str) -> tuple[list[Migration], list[Migration]]:
    """The steps that were taken and those to come; changes nothing. `SchemaMismatch` where the database is newer."""
    if url.startswith("sqlite:"):
        known, applied = migrations("sqlite"), _applied_sqlite(sqlite_path(url))
    else:
        known, applied = migrations("postgres"), await _applied_postgres(url)
    missing = pending(known, applied)
    return [step for step in known if step not in missing], missing


def _applied_sqlite(path: str) -> set[int]:
    from foliot.store.sqlite.connection import SQL, connect, explained

    if not Path(path).exists():
        return set()
    try:
        connection = connect(path, writes=False)
        try:
            return {number for (number,) in connection.execute(SQL["applied_migrations"])}
        finally:
            connection.close()
    except sqlite3.OperationalError as error:
        if "no such table" in str(error):
            return set()
        raise explained(error) from error
    except sqlite3.Error as error:
        raise explained(error) from error


async def _applied_postgres(url: str) -> set[int]:
    from foliot.store.postgres.address import reach
    from foliot.store.postgres.connections import translated
    from foliot.store.postgres.part import SQL

    connection = await reach(url)
    try:
        try:
            if not await connection.fetchval(SQL["has_schema_version"]):
                return set()
            return {row[0] for row in await connection.fetch(SQL["schema_version"])}
        finally:
            await connection.close()
    except Exception as error:
        raise translated(error, fate_unknown=False) from error
