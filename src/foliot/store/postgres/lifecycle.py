"""Opening and closing, the clock, nodes, hints, counts."""

import secrets
from collections.abc import AsyncIterator, Mapping

from foliot.clock import monotonic
from foliot.domain.duration import Micros
from foliot.domain.errors import Unavailable
from foliot.domain.ids import NODES
from foliot.domain.status import STATUSES
from foliot.store.base import NodeInfo, NodeLease
from foliot.store.postgres.connections import translated
from foliot.store.postgres.days import Days
from foliot.store.postgres.listener import Listener, Message
from foliot.store.postgres.part import SQL
from foliot.store.postgres.schema import migrate


class Lifecycle(Days):
    kind = "postgres"

    def __init__(self, url: str, *, recording: bool = True) -> None:
        super().__init__(url, recording=recording)
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
        asked = monotonic()
        now: Micros = (await self._connections.read(SQL["now"]))[0][0]
        self._numbers.set(now, asked=asked)
        return now

    async def applied(self) -> set[int]:
        return {row[0] for row in await self._connections.read(SQL["schema_version"])}

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
        """By the tallies: those that ended are all that ever did."""
        rows = await self._connections.read(SQL["counts"], namespace)
        return dict.fromkeys(STATUSES, 0) | {STATUSES[status]: jobs for status, jobs in rows}

    def _heard(self, message: Message | None) -> None:
        if message is None or message.places is None:
            self._marks.reset()
        else:
            self._marks.lower(message.places.items(), told=True)
