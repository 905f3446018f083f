"""Webhooks: made, listed, changed, switched on and off, given a new secret; and which events go to which of them."""

from collections.abc import Callable, Iterator, Sequence

import msgspec
from msgspec import UNSET

from foliot.clock import Clock
from foliot.domain.access import Caller
from foliot.domain.duration import DAY, Micros, parse_duration, show_duration
from foliot.domain.errors import BadInput, Conflict, NotFound, Stale
from foliot.domain.feed import Happening
from foliot.domain.ids import IdMaker, parse, show
from foliot.domain.webhook import (
    KINDS,
    LONGEST_GIVE_UP,
    PREFIX,
    SHORTEST_GIVE_UP,
    TEST,
    WEBHOOK,
    Match,
    Off,
    Webhook,
    new_secret,
    read_word,
)
from foliot.outbound import AddressNotAllowed, AllowList, BadAddress, check_plain
from foliot.outbound.client import read_url
from foliot.service.definitions import Definitions
from foliot.service.event import Event
from foliot.service.group import persist
from foliot.service.sealing import Sealer
from foliot.service.wake import Wake
from foliot.store.base import Definition, Delivery, Store
from foliot.wire import (
    NewWebhook,
    RotateBody,
    WebhookBody,
    WebhookChange,
    WebhookInfo,
    WebhookMatch,
    encode,
    to_time,
)

MOST = 100  # in a namespace: every event is held against each of them
LONGEST_OVERLAP = 30 * DAY
ROUNDS = 20

Name = tuple[str, str]  # namespace and webhook_id
Change = Callable[[Webhook], Webhook]

_decode = msgspec.json.Decoder(Webhook).decode
_everything = Match()


