"""Somebody who follows a store's record, and what it is to tell."""

from collections.abc import Sequence

from foliot.domain.feed import ALL_STATUSES, Batch, Entry, Position
from foliot.domain.ids import JobKey
from foliot.domain.job import Ended, Lease, Record
from foliot.domain.status import STATUSES, status_of
from foliot.store.base import Store


class FeedReader:
    """Reads on from where it is."""

    def __init__(self, store: Store, position: Position) -> None:
        self._store = store
        self.position = position

    async def batches(self, *, limit: int = 100, mask: int = ALL_STATUSES) -> list[Batch]:
        """All that came since the last time."""
        found: list[Batch] = []
        more = True
        while more:
            reading = await self._store.read_feed(self.position, limit, mask=mask)
            assert not any(self.position.covers(batch) for batch in reading.batches)
            assert all(reading.position.covers(batch) for batch in reading.batches)
            found += reading.batches
            self.position, more = reading.position, reading.more
        return found

    async def entries(self) -> list[Entry]:
        return [entry for batch in await self.batches() for entry in batch.entries]

    async def statuses(self) -> list[tuple[JobKey, str]]:
        return [(entry.id, STATUSES[entry.status]) for entry in await self.entries()]


async def follow(store: Store) -> FeedReader:
    """From now on."""
    return FeedReader(store, await store.feed_end())


def entry_of(record: Record) -> Entry:
    """What the entry says after which a job stands so."""
    row = record.row
    worker, started, reason = None, None, None
    if isinstance(row, Lease):
        worker, started = row.worker, row.started or row.claimed
    elif isinstance(row, Ended):
        reason = row.reason
        if row.last is not None:
            worker, started = row.last.worker, row.last.started or row.last.claimed
    return Entry(
        row.id,
        row.lane_id,
        STATUSES.index(status_of(row)),
        row.version,
        row.attempt,
        row.counted,
        worker,
        started,
        reason,
    )


def numbers(batches: Sequence[Batch]) -> set[tuple[int, int]]:
    """Which batches these are; none may be there twice."""
    found = {(batch.writer, batch.number) for batch in batches}
    assert len(found) == len(batches)
    return found
