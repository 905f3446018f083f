"""The calls for those who watch: events as they happen, alert rules, the incidents they open, the channels by which
people are told."""

from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import aclosing
from datetime import timedelta
from typing import Any
from urllib.parse import quote

import msgspec
from msgspec import UNSET, UnsetType

from foliot.sdk.event import Event
from foliot.sdk.event_stream import MOST_JOBS, NOW, Wanted, follow
from foliot.sdk.options import DurationLike
from foliot.sdk.requester import Requester
from foliot.wire.alerts import (
    AlertWord,
    ChannelBody,
    ChannelInfo,
    ChannelTested,
    ChannelUpdateBody,
    IncidentInfo,
    MatchBody,
    RuleBody,
    RuleFields,
    RuleInfo,
    SilenceBody,
)

PAGE_SIZE = 200

Words = str | Iterable[str]
Match = MatchBody | Mapping[str, str]


class WatchCalls(Requester):
    """A client's part for watching."""

    async def events(
        self,
        *,
        job_id: Words = (),
        queue: Words = (),
        job_type: Words = (),
        status: Words = (),
        since: str = NOW,
    ) -> AsyncIterator[Event]:
        """What happens from now on, each change of a job's status as an `Event`, as it happens; the order is kept for
        each job. Each filter may be several, and then any of them will do; at most 100 jobs. `since` is `"now"`, an
        event's `position` to go on behind it, or `"start"` for all that is kept.

        It goes on until it is left. A lost connection is taken up again where it was, with nothing missed and nothing
        twice, at whichever node answers at the address; only a node that is away for longer than the client has
        patience ends it, as Unreachable. EventsGone where `since` is older than what is kept, EventsOff where the node
        keeps no record."""
        async with aclosing(follow(self, events_wanted(job_id, queue, job_type, status), since)) as told:
            async for each in told:
                if isinstance(each, Event):
                    yield each

    # Alert rules

    async def alerts(self) -> list[RuleInfo]:
        """The alert rules, by name."""
        return await self._ask(list[RuleInfo], "GET", "/alerts")

    async def alert(self, name: str) -> RuleInfo:
        return await self._ask(RuleInfo, "GET", _alert(name))

    async def create_alert(
        self,
        name: str,
        on: AlertWord | Sequence[AlertWord],
        channels: Sequence[str],
        *,
        match: Match | None = None,
        after: DurationLike | None = None,
        throttle: DurationLike | None = None,
    ) -> RuleInfo:
        """Makes a rule: tell `channels` when this happens, of all jobs or those that `match`, as in
        `{"queue": "mail", "tag": "nightly"}`. `after` is how late, how long or how old, for `late`, `overrun`,
        `queue_age` and `no_worker`. While it goes on, another notice is sent at most once per `throttle` (5 minutes).
        Conflict where there is a rule of that name. Not repeated after a lost answer."""
        body = RuleBody(
            name=name,
            on=on if isinstance(on, str) else list(on),
            channels=list(channels),
            match=match_body(match),
            after=_seconds(after),
            throttle=_seconds(throttle),
        )
        return await self._ask(RuleInfo, "POST", "/alerts", body, again=False)

    async def change_alert(
        self,
        name: str,
        *,
        on: AlertWord | Sequence[AlertWord] | UnsetType = UNSET,
        channels: Sequence[str] | UnsetType = UNSET,
        match: Match | UnsetType | None = UNSET,
        after: DurationLike | UnsetType | None = UNSET,
        throttle: DurationLike | UnsetType | None = UNSET,
        if_match: int | None = None,
    ) -> RuleInfo:
        """Changes what is given; None is back to the default. With `if_match` only the version that was read; Stale
        where there is a newer one."""
        body = RuleFields(
            on=on if isinstance(on, str | UnsetType) else list(on),
            channels=channels if isinstance(channels, UnsetType) else list(channels),
            match=match if isinstance(match, UnsetType) else match_body(match),
            after=_seconds(after),
            throttle=_seconds(throttle),
        )
        return await self._ask(RuleInfo, "PUT", _alert(name), body, if_match=if_match)

    async def delete_alert(self, name: str) -> None:
        """NotFound where there is none: after a lost answer, too."""
        await self.request("DELETE", _alert(name))

    # Incidents

    async def incidents(self, *, limit: int = 50) -> list[IncidentInfo]:
        """What is or was wrong, newest first, up to `limit` (at most 1000). `all_incidents` goes through all."""
        return (await self.incident_page(limit=limit))[0]

    async def incident_page(
        self, *, limit: int = 50, cursor: str | None = None
    ) -> tuple[list[IncidentInfo], str | None]:
        """One page of incidents, newest first, and the cursor of the next one."""
        return await self._page(IncidentInfo, "/alerts/incidents", limit=limit, cursor=cursor)

    def all_incidents(self, *, limit: int | None = None, page_size: int = PAGE_SIZE) -> AsyncIterator[IncidentInfo]:
        """The incidents, newest first, page by page as they are wanted; at most `limit`."""
        return self._pages(IncidentInfo, "/alerts/incidents", limit=limit, page_size=page_size)

    async def incident(self, incident_id: str) -> IncidentInfo:
        return await self._ask(IncidentInfo, "GET", _incident(incident_id))

    async def acknowledge_incident(self, incident_id: str) -> IncidentInfo:
        """Somebody sees to it: nothing more is told until it is over."""
        return await self._ask(IncidentInfo, "POST", _incident(incident_id, "acknowledge"))

    async def silence_incident(self, incident_id: str, duration: DurationLike) -> IncidentInfo:
        """Nothing is told about it for so long."""
        body = SilenceBody(duration=_seconds(duration))
        return await self._ask(IncidentInfo, "POST", _incident(incident_id, "silence"), body)

    async def resolve_incident(self, incident_id: str) -> IncidentInfo:
        """It is over. Where it happens again, it is a new one."""
        return await self._ask(IncidentInfo, "POST", _incident(incident_id, "resolve"))

    # Channels

    async def channels(self) -> list[ChannelInfo]:
        """The channels, by name; of their addresses only the kind."""
        return await self._ask(list[ChannelInfo], "GET", "/channels")

    async def channel(self, name: str) -> ChannelInfo:
        return await self._ask(ChannelInfo, "GET", _channel(name))

    async def create_channel(self, name: str, url: str) -> ChannelInfo:
        """Makes a channel of an Apprise URL, which is never shown again. Conflict where there is one of that name. Not
        repeated after a lost answer."""
        return await self._ask(ChannelInfo, "POST", "/channels", ChannelBody(name=name, url=url), again=False)

    async def change_channel(self, name: str, url: str, *, if_match: int | None = None) -> ChannelInfo:
        """Notices go to this address from now on."""
        return await self._ask(ChannelInfo, "PUT", _channel(name), ChannelUpdateBody(url=url), if_match=if_match)

    async def delete_channel(self, name: str) -> None:
        """NotFound where there is none: after a lost answer, too."""
        await self.request("DELETE", _channel(name))

    async def test_channel(self, name: str) -> ChannelTested:
        """Sends a notice that says it is a test, and tells whether it went out. Not repeated after a lost answer."""
        return await self._ask(ChannelTested, "POST", _channel(name, "test"), again=False)


def events_wanted(job_id: Words, queue: Words, job_type: Words, status: Words) -> Wanted:
    """The filters of a stream of events, as its query has them."""
    given = (("job_id", job_id), ("queue", queue), ("job_type", job_type), ("status", status))
    wanted = [(name, word) for name, words in given for word in ([words] if isinstance(words, str) else words)]
    if sum(name == "job_id" for name, _ in wanted) > MOST_JOBS:
        raise ValueError(f"a stream can name {MOST_JOBS} jobs; follow a queue or a job type for more")
    return wanted


def match_body(match: Match | None) -> MatchBody | None:
    if match is None or isinstance(match, MatchBody):
        return match
    try:
        return msgspec.convert(dict(match), MatchBody)
    except msgspec.ValidationError as error:
        raise ValueError(f"match: {error}") from None


def _alert(name: str) -> str:
    return f"/alerts/{quote(name, safe='')}"


def _incident(incident_id: str, *more: str) -> str:
    return "/".join(("/alerts/incidents", quote(incident_id, safe=""), *more))


def _channel(name: str, *more: str) -> str:
    return "/".join(("/channels", quote(name, safe=""), *more))


def _seconds(value: Any) -> Any:
    return value.total_seconds() if isinstance(value, timedelta) else value
