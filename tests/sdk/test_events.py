"""Following what happens, against a real node over HTTP, in one process, and under a virtual clock."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import aclosing
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from foliot import AsyncClient, Foliot
from foliot.sdk.event import Event
from foliot.sdk.event_stream import Lost, Opened, follow
from foliot.sdk.failures import BadInput, EventsGone, EventsOff, Forbidden, NotAuthenticated, Unreachable
from foliot.testing import virtual
from foliot.wire import SubmitBody
from tests.sdk.cutting_proxy import CuttingProxy
from tests.sdk.served_node import KEY, ServedNode

LATER = datetime(2099, 1, 1, tzinfo=UTC)


@pytest.fixture
async def client(node: ServedNode) -> AsyncIterator[AsyncClient]:
    async with AsyncClient(node.url, KEY) as client:
        yield client


@pytest.fixture
def silent(tmp_path: Path) -> Iterator[ServedNode]:
    """A node that keeps no record."""
    node = ServedNode(tmp_path / "silent", events=False)
    node.start()
    yield node
    node.stop()


async def later(client: AsyncClient, **fields: object) -> str:
    return await client.submit(SubmitBody(job_type="note", schedule_time=LATER, **fields))  # type: ignore[arg-type]


async def take(events: AsyncIterator[Event], count: int) -> list[Event]:
    async with asyncio.timeout(10):
        return [await anext(events) for _ in range(count)]


async def test_every_change_of_a_job_is_told_in_order_with_the_job_as_it_then_was(client: AsyncClient) -> None:
    job_id = await later(client, tags=["x"])
    await client.pause(job_id)
    await client.resume(job_id)
    await client.cancel(job_id)
    async with aclosing(client.events(job_id=job_id, since="start")) as events:  # type: ignore[type-var]
        told = await take(events, 4)
    assert [event.status for event in told] == ["scheduled", "paused", "scheduled", "cancelled"]
    assert [event.type for event in told][-1] == "foliot.job.cancelled"
    assert {event.subject for event in told} == {job_id}
    job = told[-1].job
    assert job is not None
    assert (job.job_id, job.status, job.tags) == (job_id, "cancelled", ["x"])
    assert told[0].time <= told[-1].time
    assert len({event.id for event in told}) == len({event.position for event in told}) == 4


async def test_from_now_on_means_what_happens_after_the_stream_is_open(client: AsyncClient) -> None:
    await later(client)
    async with aclosing(follow(client, [("queue", "mine")])) as told:
        assert await anext(told) == Opened(again=False)
        await later(client, queue="other")
        job_id = await later(client, queue="mine")
        event = await anext(told)
    assert isinstance(event, Event)
    assert (event.subject, event.status) == (job_id, "scheduled")


async def test_filters_may_be_several_and_must_all_hold(client: AsyncClient) -> None:
    ids = [await later(client, queue=queue) for queue in ("a", "b", "c", "a")]
    for job_id in ids:
        await client.cancel(job_id)
    events = client.events(queue=["a", "b"], status="cancelled", job_type="note", since="start")
    async with aclosing(events) as told:  # type: ignore[type-var]
        assert [event.subject for event in await take(told, 3)] == [ids[0], ids[1], ids[3]]


async def test_a_position_goes_on_behind_its_event(client: AsyncClient) -> None:
    ids = await client.submit_many(SubmitBody(job_type="note", schedule_time=LATER) for _ in range(5))
    async with aclosing(client.events(since="start")) as events:  # type: ignore[type-var]
        first = await take(events, 2)
    async with aclosing(client.events(since=first[-1].position)) as events:  # type: ignore[type-var]
        rest = await take(events, 3)
    assert [event.subject for event in first + rest] == ids


async def test_a_lost_connection_is_taken_up_with_nothing_missed_and_nothing_twice(
    node: ServedNode, proxy: CuttingProxy, client: AsyncClient
) -> None:
    async with AsyncClient(proxy.url, KEY) as over, aclosing(follow(over, [("queue", "cut")])) as told:
        assert await anext(told) == Opened(again=False)
        first = await later(client, queue="cut")
        seen = [await anext(told)]
        proxy.cuts = 2  # the next bytes on the stream do not come through, nor does the first answer after that
        ids = [await later(client, queue="cut") for _ in range(3)]
        words = []
        while len(seen) < 4:
            match each := await anext(told):
                case Event():
                    seen.append(each)
                case _:
                    words.append(type(each))
    assert [event.subject for event in seen if isinstance(event, Event)] == [first, *ids]
    assert words == [Lost, Opened]
    assert proxy.cut == 2


async def test_a_node_that_does_not_come_back_ends_it_when_patience_is_over(node: ServedNode) -> None:
    async with AsyncClient(node.url, KEY, patience=0.3) as client:
        told = follow(client, ())
        assert await anext(told) == Opened(again=False)
        await asyncio.to_thread(node.stop)
        assert isinstance(await anext(told), Lost)
        with pytest.raises(Unreachable):
            await anext(told)
    await asyncio.to_thread(node.start)  # for the fixture, which stops it


async def test_nobody_there_is_told_when_patience_is_over(free_port: int) -> None:
    async with AsyncClient(f"http://127.0.0.1:{free_port}", KEY, patience=0.1) as client:
        with pytest.raises(Unreachable, match="no node at"):
            await anext(client.events())


@pytest.mark.parametrize(
    ("since", "error"), [("0_1_", EventsGone), ("yesterday", BadInput)], ids=["a position too old", "no position"]
)
async def test_where_it_can_not_begin_it_says_so(client: AsyncClient, since: str, error: type[Exception]) -> None:
    with pytest.raises(error):
        await anext(client.events(since=since))


async def test_what_is_refused_is_raised_at_once(node: ServedNode, client: AsyncClient) -> None:
    with pytest.raises(BadInput, match="no status"):
        await anext(client.events(status="asleep"))
    with pytest.raises(BadInput, match="no job"):
        await anext(client.events(job_id="nobody"))
    with pytest.raises(ValueError, match="100 jobs"):
        await anext(client.events(job_id=[f"j{n}" for n in range(101)]))
    async with AsyncClient(node.url, "a-wrong-key") as stranger:
        with pytest.raises((NotAuthenticated, Forbidden)):
            await anext(stranger.events())


async def test_a_node_without_a_record_says_that_it_has_none(silent: ServedNode) -> None:
    async with AsyncClient(silent.url, KEY) as client:
        with pytest.raises(EventsOff):
            await anext(client.events())


async def test_a_transport_that_does_not_stream_says_so() -> None:
    class Plain:
        async def call(self, *_: object) -> object: ...

    client = AsyncClient("nowhere", transport=Plain())  # type: ignore[arg-type]
    with pytest.raises(EventsOff, match="does not stream"):
        await anext(client.events())


def test_a_program_without_an_event_loop_follows_too(app: Foliot) -> None:
    client = app.client
    ids = client.submit_many(SubmitBody(job_type="note", schedule_time=LATER) for _ in range(3))
    found = []
    for event in client.events(since="start"):
        found.append(event.subject)
        if len(found) == 3:
            break
    assert found == ids


def test_an_embedded_app_follows_its_own_jobs(embedded: Foliot) -> None:
    @embedded.job
    def double(n: int) -> int:
        return n * 2

    job = double.submit(21)
    assert job.result(10) == 42
    told = embedded.client.events(job_id=job.job_id, since="start")
    assert [next(told).status for _ in range(3)] == ["queued", "running", "completed"]
    told.close()  # type: ignore[attr-defined]


async def test_events_are_followed_under_a_virtual_clock(embedded: Foliot) -> None:
    start = datetime(2030, 1, 1, tzinfo=UTC)

    @embedded.job
    def remind() -> str:
        return "now"

    with virtual(embedded, start=start) as time:
        job = await remind.aio.submit(delay=3600)
        waiting = asyncio.create_task(job.wait(timeout=10))
        async with aclosing(embedded.client.aio.events(since="start")) as events:  # type: ignore[type-var]
            assert [event.status for event in await take(events, 1)] == ["scheduled"]
            await time.aio.advance(hours=2)
            told = await take(events, 3)
        assert [event.status for event in told] == ["queued", "running", "completed"]
        assert {event.time for event in told} == {start + timedelta(hours=1)}
        assert (await waiting).status == "completed"
