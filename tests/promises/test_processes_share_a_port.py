"""`foliot serve --processes`: several nodes behind one port, watched by one process."""

import asyncio
import socket

import psutil
import pytest

from foliot.sdk.client import AsyncClient
from foliot.sdk.transport import HttpTransport
from foliot.wire import SubmitBody
from tests.processes import KEY, READY, Process, Programs, eventually

QUICK = {"FOLIOT_LEASE_SECONDS": "2", "FOLIOT_HEARTBEAT_SECONDS": "0.5"}


@pytest.mark.timeout(40)
async def test_a_killed_process_is_replaced_and_a_signal_ends_all_of_them(
    programs: Programs, database_url: str
) -> None:
    node, url = programs.serve("node", "--processes", "2", "--database", database_url, **QUICK)
    async with AsyncClient(url, KEY) as client:
        for victim in [None, *await _registered(client, node)]:  # one of them has the built-in worker
            if victim is not None:
                victim.kill()
                victim.wait()
            await _registered(client, node)
            await _both_answer(url)
            job_ids = await client.submit_many([SubmitBody(job_type="echo") for _ in range(20)])
            for job_id in job_ids:
                assert (await client.wait(job_id, timeout=15)).status == "completed"
        children = await _registered(client, node)
    assert node.stop() == 0, node.said
    assert "Traceback" not in node.said
    assert not any(child.is_running() for child in children)


def test_a_signal_while_they_start_ends_all_of_them(programs: Programs, database_url: str) -> None:
    node = programs.start("node", "serve", "--port", "0", "--processes", "3", "--database", database_url)
    children: list[psutil.Process] = []

    def starting() -> bool:
        children[:] = node.children()
        return len(children) > 0

    eventually(starting, "the first process is there")
    assert node.stop() == 0
    eventually(lambda: not any(child.is_running() for child in children), "none is left")


def test_it_gives_up_on_a_database_that_is_not_there(programs: Programs, free_port: int) -> None:
    url = f"postgresql://nobody@127.0.0.1:{free_port}/nothing"
    node = programs.start("node", "serve", "--port", "0", "--processes", "2", "--database", url)
    eventually(lambda: node.process.poll() is not None, "it gives up")
    assert node.process.returncode == 1
    assert f"No PostgreSQL answers at 127.0.0.1:{free_port} (for database 'nothing')" in node.said
    assert "processes keep ending at once; giving up" in node.said
    assert not READY.search(node.said), "it was never ready"
    assert "Traceback" not in node.said


async def _registered(client: AsyncClient, node: Process) -> list[psutil.Process]:
    """The two processes, once both have started."""
    while True:
        children = node.children()
        living = {each.name for each in await client.nodes() if each.alive}
        if len(children) == 2 and {f"{socket.gethostname()}:{child.pid}" for child in children} <= living:
            return children
        await asyncio.sleep(0.02)


async def _both_answer(url: str) -> None:
    """Every process numbers the requests of its own under a name of its own."""
    names: set[str] = set()
    while len(names) < 2:
        names |= set(await asyncio.gather(*(_who_answers(url) for _ in range(20))))


async def _who_answers(url: str) -> str:
    transport = HttpTransport(url)
    try:
        _, headers, _ = await transport.call("GET", "/healthz", None, {})
        return headers["x-request-id"].rpartition("-")[0]
    finally:
        await transport.close()
