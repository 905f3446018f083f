"""What a service can do to the worker that calls it: send a lot, send it packed, send it on, never end."""

import asyncio
import gzip
import tracemalloc
import zlib
from collections.abc import AsyncIterator

import pytest
from aiohttp import web

from foliot.handlers.http import BODY_KEPT
from foliot.outbound.body import CHUNK, MEMBERS, read_beginning
from foliot.outbound.client import REDIRECTS
from tests.handlers.places import served
from tests.worker.lone_runner import LoneRunner, assigned, error_of, result_of

MEBIBYTE = 2**20


def bomb(mebibytes: int, wbits: int) -> bytes:
    """Zeros, made fast: a block that refers to nothing before it may be repeated."""
    packer = zlib.compressobj(9, zlib.DEFLATED, wbits)
    first = packer.compress(bytes(MEBIBYTE)) + packer.flush(zlib.Z_FULL_FLUSH)
    block = packer.compress(bytes(MEBIBYTE)) + packer.flush(zlib.Z_FULL_FLUSH)
    return first + block * (mebibytes - 1)


async def chunks(data: bytes) -> AsyncIterator[bytes]:
    for start in range(0, len(data), CHUNK):
        yield data[start : start + CHUNK]


@pytest.mark.parametrize(("encoding", "wbits"), [("gzip", 31), ("deflate", 15), ("deflate", -15)])
async def test_a_bomb_does_not_fill_memory(lone: LoneRunner, encoding: str, wbits: int) -> None:
    body = bomb(1024, wbits)

    async def answer(request: web.Request) -> web.Response:
        return web.Response(body=body, headers={"Content-Encoding": encoding})

    async with served(answer) as port:
        tracemalloc.start()
        try:
            report, _ = await lone.run(assigned("http", {"url": f"http://127.0.0.1:{port}/"}))
            _, peak = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
    assert result_of(report)["body"] == "\ufffd" * BODY_KEPT
    assert peak < 16 * MEBIBYTE


@pytest.mark.parametrize(
    ("encoding", "packed"),
    [
        ("gzip", gzip.compress(b"said", mtime=0)),
        ("x-gzip", gzip.compress(b"sa", mtime=0) + gzip.compress(b"id", mtime=0) + b"\0\0"),
        ("deflate", zlib.compress(b"said")),
        ("deflate", zlib.compress(b"said", wbits=-15)),
        ("identity", b"said"),
        ("br", b"said"),
    ],
)
async def test_a_packed_answer_is_unpacked(lone: LoneRunner, encoding: str, packed: bytes) -> None:
    async def answer(request: web.Request) -> web.Response:
        return web.Response(body=packed, headers={"Content-Encoding": encoding})

    async with served(answer) as port:
        report, _ = await lone.run(assigned("http", {"url": f"http://127.0.0.1:{port}/"}))
    assert result_of(report)["body"] == "said"


async def test_a_packed_answer_that_is_broken_is_tried_again(lone: LoneRunner) -> None:
    async def answer(request: web.Request) -> web.Response:
        return web.Response(body=b"not packed", headers={"Content-Encoding": "gzip"})

    async with served(answer) as port:
        report, _ = await lone.run(assigned("http", {"url": f"http://127.0.0.1:{port}/"}))
    assert (report.status, error_of(report).code) == ("retriable_failure", "connection")


async def test_an_answer_that_unpacks_to_nothing_for_ever_has_an_end() -> None:
    packer = zlib.compressobj(9, zlib.DEFLATED, 31)
    beginning = packer.compress(b"x") + packer.flush(zlib.Z_FULL_FLUSH)
    nothing = packer.flush(zlib.Z_FULL_FLUSH) or b"\0\0\0\xff\xff"

    async def endless() -> AsyncIterator[bytes]:
        yield beginning
        while True:
            yield nothing * 1000

    assert await read_beginning(endless(), "gzip", 1000) == (b"x", False)


async def test_an_answer_of_very_many_gzips_is_refused() -> None:
    with pytest.raises(zlib.error):
        await read_beginning(chunks(gzip.compress(b"", mtime=0) * (MEMBERS + 1)), "gzip", BODY_KEPT)
    assert await read_beginning(chunks(gzip.compress(b"", mtime=0) * MEMBERS), "gzip", BODY_KEPT) == (b"", True)


@pytest.mark.parametrize(("size", "whole"), [(99, True), (100, True), (101, False)])
async def test_an_answer_is_cut_only_where_it_is_longer(size: int, whole: bool) -> None:
    body = b"x" * size
    assert await read_beginning(chunks(body), "", 100) == (body[:100], whole)
    assert await read_beginning(chunks(gzip.compress(body, mtime=0)), "gzip", 100) == (body[:100], whole)


