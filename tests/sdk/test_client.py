"""Every call of the API as a method, against a real node over HTTP."""

import asyncio
from datetime import UTC, datetime

import pytest
from msgspec import Raw

from foliot import AsyncClient, Client, Foliot
from foliot.sdk.failures import BadInput, Conflict, NotFound, Stale, refusal
from foliot.sdk.loop_thread import LoopThread, Steps
from foliot.sdk.requester import _next_cursor
from foliot.sdk.server_events import Message, messages
from foliot.wire import CalendarBody, ConcurrencyBody, FilterBody, PreviewBody, SubmitBody, UpdateBody
from tests.sdk.served_node import KEY, ServedNode

LATER = datetime(2099, 1, 1, tzinfo=UTC)


def later(client: Client, **fields: object) -> str:
    return client.submit(SubmitBody(job_type="note", schedule_time=LATER, **fields))  # type: ignore[arg-type]


@pytest.fixture
def client(app: Foliot) -> Client:
    return app.client


def test_a_waiting_job_is_changed_held_and_let_go(client: Client) -> None:
    job_id = later(client)
    assert client.update(job_id, UpdateBody(priority="high", payload=Raw(b'{"a":1}'))).status == "updated"
    assert client.get(job_id).priority == "high"
    assert client.pause(job_id).status == "paused"
    assert client.get(job_id).status == "paused"
    client.resume(job_id)
    assert client.get(job_id).status == "scheduled"
    client.run(job_id)
    assert client.get(job_id).status == "queued"


def test_a_cancelled_job_is_run_again(client: Client) -> None:
    job_id = later(client)
    assert client.cancel(job_id).status == "cancelled"
    client.retry(job_id, payload=Raw(b'{"again":true}'))
    job = client.get(job_id)
    assert job.status in ("queued", "scheduled")
    assert job.payload == Raw(b'{"again":true}')


def test_a_change_of_an_older_version_is_refused(client: Client) -> None:
    job_id = later(client)
    version = client.get(job_id).version
    client.update(job_id, UpdateBody(priority=1), if_match=version)
    with pytest.raises(Stale):
        client.update(job_id, UpdateBody(priority=2), if_match=version)


def test_a_list_goes_through_all_pages_newest_first(client: Client, node: ServedNode) -> None:
    ids = [later(client, tags=["x"]) for _ in range(7)]
    later(client, tags=["y"])
    found = [job.job_id for job in client.list(FilterBody(tag="x", status=["scheduled", "queued"]), page_size=3)]
    assert found == ids[::-1]
    assert node.count("GET /api/v1/jobs") >= 3
    assert len(list(client.list(limit=2))) == 2


def test_many_are_changed_at_once(client: Client) -> None:
    for _ in range(3):
        later(client, tags=["x"])
    which = FilterBody(tag="x")
    assert client.cancel_many(which, dry_run=True).matched == 3
    assert client.pause_many(which).changed == 3
    assert client.resume_many(which).changed == 3
    assert client.cancel_many(which).changed == 3
    assert client.retry_many(which).changed == 3


def test_many_are_run_again_with_another_payload(client: Client) -> None:
    ids = [later(client, tags=["x"]) for _ in range(2)]
    client.cancel_many(FilterBody(tag="x"))
    assert client.retry_many(FilterBody(tag="x"), dry_run=True).changed == 0
    assert client.retry_many(FilterBody(tag="x"), payload={"again": True}).changed == 2
    assert {bytes(client.get(job_id).payload) for job_id in ids} == {b'{"again":true}'}  # type: ignore[arg-type]


def test_a_job_is_run_again_with_those_that_waited_for_it(client: Client) -> None:
    first = later(client)
    child = later(client, depends_on=[first])
    client.cancel(first)
    assert client.wait(child, timeout=10).reason == "parent_cancelled"
    client.retry(first, payload={"n": 2})
    assert client.get(child).status == "cancelled"
    client.cancel(first)
    client.retry(first, dependents=True)
    assert client.get(child).status == "blocked"


def test_a_graph_is_read(client: Client) -> None:
    first = later(client)
    child = later(client, depends_on=[{"job_id": first, "on": "any"}])
    found = client.graph(child)
    assert {(node.job_id, node.status) for node in found.nodes} == {(first, "scheduled"), (child, "blocked")}
    assert [(edge.parent, edge.child, edge.on) for edge in found.edges] == [(first, child, "any")]


def test_limits_are_read_and_set(client: Client) -> None:
    for name in ("a:b", "x"):
        for _ in range(2):
            client.submit(SubmitBody(job_type="note", concurrency=ConcurrencyBody(key=name, limit=1)))
    first = client.limits()[0]
    assert (first.key, first.limit, first.held, first.waiting) == ("a:b", 1, 1, 1)
    assert [limit.key for limit in client.all_limits(page_size=1)] == ["a:b", "x"]
    assert client.limit_page(limit=1)[1] is not None
    assert client.set_limit("a:b", 2).limit == 2
    assert client.limits(limit=1)[0].held == 2
    assert client.limit("x").waiting == 1
    with pytest.raises(BadInput, match="limit"):
        client.set_limit("x", 0)
    with pytest.raises(NotFound):
        client.limit("nobody")


