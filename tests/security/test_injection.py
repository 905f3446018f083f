"""Texts that would run or break something go in through every field and parameter, and come out as what they are."""

import asyncio
import logging
from collections.abc import Iterator
from contextlib import suppress
from html.parser import HTMLParser
from typing import Any
from urllib.parse import quote

import msgspec
import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families

from foliot.api.routes import HEADERS, ROUTES, Route
from foliot.wire import BASE_PATH
from tests.api.client import AsgiClient, Response
from tests.api.worker import Worker
from tests.security.corpus import BREAKS_A_LINE, TEXTS
from tests.security.fields import places, with_text
from tests.security.requests import NAMED, PROTECTED, READS, WRITES, address, body, title
from tests.security.site import Site, expect

FIRST_OF_ITS_BODY = {route.body: route for route in reversed(WRITES) if route.body}
STREAM = f"{BASE_PATH}/events"
LISTS = [route for route in READS if "{" not in route.path and not route.metrics and route.path != STREAM]


def check(answer: Response, where: object) -> None:
    """JSON or nothing, no line of a head broken, nothing of ours gone wrong."""
    assert answer.status < 500, (where, answer.body)
    for name, value in answer.headers.items():
        assert BREAKS_A_LINE.search(value) is None, (where, name, value)
        assert "\n" not in value, (where, name, value)
        assert "\t" not in value, (where, name, value)
        assert value.isascii(), (where, name, value)
    assert answer.headers["x-content-type-options"] == "nosniff"
    if answer.headers.get("content-type", "").startswith("application/openmetrics-text"):
        assert list(text_string_to_metric_families(answer.body.decode()))
    elif answer.headers.get("content-type") == "text/event-stream":
        assert read_stream(answer.body), where
    elif answer.body:
        assert answer.headers["content-type"] in ("application/json", "application/problem+json"), where
        msgspec.json.decode(answer.body)
        assert not set(answer.body) & set(range(0x20)), where
    assert "forged" not in answer.headers.get("set-cookie", "")


def read_stream(body: bytes) -> list[Any]:
    """The lines of a stream; what is data must be JSON on one of them."""
    read = []
    for line in body.decode().strip("\n").split("\n"):
        name, _, value = line.partition(": ")
        assert (name in ("id", "event", "data") and not set(line.encode()) & set(range(0x20))) or not line, line
        read.append(msgspec.json.decode(value) if name == "data" else value)
    return read


async def all_events(client: AsgiClient) -> list[str]:
    """The texts of all that is told of what has happened."""
    request = client.start("GET", f"{STREAM}?after=start")
    seen: list[str] = []
    start = await request.messages.get()
    assert start["status"] == 200
    with suppress(TimeoutError):
        async with asyncio.timeout(5) as patience:
            while True:
                seen += _texts(read_stream((await request.messages.get())["body"]))
                patience.reschedule(asyncio.get_running_loop().time() + 0.05)
    request.hang_up()
    await request.task
    return seen


async def read_everything(client: AsgiClient, site: Site) -> list[str]:
    """All lists to their ends, and each object in them by every route; the texts that were seen."""
    seen = await all_events(client)
    ids: dict[str, set[str]] = {name: {value} for name, value in site.names.items()}
    for route in LISTS:
        answer = await client.get(address(route, {}))
        while True:
            check(answer, title(route))
            found = answer.json()
            seen += _texts(found)
            for each in found if isinstance(found, list) else ():
                for name in ids:
                    if isinstance(each, dict) and isinstance(each.get(name), str):
                        ids[name].add(each[name])
            if "link" not in answer.headers:
                break
            answer = await client.get(answer.headers["link"].split(">")[0][1:])
    for route in READS:
        if route not in LISTS and not route.metrics and route.path != STREAM:
            (name,) = [name for name in ids if f"{{{name}}}" in route.path]
            for value in sorted(ids[name])[:60]:
                answer = await client.get(address(route, {name: quote(value, safe="")}))
                check(answer, (title(route), value))
                seen += _texts(answer.json())
    return seen


def _texts(value: Any) -> Iterator[str]:
    match value:
        case str():
            yield value
        case dict():
            for key, each in value.items():
                yield key
                yield from _texts(each)
        case list():
            for each in value:
                yield from _texts(each)


@pytest.mark.parametrize("route", FIRST_OF_ITS_BODY.values(), ids=title)
async def test_texts_go_through_every_field_of_a_body_and_out_by_every_reader(furnished: Site, route: Route) -> None:
    assert route.body is not None
    furnished.names |= {"job_id": "the-later"}
    taken: set[str] = set()
    for number, place in enumerate(places(route.body)):
        for text in TEXTS if len(place) == 1 else TEXTS[number % 4 :: 4]:  # what is further inside stands there often
            sent = with_text(route.body, place, text)
            if isinstance(sent, dict) and "wait" in sent:
                sent["wait"] = 0
            answer = await furnished.root.request(route.method, address(route, furnished.names), sent)
            check(answer, (place, text))
            if answer.status < 300:
                taken.add(text)
    seen = await read_everything(furnished.root, furnished)
    if route.handler.__name__ == "submit_job":
        assert taken == set(TEXTS)
        whole = "\n".join(seen)
        assert [text for text in taken if text not in whole and "\\" not in text] == []


