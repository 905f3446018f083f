"""Concurrency keys: how many at once, who holds a token, who waits for one.

Keys stay once they were made: their numbers are in rows that may come back at any time, and a key is a few bytes.
"""

import sqlite3
from collections.abc import Iterable, Sequence
from typing import Final

from foliot.domain import events, states
from foliot.domain.changes import Requeue
from foliot.domain.duration import Micros
from foliot.domain.ids import JobKey
from foliot.domain.retry import DEFAULT as ANY_RETRY
from foliot.store.base import Limit
from foliot.store.sqlite.batch import fetch, write
from foliot.store.sqlite.changes import Moves
from foliot.store.sqlite.connection import SQL
from foliot.store.sqlite.rows import keys_json, to_json, waiting_of
from foliot.store.sqlite.threads import Threads

MOST_COUNTED: Final = 10_000

Known = dict[tuple[str, str], tuple[int, int]]  # (namespace, key) to number and limit


class SqliteLimits(Threads):
    """`LimitStore` on SQLite."""

    async def set_limits(self, limits: Sequence[tuple[str, str, int]]) -> list[int]:
        wanted = {(namespace, key): most for namespace, key, most in limits}
        known = await self._read(lambda connection: _known(connection, wanted))
        changed = [(*name, most) for name, most in wanted.items() if name not in known or known[name][1] != most]
        if changed:

            def work(connection: sqlite3.Connection) -> Known:
                write(connection, "put_limit", changed)
                return _known(connection, wanted)

            known = await self._write(work)
        return [known[namespace, key][0] for namespace, key, _ in limits]

    async def limits(
        self, namespace: str, *, keys: Sequence[str] | None = None, limit: int = 50, after: str = "", names: int = 0
    ) -> list[Limit]:
        def work(connection: sqlite3.Connection) -> list[Limit]:
            if keys is None:
                found = fetch(connection, "limits_after", (namespace, after, limit))
            else:
                found = fetch(connection, "limits_among", (namespace, after, limit, to_json(keys)))
            named = (keys_json(number for number, *_ in found), MOST_COUNTED, names)
            crowds = {number: crowd for number, *crowd in fetch(connection, "crowd_of", named)}
            return [_limit(number, key, most, *crowds[number]) for number, key, most in found]

        return await self._read(work)

    async def give_tokens(self, limit_ids: Sequence[int], now: Micros) -> list[tuple[JobKey, int]]:
        return await self._write(lambda connection: _give_tokens(connection, limit_ids, self._moves(now)))

    async def crowded_limits(self, limit: int, *, after: int = 0) -> list[int]:
        return await self._read(
            lambda connection: [number for (number,) in fetch(connection, "crowded_limits", (limit, after))]
        )


def _known(connection: sqlite3.Connection, wanted: Iterable[tuple[str, str]]) -> Known:
    keys: dict[str, list[str]] = {}
    for namespace, key in wanted:
        keys.setdefault(namespace, []).append(key)
    return {
        (namespace, key): (number, most)
        for namespace, given in keys.items()
        for key, number, most in connection.execute(SQL["limits_named"], (namespace, to_json(given)))
    }


def _limit(
    number: int, key: str, most: int, held: int, waiting: int, holders: list[JobKey], waiters: list[JobKey]
) -> Limit:
    return Limit(limit_id=number, key=key, most=most, held=held, waiting=waiting, holders=holders, waiters=waiters)


def _give_tokens(connection: sqlite3.Connection, limit_ids: Iterable[int], moves: Moves) -> list[tuple[JobKey, int]]:
    """Keys with equally many free tokens in one step."""
    keys_by_free: dict[int, list[int]] = {}
    for number, free in fetch(connection, "free_tokens", (keys_json(set(limit_ids)),)):
        if free > 0:
            keys_by_free.setdefault(free, []).append(number)
    moved = []
    for free, numbers in keys_by_free.items():
        for columns in fetch(connection, "first_waiters", (keys_json(numbers), free)):
            row = waiting_of(columns)
            change = states.transition(row, events.TokenFree(), moves.now, retry=ANY_RETRY)
            assert isinstance(change, Requeue)
            moves.take(row)
            moves.put(change.row)
            moved.append((row.id, row.lane_id))
    moves.write(connection)
    return moved