class Webhooks:
    def __init__(
        self,
        store: Store,
        clock: Clock,
        ids: IdMaker,
        wake: Wake,
        definitions: Definitions,
        sealer: Sealer,
        allowed: AllowList,
    ) -> None:
        self._store = store
        self._clock = clock
        self._ids = ids
        self._wake = wake
        self._definitions = definitions
        self._sealer = sealer
        self._allowed = allowed
        self._edition = -1
        self._known: dict[Name, Webhook] = {}
        self.on_added: list[Callable[[], None]] = []  # told that there is something to send

    # what a node's own duties ask

    def wanted(self) -> int:
        """Which statuses of jobs somebody wants to be told of (see `domain.feed`)."""
        mask = 0
        for webhook in self._all().values():
            if webhook.off is None:
                mask |= webhook.mask
        return mask

    def deliveries_for(self, events: Sequence[Event]) -> list[Delivery]:
        """One for each event and webhook that wants it, not kept yet."""
        found = [(event, name) for event in events for name in self._takers(event)]
        now = self._clock.now()
        bodies: dict[str, str] = {}
        made = []
        for number, (event, (namespace, webhook_id)) in zip(self._ids.take(len(found), now), found, strict=True):
            body = bodies.get(event.event_id)
            if body is None:
                body = bodies[event.event_id] = encode(event.cloud_event(self._sealer)).decode()
            made.append(
                Delivery(
                    id=number,
                    namespace=namespace,
                    webhook=webhook_id,
                    event_id=event.event_id,
                    event_type=PREFIX + event.kind,
                    body=self._sealer.seal(body, number, "delivery"),
                    created=now,
                    next_try=now,
                    changed=now,
                )
            )
        return made

    def added(self, _count: int) -> None:
        """Deliveries were kept, and can be sent."""
        for listener in self.on_added:
            listener()

    def known(self, namespace: str, webhook_id: str) -> Webhook | None:
        """As this node knows it, perhaps a moment behind."""
        return self._all().get((namespace, webhook_id))

    def secrets_of(self, webhook_id: str, webhook: Webhook) -> list[str]:
        """Those that a message is signed with now, the newest first. `Unreadable` where one does not open."""
        kept = [webhook.secret]
        if webhook.old_secret is not None and self._clock.now() < webhook.old_until:
            kept.append(webhook.old_secret)
        return [self._sealer.open(each, _number(webhook_id), "webhook") for each in kept]

    async def amend(self, namespace: str, webhook_id: str, change: Change) -> None:
        """Change what is kept of one, unless it is gone, or `change` leaves it as it is."""
        for _ in range(ROUNDS):
            definition = await self._find(namespace, webhook_id)
            if definition is None or await self._put(definition, change) is not None:
                return

    # what users ask

    async def create(self, body: WebhookBody, caller: Caller) -> NewWebhook:
        caller.check_whole("a webhook")
        self._check_url(body.url)
        if len(await self._store.definitions("webhook", namespace=caller.namespace)) >= MOST:
            raise Conflict(f"there are {MOST} webhooks in {caller.namespace!r} already; delete one that is not used")
        now, secret = self._clock.now(), new_secret()
        number = self._ids.one(now)
        webhook = Webhook(
            url=body.url,
            events=_words(body.events),
            match=_match(body.match),
            give_up_after=_give_up_after(body.give_up_after),
            secret=self._sealer.seal(secret, number, "webhook"),
            created_by=caller.name,
            root=caller.root,
        )
        definition = Definition(
            kind="webhook", namespace=caller.namespace, name=show(WEBHOOK, number), body=_text(webhook), created=now
        )
        saved = await self._definitions.put(definition)  # nobody else has its name: there is nothing to expect
        return _with_secret(saved or definition, secret)

    async def page(self, *, limit: int, cursor: str | None, caller: Caller) -> tuple[list[WebhookInfo], str | None]:
        """By id, and where the next page begins."""
        caller.check_whole("a webhook")
        all_of_them = await self._store.definitions("webhook", namespace=caller.namespace)
        found = [each for each in all_of_them if each.name > (cursor or "")]
        page = found[:limit]
        return [_show(each) for each in page], page[-1].name if len(found) > limit else None

    async def read(self, webhook_id: str, caller: Caller) -> WebhookInfo:
        return _show(await self.find(webhook_id, caller))

    async def update(
        self, webhook_id: str, body: WebhookChange, *, if_match: int | None, caller: Caller
    ) -> WebhookInfo:
        given: dict[str, object] = {}
        if body.url is not UNSET:
            self._check_url(body.url)
            given["url"] = body.url
        if body.events is not UNSET:
            given["events"] = _words(body.events)
        if body.match is not UNSET:
            given["match"] = _match(body.match)
        if body.give_up_after is not UNSET:
            given["give_up_after"] = _give_up_after(body.give_up_after)
        return await self._change(webhook_id, lambda known: msgspec.structs.replace(known, **given), if_match, caller)

    async def switch(self, webhook_id: str, *, on: bool, if_match: int | None, caller: Caller) -> WebhookInfo:
        """On: what happens from now on is sent, and what failed before can be sent again."""
        off: Off | None = None if on else "switched_off"
        return await self._change(
            webhook_id,
            lambda known: (
                known if (known.off is None) is on else msgspec.structs.replace(known, off=off, failing_since=None)
            ),
            if_match,
            caller,
        )

    async def rotate(self, webhook_id: str, body: RotateBody, caller: Caller) -> NewWebhook:
        """A new secret; messages are signed with the old one as well for the overlap."""
        overlap = parse_duration(body.overlap, "overlap")
        if not 0 <= overlap <= LONGEST_OVERLAP:
            raise BadInput.at("overlap", "must be from 0 to 30 days")
        secret, until = new_secret(), self._clock.now() + overlap
        await self.find(webhook_id, caller)
        sealed = self._sealer.seal(secret, _number(webhook_id), "webhook")

        def rotated(known: Webhook) -> Webhook:
            if known.secret == sealed:  # kept by a call whose answer was lost
                return known
            return msgspec.structs.replace(known, secret=sealed, old_secret=known.secret, old_until=until)

        info = await self._change(webhook_id, rotated, None, caller)
        return NewWebhook(**msgspec.structs.asdict(info), secret=secret)

    async def test(self, webhook_id: str, caller: Caller) -> WebhookInfo:
        """Send it an event of its own, the way that all others go."""
        definition = await self.find(webhook_id, caller)
        check_on(definition)
        if not self._store.recording:
            raise Conflict("this node keeps no record of events: FOLIOT_EVENTS is off")
        happening = Happening(
            kind=TEST,
            subject=webhook_id,
            namespace=caller.namespace,
            data=encode({"webhook_id": webhook_id, "asked_by": caller.name}).decode(),
        )
        await persist(lambda _again: self._store.note([happening], self._clock.now()))
        self._wake.change()
        return _show(definition)

    async def delete(self, webhook_id: str, caller: Caller) -> None:
        await self.find(webhook_id, caller)
        await self._definitions.remove("webhook", caller.namespace, webhook_id)

    async def find(self, webhook_id: str, caller: Caller) -> Definition:
        caller.check_whole("a webhook")
        definition = await self._find(caller.namespace, webhook_id)
        if definition is None:
            raise NotFound(f"there is no webhook {webhook_id!r}")
        return definition

    # within

    async def _change(self, webhook_id: str, change: Change, if_match: int | None, caller: Caller) -> WebhookInfo:
        for _ in range(ROUNDS):
            definition = await self.find(webhook_id, caller)
            if if_match is not None and if_match != definition.version:
                raise Stale(
                    f"webhook {webhook_id!r} is at version {definition.version}, not {if_match}; "
                    "read it again and decide anew"
                )
            saved = await self._put(definition, change)
            if saved is not None:
                return _show(saved)
        raise Conflict(f"webhook {webhook_id!r} changes faster than it can be changed; try again")

    async def _put(self, definition: Definition, change: Change) -> Definition | None:
        """As it is then; None where somebody else has changed it meanwhile."""
        known = _decode(definition.body)
        changed = change(known)
        if changed == known:
            return definition
        wanted = msgspec.structs.replace(definition, body=_text(changed))
        return await self._definitions.put(wanted, expected=definition.version)

    async def _find(self, namespace: str, webhook_id: str) -> Definition | None:
        """As it is kept, whatever this node knows."""
        found = await self._store.definitions("webhook", namespace=namespace)
        return next((each for each in found if each.name == webhook_id), None)

    def _all(self) -> dict[Name, Webhook]:
        if self._edition != self._definitions.edition:
            self._edition = self._definitions.edition
            self._known = {(each.namespace, each.name): _decode(each.body) for each in self._definitions.of("webhook")}
        return self._known

    def _takers(self, event: Event) -> Iterator[Name]:
        for name, webhook in self._all().items():
            reaches = name[0] == event.namespace or (event.namespace is None and webhook.root)
            if reaches and webhook.off is None and _wants(name[1], webhook, event):
                yield name

    def _check_url(self, url: str) -> None:
        try:
            check_plain(url, self._allowed)
            target = read_url(url)
        except BadAddress as error:
            raise BadInput.at("url", str(error)) from None
        except AddressNotAllowed as error:
            raise BadInput.at(
                "url",
                f"{error}, which webhooks may not call. If they should, list {error.entry} on the node, "
                "with --http-allow or FOLIOT_HTTP_ALLOW",
            ) from None
        if target.user is not None or target.password is not None:
            raise BadInput.at("url", "must be without credentials; messages are signed, and their receiver checks that")


