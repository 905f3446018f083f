"""The record of what happened, as it is read; who is lost; and how many jobs stand where.

A writer whose session has ended has nothing more to say once all that it committed was read. That it has ended is
learned by one statement, and what it committed is then seen by a later one: hence what was learned is kept.
"""

from collections.abc import Iterable, Sequence
from itertools import repeat
from typing import Any, Final

import msgspec

from foliot.domain.duration import Micros
from foliot.domain.feed import Batch, Entry, Happening, Position, in_order
from foliot.domain.status import STATUSES
from foliot.store.base import Reading
from foliot.store.losses import lost_node, lost_worker
from foliot.store.postgres.connections import Connection, columns
from foliot.store.postgres.days import Day, Days
from foliot.store.postgres.journal import Journal
from foliot.store.postgres.part import SQL

_HIGHEST: Final = (1 << 31) - 1  # writer
_AT_ONCE: Final = 1000  # batches of no known day that one call forgets
_FEW: Final = 500  # rows of the tallies that are not worth folding
_decode = msgspec.json.Decoder(list[Happening]).decode


class Feed(Days):
    def __init__(self, url: str, *, recording: bool = True) -> None:
        super().__init__(url, recording=recording)
        self._ended: set[int] = set()  # writers, as earlier statements found

    async def read_feed(self, position: Position, limit: int, *, mask: int) -> Reading:
        if not self.recording:
            return Reading(batches=(), position=position)
        ended = frozenset(self._ended)
        marks = [(writer, number) for writer, number in sorted(position.seen.items()) if writer <= _HIGHEST]
        rows = await self._connections.read(SQL["read_feed"], position.floor, *columns(marks, 2), limit, mask)
        seen: dict[int, int] = {}
        batches = []
        for writer, number, has_ended, *values in rows:
            if number is None:
                seen[writer] = position.seen.get(writer, 0)
                if has_ended:
                    self._ended.add(writer)
            else:
                seen[writer] = number
                batches.append(_batch_of(writer, number, values))
        floor = max([position.floor, *(writer + 1 for writer in seen)])
        more = len(batches) >= limit
        if not more:
            seen = {writer: number for writer, number in seen.items() if writer not in ended}
        time = max([position.time, *(batch.time for batch in batches)])
        read = Position(floor=floor, seen=seen, time=time)
        if position.skip and all(batch.writer != position.within for batch in batches):
            read = msgspec.structs.replace(read, within=position.within, skip=position.skip)
        return Reading(batches=in_order(batches), position=read, more=more)

    async def feed_end(self) -> Position:
        rows = await self._connections.read(SQL["feed_end"])
        return Position(
            floor=max((writer + 1 for writer, *_ in rows), default=0),
            seen={writer: number for writer, ended, number, _ in rows if not ended},
            time=max((time for *_, time in rows), default=0),
        )

    async def note(self, happenings: Sequence[Happening], now: Micros) -> None:
        if self.recording and happenings:
            await self._connections.transact(lambda connection: _note(connection, happenings, now))

    async def lose_workers(self, now: Micros) -> int:
        async def work(connection: Connection) -> int:
            lost = [
                lost_worker(key, namespace, name, last_seen=seen, holds=holds)
                for key, namespace, name, seen, holds in await connection.fetch(SQL["lose_workers"], now)
            ]
            await _note(connection, lost, now)
            return len(lost)

        return await self._connections.transact(work)

    async def lose_nodes(self, now: Micros) -> int:
        async def work(connection: Connection) -> int:
            lost = [
                lost_node(number, name, last_seen=seen)
                for number, name, seen in await connection.fetch(SQL["lose_nodes"], now)
            ]
            await _note(connection, lost, now)
            return len(lost)

        return await self._connections.transact(work)

    async def forget_feed(self, before: Micros) -> int:
        gone = 0
        for day in map(Day.named, await self._days("feed_days")):
            if day.end <= before:
                gone += await self._change_days(SQL["drop_feed_day"], day.suffix)
        gone += len(await self._connections.write(SQL["forget_other_events"], before, _AT_ONCE))
        ended = [row[0] for row in await self._connections.read(SQL["ended_writers"])]
        await self._connections.write(SQL["forget_writers"], ended)
        await self._folding.fold()
        return gone

    async def depths(self) -> list[tuple[int, str, int]]:
        rows = await self._connections.read(SQL["depths"])
        if sum(row[3] for row in rows) > _FEW + 2 * len(rows):
            await self._folding.fold()
        await self._meet_lanes(row[0] for row in rows)
        return [(lane_id, STATUSES[status], jobs) for lane_id, status, jobs, _ in rows if jobs]


async def _note(connection: Connection, happenings: Sequence[Happening], now: Micros) -> None:
    journal = Journal()
    journal.happened(happenings)
    await journal.write(connection, now)


def _batch_of(writer: int, number: int, values: Sequence[Any]) -> Batch:
    time, keys, *arrays, happenings = values
    entries: Sequence[Entry] = ()
    if keys is not None:
        entries = list(map(Entry, keys, *(_for_all(array, len(keys)) for array in arrays)))
    told = () if happenings is None else _decode(happenings)
    return Batch(writer=writer, number=number, time=time, entries=entries, happenings=told)


def _for_all(array: Sequence[Any] | None, count: int) -> Iterable[Any]:
    """An entry for each job, where there is a single one, or none, for all of them."""
    if array is None:
        return repeat(None)
    return repeat(array[0]) if len(array) == 1 < count else array
