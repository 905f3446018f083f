"""Waiting for jobs to end, told by the node instead of asking again and again.

Whoever waits is on a watch before it reads the job, so that an end after that reading is told. Those who begin to wait
at the same time share a watch, which is one stream; when there are several already, those who come later share one that
tells of every end in reach, so that thousands of waits never need more than a few connections. A watch that tells
nothing (the record is switched off, something between does not let streams through, the node is away) only means that
its waiters look by themselves, after growing pauses.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress

from foliot.domain.errors import FoliotError
from foliot.domain.status import is_ended
from foliot.sdk.event import Event
from foliot.sdk.event_stream import MOST_JOBS, Lost, Opened, Wanted, follow
from foliot.sdk.requester import Requester
from foliot.wire import JobInfo

FIRST_ANSWER_SECONDS = 1.0
FIRST_LOOK_SECONDS = 0.02
LONGEST_LOOK_SECONDS = 1.0
LOOK_AGAIN_SECONDS = 60.0  # while the watch is good: an end that nobody told must not be waited for without end
MOST_WATCHES = 4
ENDS: Wanted = (("status", "completed"), ("status", "failed"), ("status", "cancelled"))

Get = Callable[[str], Awaitable[JobInfo]]


class Watch:
    """One stream and who waits on it. `live`: connected, so that every end is told."""

    def __init__(self, client: Requester, *, whole: bool) -> None:
        self.live = False
        self.whole = whole  # of every end, not of jobs by name
        self.taking = True
        self._client = client
        self._waiting: dict[str, set[asyncio.Event]] = {}
        self._tried = asyncio.Event()
        self._task = asyncio.create_task(self._run())

    @property
    def open(self) -> bool:
        return not self._task.done()

    def enter(self, job_id: str) -> asyncio.Event:
        """Set whenever the job should be read."""
        news = asyncio.Event()
        self._waiting.setdefault(job_id, set()).add(news)
        if len(self._waiting) >= MOST_JOBS and not self.whole:
            self.taking = False
        return news

    async def tried(self) -> None:
        """Connected, or known that it does not work; or it takes too long."""
        with suppress(TimeoutError):
            async with asyncio.timeout(FIRST_ANSWER_SECONDS):
                await self._tried.wait()

    async def leave(self, job_id: str, news: asyncio.Event) -> None:
        self._waiting[job_id].discard(news)
        if not self._waiting[job_id]:
            del self._waiting[job_id]
        if not self._waiting:
            self.taking = False
            self._task.cancel()
            await asyncio.wait([self._task])

    async def _run(self) -> None:
        await asyncio.sleep(0)  # who comes in the same turn of the loop comes along
        self.taking = self.taking and self.whole
        named = () if self.whole else tuple(("job_id", job_id) for job_id in self._waiting)
        try:
            async for told in follow(self._client, (*named, *ENDS)):
                if isinstance(told, Opened | Lost):
                    self.live = isinstance(told, Opened)
                    self._tell_all()
                else:
                    self._tell(told)
        except FoliotError:
            pass  # its waiters read the job themselves and see what is wrong
        finally:
            self.live = self.taking = False
            self._tell_all()

    def _tell(self, event: Event) -> None:
        if event.subject in self._waiting:
            for news in self._waiting[event.subject]:
                news.set()
        elif not self.whole:
            self._tell_all()  # a job that was asked for by another of its names

    def _tell_all(self) -> None:
        self._tried.set()
        for waiting in self._waiting.values():
            for news in waiting:
                news.set()


class Waits:
    """The waits of one client on one event loop."""

    def __init__(self, client: Requester, get: Get) -> None:
        self._client = client
        self._get = get
        self._watches: list[Watch] = []

    async def ended(self, job_id: str) -> JobInfo:
        watch = self._watch()
        news = watch.enter(job_id)
        step = FIRST_LOOK_SECONDS
        try:
            await watch.tried()
            while True:
                news.clear()
                info = await self._get(job_id)
                if is_ended(info.status):
                    return info
                try:
                    async with asyncio.timeout(LOOK_AGAIN_SECONDS if watch.live else step):
                        await news.wait()
                except TimeoutError:
                    step = min(step * 1.5, LONGEST_LOOK_SECONDS)
        finally:
            await watch.leave(job_id, news)
            self._watches = [each for each in self._watches if each.open]

    async def all_ended(self, job_ids: Sequence[str]) -> list[JobInfo]:
        """In the order given. As many at a time as one stream can name: all must have ended anyway."""
        found: list[JobInfo] = []
        for start in range(0, len(job_ids), MOST_JOBS):
            some = [asyncio.create_task(self.ended(job_id)) for job_id in job_ids[start : start + MOST_JOBS]]
            try:
                found += await asyncio.gather(*some)
            finally:
                for task in some:
                    task.cancel()
                await asyncio.gather(*some, return_exceptions=True)
        return found

    def _watch(self) -> Watch:
        for watch in self._watches:
            if watch.taking:
                return watch
        made = Watch(self._client, whole=len(self._watches) >= MOST_WATCHES)
        self._watches.append(made)
        return made
