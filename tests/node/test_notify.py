"""Nodes as a whole: what goes wrong is told once, whichever of them is on watch and whichever sends."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path

import msgspec
import pytest

from foliot.domain.access import ADMIN
from foliot.main import open_node
from foliot.node import notify, watch
from foliot.node.node import Node
from foliot.settings import Settings
from foliot.wire import ChannelBody, ExchangeBody, IncidentInfo, RegisterBody, RuleBody
from tests.alerts.receiver import Receiver
from tests.node.test_node import submit
from tests.service.conftest import report


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    receiver = Receiver()
    yield receiver
    receiver.close()


@pytest.fixture
async def pair(
    database_url: str, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[tuple[Node, Node]]:
    """Two nodes that look all the time for notices to send."""
    monkeypatch.setattr(notify, "LOOK_EVERY", 0.01)
    monkeypatch.setattr(watch, "RENEW_EVERY", 100_000)
    settings = Settings(database=database_url, http_allow=receiver.allow)
    first, second = await open_node(settings), await open_node(settings)
    yield first, second
    await first.stop()
    await second.stop()


async def prepare(node: Node, receiver: Receiver, **rule: object) -> None:
    await node.services.channels.create(ChannelBody(name="ops", url=receiver.url), ADMIN)
    body = msgspec.convert({"name": "r", "channels": ["ops"], **rule}, RuleBody)
    await node.services.alert_rules.create(body, ADMIN)


async def fail(node: Node, count: int) -> None:
    for _ in range(count):
        await submit(node)
    worker = RegisterBody(name="w", resources={"slot": count})
    worker_id = (await node.services.workers.register(worker, ADMIN)).worker_id
    asked = msgspec.convert({"free": {"slot": count}}, ExchangeBody)
    jobs = (await node.services.workers.exchange(worker_id, asked, ADMIN)).jobs
    reports = ExchangeBody(reports=[report(job, "fatal_failure") for job in jobs])
    await node.services.workers.exchange(worker_id, reports, ADMIN)


async def until(node: Node, holds: Callable[[list[IncidentInfo]], bool]) -> list[IncidentInfo]:
    while True:
        found, _ = await node.services.alerts.page(limit=100, cursor=None, caller=ADMIN)
        if holds(found):
            return found
        await asyncio.sleep(0.005)


async def test_two_nodes_tell_of_an_incident_once(pair: tuple[Node, Node], receiver: Receiver) -> None:
    first, second = pair
    await prepare(first, receiver, on="failed")
    await fail(second, 5)
    (incident,) = await until(second, lambda found: [len(each.notices) for each in found] == [1])
    assert (incident.kind, incident.subject, incident.notices[0].sent) == ("failed", "default/echo", ["ops"])
    await until(first, lambda found: [each.count for each in found] == [5])
    for node in pair:
        while await node.services.notices.send_due():
            pass
    assert receiver.titles == ["Jobs of default/echo fail"]


async def test_a_late_start_is_told_while_the_job_still_waits(pair: tuple[Node, Node], receiver: Receiver) -> None:
    first, second = pair
    await prepare(first, receiver, on="late", after="100ms")
    job_id = await submit(second)
    (notice,) = await receiver.received(1)
    assert notice["title"] == "Jobs of default/echo are late"
    assert f"foliot why {job_id}" in notice["message"]
    assert (await second.services.query.job(job_id, ADMIN)).status == "queued"


async def test_what_is_open_goes_on_when_the_node_on_watch_is_gone(
    database_url: str, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watch, "RENEW_EVERY", 100_000)
    settings = Settings(database=database_url, http_allow=receiver.allow)
    first = await open_node(settings)
    await prepare(first, receiver, on="failed")
    await fail(first, 1)
    await until(first, lambda found: [len(each.notices) for each in found] == [1])
    second = await open_node(settings)
    await first.stop()
    try:
        await fail(second, 2)
        (incident,) = await until(second, lambda found: [each.count for each in found] == [3])
        assert len(incident.notices) == 1
        assert receiver.titles == ["Jobs of default/echo fail"]
    finally:
        await second.stop()


async def test_a_node_of_its_own_sends_what_it_has_seen(tmp_path: Path, receiver: Receiver) -> None:
    node = await open_node(Settings(data_dir=str(tmp_path), http_allow=receiver.allow))
    try:
        await prepare(node, receiver, on="no_worker", after="100ms")
        await submit(node)
        await receiver.received(1)
        assert receiver.titles == ["No worker takes jobs of default/echo"]
    finally:
        await node.stop()
