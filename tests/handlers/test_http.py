"""The `http` handler against a real server."""

import asyncio
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest
from aiohttp import web

from foliot.handlers.http import BODY_KEPT
from foliot.outbound import retry_after
from foliot.wire import to_micros
from tests.worker.lone_runner import LoneRunner, assigned, error_of, result_of

GATE = web.AppKey("gate", asyncio.Event)
NOW = datetime(2027, 5, 1, 12, tzinfo=UTC)


async def answer(request: web.Request) -> web.StreamResponse:
    query = request.query
    if "hang" in query:
        await request.app[GATE].wait()
    if "big" in query:
        return web.Response(text="x" * (BODY_KEPT * 3))
    if "mirror" in query:
        seen = {name: request.headers.get(name) for name in ("X-Mine", "Content-Type", "Idempotency-Key")}
        return web.json_response({"method": request.method, "body": await request.text(), "headers": seen})
    headers = {"Retry-After": query["after"]} if "after" in query else {}
    return web.Response(status=int(query.get("status", "200")), text="said", headers=headers)


@pytest.fixture
async def url() -> AsyncIterator[str]:
    app = web.Application()
    app[GATE] = asyncio.Event()
    app.router.add_route("*", "/", answer)
    runner = web.AppRunner(app, shutdown_timeout=0)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    yield f"http://127.0.0.1:{runner.addresses[0][1]}/"
    app[GATE].set()
    await runner.cleanup()


async def test_an_answer_is_the_result(lone: LoneRunner, url: str) -> None:
    report, lines = await lone.run(assigned("http", {"url": url}))
    assert report.status == "success"
    result = result_of(report)
    assert (result["status"], result["body"]) == (200, "said")
    assert result["headers"]["content-type"].startswith("text/plain")
    assert lines == [f"GET {url} answered 200"]


async def test_method_headers_and_json_body_are_sent(lone: LoneRunner, url: str) -> None:
    payload = {"url": f"{url}?mirror", "method": "POST", "headers": {"X-Mine": "yes"}, "body": {"a": [1, 2]}}
    report, _ = await lone.run(assigned("http", payload))
    assert result_of(report)["body"] == {
        "method": "POST",
        "body": '{"a":[1,2]}',
        "headers": {"X-Mine": "yes", "Content-Type": "application/json", "Idempotency-Key": "j1"},
    }


async def test_a_text_body_is_sent_as_it_is(lone: LoneRunner, url: str) -> None:
    report, _ = await lone.run(assigned("http", {"url": f"{url}?mirror", "method": "PUT", "body": "a=1\n"}))
    assert result_of(report)["body"]["body"] == "a=1\n"


@pytest.mark.parametrize("status", [408, 425, 429, 500, 502, 503])
async def test_what_may_pass_by_itself_is_tried_again(lone: LoneRunner, url: str, status: int) -> None:
    report, _ = await lone.run(assigned("http", {"url": f"{url}?status={status}"}))
    assert (report.status, error_of(report).code) == ("retriable_failure", f"http_{status}")
    assert report.retry_after is None


@pytest.mark.parametrize("status", [300, 400, 401, 403, 404, 409, 410, 422])
async def test_every_other_unexpected_answer_is_fatal(lone: LoneRunner, url: str, status: int) -> None:
    report, _ = await lone.run(assigned("http", {"url": f"{url}?status={status}"}))
    assert (report.status, error_of(report).code) == ("fatal_failure", f"http_{status}")
    assert "said" in error_of(report).message


async def test_expect_says_what_is_success(lone: LoneRunner, url: str) -> None:
    report, _ = await lone.run(assigned("http", {"url": f"{url}?status=404", "expect": [404]}))
    assert report.status == "success"
    report, _ = await lone.run(assigned("http", {"url": f"{url}?status=200", "expect": [404]}, number=2))
    assert report.status == "fatal_failure"


async def test_retry_after_is_honoured(lone: LoneRunner, url: str) -> None:
    report, _ = await lone.run(assigned("http", {"url": f"{url}?status=429&after=120"}))
    assert report.retry_after == 120


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        (None, None),
        ("7", 7.0),
        (format_datetime(NOW + timedelta(minutes=2), usegmt=True), 120.0),
        (format_datetime(NOW - timedelta(minutes=2), usegmt=True), 0.0),
        ("999999999999", 86400.0),
        ("soon", None),
        ("-5", None),
    ],
)
def test_retry_after_may_be_seconds_or_a_date(value: str | None, seconds: float | None) -> None:
    assert retry_after(value, to_micros(NOW)) == seconds


async def test_no_answer_in_time_is_tried_again(lone: LoneRunner, url: str) -> None:
    report, _ = await lone.run(assigned("http", {"url": f"{url}?hang", "timeout": 0.1}))
    assert (report.status, error_of(report).code) == ("retriable_failure", "timeout")


async def test_no_connection_is_tried_again(lone: LoneRunner, free_port: int) -> None:
    report, _ = await lone.run(assigned("http", {"url": f"http://127.0.0.1:{free_port}/"}))
    assert (report.status, error_of(report).code) == ("retriable_failure", "connection")


async def test_a_large_answer_is_cut(lone: LoneRunner, url: str) -> None:
    report, _ = await lone.run(assigned("http", {"url": f"{url}?big"}))
    assert len(result_of(report)["body"]) == BODY_KEPT


@pytest.mark.parametrize(
    ("payload", "field"),
    [
        ({}, "`url`"),
        ({"url": "ftp://x"}, "payload.url"),
        ({"url": "http://"}, "payload.url"),
        ({"url": "http://x", "method": "FETCH"}, "payload.method"),
        ({"url": "http://x", "expect": [99]}, "payload.expect"),
        ({"url": "http://x", "timeout": 0}, "payload.timeout"),
        ({"url": "http://127.0.0.1:1", "headers": {"X": "a\nb"}}, "payload.headers"),
    ],
)
async def test_a_bad_payload_is_fatal_and_names_the_field(lone: LoneRunner, payload: object, field: str) -> None:
    report, _ = await lone.run(assigned("http", payload))
    assert (report.status, error_of(report).code) == ("fatal_failure", "bad_payload")
    assert field in error_of(report).message


async def test_a_request_under_way_can_be_cancelled(lone: LoneRunner, url: str) -> None:
    lone.begin(assigned("http", {"url": f"{url}?hang"}, timeout=0.2))
    report, _ = await lone.ended()
    assert report.status == "timed_out"
