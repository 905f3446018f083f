"""Who follows what happens misses nothing, and is told nothing twice, though the node that tells it is killed."""

import asyncio
from collections import defaultdict
from datetime import UTC, datetime

from foliot import AsyncClient
from foliot.sdk.event import Event
from foliot.sdk.event_stream import Lost, Opened, follow
from foliot.wire import SubmitBody
from tests.processes import KEY, Programs
from tests.promises.switchboard import Switchboard

LATER = datetime(2099, 1, 1, tzinfo=UTC)
CHANGES = ["scheduled", "paused", "scheduled", "cancelled"]


async def change(client: AsyncClient, count: int, *, queue: str) -> list[str]:
    """Jobs that are changed over and over, a few at a time: all that becomes of them."""

    async def one() -> str:
        job_id = await client.submit(SubmitBody(job_type="note", schedule_time=LATER, queue=queue))
        await client.pause(job_id)
        await client.resume(job_id)
        await client.cancel(job_id)
        return job_id

    found: list[str] = []
    for _ in range(count // 10):
        found += await asyncio.gather(*(one() for _ in range(10)))
    return found


async def test_a_subscriber_goes_on_at_the_other_node_with_nothing_missed_and_nothing_twice(
    programs: Programs, database_url: str
) -> None:
    doomed, first = programs.serve("node1", "--no-worker", "--database", database_url)
    _, second = programs.serve("node2", "--no-worker", "--database", database_url)
    told: dict[str, list[str]] = defaultdict(list)
    words: list[type] = []
    opened, some, last = asyncio.Event(), asyncio.Event(), asyncio.Event()

    async def listen(client: AsyncClient) -> None:
        async for each in follow(client, [("queue", "watched")]):
            if not isinstance(each, Event):
                words.append(type(each))
                opened.set()
                continue
            told[each.subject].append(each.status)
            if len(told) > 20:
                some.set()
            if each.subject == "the-last" and each.status == "cancelled":
                last.set()

    async with (
        Switchboard.before(first) as board,
        AsyncClient(board.url, KEY) as watching,
        AsyncClient(second, KEY) as client,
    ):
        listening = asyncio.create_task(listen(watching))
        await opened.wait()
        changing = asyncio.create_task(change(client, 150, queue="watched"))
        await some.wait()
        board.target = second
        doomed.kill()
        ids = await changing
        await client.submit(SubmitBody(job_type="note", job_id="the-last", schedule_time=LATER, queue="watched"))
        await client.cancel("the-last")
        await last.wait()
        listening.cancel()
    assert told.pop("the-last") == ["scheduled", "cancelled"]
    assert told == dict.fromkeys(ids, CHANGES)
    assert words == [Opened, Lost, Opened]


async def test_a_wait_is_told_by_the_other_node_when_its_own_is_killed(programs: Programs, database_url: str) -> None:
    doomed, first = programs.serve("node1", "--no-worker", "--database", database_url)
    _, second = programs.serve("node2", "--no-worker", "--database", database_url)
    async with (
        Switchboard.before(first) as board,
        AsyncClient(board.url, KEY) as waiting,
        AsyncClient(second, KEY) as client,
    ):
        ids = await client.submit_many(SubmitBody(job_type="note", schedule_time=LATER) for _ in range(10))
        wait = asyncio.create_task(waiting.wait_all(ids))
        await client.cancel(ids[0])
        await board.busy.wait()  # the stream, and what reads the jobs
        board.target = second
        doomed.kill()
        for job_id in ids[1:]:
            await client.cancel(job_id)
        assert [info.status for info in await wait] == ["cancelled"] * 10
