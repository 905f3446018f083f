"""What one transaction tells the record and the tallies, where its statements do not do so by themselves."""

from collections import Counter
from collections.abc import Sequence
from typing import Final

import msgspec

from foliot.domain.duration import Micros
from foliot.domain.feed import Happening
from foliot.domain.job import Ready, Waiting
from foliot.domain.status import STATUSES, status_of
from foliot.store.postgres.connections import Connection, columns
from foliot.store.postgres.writer import SQL

_NUMBERS: Final = {status: number for number, status in enumerate(STATUSES)}
_QUEUED: Final = _NUMBERS["queued"]
_encode = msgspec.json.Encoder().encode
Left = tuple[int, int]  # the lane (the job's own) and the status that a job had


class Journal:
    """Entries are kept by column, as the record has them."""

    def __init__(self) -> None:
        self._ids: list[int] = []
        self._lanes: list[int] = []
        self._statuses: list[int] = []
        self._versions: list[int] = []
        self._attempts: list[int] = []
        self._counts: list[int] = []
        self._tallies: Counter[tuple[int, int]] = Counter()
        self._happenings: list[Happening] = []

    def enter(self, row: Waiting | Ready, left: Left | None = None) -> None:
        """A row was written, that of a new job, or one for a row that is left. What has the same status as before is
        not recorded."""
        status = _QUEUED if isinstance(row, Ready) else _NUMBERS[status_of(row)]
        if left is None or left[1] != status:
            self._ids.append(row.id)
            self._lanes.append(row.lane_id)
            self._statuses.append(status)
            self._versions.append(row.version)
            self._attempts.append(row.attempt)
            self._counts.append(row.counted)
        self._tallies[row.lane_id, status] += 1
        if left is not None:
            self._tallies[left] -= 1

    def begin(self, ready: Sequence[Ready], waiting: Sequence[Waiting]) -> None:
        """The first rows of many new jobs were written."""
        for row in waiting:
            self.enter(row)
        lanes = [row.lane_id for row in ready]
        nothing = [0] * len(ready)
        self._ids += [row.id for row in ready]
        self._lanes += lanes
        self._statuses += [_QUEUED] * len(ready)
        self._versions += [row.version for row in ready]
        self._attempts += nothing
        self._counts += nothing
        for lane_id, jobs in Counter(lanes).items():
            self._tallies[lane_id, _QUEUED] += jobs

    def happened(self, happenings: Sequence[Happening]) -> None:
        self._happenings += happenings

    async def write(self, connection: Connection, time: Micros | None = None) -> None:
        """Within the transaction. A batch without a time has that of its number."""
        tallies = [(*key, jobs) for key, jobs in self._tallies.items() if jobs]
        if not self._ids and not tallies and not self._happenings:
            return
        writer, number = connection.stamp()
        others = (self._lanes, self._statuses, self._versions, self._attempts, self._counts)
        mask = sum(1 << status for status in set(self._statuses))
        happenings = _encode(self._happenings).decode() if self._happenings else None
        await connection.execute(
            SQL["record"],
            number if time is None else time,
            mask,
            self._ids or None,
            *map(_once, others),
            None,  # nobody has them, and none has ended
            None,
            None,
            *columns(tallies, 3),
            writer,
            number,
            happenings,
        )


def _once(column: list[int]) -> list[int] | None:
    """What is the same for all, once."""
    if not column:
        return None
    return column[:1] if column.count(column[0]) == len(column) else column
