"""What the parts of the store share: its connections, the lanes it has met, the marks of the lanes."""

from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import TypeVar

import asyncpg
import msgspec

from foliot.domain.job import Lane
from foliot.store.postgres.connections import Connection, Connections, columns
from foliot.store.postgres.folding import Folding
from foliot.store.postgres.marks import Marks
from foliot.store.postgres.writer import SQL, Numbers

__all__ = ["SQL", "Part", "lane_names"]

T = TypeVar("T")


class Part:
    def __init__(self, url: str, *, recording: bool = True) -> None:
        self.recording = recording
        self._numbers = Numbers()
        self._connections = Connections(url, self._numbers if recording else None)
        self._marks = Marks()
        self._lanes: dict[int, Lane] = {}
        self._lane_ids: dict[Lane, int] = {}
        self._queue_ids: dict[int, int] = {}  # of each lane
        self._folding = Folding(self._connections)

    async def lane_ids(self, lanes: Sequence[Lane]) -> list[int]:
        missing = {lane for lane in lanes if lane not in self._lane_ids}
        if missing:
            names = lane_names(missing)
            await self._connections.write(SQL["insert_lanes"], *names)
            for row in await self._connections.read(SQL["lanes_by_name"], *names):
                self._meet(*row)
        return [self._lane_ids[lane] for lane in lanes]

    async def _record(self, query: str, *arguments: object) -> list[asyncpg.Record]:
        """The rows of one statement that writes to the record, and to the tallies."""
        await self._folding.step()
        return await self._connections.record(query, *arguments)

    async def _transact(self, work: Callable[[Connection], Awaitable[T]]) -> T:
        """What `work` returns, as `Connections.transact` has it, where it writes to the tallies."""
        await self._folding.step()
        return await self._connections.transact(work)

    def lane(self, lane_id: int) -> Lane | None:
        return self._lanes.get(lane_id)

    async def _meet_lanes(self, lane_ids: Iterable[int]) -> None:
        """Make sure that these lanes are known here."""
        missing = {lane_id for lane_id in lane_ids if lane_id not in self._lanes}
        if missing:
            for row in await self._connections.read(SQL["lanes_by_id"], sorted(missing)):
                self._meet(*row)

    def _meet(
        self,
        lane_id: int,
        namespace: str,
        queue: str,
        job_type: str,
        needs: str,
        ordering: str,
        base: int | None,
        queue_id: int,
    ) -> None:
        """With the lane that its jobs have as their own."""
        self._note(lane_id, Lane(namespace, queue, job_type, needs, ordering), queue_id)
        if base is not None:
            self._note(base, Lane(namespace, queue, job_type, needs), queue_id)

    def _note(self, lane_id: int, lane: Lane, queue_id: int) -> None:
        self._lanes[lane_id] = lane
        self._lane_ids[lane] = lane_id
        self._queue_ids[lane_id] = queue_id


def lane_names(lanes: Iterable[Lane]) -> list[list[str]]:
    """The columns of lanes and of those that their jobs have as their own: sorted, so that the latter come first, and
    two nodes that make the same lanes wait for each other in one order."""
    wanted = {each for lane in lanes for each in (lane, msgspec.structs.replace(lane, ordering=""))}
    return columns(sorted(map(msgspec.structs.astuple, wanted)), 5)
