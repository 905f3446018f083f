"""Group commit: what arrives while a write is under way forms the next batch."""

import asyncio
from collections.abc import Sequence

import pytest

from foliot.domain.errors import StoreFull, Unavailable, Unstorable
from foliot.service import group as group_module
from foliot.service.group import Group, persist


class Writer:
    """Notes each batch; writes one only when `go` is set."""

    def __init__(self) -> None:
        self.batches: list[list[int]] = []
        self.go = asyncio.Event()
        self.go.set()
        self.began = asyncio.Event()
        self.bad: set[int] = set()

    async def flush(self, items: Sequence[int]) -> Sequence[int]:
        self.began.set()
        await self.go.wait()
        if self.bad & set(items):
            raise Unstorable(f"can not keep {sorted(self.bad & set(items))}")
        self.batches.append(list(items))
        return [item * 10 for item in items]


def one(_item: int) -> int:
    return 1


async def test_what_arrives_during_a_write_is_written_together() -> None:
    writer = Writer()
    writer.go.clear()
    group = Group(writer.flush, size=one)
    first = asyncio.create_task(group.add(1))
    await writer.began.wait()
    rest = [asyncio.create_task(group.add(n)) for n in (2, 3, 4)]
    await asyncio.sleep(0)
    writer.go.set()
    assert await asyncio.gather(first, *rest) == [10, 20, 30, 40]
    assert writer.batches == [[1], [2, 3, 4]]


async def test_a_batch_is_bounded_but_one_large_item_still_goes() -> None:
    writer = Writer()
    writer.go.clear()
    group = Group(writer.flush, size=lambda item: item, most=5)
    tasks = [asyncio.create_task(group.add(n)) for n in (1, 9, 2, 3, 4)]
    await writer.began.wait()
    writer.go.set()
    await asyncio.gather(*tasks)
    assert writer.batches == [[1], [9], [2, 3], [4]]


async def test_one_bad_item_harms_no_neighbour() -> None:
    writer = Writer()
    writer.bad = {3}
    writer.go.clear()
    group = Group(writer.flush, size=one)
    tasks = [asyncio.create_task(group.add(n)) for n in range(6)]
    await writer.began.wait()
    writer.go.set()
    answers = await asyncio.gather(*tasks, return_exceptions=True)
    assert [answers[n] for n in (0, 1, 2, 4, 5)] == [0, 10, 20, 40, 50]
    assert isinstance(answers[3], Unstorable)


async def test_an_unexpected_error_reaches_everybody_in_the_batch_and_the_next_batch_goes_on() -> None:
    calls = 0

    async def flush(items: Sequence[int]) -> Sequence[int]:
        nonlocal calls
        calls += 1
        if calls == 1:
            raise RuntimeError("broken")
        return list(items)

    group = Group(flush, size=one)
    with pytest.raises(RuntimeError):
        await group.add(1)
    assert await group.add(2) == 2


async def test_too_much_waiting_is_refused_and_room_comes_back() -> None:
    writer = Writer()
    group = Group(writer.flush, size=lambda item: item, pending=5)
    with pytest.raises(Unavailable, match="try again"):
        await group.add(6)
    assert await group.add(5) == 50
    assert await group.add(5) == 50


async def test_drain_waits_for_what_is_under_way_and_a_caller_that_left_harms_nobody() -> None:
    writer = Writer()
    writer.go.clear()
    group = Group(writer.flush, size=one)
    left, stays = asyncio.create_task(group.add(1)), asyncio.create_task(group.add(2))
    await writer.began.wait()
    left.cancel()
    draining = asyncio.create_task(group.drain())
    await asyncio.sleep(0)
    assert not draining.done()
    writer.go.set()
    await draining
    assert await stays == 20
    failing = asyncio.create_task(group.add(3))
    writer.bad = {3}
    writer.go.clear()
    writer.began.clear()
    await writer.began.wait()
    failing.cancel()
    writer.go.set()
    await group.drain()
    assert writer.batches == [[1, 2]]


async def test_a_store_that_does_not_answer_is_asked_again_and_told_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(group_module, "FIRST_PAUSE", 0.001)
    asked: list[bool] = []

    async def call(again: bool) -> str:
        asked.append(again)
        if len(asked) < 4:
            raise Unavailable("no answer", fate_unknown=len(asked) == 2)
        return "kept"

    assert await persist(call) == "kept"
    assert asked == [False, False, True, True]


async def test_patience_ends_and_the_unknown_fate_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(group_module, "FIRST_PAUSE", 0.001)

    async def call(_again: bool) -> str:
        raise Unavailable("no answer", fate_unknown=True)

    with pytest.raises(Unavailable) as caught:
        await persist(call, patience=0.002)
    assert caught.value.fate_unknown


async def test_a_full_disk_is_told_at_once() -> None:
    calls = 0

    async def call(_again: bool) -> str:
        nonlocal calls
        calls += 1
        raise StoreFull("no room")

    with pytest.raises(StoreFull):
        await persist(call)
    assert calls == 1