async def test_what_a_worker_says_comes_out_as_it_was_said(furnished: Site) -> None:
    client = await furnished.caller("admin")
    worker = await Worker.register(client, queues=["told"])
    for number, text in enumerate(TEXTS):
        expect(await client.post(f"{BASE_PATH}/jobs", {"job_id": f"t{number}", "job_type": "x", "queue": "told"}), 201)
        (job,) = await worker.take()
        await worker.log(job, text)
        error = {"type": text, "message": text, "code": text, "stack": text}
        await worker.report(job, "processing", progress={"note": text})
        await worker.report(job, "fatal_failure", error=error, result={text: text})
        for part in ("", "/executions", "/logs", "/why", "/graph", "/result"):
            check(await client.get(f"{BASE_PATH}/jobs/t{number}{part}"), (text, part))
        (line,) = expect(await client.get(f"{BASE_PATH}/jobs/t{number}/logs"), 200)
        assert line["log_message"] == text.replace("\0", "\ufffd")
        (attempt,) = expect(await client.get(f"{BASE_PATH}/jobs/t{number}/executions"), 200)
        assert attempt["error"]["message"] == text
        events = await client.get(f"{BASE_PATH}/jobs/t{number}/logs", headers={"accept": "text/event-stream"})
        assert [row[:3] for row in events.body.decode().split("\n") if row] == ["id:", "dat"]


@pytest.mark.parametrize("route", NAMED, ids=title)
async def test_texts_in_a_path_name_nothing(furnished: Site, route: Route) -> None:
    example = body(route)
    sent = () if example is None else (example,)
    for text in TEXTS:
        names = dict.fromkeys(furnished.names, quote(text, safe=""))
        answer = await furnished.root.request(route.method, address(route, names), *sent)
        check(answer, text)


@pytest.mark.parametrize("route", PROTECTED, ids=title)
async def test_texts_in_queries_and_headers_are_refused_or_mere_text(furnished: Site, route: Route) -> None:
    example = body(route)
    sent = () if example is None else (example,)
    target = address(route, furnished.names)
    query = route.query.__struct_encode_fields__ if route.query else ("anything",)
    for text in TEXTS:
        for name in query:
            joined = "&" if "?" in target else "?"
            check(
                await furnished.root.request(route.method, f"{target}{joined}{name}={quote(text)}", *sent), (name, text)
            )
        for name in (*HEADERS, "X-Request-Id", "Host", "Consistency", "User-Agent", "Content-Type"):
            check(await furnished.root.request(route.method, target, *sent, headers={name: text}), (name, text))


class Scripts(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in ("script", "iframe", "object", "embed", "base", "form", "img", "svg", "link"):
            self.found.append(tag)
        self.found += [name for name, value in attrs if name.startswith("on") or "javascript:" in (value or "")]


@pytest.mark.parametrize("path", sorted(route.path for route in ROUTES if route.permission == "none"))
async def test_pages_run_nothing_whatever_is_asked_of_them(furnished: Site, path: str) -> None:
    stranger = furnished.client(None)
    plain = await stranger.get(path)
    for text in TEXTS:
        answer = await stranger.get(f"{path}?code={quote(text)}&{quote(text)}", headers={"host": text, "referer": text})
        assert answer.status in (plain.status, 429), text
        assert text not in answer.headers.get("location", "")
        for value in answer.headers.values():
            assert BREAKS_A_LINE.search(value) is None
        if answer.headers.get("content-type", "").startswith("text/html"):
            assert answer.body == plain.body
            page = Scripts()
            page.feed(answer.body.decode())
            assert page.found == []
            policy = answer.headers["content-security-policy"]
            assert "default-src 'none'" in policy
            assert "script-src" not in policy


async def test_the_page_after_a_login_runs_nothing(furnished: Site) -> None:
    link = expect(await furnished.root.post(f"{BASE_PATH}/login-links", headers={"host": '"><script>'}), 201)["url"]
    answer = await furnished.client(None).get("/login?" + link.split("?")[1])
    page = Scripts()
    page.feed(answer.body.decode())
    assert page.found == []
    assert answer.headers["content-security-policy"].startswith("default-src 'none'")
    cookie = answer.headers["set-cookie"]
    assert all(word in cookie for word in ("HttpOnly", "SameSite=Strict", "Path=/"))
    assert link.split("code=")[1] not in answer.body.decode() + cookie


async def test_a_failure_of_ours_is_one_line_of_the_log_whatever_the_path(
    furnished: Site, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fail(*_: object, **__: object) -> None:
        raise RuntimeError("planted")

    monkeypatch.setattr(furnished.world.services.limits, "read", fail)
    with caplog.at_level(logging.DEBUG):
        for text in TEXTS:
            answer = await furnished.root.get(
                f"{BASE_PATH}/limits/{quote(text, safe='')}", headers={"x-request-id": text}
            )
            assert answer.status in (404, 500)
            assert b"planted" not in answer.body
    assert caplog.records
    for record in caplog.records:
        message = record.getMessage()
        assert BREAKS_A_LINE.search(message) is None, message
        assert "\n" not in message
