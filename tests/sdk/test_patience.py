"""What is done again after a failed call, and what is not."""

from collections.abc import Mapping

import pytest

from foliot.sdk.async_client import AsyncClient
from foliot.sdk.failures import Conflict, Unavailable, Unreachable
from foliot.sdk.transport import Answer, HttpTransport
from foliot.wire import SubmitBody
from tests.sdk.cutting_proxy import CuttingProxy
from tests.sdk.served_node import KEY, ServedNode


class Busy:
    """A gateway that turns the first calls away before it lets one through."""

    def __init__(self, url: str, times: int, status: int, retry_after: str) -> None:
        self._through = HttpTransport(url)
        self._times = times
        self._answer = status, {"retry-after": retry_after}, b""
        self.keys: list[str] = []

    async def call(self, method: str, path: str, body: bytes | None, headers: Mapping[str, str]) -> Answer:
        self.keys.append(headers.get("Idempotency-Key", ""))
        if self._times > 0:
            self._times -= 1
            return self._answer
        return await self._through.call(method, path, body, headers)

    async def close(self) -> None:
        await self._through.close()


@pytest.mark.parametrize("status", [429, 502, 503, 504])
async def test_a_busy_node_is_asked_again_with_the_same_key(node: ServedNode, status: int) -> None:
    busy = Busy(node.url, 2, status, "0")
    async with AsyncClient(node.url, KEY, transport=busy) as client:
        await client.submit(SubmitBody(job_type="note"))
    assert len(busy.keys) == 3
    assert len(set(busy.keys)) == 1


async def test_what_is_not_safe_to_repeat_is_asked_again_only_where_it_was_turned_away_unseen(node: ServedNode) -> None:
    async with AsyncClient(node.url, KEY) as direct:
        await direct.create_key("ci", "viewer")
    for status, tries in ((429, 2), (503, 1)):
        busy = Busy(node.url, 1, status, "0")
        async with AsyncClient(node.url, KEY, transport=busy) as client:
            with pytest.raises(Conflict if status == 429 else Unavailable):
                await client.create_key("ci", "viewer")
        assert len(busy.keys) == tries


async def test_a_wait_that_is_asked_for_and_longer_than_the_patience_ends_it(node: ServedNode) -> None:
    busy = Busy(node.url, 1, 503, "60")
    async with AsyncClient(node.url, KEY, transport=busy, patience=5) as client:
        with pytest.raises(Unavailable) as caught:
            await client.submit(SubmitBody(job_type="note"))
    assert caught.value.retry_after == 60
    assert len(busy.keys) == 1


async def test_a_retry_whose_answer_is_lost_is_not_done_twice(node: ServedNode, proxy: CuttingProxy) -> None:
    async with AsyncClient(node.url, KEY) as direct:
        job_id = await direct.submit(SubmitBody(job_type="note"))
        await direct.cancel(job_id)
    async with AsyncClient(proxy.url, KEY) as client:
        proxy.cuts = 1
        with pytest.raises(Unreachable) as caught:
            await client.retry(job_id)
    assert caught.value.sent
    assert node.count(f"POST /api/v1/jobs/{job_id}/retry") == 1


async def test_a_read_whose_answer_is_lost_is_done_again(node: ServedNode, proxy: CuttingProxy) -> None:
    async with AsyncClient(proxy.url, KEY) as client:
        job_id = await client.submit(SubmitBody(job_type="note"))
        proxy.cuts = 1
        assert (await client.get(job_id)).status == "queued"
    assert proxy.cut == 1
