"""Hints between nodes: ours are told in few messages, theirs are passed on, and nobody hears himself."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from foliot.domain.ids import JobKey, WorkerKey
from foliot.node import relay as relay_module
from foliot.node.peers import Peers
from foliot.node.relay import Listener, Relay
from foliot.service.wake import Wake
from tests.service.conftest import World
from tests.service.meddling import Meddling


class Line(Meddling):
    """A store with a line to other nodes: what is said over it is kept, what is heard comes from the test."""

    def __init__(self) -> None:
        super().__init__(":memory:")
        self.said: asyncio.Queue[str] = asyncio.Queue()
        self.heard: asyncio.Queue[str | None] = asyncio.Queue()

    async def notify(self, hint: str) -> None:
        self.said.put_nowait(hint)

    async def hints(self) -> AsyncIterator[str]:
        while (hint := await self.heard.get()) is not None:
            yield hint


@pytest.fixture
async def line() -> AsyncIterator[Line]:
    line = Line()
    await line.open()
    yield line
    await line.close()


def two_nodes() -> Peers:
    peers = Peers(1)
    peers.update([1, 2])
    return peers


async def test_hints_that_come_together_are_told_in_one_message(line: Line, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(relay_module, "MOST_NAMES", 3)
    wake = Wake()
    relay = Relay(line, wake, two_nodes())
    wake.ready([5, 3])
    wake.ready([3, 8, 9])
    wake.due(700, JobKey(1))
    wake.due(600)
    wake.due(800)
    wake.stop(WorkerKey(4))
    relay.start()
    assert await line.said.get() == "1 r:3,5,8 d:600 s:4"
    for tell, message in (
        (lambda: wake.ready([1]), "1 r:1"), (lambda: wake.due(9), "1 d:9"), (lambda: wake.stop(WorkerKey(2)), "1 s:2"),
    ):  # fmt: skip
        tell()
        assert await line.said.get() == message
    await relay.stop()


async def test_nothing_is_told_when_alone_nor_what_another_node_told(line: Line) -> None:
    for peers, tell in ((Peers(1), True), (two_nodes(), False)):
        wake = Wake()
        relay = Relay(line, wake, peers)
        wake.ready([1], tell=tell)
        wake.due(1, tell=tell)
        wake.stop(WorkerKey(1), tell=tell)
        relay.start()
        assert await line.said.get() == "1 "  # that it lives, and nothing else
        assert not relay._news.is_set()
        await relay.stop()


async def test_what_others_tell_is_passed_on_and_not_told_again(line: Line) -> None:
    world = World(line)
    heard: asyncio.Queue[tuple[object, ...]] = asyncio.Queue()
    world.wake.on_ready.append(lambda lanes, tell: heard.put_nowait(("ready", *lanes, tell)))
    world.wake.on_due.append(lambda time, key, tell: heard.put_nowait(("due", time, key, tell)))
    world.wake.on_stop.append(lambda worker, tell: heard.put_nowait(("stop", worker, tell)))
    peers = Peers(1)
    listener = Listener(line, world.wake, world.services.dispatch, peers)
    listener.start()
    line.heard.put_nowait("1 r:99")  # its own
    line.heard.put_nowait("2 q:later,version plain r:1:2 r:3,5 d:600 s:4,6")
    assert [await heard.get() for _ in range(4)] == [
        ("ready", 3, 5, False), ("due", 600, None, False), ("stop", 4, False), ("stop", 6, False),
    ]  # fmt: skip
    assert heard.empty()
    assert not peers.alone  # who speaks lives
    await listener.stop()


async def test_after_a_gap_everything_is_looked_at(line: Line) -> None:
    world = World(line)
    due = asyncio.Event()
    world.wake.on_due.append(lambda time, _key, tell: due.set() if time == 0 and not tell else None)
    await world.submit()
    world.services.dispatch._flagged.clear()
    listener = Listener(line, world.wake, world.services.dispatch, Peers(1))
    listener.start()
    line.heard.put_nowait("")
    await due.wait()
    assert len(world.services.dispatch._flagged) == 1
    await listener.stop()


async def test_a_line_that_has_ended_is_not_asked_again_and_again(line: Line) -> None:
    world = World(line)
    listener = Listener(line, world.wake, world.services.dispatch, Peers(1))
    line.heard.put_nowait("2 r:7")
    line.heard.put_nowait(None)
    listener.start()
    line.heard.put_nowait("2 r:8")
    while line.heard.qsize() > 1:  # noqa: ASYNC110 - it hears without a word
        await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert list(world.services.dispatch._flagged) == [7]
    await listener.stop()
