"""Channels: where people are told. An address holds secrets: it is written, sealed where keys are set, never shown."""

import hashlib

import msgspec

from foliot.alerts import BadChannel, Sender, Words, test_words
from foliot.clock import Clock
from foliot.domain.access import Caller
from foliot.domain.errors import BadInput, Conflict, NotFound, Stale, Unreadable
from foliot.service.definitions import Definitions
from foliot.service.sealing import Sealer
from foliot.store.base import Definition
from foliot.wire import ChannelBody, ChannelInfo, ChannelTested, ChannelUpdateBody, encode, to_time

MOST = 200  # in one namespace


class Kept(msgspec.Struct, frozen=True, kw_only=True):
    """A channel's body: what may be shown of its address, and the address, sealed where keys are set."""

    scheme: str
    url: str


_read = msgspec.json.Decoder(Kept).decode


class Channels:
    def __init__(self, clock: Clock, definitions: Definitions, sealer: Sealer, sender: Sender) -> None:
        self._clock = clock
        self._definitions = definitions
        self._sealer = sealer
        self._sender = sender

    async def create(self, body: ChannelBody, caller: Caller) -> ChannelInfo:
        caller.check_whole("a channel")
        if len(self._definitions.of("channel", caller.namespace)) >= MOST:
            raise Conflict(f"there are {MOST} channels already; change or delete one")
        saved = await self._definitions.put(await self._definition(body.name, body.url, caller), expected=0)
        if saved is None:
            raise Conflict(f"there is a channel {body.name!r} already; change it with PUT")
        return _show(saved)

    async def update(self, name: str, body: ChannelUpdateBody, *, if_match: int | None, caller: Caller) -> ChannelInfo:
        caller.check_whole("a channel")
        known = await self._find(name, caller)
        if if_match is not None and if_match != known.version:
            raise Stale(f"channel {name!r} is at version {known.version}, not {if_match}; read it again")
        saved = await self._definitions.put(await self._definition(name, body.url, caller), expected=known.version)
        if saved is None:
            raise Conflict(f"channel {name!r} was changed or deleted meanwhile; try again")
        return _show(saved)

    async def read(self, name: str, caller: Caller) -> ChannelInfo:
        caller.check_whole("a channel")
        return _show(await self._find(name, caller))

    async def list(self, caller: Caller) -> list[ChannelInfo]:
        caller.check_whole("the list of channels")
        await self._definitions.refresh()
        return [_show(each) for each in self._definitions.of("channel", caller.namespace)]

    async def delete(self, name: str, caller: Caller) -> None:
        """What rules and jobs would tell by it is not told any more."""
        caller.check_whole("a channel")
        if not await self._definitions.remove("channel", caller.namespace, name):
            raise NotFound(f"there is no channel {name!r}")

    async def test(self, name: str, caller: Caller) -> ChannelTested:
        """Send a test notice, and wait for what comes of it."""
        caller.check_whole("a channel")
        await self._find(name, caller)
        error = await self.send(caller.namespace, name, test_words(name, caller.namespace, caller.name))
        return ChannelTested(sent=error is None, error=error)

    @property
    def any(self) -> bool:
        return bool(self._definitions.of("channel"))

    async def send(self, namespace: str, name: str, words: Words) -> str | None:
        """None once it has gone out, else why not."""
        known = self._definitions.get("channel", namespace, name)
        if known is None:
            return "there is no such channel"
        try:
            url = self._sealer.open(_read(known.body).url, _owner(namespace, name), "channel")
        except Unreadable as error:
            return error.detail
        return await self._sender.send(url, words)

    def close(self) -> None:
        self._sender.close()

    async def _find(self, name: str, caller: Caller) -> Definition:
        """As it is now, whichever node changed it last."""
        await self._definitions.refresh()
        found = self._definitions.get("channel", caller.namespace, name)
        if found is None:
            raise NotFound(f"there is no channel {name!r}")
        return found

    async def _definition(self, name: str, url: str, caller: Caller) -> Definition:
        try:
            await self._sender.check(url)
        except BadChannel as error:
            raise BadInput.at("url", str(error)) from None
        kept = Kept(
            scheme=url.partition("://")[0].lower(),
            url=self._sealer.seal(url, _owner(caller.namespace, name), "channel"),
        )
        return Definition(
            kind="channel",
            namespace=caller.namespace,
            name=name,
            body=encode(kept).decode(),
            created=self._clock.now(),
        )


def _owner(namespace: str, name: str) -> int:
    """A number to seal for: a text given to another channel does not open."""
    return int.from_bytes(hashlib.blake2b(f"{namespace}/{name}".encode(), digest_size=8).digest())


def _show(definition: Definition) -> ChannelInfo:
    return ChannelInfo(
        name=definition.name,
        url=f"{_read(definition.body).scheme}://***",
        created_time=to_time(definition.created),
        version=definition.version,
    )