def check_on(definition: Definition) -> None:
    """Raises `Conflict` where nothing would be sent."""
    if _decode(definition.body).off is not None:
        raise Conflict(f"webhook {definition.name!r} is switched off; enable it first")


def _wants(webhook_id: str, webhook: Webhook, event: Event) -> bool:
    if event.kind == TEST:
        return event.subject == webhook_id
    if not webhook.listens(event.kind):
        return False
    if webhook.match == _everything:
        return True
    if event.lane is None:
        return webhook.match.takes(schedule_id=event.subject if event.kind.startswith("schedule.") else None)
    job = None if event.record is None else event.record.job
    return webhook.match.takes(
        queue=event.lane.queue,
        job_type=event.lane.job_type,
        schedule_id=None if job is None else job.schedule_id,
        tags=() if job is None else job.tags,
    )


def _number(webhook_id: str) -> int:
    """Whom its secrets are sealed for."""
    return parse(WEBHOOK, webhook_id) or 0


def _words(words: Sequence[str]) -> tuple[str, ...]:
    found: dict[str, None] = {}
    for place, text in enumerate(words):
        word = read_word(text)
        if word is None:
            known = [f"{family}.{each}" for family, kinds in KINDS.items() for each in kinds]
            raise BadInput.at(f"events[{place}]", f"{text!r} is no event; use {', '.join(known)}, job.* or *")
        found[word] = None
    return tuple(found)


def _match(body: WebhookMatch) -> Match:
    return Match(queue=body.queue, job_type=body.job_type, schedule_id=body.schedule_id, tag=body.tag)


def _give_up_after(value: float | str) -> Micros:
    length = parse_duration(value, "give_up_after")
    if not SHORTEST_GIVE_UP <= length <= LONGEST_GIVE_UP:
        raise BadInput.at("give_up_after", "must be from 1 minute to 30 days")
    return length


def _text(webhook: Webhook) -> str:
    return encode(webhook).decode()


def _show(definition: Definition) -> WebhookInfo:
    webhook = _decode(definition.body)
    match = webhook.match
    return WebhookInfo(
        webhook_id=definition.name,
        url=webhook.url,
        events=list(webhook.events),
        match=WebhookMatch(queue=match.queue, job_type=match.job_type, schedule_id=match.schedule_id, tag=match.tag),
        give_up_after=show_duration(webhook.give_up_after),
        enabled=webhook.off is None,
        off_reason=webhook.off,
        failing_since=None if webhook.failing_since is None else to_time(webhook.failing_since),
        created_time=to_time(definition.created),
        created_by=webhook.created_by,
        version=definition.version,
    )


def _with_secret(definition: Definition, secret: str) -> NewWebhook:
    return NewWebhook(**msgspec.structs.asdict(_show(definition)), secret=secret)
