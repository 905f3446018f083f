"""Concurrency keys: who may be ready or leased at once. Being there is holding a token, so none can be lost. Keys stay
once they were made."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

import asyncpg

from foliot.domain.duration import Micros
from foliot.domain.ids import JobKey
from foliot.store.base import Limit
from foliot.store.postgres.connections import Connection, columns
from foliot.store.postgres.part import SQL, Part

COUNTED: Final = 10_000  # tokens and waiters of a key that are counted for people
Name = tuple[str, str]  # a namespace, and a key within it
Known = dict[Name, tuple[int, int]]  # their numbers and limits


class Limits(Part):
    async def set_limits(self, limits: Sequence[tuple[str, str, int]]) -> list[int]:
        wanted: dict[Name, int] = {(namespace, key): most for namespace, key, most in limits}
        if not wanted:
            return []
        known = _known(await self._connections.read(SQL["limits_by_name"], *columns(sorted(wanted), 2)))
        if any(known.get(name, (0, None))[1] != most for name, most in wanted.items()):
            known = await self._connections.transact(lambda connection: _set(connection, wanted))
        return [known[namespace, key][0] for namespace, key, _ in limits]

    async def limits(
        self, namespace: str, *, keys: Sequence[str] | None = None, limit: int = 50, after: str = "", names: int = 0
    ) -> list[Limit]:
        chosen = None if keys is None else sorted(set(keys))
        rows = await self._connections.read(SQL["limits"], namespace, after, chosen, limit, COUNTED, names)
        return [
            Limit(limit_id=number, key=key, most=most, held=held, waiting=waiting, holders=holders, waiters=waiters)
            for number, key, most, held, waiting, holders, waiters in rows
        ]

    async def give_tokens(self, limit_ids: Sequence[int], now: Micros) -> list[tuple[JobKey, int]]:
        if not limit_ids:
            return []

        async def work(connection: Connection) -> list[tuple[JobKey, int, int]]:
            # Two statements: what another giver wrote before we had the lock is seen by a later one only.
            locked = [tuple(row) for row in await connection.fetch(SQL["lock_limits"], sorted(set(limit_ids)))]
            rows = await connection.fetch(SQL["give_tokens"], *columns(locked, 2), now)
            return [(key, lane_id, rank) for key, lane_id, rank in rows]

        try:
            moved = await self._connections.transact(work)
        except BaseException:
            self._marks.reset()
            raise
        self._marks.lower((lane_id, (rank, key)) for key, lane_id, rank in moved)
        return [(key, lane_id) for key, lane_id, _ in moved]

    async def crowded_limits(self, limit: int, *, after: int = 0) -> list[int]:
        return [row[0] for row in await self._connections.read(SQL["crowded_limits"], limit, after)]


def _known(rows: Iterable[asyncpg.Record]) -> Known:
    return {(namespace, key): (limit_id, most) for limit_id, namespace, key, most in rows}


async def _set(connection: Connection, wanted: Mapping[Name, int]) -> Known:
    """Make the keys that are not there; give the others their limit, in the order in which their rows are locked."""
    values = [(*name, most) for name, most in sorted(wanted.items())]
    await connection.execute(SQL["insert_limits"], *columns(values, 3))
    known = _known(await connection.fetch(SQL["limits_by_name"], *columns(sorted(wanted), 2)))
    changed = sorted((known[name][0], most) for name, most in wanted.items() if known[name][1] != most)
    if changed:
        await connection.executemany(SQL["change_limit"], changed)
    return known
