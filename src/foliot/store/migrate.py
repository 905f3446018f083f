"""Schema versions: numbered files `sql/<dialect>/migrations/NNNN_name.sql`, applied in order, each in one transaction.

What has been applied is noted in the table `schema_version` (number, name, applied). This module knows the files and
the rules; each store reads and writes that table in its own way.
"""

import re
from collections.abc import Collection, Sequence
from importlib import resources

import msgspec

from foliot.domain.errors import SchemaMismatch

_FILE = re.compile(r"(\d{4})_(\w+)\.sql")


class Migration(msgspec.Struct, frozen=True, kw_only=True):
    """One step of the schema, and the SQL that takes it."""

    number: int
    name: str
    sql: str


def migrations(dialect: str) -> list[Migration]:
    """All steps that this version of the code knows, in order, numbered from 1 without gaps."""
    found = []
    for file in resources.files("foliot.store").joinpath("sql", dialect, "migrations").iterdir():
        match = _FILE.fullmatch(file.name)
        if match is not None:
            found.append(Migration(number=int(match[1]), name=match[2], sql=file.read_text("utf-8")))
    found.sort(key=lambda migration: migration.number)
    if [migration.number for migration in found] != list(range(1, len(found) + 1)):
        raise ValueError(f"the migrations of {dialect} are not numbered 1, 2, 3, … without gaps or doubles")
    return found


def pending(known: Sequence[Migration], applied: Collection[int]) -> list[Migration]:
    """The steps still to take. `SchemaMismatch` where the database has taken steps that this code does not know."""
    newest = max(applied, default=0)
    if newest > len(known):
        raise SchemaMismatch(
            f"The database's schema is version {newest}, and this version of Foliot knows versions up to {len(known)}: "
            "a newer Foliot has used the database. Install that version or a later one; a schema is never taken back."
        )
    return [migration for migration in known if migration.number not in applied]


def check(known: Sequence[Migration], applied: Collection[int]) -> None:
    """`SchemaMismatch` unless every step has been taken: for a store that does not migrate by itself when it opens."""
    missing = pending(known, applied)
    if missing:
        raise SchemaMismatch(
            f"The database's schema is version {max(applied, default=0)}, and this version of Foliot needs version "
            f"{len(known)}: run `foliot migrate` once, then start again."
        )
