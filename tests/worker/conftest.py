"""A node for the whole run; a queue and a worker for each test."""

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager

import aiohttp
import pytest

from foliot.worker import Worker
from tests.worker.real_node import KEY, Jobs, NodeProcess
from tests.worker.sample_handlers import HANDLERS


@pytest.fixture(scope="session")
def shared_node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[NodeProcess]:
    node = NodeProcess(tmp_path_factory.mktemp("node"))
    yield node
    node.stop()


@pytest.fixture(scope="session")
def brisk_node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[NodeProcess]:
    """One that takes a worker for dead soon."""
    settings = {"FOLIOT_LEASE_SECONDS": "2", "FOLIOT_HEARTBEAT_SECONDS": "0.5"}
    node = NodeProcess(tmp_path_factory.mktemp("brisk"), **settings)
    yield node
    node.stop()


@asynccontextmanager
async def running(worker: Worker) -> AsyncIterator[Worker]:
    await worker.start()
    try:
        await worker.started.wait()
        yield worker
    finally:
        await worker.stop(0)


@asynccontextmanager
async def client(node: NodeProcess, test: str) -> AsyncIterator[Jobs]:
    headers = {"Authorization": f"Bearer {KEY}"}
    timeout = aiohttp.ClientTimeout(total=None)
    async with aiohttp.ClientSession(node.url, headers=headers, timeout=timeout) as session:
        name = "".join(letter if letter.isalnum() else "-" for letter in test)
        yield Jobs(session, name[-64:])


@pytest.fixture
async def jobs(shared_node: NodeProcess, request: pytest.FixtureRequest) -> AsyncIterator[Jobs]:
    async with client(shared_node, request.node.name) as jobs:
        yield jobs


@pytest.fixture
async def brisk_jobs(brisk_node: NodeProcess, request: pytest.FixtureRequest) -> AsyncIterator[Jobs]:
    async with client(brisk_node, request.node.name) as jobs:
        yield jobs


@pytest.fixture
def worker(shared_node: NodeProcess, jobs: Jobs) -> Worker:
    """Not started: `async with running(worker)` belongs into the test itself, since pytest changes sys.stdout between a
    test and its fixtures, and a worker keeps what it finds at its start."""
    return Worker(shared_node.url, KEY, HANDLERS, queues=[jobs.queue], concurrency=8, stop_grace=0.5)
