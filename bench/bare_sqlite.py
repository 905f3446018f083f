"""The bare statements on sqlite3: WAL, each commit synced."""

import sqlite3
from collections.abc import Sequence

SCHEMA = """
create table jobs (id integer primary key, lane integer not null, due integer not null, payload text not null);
create table ready (rank integer not null, id integer not null, primary key (rank, id)) without rowid;
create table leases (id integer primary key, nonce integer not null);
create table history (id integer primary key, state integer not null, nonce integer not null, ended integer not null);
"""


class BareSqlite:
    lanes = 1

    def __init__(self, path: str) -> None:
        self._path = path

    async def open(self) -> None:
        self._connection = sqlite3.connect(self._path, isolation_level=None)
        self._connection.execute("pragma journal_mode = wal").fetchone()
        self._connection.execute("pragma synchronous = full")
        self._connection.execute("pragma wal_autocheckpoint = 4000").fetchone()
        self._connection.executescript(SCHEMA)

    async def insert(self, lane: int, ids: Sequence[int], text: str) -> None:
        connection = self._connection
        connection.execute("begin immediate")
        connection.executemany("insert into jobs values (?, 1, 1, ?)", [(each, text) for each in ids])
        connection.executemany("insert into ready values (1, ?)", [(each,) for each in ids])
        connection.execute("commit")

    async def claim(self, lane: int, count: int) -> list[int]:
        connection = self._connection
        connection.execute("begin immediate")
        popped = connection.execute(
            "select id, payload from (select id from ready order by rank, id limit ?) cross join jobs using (id)",
            (count,),
        ).fetchall()
        ids = [(each,) for each, _ in popped]
        connection.executemany("delete from ready where rank = 1 and id = ?", ids)
        connection.executemany("insert into leases values (?, 7)", ids)
        connection.execute("commit")
        return [each for (each,) in ids]

    async def end(self, lane: int, ids: Sequence[int]) -> None:
        connection = self._connection
        connection.execute("begin immediate")
        keys = [(each,) for each in ids]
        connection.executemany("delete from leases where id = ? and nonce = 7", keys)
        connection.executemany("insert into history values (?, 5, 7, 1)", keys)
        connection.execute("commit")

    async def size(self) -> int:
        self._connection.execute("pragma wal_checkpoint(truncate)").fetchone()
        (pages,), (free,), (bytes_,) = (
            self._connection.execute(f"pragma {name}").fetchone()
            for name in ("page_count", "freelist_count", "page_size")
        )
        return int((pages - free) * bytes_)

    async def close(self) -> None:
        self._connection.close()
