"""Waiting for jobs: told by the node, not asked for again and again."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from foliot import AsyncClient, Foliot
from foliot.sdk import waiting
from foliot.sdk.failures import NotFound
from foliot.sdk.transport import HttpTransport
from foliot.wire import SubmitBody
from tests.processes import eventually
from tests.sdk.cutting_proxy import CuttingProxy
from tests.sdk.served_node import KEY, ServedNode

LATER = datetime(2099, 1, 1, tzinfo=UTC)
EVENTS = "GET /api/v1/events"


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


async def later(client: AsyncClient, count: int) -> list[str]:
    return await client.submit_many(SubmitBody(job_type="note", schedule_time=LATER) for _ in range(count))


async def arrived(node: ServedNode, request: str, count: int) -> None:
    await asyncio.to_thread(eventually, lambda: node.count(request) >= count, f"{count} of {request}", 10)


async def test_a_wait_reads_the_job_when_it_begins_and_when_it_was_told(node: ServedNode, client: AsyncClient) -> None:
    (job_id,) = await later(client, 1)
    read = f"GET /api/v1/jobs/{job_id}"
    wait = asyncio.create_task(client.wait(job_id, timeout=10))
    await arrived(node, read, 1)
    assert node.count(EVENTS) == 1, "it reads only once it is subscribed"
    await asyncio.sleep(3 * waiting.FIRST_LOOK_SECONDS)
    assert node.count(read) == 1, "and then it does not look again"
    await client.cancel(job_id)
    assert (await wait).status == "cancelled"
    assert (node.count(read), node.count(EVENTS)) == (2, 1)


async def test_a_job_that_has_ended_is_waited_for_by_one_reading(node: ServedNode, client: AsyncClient) -> None:
    (job_id,) = await later(client, 1)
    await client.cancel(job_id)
    assert (await client.wait(job_id, timeout=10)).status == "cancelled"
    assert node.count(f"GET /api/v1/jobs/{job_id}") == 1


async def test_waits_that_begin_together_share_a_stream(node: ServedNode, client: AsyncClient) -> None:
    ids = await later(client, 250)
    waits = [asyncio.create_task(client.wait(job_id, timeout=15)) for job_id in ids]
    for job_id in ids:
        await arrived(node, f"GET /api/v1/jobs/{job_id}", 1)
    for job_id in ids:
        await client.cancel(job_id)
    assert [info.job_id for info in await asyncio.gather(*waits)] == ids
    assert node.count(EVENTS) == 3


async def test_however_many_wait_only_a_few_streams_are_open(node: ServedNode, client: AsyncClient) -> None:
    ids = await later(client, 20)
    waits = []
    for job_id in ids:  # each begins when the one before is under way, so that none can share a stream by name
        waits.append(asyncio.create_task(client.wait(job_id, timeout=15)))
        await arrived(node, f"GET /api/v1/jobs/{job_id}", 1)
    assert node.count(EVENTS) == waiting.MOST_WATCHES + 1
    for job_id in reversed(ids):
        await client.cancel(job_id)
    assert {info.status for info in await asyncio.gather(*waits)} == {"cancelled"}


async def test_all_of_many_are_waited_for_with_one_stream_at_a_time(node: ServedNode, client: AsyncClient) -> None:
    ids = await later(client, 120)
    wait = asyncio.create_task(client.wait_all(reversed(ids), timeout=15))
    await arrived(node, EVENTS, 1)
    for job_id in ids:
        await client.cancel(job_id)
    assert [info.job_id for info in await wait] == ids[::-1]
    assert node.count(EVENTS) == 2


async def test_one_that_is_not_there_ends_the_wait_for_all(client: AsyncClient) -> None:
    ids = await later(client, 2)
    with pytest.raises(NotFound, match="nobody"):
        await client.wait_all([*ids, "nobody"], timeout=10)


async def test_a_wait_ends_with_its_timeout_and_leaves_nothing_behind(client: AsyncClient) -> None:
    ids = await later(client, 2)
    with pytest.raises(TimeoutError):
        await client.wait_all(ids, timeout=0.1)
    assert asyncio.all_tasks() == {asyncio.current_task()}


async def test_a_job_may_be_waited_for_by_many_at_once(client: AsyncClient) -> None:
    (job_id,) = await later(client, 1)
    waits = [asyncio.create_task(client.wait(job_id, timeout=10)) for _ in range(5)]
    impatient = asyncio.create_task(client.wait(job_id, timeout=0.05))
    with pytest.raises(TimeoutError):
        await impatient
    await client.cancel(job_id)
    assert {info.status for info in await asyncio.gather(*waits)} == {"cancelled"}


async def test_an_end_while_the_connection_was_away_is_found(
    node: ServedNode, proxy: CuttingProxy, client: AsyncClient
) -> None:
    (job_id,) = await later(client, 1)
    async with AsyncClient(proxy.url, KEY) as over:
        wait = asyncio.create_task(over.wait(job_id, timeout=10))
        await arrived(node, f"GET /api/v1/jobs/{job_id}", 1)
        proxy.cuts = 1  # the news of the end does not come through
        await client.cancel(job_id)
        assert (await wait).status == "cancelled"
        assert proxy.cut == 1


async def test_without_a_record_the_job_is_looked_at_again_and_again(silent: ServedNode) -> None:
    async with AsyncClient(silent.url, KEY) as client:
        (job_id,) = await later(client, 1)
        wait = asyncio.create_task(client.wait(job_id, timeout=10))
        await arrived(silent, f"GET /api/v1/jobs/{job_id}", 3)
        await client.cancel(job_id)
        assert (await wait).status == "cancelled"


async def test_what_does_not_let_streams_through_makes_it_look_again_and_again(node: ServedNode) -> None:
    class Buffering(HttpTransport):
        """Holds back what comes until the answer has ended, as some proxies do."""

        async def stream(self, path: str, headers: object) -> AsyncIterator[bytes]:
            chunks = [chunk async for chunk in super().stream(path, headers)]  # type: ignore[arg-type]
            for chunk in chunks:
                yield chunk

    async with AsyncClient(node.url, KEY, transport=Buffering(node.url)) as client:
        (job_id,) = await later(client, 1)
        wait = asyncio.create_task(client.wait(job_id, timeout=10))
        await arrived(node, f"GET /api/v1/jobs/{job_id}", 3)
        await client.cancel(job_id)
        assert (await wait).status == "cancelled"


def test_an_apps_jobs_are_waited_for_from_any_event_loop(embedded: Foliot) -> None:
    @embedded.job
    async def echo(n: int) -> int:
        return n

    async def some() -> list[int]:
        jobs = [await echo.aio.submit(n) for n in range(3)]
        return [await job.result(timeout=10) for job in jobs]

    assert asyncio.run(some()) == asyncio.run(some()) == [0, 1, 2]
    assert echo.submit(7).result(10) == 7
