"""A node on watch, a round at a time: what has happened is followed, conditions are looked at, notices are sent."""

from typing import Any

import msgspec

from foliot.domain.access import ADMIN
from foliot.domain.feed import Position
from foliot.outbound import AllowList
from foliot.service.sealing import Sealer
from foliot.wire import ChannelBody, IncidentInfo, QueueBody, QueueInfo, RuleBody, RuleInfo
from tests.alerts.receiver import Receiver
from tests.service.conftest import World
from tests.service.meddling import Meddling
from tests.service.told import happened


class Alarms(World):
    """A world whose channel `ops` leads to the receiver."""

    def __init__(self, store: Meddling, receiver: Receiver, *, sealer: Sealer | None = None) -> None:
        super().__init__(
            store, lease=1_000_000, heartbeat=300_000, allowed=AllowList.parse(receiver.allow), sealer=sealer
        )
        self.receiver = receiver
        self.alerts = self.services.alerts
        self._position: Position | None = None

    async def open(self) -> None:
        self._position = await self.store.feed_end()
        await self.services.channels.create(ChannelBody(name="ops", url=self.receiver.url), ADMIN)

    async def rule(self, on: str | list[str], name: str = "r", **fields: Any) -> RuleInfo:
        body = msgspec.convert({"name": name, "on": on, "channels": ["ops"], **fields}, RuleBody)
        return await self.services.alert_rules.create(body, ADMIN)

    async def set_queue(self, name: str = "default", **fields: Any) -> QueueInfo:
        return await self.services.queues.set(name, msgspec.convert(fields, QueueBody), if_match=None, caller=ADMIN)

    async def follow(self) -> None:
        """Turn what has happened into incidents."""
        assert self._position is not None
        events, self._position = await happened(self.store, self._position, self.alerts.wanted())
        incidents = self.alerts.on_events(events)
        assert await self.store.save_incidents(incidents)
        self.alerts.saved(incidents)

    async def round(self, seconds: float = 0) -> None:
        """A second on watch, after so many more have passed."""
        self.clock.pass_seconds(seconds)
        await self.alerts.check(self.clock.now())
        await self.follow()
        while await self.services.notices.send_due():
            pass

    async def fail(self, job_type: str = "echo", *, status: str = "fatal_failure", **fields: object) -> str:
        """A job that fails."""
        job_id = await self.submit(job_type, **fields)
        await self._report(status, error="boom")
        return job_id

    async def complete(self, job_type: str = "echo", **fields: object) -> str:
        job_id = await self.submit(job_type, **fields)
        await self._report("success")
        return job_id

    async def _report(self, status: str, **fields: object) -> None:
        worker = await self.worker()
        await self.report(worker, await self.take_one(worker), status, **fields)

    async def incidents(self) -> list[IncidentInfo]:
        """Oldest first."""
        found, _ = await self.alerts.page(limit=1000, cursor=None, caller=ADMIN)
        return found[::-1]

    async def incident(self) -> IncidentInfo:
        (found,) = await self.incidents()
        return found

    @property
    def titles(self) -> list[str]:
        return self.receiver.titles
