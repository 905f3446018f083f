"""Opening and closing, the clock, nodes, hints, counts."""

import secrets
from collections.abc import AsyncIterator, Mapping

from foliot.domain.changes import Place
from foliot.domain.duration import Micros
from foliot.domain.errors import Unavailable
from foliot.domain.ids import NODES
from foliot.domain.job import State
from foliot.store.base import NodeInfo, NodeLease
from foliot.store.postgres.connections import translated
from foliot.store.postgres.days import Days
from foliot.store.postgres.listener import Listener, Message
from foliot.store.postgres.part import SQL
from foliot.store.postgres.schema import migrate

SAMPLE = 5000


class Lifecycle(Days):
    kind = "postgres"

    def __init__(self, url: str) -> None:
        super().__init__(url)
        self._sender = secrets.token_hex(4)
        self._listener = Listener(url, self._sender, self._heard)
        self._held: dict[int, Micros] = {}  # the node numbers this process holds, and since when

    async def open(self) -> None:
        """Connect and bring the schema up to date; several nodes may do so at once."""
        await migrate(self._connections.url)
        await self.prepare_days(await self.now())
        try:
            await self._listener.start()
        except Exception as error:
            raise translated(error, fate_unknown=False) from error

    async def close(self) -> None:
        await self._listener.stop()
        await self._connections.close()

    async def now(self) -> Micros:
        now: Micros = (await self._connections.read(SQL["now"]))[0][0]
        return now

    async def acquire_node(self, name: str, version: str, now: Micros, until: Micros) -> NodeLease:
        # A number that another node took in the same moment gives no row; there are others.
        for _ in range(NODES):
            rows = await self._connections.write(SQL["acquire_node"], name, version, now, until, NODES)
            if rows:
                number, floor = rows[0]
                self._held[number] = now
                return NodeLease(number, floor, until)
        raise Unavailable(
            f"All {NODES} node numbers are taken: stop a node, or wait until the lease of a lost one is over."
        )

    async def beat_node(self, number: int, now: Micros, until: Micros, last_id: int) -> bool:
        since = self._held.get(number)
        return bool(await self._connections.write(SQL["beat_node"], number, now, until, last_id, since))

    async def release_node(self, number: int, last_id: int) -> None:
        await self._connections.write(SQL["release_node"], number, last_id, self._held.pop(number, None))

    async def nodes(self) -> list[NodeInfo]:
        return [
            NodeInfo(number=number, name=name, version=version, since=since, seen=seen, until=until)
            for number, name, version, since, seen, until in await self._connections.read(SQL["nodes"])
        ]

    async def notify(self, hint: str) -> None:
        message = Message(self._sender, hint, self._marks.take_told())
        await self._connections.write(SQL["notify"], message.encode())

    def hints(self) -> AsyncIterator[str]:
        return self._listener.subscribe()

    async def counts(self, namespace: str) -> Mapping[str, int]:
        """From the newest rows of each table, as a share of about how many there are."""
        counts = {state.name.lower(): 0 for state in State}
        for place, blocked, for_key, state, seen, sample, rows in await self._connections.read(
            SQL["counts"], SAMPLE, namespace
        ):
            whole = seen if sample < SAMPLE else seen * max(rows or 0, sample) // sample
            counts[_state(place, blocked, for_key, state).name.lower()] += int(whole)
        return counts

    def _heard(self, message: Message | None) -> None:
        if message is None or message.places is None:
            self._marks.reset()
        else:
            self._marks.lower(message.places.items(), told=True)


def _state(place: str, blocked: bool, for_key: bool, state: int | None) -> State:
    match Place(place):
        case Place.WAITING:
            return State.BLOCKED if blocked else State.QUEUED if for_key else State.SCHEDULED
        case Place.READY:
            return State.QUEUED
        case Place.LEASES:
            return State.RUNNING
        case Place.HISTORY:
            return State(state or 0)
