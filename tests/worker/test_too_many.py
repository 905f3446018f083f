"""A node, or a gateway before it, that is asked too much says when to come again; and keys that may not work."""

import re
from collections.abc import Mapping

import aiohttp
import pytest

from foliot.sdk.transport import Answer, HttpTransport
from foliot.worker import Worker
from foliot.worker.exchange import Backoff
from foliot.worker.node import LONGEST_WAIT_SECONDS, Unreachable, WorkerRefused, check
from tests.worker.conftest import running
from tests.worker.gateway import TOO_MANY, Gateway
from tests.worker.real_node import KEY, Jobs, NodeProcess
from tests.worker.sample_handlers import HANDLERS

WAITED = re.compile(r"was asked too much: HTTP status 429; trying again in 1\.[0-3] s")


def at(url: str, jobs: Jobs) -> Worker:
    return Worker(url, KEY, HANDLERS, queues=[jobs.queue], concurrency=2, stop_grace=0.5)


async def test_a_worker_that_is_turned_away_registers_when_it_was_told_to_come(
    shared_node: NodeProcess, jobs: Jobs, caplog: pytest.LogCaptureFixture
) -> None:
    async with Gateway(shared_node.url, retry_after="1") as gateway:
        gateway.turn_away("/workers", 1)
        async with running(at(gateway.url, jobs)):
            assert gateway.seen[:2] == [("/api/v1/workers", TOO_MANY), ("/api/v1/workers", 201)]
    assert len(WAITED.findall(caplog.text)) == 1  # where nobody says when, the second try comes at once and unsaid


async def test_a_worker_whose_exchange_is_turned_away_waits_and_loses_nothing(
    shared_node: NodeProcess, jobs: Jobs, caplog: pytest.LogCaptureFixture
) -> None:
    async with Gateway(shared_node.url, retry_after="1") as gateway:
        gateway.turn_away("/exchange", 1)
        async with running(at(gateway.url, jobs)):
            job, _ = await jobs.ended(await jobs.submit("add", {"a": 1, "b": 2}, retry={"max_attempts": 1}))
    assert job["status"] == "completed"
    assert len(WAITED.findall(caplog.text)) == 1


class TurnsAway:
    """The way to a node inside the process, which turns the first call away."""

    def __init__(self, url: str) -> None:
        self._through = HttpTransport(url)
        self._first = True

    async def call(self, method: str, path: str, body: bytes | None, headers: Mapping[str, str]) -> Answer:
        if self._first:
            self._first = False
            return TOO_MANY, {"retry-after": "1"}, b""
        return await self._through.call(method, path, body, headers)

    async def close(self) -> None:
        await self._through.close()


async def test_a_node_inside_the_process_is_heeded_as_well(
    shared_node: NodeProcess, jobs: Jobs, caplog: pytest.LogCaptureFixture
) -> None:
    way = TurnsAway(shared_node.url)
    async with running(Worker("", KEY, HANDLERS, queues=[jobs.queue], transport=way)):
        pass
    await way.close()
    assert len(WAITED.findall(caplog.text)) == 1


@pytest.mark.parametrize(
    ("said", "wait"), [("7", 7), ("0", 0), (None, 0), ("soon", 0), ("-1", 0), ("86400", LONGEST_WAIT_SECONDS)]
)
def test_a_wait_is_read_and_has_an_end(said: str | None, wait: float) -> None:
    with pytest.raises(Unreachable) as caught:
        check(TOO_MANY, b"", "the node", said)
    assert caught.value.wait == wait


def test_a_pause_is_never_shorter_than_what_was_asked_for() -> None:
    backoff = Backoff()
    assert all(3 <= backoff.next(3) <= 5 for _ in range(20))


async def test_a_key_that_may_not_work_ends_the_worker_with_the_roles_that_may(shared_node: NodeProcess) -> None:
    async with aiohttp.ClientSession(shared_node.url, headers={"Authorization": f"Bearer {KEY}"}) as session:
        body = {"name": "only-looks", "role": "viewer"}
        async with session.post("/api/v1/api-keys", json=body) as answer:
            key = (await answer.json())["key"]
    worker = Worker(shared_node.url, key, HANDLERS)
    await worker.start()
    with pytest.raises(WorkerRefused, match=r"the role viewer may not .* key of the role admin or worker"):
        await worker.wait()
