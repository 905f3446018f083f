"""The calls on schedules, as methods of the client.

A schedule is made under a key of the request's own, so that a repeated call makes one. A trigger and a backfill are not
repeated after a lost answer: the first may have made its runs.
"""

import secrets
from collections.abc import AsyncIterator
from urllib.parse import quote

from foliot.sdk.requester import Requester
from foliot.wire import (
    BackfillBody,
    Backfilled,
    Forecast,
    PreviewBody,
    PreviewTime,
    RunInfo,
    ScheduleBody,
    ScheduleChanged,
    ScheduleInfo,
    ScheduleUpdateBody,
    Triggered,
)

PAGE_SIZE = 200


class ScheduleCalls(Requester):
    """A client's part for schedules."""

    async def create_schedule(self, body: ScheduleBody) -> ScheduleChanged:
        """Makes a schedule. The same body under the same `schedule_id` again is answered as the first was; Conflict
        where the id belongs to another schedule."""
        return await self._ask(ScheduleChanged, "POST", "/schedules", body, key=secrets.token_hex(16))

    async def schedule(self, schedule_id: str) -> ScheduleInfo:
        return await self._ask(ScheduleInfo, "GET", _schedule(schedule_id))

    async def schedules(self, *, limit: int = 50) -> list[ScheduleInfo]:
        """The newest schedules, up to `limit` (at most 1000). `all_schedules` goes through all of them."""
        return (await self.schedule_page(limit=limit))[0]

    async def schedule_page(
        self, *, limit: int = 50, cursor: str | None = None
    ) -> tuple[list[ScheduleInfo], str | None]:
        """One page of schedules, newest first, and the cursor of the next one."""
        return await self._page(ScheduleInfo, "/schedules", limit=limit, cursor=cursor)

    def all_schedules(self, *, limit: int | None = None, page_size: int = PAGE_SIZE) -> AsyncIterator[ScheduleInfo]:
        """The schedules, newest first, page by page as they are wanted; at most `limit`."""
        return self._pages(ScheduleInfo, "/schedules", limit=limit, page_size=page_size)

    async def change_schedule(
        self, schedule_id: str, body: ScheduleUpdateBody, *, if_match: int | None = None
    ) -> ScheduleChanged:
        """Changes a schedule for every due time from now on: the fields given, None meaning back to the default. With
        `if_match` only the version that was read; Stale where there is a newer one."""
        return await self._ask(ScheduleChanged, "PUT", _schedule(schedule_id), body, if_match=if_match)

    async def delete_schedule(self, schedule_id: str, *, if_match: int | None = None) -> ScheduleChanged:
        """Deletes a schedule; jobs that it made stay. NotFound where there is none: after a lost answer, too."""
        return await self._ask(ScheduleChanged, "DELETE", _schedule(schedule_id), if_match=if_match)

    async def pause_schedule(self, schedule_id: str, *, if_match: int | None = None) -> ScheduleChanged:
        """Makes no runs until it is resumed."""
        return await self._ask(ScheduleChanged, "POST", _schedule(schedule_id, "pause"), if_match=if_match)

    async def resume_schedule(self, schedule_id: str, *, if_match: int | None = None) -> ScheduleChanged:
        """Goes on; what was due meanwhile was skipped."""
        return await self._ask(ScheduleChanged, "POST", _schedule(schedule_id, "resume"), if_match=if_match)

    async def trigger_schedule(self, schedule_id: str) -> Triggered:
        """Makes a run now, paused or not, whatever is under way."""
        return await self._ask(Triggered, "POST", _schedule(schedule_id, "trigger"), again=False)

    async def backfill_schedule(self, schedule_id: str, body: BackfillBody) -> Backfilled:
        """Runs past due times, except those that have their job; Conflict while a backfill is under way."""
        return await self._ask(Backfilled, "POST", _schedule(schedule_id, "backfill"), body, again=False)

    async def runs(self, schedule_id: str, *, limit: int = 50) -> list[RunInfo]:
        """What became of the latest due times, newest first; `all_runs` goes through all of them."""
        return (await self.run_page(schedule_id, limit=limit))[0]

    async def run_page(
        self, schedule_id: str, *, limit: int = 50, cursor: str | None = None
    ) -> tuple[list[RunInfo], str | None]:
        """One page of the ledger, newest due time first, and the cursor of the next one. Rows of one due time stay
        together, so that a page may be a row shorter or longer."""
        return await self._page(RunInfo, _schedule(schedule_id, "runs"), limit=limit, cursor=cursor)

    def all_runs(
        self, schedule_id: str, *, limit: int | None = None, page_size: int = PAGE_SIZE
    ) -> AsyncIterator[RunInfo]:
        """The ledger, newest due time first, page by page as they are wanted; at most `limit` rows."""
        return self._pages(RunInfo, _schedule(schedule_id, "runs"), limit=limit, page_size=page_size)

    async def preview(self, body: PreviewBody) -> list[PreviewTime]:
        """When a schedule would run: its first `count` due times from `start_time` on, or from now. Saves nothing."""
        return await self._ask(list[PreviewTime], "POST", "/schedules/preview", body)

    async def forecast(self) -> Forecast:
        """What is due in the next 24 hours, minute by minute, against what the living workers can take."""
        return await self._ask(Forecast, "GET", "/stats/forecast")


def _schedule(schedule_id: str, *more: str) -> str:
    return "/".join(("/schedules", quote(schedule_id, safe=":@"), *more))
