"""A world for jobs that hang together: what a node's duties do about the ends of parents and about tokens is one call,
and goes by the hints that were given, so that a forgotten hint is seen."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import msgspec

from foliot.domain.access import ADMIN, Caller
from foliot.domain.job import Record
from foliot.service.announce import announce_released
from foliot.wire import (
    BatchBody,
    BatchSubmitted,
    JobInfo,
    LimitBody,
    LimitInfo,
    RetryJobBody,
    SubmitBody,
    Submitted,
    UpdateBody,
)
from tests.service.conftest import ManualClock, World, report
from tests.service.meddling import Meddling

Standing = tuple[str, str | None]


class Network(World):
    def __init__(self, store: Meddling, clock: ManualClock) -> None:
        super().__init__(store, clock=clock)
        self._parents_ended = False
        self._limits: set[int] = set()
        self.wake.on_release.append(self._note_release)
        self.wake.on_tokens.append(self._limits.update)

    def _note_release(self) -> None:
        self._parents_ended = True

    async def submitted(self, job_type: str = "echo", *, caller: Caller = ADMIN, **fields: object) -> Submitted:
        body = msgspec.json.decode(msgspec.json.encode({"job_type": job_type, **fields}), type=SubmitBody)
        return await self.services.submit.one(body, b"", caller)

    async def batch(self, *jobs: dict[str, Any], request_key: str | None = None) -> BatchSubmitted:
        raw = msgspec.json.encode({"jobs": [{"job_type": "echo"} | job for job in jobs]})
        body = msgspec.json.decode(raw, type=BatchBody)
        return await self.services.submit.batch(body, raw, ADMIN, request_key)

    async def settle(self) -> None:
        """As long as hints say that there is something to do: ends are carried on to children, tokens are given."""
        while self._parents_ended or self._limits:
            limits, more = set(self._limits), self._parents_ended
            self._limits.clear()
            self._parents_ended = False
            while more:
                released = await self.store.release(100, self.clock.now())
                announce_released(self.wake, released)
                more = released.more
            await self.services.limits.give_tokens(limits)

    async def admit(self) -> None:
        """Whatever is due by now is moved, as a timekeeper does."""
        due = await self.store.peek_due(self.clock.now(), 1000)
        admitted = await self.store.admit([each.id for each in due if each.time <= self.clock.now()])
        self.wake.ready({lane_id for _, lane_id in admitted.ready})
        self.wake.tokens({limit_id for _, limit_id in admitted.for_key})
        await self.settle()

    async def run(self, worker: str, *statuses: str, count: int = 100, **fields: object) -> list[str]:
        """Take all that is ready and end it, all in one exchange, each as `statuses` says (the last one for all the
        others); what that brings is settled. Which they were."""
        jobs = await self.take(worker, count)
        words = [*statuses, *[statuses[-1] if statuses else "success"] * len(jobs)]
        reports = [report(job, word, **fields) for job, word in zip(jobs, words, strict=False)]
        assert (await self.exchange(worker, reports=reports)).rejected == []
        await self.settle()
        return [job.job_id for job in jobs]

    async def info(self, job_id: str) -> JobInfo:
        return await self.services.query.job(job_id, ADMIN)

    async def standing(self, *job_ids: str) -> list[Standing]:
        """Status and reason of each."""
        found = [await self.info(job_id) for job_id in job_ids]
        return [(info.status, info.reason) for info in found]

    async def statuses(self, *job_ids: str) -> list[str]:
        return [await self.status(job_id) for job_id in job_ids]

    async def known(self) -> int:
        """How many jobs there are."""
        return sum((await self.store.counts(ADMIN.namespace)).values())

    async def found(self, job_id: str) -> Record:
        return await self.services.query.find(job_id, ADMIN)

    async def change(self, job_id: str, **fields: object) -> str:
        body = msgspec.json.decode(msgspec.json.encode(fields), type=UpdateBody)
        return (await self.services.control.update(job_id, body, if_match=None, caller=ADMIN)).status

    async def pause(self, job_id: str) -> str:
        return (await self.services.control.pause(job_id, if_match=None, caller=ADMIN)).status

    async def resume(self, job_id: str) -> str:
        return (await self.services.control.resume(job_id, if_match=None, caller=ADMIN)).status

    async def retry(self, job_id: str, **fields: object) -> str:
        body = msgspec.json.decode(msgspec.json.encode(fields), type=RetryJobBody)
        return (await self.services.control.retry(job_id, body, if_match=None, caller=ADMIN)).status

    async def limit(self, key: str) -> LimitInfo:
        return await self.services.limits.read(key, ADMIN)

    async def set_limit(self, key: str, limit: int) -> LimitInfo:
        return await self.services.limits.set(key, LimitBody(limit=limit), ADMIN)


@asynccontextmanager
async def open_network() -> AsyncIterator[Network]:
    """Its store goes by the clock that the test moves."""
    clock = ManualClock()
    store = Meddling(":memory:", clock=clock)
    await store.open()
    yield Network(store, clock)
    await store.close()
