"""The calls for figures, as methods of the client."""

from datetime import datetime
from typing import Literal
from urllib.parse import quote, urlencode

from foliot.sdk.requester import Requester
from foliot.wire import DepthInfo, LatenessInfo


class StatsCalls(Requester):
    """A client's part for how late jobs were and how full queues are."""

    async def lateness(
        self,
        *,
        queue: str | None = None,
        job_type: str | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
        by: Literal["queue", "job_type", "both"] = "both",
    ) -> list[LatenessInfo]:
        """How late jobs started, and how long each step took, in percentiles, of those that ended in the last hour
        unless told otherwise. Over all nodes; by queue, by job type, or by both."""
        asked = {
            "queue": queue,
            "job_type": job_type,
            "since": None if since is None else since.isoformat(),
            "until": None if until is None else until.isoformat(),
            "by": by,
        }
        query = urlencode({name: value for name, value in asked.items() if value is not None})
        return await self._ask(list[LatenessInfo], "GET", f"/stats/lateness?{query}")

    async def depth(self, queue: str) -> DepthInfo:
        """How many jobs of a queue wait and run, exactly and at once, however many there are."""
        return await self._ask(DepthInfo, "GET", f"/queues/{quote(queue, safe='')}/depth")
