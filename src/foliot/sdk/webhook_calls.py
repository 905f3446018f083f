"""The calls on webhooks, as methods of the client."""

from collections.abc import AsyncIterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any
from urllib.parse import quote

import msgspec
from msgspec import UNSET, UnsetType

from foliot.sdk.options import DurationLike
from foliot.sdk.requester import Requester
from foliot.wire.access import RotateBody
from foliot.wire.webhooks import (
    DeliveryInfo,
    DeliveryState,
    NewWebhook,
    RedeliverBody,
    Redelivered,
    WebhookBody,
    WebhookChange,
    WebhookInfo,
    WebhookMatch,
)

PAGE_SIZE = 200

Match = WebhookMatch | Mapping[str, str]


class WebhookCalls(Requester):
    """A client's part for webhooks."""

    async def webhooks(self, *, limit: int = 50) -> list[WebhookInfo]:
        """Webhooks by id, up to `limit` (at most 1000), those that are off too. `all_webhooks` goes through all."""
        return (await self.webhook_page(limit=limit))[0]

    async def webhook_page(self, *, limit: int = 50, cursor: str | None = None) -> tuple[list[WebhookInfo], str | None]:
        """One page of webhooks, by id, and the cursor of the next one."""
        return await self._page(WebhookInfo, "/webhooks", limit=limit, cursor=cursor)

    def all_webhooks(self, *, limit: int | None = None, page_size: int = PAGE_SIZE) -> AsyncIterator[WebhookInfo]:
        """The webhooks by id, page by page as they are wanted; at most `limit`."""
        return self._pages(WebhookInfo, "/webhooks", limit=limit, page_size=page_size)

    async def webhook(self, webhook_id: str) -> WebhookInfo:
        """One webhook, all but its secret."""
        return await self._ask(WebhookInfo, "GET", _webhook(webhook_id))

    async def create_webhook(
        self, url: str, events: Sequence[str], *, match: Match | None = None, give_up_after: DurationLike = "3d"
    ) -> NewWebhook:
        """Sends these events (`job.failed`, `job.*`, `*`) to that address, of all jobs or those that `match`, as in
        `{"queue": "mail"}`. The `secret` that its messages are signed with is in this answer and never again. It is
        switched off after failing for `give_up_after`. Not repeated after a lost answer."""
        body = WebhookBody(
            url=url,
            events=list(events),
            match=WebhookMatch() if match is None else _match(match),
            give_up_after=_seconds(give_up_after),
        )
        return await self._ask(NewWebhook, "POST", "/webhooks", body, again=False)

    async def change_webhook(
        self,
        webhook_id: str,
        *,
        url: str | UnsetType = UNSET,
        events: Sequence[str] | UnsetType = UNSET,
        match: Match | UnsetType = UNSET,
        give_up_after: DurationLike | UnsetType = UNSET,
        if_match: int | None = None,
    ) -> WebhookInfo:
        """Changes what is given, `match` as a whole. With `if_match` only the version that was read; Stale where there
        is a newer one."""
        body = WebhookChange(
            url=url,
            events=events if isinstance(events, UnsetType) else list(events),
            match=match if isinstance(match, UnsetType) else _match(match),
            give_up_after=_seconds(give_up_after),
        )
        return await self._ask(WebhookInfo, "PUT", _webhook(webhook_id), body, if_match=if_match)

    async def delete_webhook(self, webhook_id: str) -> None:
        """NotFound where there is none: after a lost answer, too."""
        await self.request("DELETE", _webhook(webhook_id))

    async def enable_webhook(self, webhook_id: str) -> WebhookInfo:
        """On again, whatever it was off for."""
        return await self._ask(WebhookInfo, "POST", _webhook(webhook_id, "enable"))

    async def disable_webhook(self, webhook_id: str) -> WebhookInfo:
        """Sends nothing more until it is enabled."""
        return await self._ask(WebhookInfo, "POST", _webhook(webhook_id, "disable"))

    async def rotate_webhook(self, webhook_id: str, *, overlap: DurationLike = "24h") -> NewWebhook:
        """Gives it a new secret, shown in this answer and never again. For `overlap` messages are signed with the one
        before, too. Not repeated after a lost answer."""
        body = RotateBody(overlap=_seconds(overlap))
        return await self._ask(NewWebhook, "POST", _webhook(webhook_id, "rotate"), body, again=False)

    async def test_webhook(self, webhook_id: str) -> WebhookInfo:
        """Sends it an event of the type `foliot.webhook.test`; its deliveries tell what became of it. Not repeated
        after a lost answer."""
        return await self._ask(WebhookInfo, "POST", _webhook(webhook_id, "test"), again=False)

    async def deliveries(
        self, webhook_id: str, *, state: DeliveryState | None = None, limit: int = 50
    ) -> list[DeliveryInfo]:
        """What was sent to it or is on its way, newest first, up to `limit` (at most 1000). `all_deliveries` goes
        through all of them."""
        return (await self.delivery_page(webhook_id, state=state, limit=limit))[0]

    async def delivery_page(
        self, webhook_id: str, *, state: DeliveryState | None = None, limit: int = 50, cursor: str | None = None
    ) -> tuple[list[DeliveryInfo], str | None]:
        """One page of deliveries, newest first, and the cursor of the next one."""
        path = _webhook(webhook_id, "deliveries")
        return await self._page(DeliveryInfo, path, _states(state), limit=limit, cursor=cursor)

    def all_deliveries(
        self,
        webhook_id: str,
        *,
        state: DeliveryState | None = None,
        limit: int | None = None,
        page_size: int = PAGE_SIZE,
    ) -> AsyncIterator[DeliveryInfo]:
        """The deliveries, newest first, page by page as they are wanted; at most `limit`."""
        path = _webhook(webhook_id, "deliveries")
        return self._pages(DeliveryInfo, path, _states(state), limit=limit, page_size=page_size)

    async def redeliver(self, webhook_id: str, delivery_id: str) -> DeliveryInfo:
        """Sends one again now, whatever became of it before. Not repeated after a lost answer."""
        path = _webhook(webhook_id, "deliveries", quote(delivery_id, safe=""), "redeliver")
        return await self._ask(DeliveryInfo, "POST", path, again=False)

    async def redeliver_failed(self, webhook_id: str, *, since: datetime | None = None) -> Redelivered:
        """Sends all that failed again, those of events since then where it is given."""
        body = RedeliverBody(since=since)
        return await self._ask(Redelivered, "POST", _webhook(webhook_id, "redeliver"), body)


def _match(match: Match) -> WebhookMatch:
    if isinstance(match, WebhookMatch):
        return match
    try:
        return msgspec.convert(dict(match), WebhookMatch)
    except msgspec.ValidationError as error:
        raise ValueError(f"match: {error}") from None


def _states(state: str | None) -> list[tuple[str, str]]:
    return [] if state is None else [("state", state)]


def _webhook(webhook_id: str, *more: str) -> str:
    return "/".join(("/webhooks", quote(webhook_id, safe=""), *more))


def _seconds(value: Any) -> Any:
    return value.total_seconds() if isinstance(value, timedelta) else value
