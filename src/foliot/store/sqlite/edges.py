"""The edges of a graph as other calls touch them: a parent's row knows that it has children, an edge counts until its
parent's end was carried on."""

import sqlite3
from collections.abc import Iterable, Sequence

from foliot.domain.ids import JobKey
from foliot.store.sqlite.batch import fetch, write
from foliot.store.sqlite.connection import SQL
from foliot.store.sqlite.rows import keys_json


def standing_of(connection: sqlite3.Connection, keys: Iterable[JobKey]) -> dict[JobKey, int | None]:
    """How those of these jobs that there are have ended; None for the live ones."""
    return dict(fetch(connection, "standing_of", (keys_json(keys),)))


def tie(connection: sqlite3.Connection, parents: Iterable[JobKey]) -> None:
    """Note on those of these jobs that are live that they have children."""
    named = (keys_json(parents),)
    for query in ("tie_waiting", "tie_ready", "tie_leases"):
        connection.execute(SQL[query], named)


def redrive(connection: sqlite3.Connection, keys: Iterable[JobKey]) -> None:
    """Jobs are live again: no edge to them counts, and children that do not know of their end wait for the next."""
    named = (keys_json(keys),)
    connection.execute(SQL["finish_edges_to"], named)
    parents = [parent for (parent,) in connection.execute(SQL["take_releases"], named).fetchall()]
    if parents:
        tie(connection, parents)


def reopen(connection: sqlite3.Connection, pairs: Sequence[tuple[JobKey, JobKey]]) -> dict[JobKey, int]:
    """Let the edges of these (parent, child) count again; how those parents ended that have."""
    write(connection, "reopen_edge", pairs)
    parents = {parent for parent, _ in pairs}
    tie(connection, parents)
    standing = standing_of(connection, parents)
    return {parent: state for parent, state in standing.items() if state is not None}