@pytest.mark.parametrize(
    "head",
    [
        b"HTTP/1.1 200 OK\r\nX-Long: " + b"x" * 20_000 + b"\r\n\r\n",
        b"HTTP/1.1 200 OK\r\n" + b"".join(b"X-%d: x\r\n" % number for number in range(1000)) + b"\r\n",
        b"HTTP/1.1 200 " + b"x" * 20_000 + b"\r\n\r\n",
    ],
    ids=["one long header", "many headers", "a long status"],
)
async def test_headers_without_measure_are_refused(lone: LoneRunner, head: bytes) -> None:
    async def answer(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(head)
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    async with server:
        port = server.sockets[0].getsockname()[1]
        report, _ = await lone.run(assigned("http", {"url": f"http://127.0.0.1:{port}/"}))
    assert (report.status, error_of(report).code) == ("retriable_failure", "connection")


@pytest.mark.parametrize("letter", ["\0", "\x1b", '"', "\n", "\\", "ä"])
async def test_a_long_answer_of_any_letters_fits_into_a_result(lone: LoneRunner, letter: str) -> None:
    async def answer(request: web.Request) -> web.Response:
        return web.Response(body=letter.encode() * BODY_KEPT)

    async with served(answer) as port:
        report, _ = await lone.run(assigned("http", {"url": f"http://127.0.0.1:{port}/"}))
    assert report.status == "success"


@pytest.mark.parametrize("depth", [10, 100, 900, 5_000, BODY_KEPT // 2])
async def test_json_of_any_depth_is_kept(lone: LoneRunner, depth: int) -> None:
    async def answer(request: web.Request) -> web.Response:
        return web.Response(text="[" * depth + "]" * depth, content_type="application/json")

    async with served(answer) as port:
        report, _ = await lone.run(assigned("http", {"url": f"http://127.0.0.1:{port}/"}))
    assert report.status == "success"


async def test_redirects_have_an_end(lone: LoneRunner) -> None:
    seen = 0

    async def answer(request: web.Request) -> web.Response:
        nonlocal seen
        seen += 1
        return web.Response(status=302, headers={"Location": f"/{seen}"})

    async with served(answer) as port:
        report, _ = await lone.run(assigned("http", {"url": f"http://127.0.0.1:{port}/"}))
    assert (report.status, error_of(report).code) == ("fatal_failure", "redirects")
    assert seen == REDIRECTS + 1


async def test_the_time_is_for_all_redirects_together(lone: LoneRunner) -> None:
    gate = asyncio.Event()

    async def answer(request: web.Request) -> web.Response:
        if request.path == "/slow":
            await gate.wait()
        return web.Response(status=302, headers={"Location": "/slow"})

    async with served(answer) as port:
        report, _ = await lone.run(assigned("http", {"url": f"http://127.0.0.1:{port}/", "timeout": 0.2}))
        gate.set()
    assert (report.status, error_of(report).code) == ("retriable_failure", "timeout")


async def test_a_redirect_is_followed_and_another_origin_is_told_no_secret(lone: LoneRunner) -> None:
    seen: dict[str, dict[str, str]] = {}

    async def last(request: web.Request) -> web.Response:
        seen[request.path] = dict(request.headers)
        return web.Response(text="there")

    async with served(last) as there:

        async def first(request: web.Request) -> web.Response:
            seen[request.path] = dict(request.headers)
            where = "/second" if request.path == "/" else f"http://127.0.0.1:{there}/last"
            return web.Response(status=302, headers={"Location": where})

        async with served(first) as here:
            payload = {
                "url": f"http://ada:word@127.0.0.1:{here}/",
                "headers": {"X-Api-Key": "hidden", "Cookie": "s=1", "Accept": "text/plain"},
            }
            report, lines = await lone.run(assigned("http", payload))
    assert result_of(report)["body"] == "there"
    for path in ("/", "/second"):
        assert {"Authorization", "X-Api-Key", "Cookie"} <= seen[path].keys()
    assert not {"Authorization", "X-Api-Key", "Cookie"} & seen["/last"].keys()
    assert seen["/last"]["Accept"] == "text/plain"
    assert "word" not in "".join(lines)


@pytest.mark.parametrize(
    ("payload", "field"),
    [
        ({"timeout": 3601}, "payload.timeout"),
        ({"headers": {"Transfer-Encoding": "chunked"}}, "payload.headers"),
        ({"headers": {"content-length": "5"}}, "payload.headers"),
        ({"headers": {"Host": "other.test"}}, "payload.headers"),
        ({"headers": {"A b": "x"}}, "payload.headers"),
        ({"headers": {"A": "x\x7fy"}}, "payload.headers"),
        ({"url": "http://u:hidden@127.0.0.1/", "headers": {"authorization": "x"}}, "payload.url"),
        ({"url": "http://u:hidden@127.0.0.1:x/"}, "payload.url"),
        ({"url": f"http://u:hidden@{'a' * 300}.test/"}, "payload.url"),
    ],
)
async def test_a_payload_that_asks_too_much_is_fatal(lone: LoneRunner, payload: dict[str, object], field: str) -> None:
    report, _ = await lone.run(assigned("http", {"url": "http://127.0.0.1:1/", **payload}))
    assert (report.status, error_of(report).code) == ("fatal_failure", "bad_payload")
    assert field in error_of(report).message
    assert "hidden" not in error_of(report).message
