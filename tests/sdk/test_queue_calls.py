"""Queues and job types over the client, against a real node."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from foliot import AsyncClient, Client, Foliot
from foliot.sdk.failures import BadInput, NotFound, Stale
from foliot.wire import RateLimitBody, RateLimitInfo, SubmitBody
from tests.sdk.served_node import KEY, ServedNode


@pytest.fixture
def client(app: Foliot) -> Client:
    return app.client


def test_a_queue_comes_into_being_with_its_first_job(client: Client) -> None:
    with pytest.raises(NotFound, match="mail"):
        client.queue("mail")
    for _ in range(2):
        client.submit(SubmitBody(job_type="note", queue="mail"))
    found = client.queue("mail")
    assert (found.queue, found.policy, found.weight, found.paused) == ("mail", "priority", 1, False)
    assert (found.waiting, found.running, found.max_concurrency, found.rate_limit) == (2, 0, None, None)
    assert found.oldest_wait is not None


def test_queues_are_listed_by_name_page_by_page(client: Client) -> None:
    for name in ("c", "a", "b"):
        client.set_queue(name)
    assert [each.queue for each in client.queues()] == ["a", "b", "c"]
    assert [each.queue for each in client.queues(limit=2)] == ["a", "b"]
    page, cursor = client.queue_page(limit=2)
    assert [each.queue for each in client.queue_page(limit=2, cursor=cursor)[0]] == ["c"]
    assert [each.queue for each in client.all_queues(page_size=1)] == ["a", "b", "c"]
    assert [each.queue for each in client.all_queues(limit=1)] == [page[0].queue]


def test_rules_are_set_one_by_one_and_none_sets_one_back(client: Client) -> None:
    client.set_queue("mail", policy="fair", weight=2, weights={"tenant a/b=c": 3, "b": 0.5})
    found = client.set_queue("mail", max_concurrency=10, rate_limit=(100, "1s", 20), aging="10m")
    assert (found.policy, found.weight, found.weights) == ("fair", 2, {"tenant a/b=c": 3, "b": 0.5})
    assert (found.max_concurrency, found.aging) == (10, 600)
    assert found.rate_limit == RateLimitInfo(limit=100, per=1, burst=20)
    assert client.queue("mail") == found
    back = client.set_queue(
        "mail", policy=None, weight=None, weights=None, max_concurrency=None, rate_limit=None, aging=None
    )
    assert (back.policy, back.weight, back.weights, back.aging) == ("priority", 1, {}, None)
    assert (back.max_concurrency, back.rate_limit) == (None, None)


@pytest.mark.parametrize(
    "rate",
    [
        (5, timedelta(minutes=1)),
        (5, 60),
        {"limit": 5, "per": "1m"},
        {"limit": 5, "per": timedelta(minutes=1), "burst": 0},
        RateLimitBody(limit=5, per="60s"),
    ],
)
def test_a_rate_is_written_in_many_ways(client: Client, rate: Any) -> None:
    assert client.set_queue("mail", rate_limit=rate).rate_limit == RateLimitInfo(limit=5, per=60, burst=0)


@pytest.mark.parametrize("rate", [(), (5,), (5, "1s", 1, 1), {"limit": 5}, {"limit": 0, "per": 1}, {}, (5, "1s", -1)])
def test_a_rate_that_can_not_be_meant_is_refused_here(rate: Any) -> None:
    with Client("http://127.0.0.1:1", patience=0) as client, pytest.raises(ValueError, match="rate_limit"):
        client.set_queue("mail", rate_limit=rate)


def set_(**fields: Any) -> Callable[[Client], object]:
    return lambda client: client.set_queue("mail", **fields)


@pytest.mark.parametrize(
    ("call", "field"),
    [
        (set_(policy="lifo"), "policy"),
        (set_(weight=0), "weight"),
        (set_(weights={"a": -1}), "weights"),
        (set_(max_concurrency=0), "max_concurrency"),
        (set_(aging=timedelta(0)), "aging"),
        (set_(rate_limit=(5, "soon")), "rate_limit.per"),
        (lambda client: client.set_queue("a:b", weight=1), "queue"),
        (lambda client: client.pause_queue("a:b"), "queue"),
        (lambda client: client.pause_type("a@b"), "job_type"),
    ],
)
def test_a_rule_that_makes_no_sense_is_refused_by_its_name(
    client: Client, call: Callable[[Client], object], field: str
) -> None:
    with pytest.raises(BadInput, match=field):
        call(client)
    assert client.queues() == []


def test_a_change_of_an_older_version_is_refused(client: Client) -> None:
    version = client.set_queue("mail", weight=2).version
    assert client.set_queue("mail", weight=3, if_match=version).version == version + 1
    for change in (client.pause_queue, client.resume_queue, client.set_queue):
        with pytest.raises(Stale):
            change("mail", if_match=version)


def test_a_paused_queue_starts_nothing_until_it_is_resumed(app: Foliot, node: ServedNode) -> None:
    @app.job(queue="mail")
    def send(to: str) -> str:
        return to

    @app.job
    def other() -> str:
        return "ran"

    assert app.client.pause_queue("mail").paused
    node.run_worker(app.handlers)
    held = send.submit("ada")
    assert other.submit().result(timeout=10) == "ran"  # what came later has run: there was a worker for it
    assert held.status() == "queued"
    assert [reason.reason for reason in app.client.why(held.job_id).reasons] == ["queue_hold"]
    assert not app.client.resume_queue("mail").paused
    assert held.result(timeout=10) == "ada"


def test_a_paused_type_starts_nothing_until_it_is_resumed(app: Foliot, node: ServedNode) -> None:
    @app.job(name="mail:send.v2")
    def send(to: str) -> str:
        return to

    @app.job
    def other() -> str:
        return "ran"

    assert app.client.paused_types() == []
    assert app.client.pause_type("mail:send.v2").paused
    assert [each.job_type for each in app.client.paused_types()] == ["mail:send.v2"]
    node.run_worker(app.handlers)
    held = [send.options(queue=queue).submit("ada") for queue in ("default", "mail")]
    assert other.submit().result(timeout=10) == "ran"
    assert [job.status() for job in held] == ["queued", "queued"]
    assert not app.client.resume_type("mail:send.v2").paused
    assert [job.result(timeout=10) for job in held] == ["ada", "ada"]
    assert app.client.paused_types() == []


def test_a_fair_key_of_the_arguments_decides_whose_turn_it_is(app: Foliot, node: ServedNode) -> None:
    @app.job(queue="tenants", fair_key=lambda tenant: f"tenant-{tenant}")
    def charge(tenant: str, number: int) -> None: ...

    app.client.set_queue("tenants", policy="fair", max_concurrency=1)
    app.client.pause_queue("tenants")
    jobs = charge.submit_many([*(("a", number) for number in range(5)), ("b", 0), ("b", 1)])
    assert jobs[-1].info().fair_key == "tenant-b"
    node.run_worker(app.handlers)
    app.client.resume_queue("tenants")
    ended = [(job.wait(timeout=10).start_time, place) for place, job in enumerate(jobs)]
    assert [place for _, place in sorted(ended)] == [0, 5, 1, 6, 2, 3, 4]


async def test_an_async_client_has_the_same_calls(node: ServedNode) -> None:
    async with AsyncClient(node.url, KEY) as client:
        await client.set_queue("mail", policy="fifo")
        assert [each.policy async for each in client.all_queues()] == ["fifo"]
