"""The bare statements on asyncpg: one statement a transaction, prepared, synchronous commit."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import asyncpg

if TYPE_CHECKING:
    Connection = asyncpg.Connection[asyncpg.Record]
else:
    Connection = asyncpg.Connection

SCHEMA = """
create table jobs (id bigint primary key, lane int not null, due bigint not null, payload text not null);
create table ready (rank bigint not null, id bigint not null, primary key (rank, id));
create table leases (id bigint primary key, nonce bigint not null);
create table history (id bigint primary key, state smallint not null, nonce bigint not null, ended bigint not null);
"""
INSERT = """
with written as (insert into jobs select id, 1, 1, $2 from unnest($1::bigint[]) as u (id))
insert into ready select 1, id from unnest($1::bigint[]) as u (id)
"""
CLAIM = """
with popped as materialized (
    select ctid, id from ready order by rank, id limit $1 for update skip locked
),
gone as (delete from ready r using popped p where r.ctid = p.ctid returning r.id),
leased as (insert into leases select id, 7 from gone)
select j.id, j.payload from gone join jobs j on j.id = gone.id
"""
END = """
with gone as (
    delete from leases l using unnest($1::bigint[]) as u (id) where l.id = u.id and l.nonce = 7 returning l.id
)
insert into history select id, 5, 7, 1 from gone
"""
# The planner knows nothing of tables that were empty a moment ago.
SETTINGS = {"jit": "off", "enable_seqscan": "off", "enable_hashjoin": "off", "enable_mergejoin": "off"}


class BarePostgres:
    lanes = 2

    def __init__(self, url: str) -> None:
        self._url = url

    async def open(self) -> None:
        self._connections: list[Connection] = [
            await asyncpg.connect(self._url, server_settings=SETTINGS) for _ in range(self.lanes)
        ]
        await self._connections[0].execute(SCHEMA)

    async def insert(self, lane: int, ids: Sequence[int], text: str) -> None:
        await self._connections[lane].fetch(INSERT, list(ids), text)

    async def claim(self, lane: int, count: int) -> list[int]:
        return [row[0] for row in await self._connections[lane].fetch(CLAIM, count)]

    async def end(self, lane: int, ids: Sequence[int]) -> None:
        await self._connections[lane].fetch(END, sorted(ids))

    async def size(self) -> int:
        found = await self._connections[0].fetchval(
            "select sum(pg_total_relation_size(name)) from unnest(array['jobs', 'history']::regclass[]) as u (name)"
        )
        return int(found)

    async def close(self) -> None:
        for connection in self._connections:
            await connection.close()
