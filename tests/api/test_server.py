"""Over a real server and a real socket."""

import asyncio
import io
from collections.abc import AsyncIterator

import aiohttp
import pytest
import uvicorn

from foliot.api import create_app
from foliot.node.node import Node
from foliot.wire import BODY_LIMIT
from tests.api.client import KEY

JOBS = "/api/v1/jobs"


class Server(uvicorn.Server):
    """Tells when it listens."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.listens = asyncio.Event()

    async def startup(self, sockets: object = None) -> None:
        await super().startup()
        self.listens.set()


@pytest.fixture
async def http(node: Node, free_port: int) -> AsyncIterator[aiohttp.ClientSession]:
    app = create_app(node.services, admin_key=KEY)
    server = Server(uvicorn.Config(app, host="127.0.0.1", port=free_port, log_level="error", ws="none"))
    serving = asyncio.create_task(server._serve())
    await server.listens.wait()
    base = f"http://127.0.0.1:{free_port}"
    async with aiohttp.ClientSession(base, headers={"authorization": f"Bearer {KEY}"}) as session:
        yield session
    server.should_exit = True
    await serving


async def test_a_job_goes_in_and_is_read_over_a_socket(http: aiohttp.ClientSession) -> None:
    async with http.post(JOBS, json={"job_type": "echo", "job_id": "a@b:c"}) as answer:
        assert answer.status == 201
        assert await answer.json() == {"status": "submitted", "job_id": "a@b:c"}
    async with http.get(f"{JOBS}/a@b:c") as answer:
        assert (answer.status, answer.headers["etag"]) == (200, '"1"')
    async with http.head(f"{JOBS}/a@b:c") as answer:
        assert (answer.status, await answer.read()) == (200, b"")
    async with http.get("/", allow_redirects=True, headers={"authorization": ""}) as answer:
        assert (answer.status, answer.content_type) == (200, "text/html")


async def test_the_connection_outlives_a_body_that_was_refused(http: aiohttp.ClientSession) -> None:
    async with http.post(JOBS, data=io.BytesIO(b" " * (BODY_LIMIT + 1))) as answer:
        assert answer.status == 413
    async with http.get("/healthz") as answer:
        assert answer.status == 200


async def test_a_log_is_followed_over_a_socket_until_the_client_leaves(http: aiohttp.ClientSession) -> None:
    async with http.post(JOBS, json={"job_type": "echo", "job_id": "a"}) as answer:
        assert answer.status == 201
    async with http.get(f"{JOBS}/a/logs", headers={"accept": "text/event-stream"}) as answer:
        assert (answer.status, answer.content_type) == (200, "text/event-stream")