def test_a_job_that_waits_under_the_same_unique_key_is_answered(client: Client) -> None:
    body = SubmitBody(job_type="note", schedule_time=LATER, unique_key="daily")
    first, again = client.hand_in(body), client.hand_in(body)
    assert (first.duplicate, again.duplicate, again.job_id) == (False, True, first.job_id)
    many = client.hand_in_many([body, SubmitBody(job_type="note", schedule_time=LATER)])
    assert [answer.duplicate for answer in many] == [True, False]


def test_a_schedule_is_previewed(client: Client) -> None:
    body = PreviewBody(
        cron="0 9 1 * *",
        timezone="Europe/Madrid",
        start_time=datetime(2027, 5, 1, tzinfo=UTC),
        calendar=CalendarBody(country="ES", closed=["2027-05-03"]),
        on_holiday="next",
        count=2,
    )
    first, second = client.preview(body)
    assert (first.time, first.local) == (datetime(2027, 5, 4, 7, tzinfo=UTC), "2027-05-04T09:00:00+02:00")
    assert "2027-05-01" in (first.note or "")
    assert (second.local, second.note) == ("2027-06-01T09:00:00+02:00", None)
    with pytest.raises(BadInput, match="timezone"):
        client.preview(PreviewBody(cron="@daily", timezone="Mars/Olympus"))


def test_what_is_not_there_is_told(client: Client) -> None:
    with pytest.raises(NotFound):
        client.get("nobody")
    with pytest.raises(NotFound):
        client.result(later(client))
    assert client.executions(later(client)) == []
    assert client.logs(later(client)) == []


def test_an_error_carries_the_problem_and_names_the_field(client: Client) -> None:
    with pytest.raises(BadInput) as caught:
        later(client, queue="no spaces")
    assert caught.value.http_status == 400
    assert caught.value.request_id
    assert [error.field for error in caught.value.errors] == ["queue"]


def test_an_ended_job_can_not_be_changed(client: Client) -> None:
    job_id = later(client)
    client.cancel(job_id)
    with pytest.raises(Conflict):
        client.pause(job_id)


def test_nodes_workers_and_figures_are_read(client: Client) -> None:
    assert [node.alive for node in client.nodes()] == [True]
    assert client.workers() == []
    later(client)
    assert client.stats().jobs["scheduled"] == 1
    with pytest.raises(NotFound):
        client.drain_worker("w_0000000000000001")


def test_a_blocking_client_has_the_names_of_the_other(client: Client) -> None:
    written = {name for name in dir(AsyncClient) if not name.startswith("_")} - {"transport", "headers"}
    assert written <= set(dir(client))
    assert client.get.__doc__ == AsyncClient.get.__doc__


async def test_an_async_client_works_alone(node: ServedNode) -> None:
    async with AsyncClient(node.url, KEY) as client:
        job_id = await client.submit(SubmitBody(job_type="note", schedule_time=LATER))
        assert (await client.get(job_id)).status == "scheduled"


def test_waiting_ends_with_its_timeout(client: Client) -> None:
    with pytest.raises(TimeoutError):
        client.wait(later(client), timeout=0.05)


def test_an_answer_of_something_else_says_so() -> None:
    error = refusal(404, {}, b"<html>nginx</html>")
    assert isinstance(error, NotFound)
    assert "is the address right?" in str(error)


def test_the_next_page_is_read_from_the_link() -> None:
    assert _next_cursor('</api/v1/jobs?limit=3&cursor=a%2Bb>; rel="next"') == "a+b"
    assert _next_cursor('</x?cursor=1>; rel="prev", </x?cursor=2>; rel="next"') == "2"
    assert _next_cursor("") is None


@pytest.mark.parametrize("size", [1, 2, 7, 1000])
async def test_events_are_read_whatever_way_they_are_cut(size: int) -> None:
    text = b': keep-alive\n\nid: 1\ndata: {"a":1}\n\nid: 2\r\ndata: x\r\ndata:y\r\n\r\nid: 3\n\n\ndata: unfinished\n'

    async def chunks():
        for start in range(0, len(text), size):
            yield text[start : start + size]

    told = [message async for message in messages(chunks())]
    assert told == [Message("1", b'{"a":1}'), Message("2", b"x\ny"), Message("3", None)]


def test_a_step_that_is_given_up_ends_before_the_iterator_is_closed() -> None:
    thread, ended = LoopThread(), list[str]()

    async def endless():
        try:
            yield 1
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0)
            ended.append("closed")

    steps = Steps(endless())
    assert thread.run(steps.next) == 1
    given_up = asyncio.run_coroutine_threadsafe(steps.next(), thread.loop)
    thread.run(lambda: asyncio.sleep(0))
    given_up.cancel()
    thread.run(steps.close)
    assert ended == ["closed"]
    thread.close()


def test_a_loop_thread_starts_again_after_its_end() -> None:
    thread = LoopThread()

    async def answer() -> int:
        return 42

    assert thread.run(answer) == 42
    thread.close()
    assert not thread.running
    assert thread.run(answer) == 42
    thread.close()
