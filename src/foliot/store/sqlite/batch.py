"""Many rows in one step of SQLite.

Python gives up its global lock for every step and has to get it back, which takes milliseconds while another thread is
busy. So rows are written by one statement for hundreds of them, and read as one row of JSON.
"""

import re
import sqlite3
from collections.abc import Sequence
from functools import cache
from itertools import chain
from typing import Any, Final

import msgspec

from foliot.store.sqlite.connection import SQL
from foliot.store.sqlite.rows import Columns

SIZES: Final = (1, 8, 32, 128, 512)
"""How many rows a statement has room for: few sizes, so that each is prepared once and kept."""

_ABSENT: Final = 0.5
"""Stands for None, which takes fifteen times as long to bind: `nullif(?, 0.5)` in SQL. No column holds such a value."""

_VALUES: Final = re.compile(r"VALUES (\((?:[^()]|\([^()]*\))*\))")
_decoder = msgspec.json.Decoder(list[tuple])  # type: ignore[type-arg]  # a bare tuple is what it decodes fastest


def fetch(connection: sqlite3.Connection, query: str, parameters: Columns) -> list[Columns]:
    """The rows of a named query that gives them as one text of JSON arrays."""
    (text,) = connection.execute(SQL[query], parameters).fetchone()
    return [] if text is None else _decoder.decode(f"[{text}]")


def write(connection: sqlite3.Connection, query: str, rows: Sequence[Columns]) -> None:
    """Carry out a named query, written for one row of VALUES, for all rows."""
    for start in range(0, len(rows), SIZES[-1]):
        part = rows[start : start + SIZES[-1]]
        size = next(size for size in SIZES if size >= len(part))
        parameters = _flat(part, _nullable(query))
        parameters += [0] * ((size - len(part)) * len(part[0]))
        parameters.append(len(part))
        connection.execute(_statement(query, size), parameters)


def _flat(rows: Sequence[Columns], nullable: Sequence[int]) -> list[Any]:
    columns: list[Sequence[Any]] = list(zip(*rows, strict=True))
    for index in nullable:
        columns[index] = [_ABSENT if value is None else value for value in columns[index]]
    return list(chain.from_iterable(zip(*columns, strict=True)))


def _values(query: str) -> re.Match[str]:
    values = _VALUES.search(SQL[query])
    assert values is not None, f"{query} has no VALUES list"
    return values


@cache
def _nullable(query: str) -> list[int]:
    marks = re.findall(r"\?|nullif\(\?, 0\.5\)", _values(query)[1])
    return [index for index, mark in enumerate(marks) if mark != "?"]


@cache
def _statement(query: str, size: int) -> str:
    """The query for up to `size` rows; how many it really is comes as one more parameter."""
    values = _values(query)
    rows = ", ".join([values[1]] * size)
    return f"{SQL[query][: values.start()]}SELECT * FROM (VALUES {rows}) LIMIT ?{SQL[query][values.end() :]}"
