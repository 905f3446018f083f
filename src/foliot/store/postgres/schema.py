"""Bringing the schema up to date, from any number of nodes at once and under load."""

import asyncio
from typing import Final

from asyncpg import exceptions as pg

from foliot.domain.errors import Unavailable
from foliot.store import migrate as steps
from foliot.store.postgres.address import reach
from foliot.store.postgres.connections import Connection, translated
from foliot.store.postgres.part import SQL

LOCK_WAIT: Final = "500ms"
_TRIES: Final = 40
_STEP_SECONDS: Final = 3600.0  # a step that says so may take longer than a statement does otherwise
_PAUSE: Final = 0.25  # seconds between tries; whoever was held up meanwhile goes first


async def migrate(url: str) -> None:
    """Take every step that this version knows and the database has not taken. `SchemaMismatch` where it is newer."""
    connection = await reach(url)
    try:
        try:
            await _migrate(connection)
        finally:
            await connection.close()
    except Exception as error:
        raise translated(error, fate_unknown=False) from error


async def _migrate(connection: Connection) -> None:
    known = steps.migrations("postgres")
    while steps.pending(known, await _applied(connection)):
        for _ in range(_TRIES):
            try:
                await _step(connection, known)
                break
            except (pg.LockNotAvailableError, pg.DeadlockDetectedError):
                await asyncio.sleep(_PAUSE)
        else:
            raise Unavailable(
                "The schema could not be changed: its tables are locked. End long transactions, then try again."
            )


async def _applied(connection: Connection) -> set[int]:
    if not await connection.fetchval(SQL["has_schema_version"]):
        return set()
    return {row[0] for row in await connection.fetch(SQL["schema_version"])}


async def _step(connection: Connection, known: list[steps.Migration]) -> None:
    """The next step, in a transaction that waits for other nodes at its beginning and for no table for long."""
    async with connection.transaction():
        await connection.execute(SQL["lock_schema"])
        await connection.execute(SQL["create_schema_version"])
        waiting = steps.pending(known, await _applied(connection))
        if waiting:
            await connection.fetchval(SQL["short_locks"], LOCK_WAIT)
            await connection.execute(waiting[0].sql, timeout=_STEP_SECONDS)
            await connection.execute(SQL["note_migration"], waiting[0].number, waiting[0].name)
