"""Batches of the record as they are kept: entries column by column. A column that has the same value for all entries
has it once: in most batches all but the ids, so that the record stays small."""

import sqlite3
from collections.abc import Sequence
from itertools import repeat
from typing import Any, Final

from foliot.domain.duration import Micros
from foliot.domain.feed import Entry, Happening
from foliot.domain.status import STATUSES
from foliot.store.sqlite.connection import SQL
from foliot.store.sqlite.rows import Columns, to_json

NUMBERS: Final = {status: number for number, status in enumerate(STATUSES)}


def write_batch(
    connection: sqlite3.Connection, time: Micros, entries: Sequence[Columns], happenings: Sequence[Happening]
) -> None:
    """Write entries, given as the fields of `Entry`, and happenings; nothing where there are none."""
    if not entries and not happenings:
        return
    columns = [_shortened(column) for column in zip(*entries, strict=True)]
    mask = sum(1 << status for status in set(columns[2])) if columns else 0
    connection.execute(
        SQL["insert_events"],
        (time, mask, to_json(happenings) if happenings else None, to_json(columns) if columns else None),
    )


def entries_of(columns: Sequence[Sequence[Any]]) -> list[Entry]:
    """The entries that are kept as these columns."""
    if not columns:
        return []
    count = len(columns[0])
    whole = [column if len(column) == count else repeat(column[0], count) for column in columns]
    return [Entry(*values) for values in zip(*whole, strict=True)]


def _shortened(column: Columns) -> Columns:
    return column[:1] if column.count(column[0]) == len(column) else column
