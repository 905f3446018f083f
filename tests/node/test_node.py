"""A node as a whole, and two of them on one PostgreSQL: what one learns the other acts on at once."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import TypeVar

import msgspec
import pytest

from foliot.clock import wall
from foliot.domain.access import ADMIN
from foliot.domain.errors import Unavailable
from foliot.main import open_node
from foliot.node import duties
from foliot.node.node import Node
from foliot.node.relay import Relay
from foliot.node.running import Running
from foliot.node.timekeeper import Timekeeper
from foliot.settings import Settings
from foliot.store.sqlite import SqliteStore
from foliot.wire import ExchangeAnswer, ExchangeBody, RegisterBody, SubmitBody
from tests.service.meddling import Meddling, failing

Duty = TypeVar("Duty", bound=Running)


def duty(node: Node, kind: type[Duty]) -> Duty:
    return next(one for one in node._duties if isinstance(one, kind))


async def submit(node: Node, **fields: object) -> str:
    body = msgspec.convert({"job_type": "echo", **fields}, SubmitBody)
    return (await node.services.submit.one(body, b"", ADMIN)).job_id


async def register(node: Node) -> str:
    return (await node.services.workers.register(RegisterBody(name="w", resources={"slot": 1}), ADMIN)).worker_id


def exchange(node: Node, worker: str, **fields: object) -> "asyncio.Task[ExchangeAnswer]":
    body = msgspec.convert(fields, ExchangeBody)
    return asyncio.create_task(node.services.workers.exchange(worker, body, ADMIN))


async def waiting(node: Node) -> None:
    while not node.services.dispatch.hungry:  # noqa: ASYNC110 - a call begins without a word
        await asyncio.sleep(0)


@pytest.fixture
async def nodes(database_url: str, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[tuple[Node, Node]]:
    """Two nodes that know of each other and look for nothing by themselves."""
    monkeypatch.setattr(duties, "LOOK_EVERY", 3600.0)
    first = await open_node(Settings(database=database_url))
    second = await open_node(Settings(database=database_url))
    while any(duty(node, Relay)._peers.alone for node in (first, second)):  # noqa: ASYNC110 - they learn without a word
        await asyncio.sleep(0.001)
    yield first, second
    await first.stop()
    await second.stop()


async def test_a_job_submitted_on_one_node_goes_to_a_worker_that_waits_on_another(nodes: tuple[Node, Node]) -> None:
    here, there = nodes
    worker = await register(there)
    for _ in range(2):  # the first job's lane is new to the other node
        call = exchange(there, worker, free={"slot": 1}, wait=10)
        await waiting(there)
        job_id = await submit(here)
        assert [job.job_id for job in (await call).jobs] == [job_id]


async def test_a_job_due_in_a_moment_goes_to_a_worker_that_waits_on_another_node(nodes: tuple[Node, Node]) -> None:
    here, there = nodes
    worker = await register(there)
    calls = exchange(there, worker, free={"slot": 8}, wait=10)
    await waiting(there)
    due: asyncio.Queue[int] = asyncio.Queue()
    duty(there, Timekeeper)._wake.on_due.append(lambda time, _key, _tell: due.put_nowait(time))
    job_id = await submit(here, delay=0.1)
    record = await here.services.query.find(job_id, ADMIN)
    assert await due.get() == record.row.due
    assert [job.job_id for job in (await calls).jobs] == [job_id]


async def test_a_cancel_on_one_node_reaches_a_worker_on_another(nodes: tuple[Node, Node]) -> None:
    here, there = nodes
    worker = await register(there)
    job_id = await submit(there)
    ((job,)) = (await exchange(there, worker, free={"slot": 1}, wait=10)).jobs
    call = exchange(there, worker, wait=10)
    await asyncio.sleep(0)
    await here.services.control.cancel(job_id, if_match=None, caller=ADMIN)
    assert [stop.token for stop in (await call).stop] == [job.token]


async def test_two_nodes_have_two_numbers_and_both_are_listed(nodes: tuple[Node, Node]) -> None:
    views = await nodes[0].services.query.nodes()
    assert len({view.node_id for view in views if view.alive}) == 2


async def test_a_node_that_stops_leaves_no_task_behind_and_gives_its_number_back(tmp_path: Path) -> None:
    settings = Settings(database=f"sqlite:///{tmp_path / 'foliot.db'}")
    before = asyncio.all_tasks()
    for _ in range(2):
        node = await open_node(settings)
        worker = await register(node)
        call = exchange(node, worker, free={"slot": 1}, wait=10)
        await waiting(node)
        await node.stop()
        assert (await call).jobs == []
        assert asyncio.all_tasks() == before
    store = SqliteStore(str(tmp_path / "foliot.db"))
    await store.open()
    (only,) = await store.nodes()
    await store.close()
    assert (only.number, only.until <= wall()) == (0, True)


async def test_a_node_whose_number_went_to_another_does_not_give_it_back(tmp_path: Path) -> None:
    node = await open_node(Settings(database=f"sqlite:///{tmp_path / 'foliot.db'}"))
    node.lost.set()
    await node.stop()
    store = SqliteStore(str(tmp_path / "foliot.db"))
    await store.open()
    (only,) = await store.nodes()
    await store.close()
    assert only.until > wall()


@pytest.mark.parametrize("step", ["acquire_node", "occupied_lanes"])
async def test_a_node_that_can_not_start_leaves_nothing_open(tmp_path: Path, step: str) -> None:
    path = str(tmp_path / "foliot.db")
    before = asyncio.all_tasks()
    store = Meddling(path)
    store.before(step, failing(Unavailable("no number is free")))
    with pytest.raises(Unavailable):
        await Node(store, Settings(), name="a").start()
    assert asyncio.all_tasks() == before
    again = SqliteStore(path)  # one that is still open would keep it locked
    await again.open()
    await again.close()


async def test_a_node_that_can_not_give_its_number_back_still_closes_its_store(tmp_path: Path) -> None:
    path = str(tmp_path / "foliot.db")
    store = Meddling(path)
    node = Node(store, Settings(), name="a")
    await node.start()
    store.before("release_node", failing(Unavailable("no answer")))
    with pytest.raises(Unavailable):
        await node.stop()
    again = SqliteStore(path)
    await again.open()
    await again.close()


async def test_jobs_that_waited_while_no_node_ran_are_handed_out_by_the_next(tmp_path: Path) -> None:
    settings = Settings(database=f"sqlite:///{tmp_path / 'foliot.db'}")
    node = await open_node(settings)
    job_id = await submit(node)
    await node.stop()
    node = await open_node(settings)
    worker = await register(node)
    assert [job.job_id for job in (await exchange(node, worker, free={"slot": 1})).jobs] == [job_id]
    await node.stop()
