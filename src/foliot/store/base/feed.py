"""The record of what happened: written along with the changes themselves, read from a position on."""

from collections.abc import Sequence
from typing import Protocol

import msgspec

from foliot.domain.duration import Micros
from foliot.domain.feed import Batch, Happening, Position
from foliot.domain.ids import JobKey


class Reading(msgspec.Struct, frozen=True, kw_only=True):
    """Batches in an order that keeps each writer's, and the position after all of them; `more` tells that there may be
    more at once. Writers that have written their last and are read to their end are no longer in the position."""

    batches: Sequence[Batch]
    position: Position
    more: bool = False


class Timing(msgspec.Struct, frozen=True, array_like=True):
    """An attempt that ended its job: of which lane (the job's own), and when what happened. `started` is None where the
    worker did not tell."""

    lane_id: int
    state: int
    due: Micros
    admitted: Micros
    claimed: Micros
    started: Micros | None
    ended: Micros
    id: JobKey | None = None  # whose it was


class FeedStore(Protocol):
    """Every method that changes a job's status writes an `Entry` for it in the same transaction, one batch a
    transaction: `insert_jobs` (not what was there), `save`, `admit`, `claim`, `release`, `save_schedules` and whatever
    gives out tokens. Only where the status as shown (`status_of`) changes, and for a new job. With the record switched
    off nothing is written and nothing is there to read."""

    recording: bool  # whether the record is kept

    async def read_feed(self, position: Position, limit: int, *, mask: int) -> Reading:
        """Up to about `limit` batches after the position. `mask` (see `mask_of`) tells which statuses are asked for: a
        batch with none of them comes without entries, so that only the position moves."""
        ...

    async def feed_end(self) -> Position:
        """Where the record ends now: what is committed after this call is found by reading from there, what was
        committed before is not."""
        ...

    async def note(self, happenings: Sequence[Happening], now: Micros) -> None:
        """Write these as a batch of their own."""
        ...

    async def lose_workers(self, now: Micros) -> int:
        """Mark workers whose lease ended before `now` without a leave, each once, and write `worker.lost` for each in
        the same transaction: subject its shown id (`w_…`), its namespace, data
        `{"worker_id","name","last_seen","holds"}`, times as RFC 3339. How many."""
        ...

    async def lose_nodes(self, now: Micros) -> int:
        """The same for nodes whose lease ended and that did not give their number back: `node.lost`, subject its shown
        id (`n_…`), no namespace, data `{"node_id","name","last_seen"}`."""
        ...

    async def forget_feed(self, before: Micros) -> int:
        """Take away batches written before that, and what was kept of writers that are gone; how many batches, or 0
        when there is nothing left to do."""
        ...
