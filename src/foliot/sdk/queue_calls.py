"""The calls on queues and job types, as methods of the client."""

from collections.abc import AsyncIterator, Mapping
from datetime import timedelta
from typing import Any
from urllib.parse import quote

import msgspec
from msgspec import UNSET, UnsetType

from foliot.sdk.options import DurationLike, NotifyLike, read_notify
from foliot.sdk.requester import Requester
from foliot.wire import JobTypeInfo, QueueBody, QueueInfo, RateLimitBody
from foliot.wire.alerts import ObjectiveBody
from foliot.wire.queues import PolicyWord

PAGE_SIZE = 200

ObjectiveLike = ObjectiveBody | Mapping[str, Any]

RateLike = RateLimitBody | Mapping[str, Any] | tuple[int, DurationLike] | tuple[int, DurationLike, int]


class QueueCalls(Requester):
    """A client's part for queues and job types."""

    async def queues(self, *, limit: int = 50) -> list[QueueInfo]:
        """Queues by name, up to `limit` (at most 1000), each with its rules and how full it is. `all_queues` goes
        through all of them."""
        return (await self.queue_page(limit=limit))[0]

    async def queue_page(self, *, limit: int = 50, cursor: str | None = None) -> tuple[list[QueueInfo], str | None]:
        """One page of queues, by name, and the cursor of the next one."""
        return await self._page(QueueInfo, "/queues", limit=limit, cursor=cursor)

    def all_queues(self, *, limit: int | None = None, page_size: int = PAGE_SIZE) -> AsyncIterator[QueueInfo]:
        """The queues by name, page by page as they are wanted; at most `limit`."""
        return self._pages(QueueInfo, "/queues", limit=limit, page_size=page_size)

    async def queue(self, name: str) -> QueueInfo:
        """One queue; NotFound where nothing was ever submitted to it and nobody has set it."""
        return await self._ask(QueueInfo, "GET", _queue(name))

    async def set_queue(
        self,
        name: str,
        *,
        policy: PolicyWord | UnsetType | None = UNSET,
        aging: DurationLike | UnsetType | None = UNSET,
        weight: float | UnsetType | None = UNSET,
        weights: Mapping[str, float] | UnsetType | None = UNSET,
        max_concurrency: int | UnsetType | None = UNSET,
        rate_limit: RateLike | UnsetType | None = UNSET,
        notify: NotifyLike | UnsetType | None = UNSET,
        objective: ObjectiveLike | UnsetType | None = UNSET,
        if_match: int | None = None,
    ) -> QueueInfo:
        """Sets a queue's rules, from now on and for those that wait already: the ones given, None meaning back to the
        default. A queue that is new comes into being. `weights` are the shares of fair keys, all of them anew; a
        `rate_limit` is (100, "1s"), or (100, "1s", 20) with a burst. `notify` tells people of what becomes of its
        jobs that say nothing of their own: `{"on": ["failed"], "channels": ["ops"]}`; an `objective` is
        `{"target": 0.99, "within": "1s", "over": "7d"}`. With `if_match` only the version that was read; Stale where
        there is a newer one."""
        body = QueueBody(
            policy=policy,
            aging=_seconds(aging),
            weight=weight,
            weights=dict(weights) if isinstance(weights, Mapping) else weights,
            max_concurrency=max_concurrency,
            rate_limit=rate_limit if rate_limit is None or rate_limit is UNSET else _rate(rate_limit),
            notify=notify if notify is None or notify is UNSET else read_notify(notify),
            objective=objective if objective is None or objective is UNSET else _objective(objective),
        )
        return await self._ask(QueueInfo, "PUT", _queue(name), body, if_match=if_match)

    async def pause_queue(self, name: str, *, if_match: int | None = None) -> QueueInfo:
        """Starts nothing of the queue until it is resumed; what runs goes on, and it still takes jobs in."""
        return await self._ask(QueueInfo, "POST", _queue(name, "pause"), if_match=if_match)

    async def resume_queue(self, name: str, *, if_match: int | None = None) -> QueueInfo:
        return await self._ask(QueueInfo, "POST", _queue(name, "resume"), if_match=if_match)

    async def paused_types(self) -> list[JobTypeInfo]:
        """The job types that are paused, by name."""
        return await self._ask(list[JobTypeInfo], "GET", "/job-types")

    async def pause_type(self, job_type: str) -> JobTypeInfo:
        """Starts no job of the type until it is resumed, in whatever queue; what runs goes on."""
        return await self._ask(JobTypeInfo, "POST", _type(job_type, "pause"))

    async def resume_type(self, job_type: str) -> JobTypeInfo:
        return await self._ask(JobTypeInfo, "POST", _type(job_type, "resume"))


def _queue(name: str, *more: str) -> str:
    return "/".join(("/queues", quote(name, safe=""), *more))


def _type(job_type: str, *more: str) -> str:
    return "/".join(("/job-types", quote(job_type, safe=":"), *more))


def _rate(value: RateLike) -> RateLimitBody:
    given: Any = value
    if isinstance(value, tuple):
        if not 2 <= len(value) <= 3:
            raise ValueError(f'rate_limit: {value!r} is not a number of starts and a time, as in (100, "1s")')
        given = dict(zip(("limit", "per", "burst"), value, strict=False))
    if isinstance(given, Mapping):
        given = {name: _seconds(each) for name, each in given.items()}
    try:
        return msgspec.convert(given, RateLimitBody)
    except msgspec.ValidationError as error:
        raise ValueError(f"rate_limit: {error}") from None


def _objective(value: ObjectiveLike) -> ObjectiveBody:
    given = {name: _seconds(each) for name, each in value.items()} if isinstance(value, Mapping) else value
    try:
        return msgspec.convert(given, ObjectiveBody)
    except msgspec.ValidationError as error:
        raise ValueError(f"objective: {error}") from None


def _seconds(value: Any) -> Any:
    return value.total_seconds() if isinstance(value, timedelta) else value
