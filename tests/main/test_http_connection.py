"""What a client may send, and how long it may take. Limits are short by setting; nothing sleeps, the close is waited
for."""

from collections.abc import Iterator

import pytest

from foliot.main.http_connection import AHEAD_LIMIT, IGNORED_LIMIT
from foliot.main.http_head import HEAD_LIMIT, HEADER_COUNT, TARGET_LIMIT
from tests.main.served import PATIENCE, Served

POST = "POST /echo HTTP/1.1\r\nHost: x\r\n"


@pytest.fixture(scope="module")
def served() -> Iterator[Served]:
    """With time for everybody: what it closes, it closes for another reason."""
    with Served() as served:
        yield served


@pytest.fixture(scope="module")
def hasty() -> Iterator[Served]:
    with Served(seconds=0.2) as served:
        yield served


# what is no single clear request


@pytest.mark.parametrize(
    "request_text",
    [
        POST + "Content-Length: 5\r\nContent-Length: 5\r\n\r\nhello",
        POST + "Content-Length: 5\r\nContent-Length: 6\r\n\r\nhello",
        POST + "Content-Length: 5, 5\r\n\r\nhello",
        POST + "Content-Length: +5\r\n\r\nhello",
        POST + "Content-Length: -5\r\n\r\nhello",
        POST + "Content-Length: 0x5\r\n\r\nhello",
        POST + "Content-Length: 99999999999999999999999\r\n\r\nhello",
        POST + "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        POST + "Transfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n",
        POST + "Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n",
        POST + "Transfer-Encoding: identity\r\n\r\n0\r\n\r\n",
        POST + "Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
        POST + "Transfer-Encoding: chunked, chunked\r\n\r\n0\r\n\r\n",
        POST + "Transfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n",
        POST + "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        POST + "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n0\r\n\r\n",
        POST + "Transfer-Encoding : chunked\r\n\r\n0\r\n\r\n",
        POST + "Transfer-Encoding: \x0bchunked\r\n\r\n0\r\n\r\n",
        POST + "Transfer-Encoding:\r\n chunked\r\n\r\n0\r\n\r\n",
        "POST /echo HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        POST + "X: a\r\n folded\r\n\r\n",
        "GET /echo HTTP/1.1\nHost: x\n\n",
        "GET /echo HTTP/1.1\r\nHost: x\nX: y\r\n\r\n",
        "GET /echo HTTP/1.1\r\nHost: x\rX: y\r\n\r\n",
        "GET /echo HTTP/1.1\r\nHost: x\r\nX: a\x00b\r\n\r\n",
        "GET /echo HTTP/1.1\r\nHost: x\r\n: b\r\n\r\n",
        "GET /echo HTTP/1.1\r\n Host: x\r\n\r\n",
        "GET /echo HTTP/1.1\r\nHost: x\r\nHost: y\r\n\r\n",
        "GET /echo HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer a\r\nAuthorization: Bearer b\r\n\r\n",
        POST + "Content-Type: application/json\r\nContent-Type: text/plain\r\nContent-Length: 0\r\n\r\n",
        "GET /echo HTTP/1.1\r\n\r\n",
        "CONNECT x:80 HTTP/1.1\r\nHost: x\r\n\r\n",
        "GET /\xff HTTP/1.1\r\nHost: x\r\n\r\n",
        "GET /echo HTTP/1.2\r\nHost: x\r\n\r\n",
        "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        POST + "Connection: Upgrade\r\nUpgrade: h2c\r\nContent-Length: 5\r\n\r\nhello",
        "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
    ],
)
def test_what_could_be_read_in_two_ways_is_refused_and_reaches_no_handler(served: Served, request_text: str) -> None:
    before = len(served.app.scopes)
    with served.dial() as client:
        client.send(request_text)
        answer = client.answer()
        assert (answer.status, answer.headers["connection"]) == (400, "close")
        assert answer.headers["content-type"] == "application/problem+json"
        assert answer.detail
        assert client.rest() == b""
    assert len(served.app.scopes) == before


@pytest.mark.parametrize("head", ["GET /\r\n\r\n", "GET / HTTP/0.9\r\n\r\n", "GET / HTTP/2.0\r\nHost: x\r\n\r\n"])
def test_other_versions_are_refused(served: Served, head: str) -> None:
    with served.dial() as client:
        client.send(head)
        assert client.answer().status == 505


@pytest.mark.parametrize(
    "bad",
    ["-1\r\n", "5\nhello\n0\n\n", "5\r\nhelloX\r\n0\r\n\r\n", "fffffffffffffffff\r\nx"],
)
def test_a_broken_chunk_ends_the_connection(served: Served, bad: str) -> None:
    with served.dial() as client:
        client.send(POST + f"Transfer-Encoding: chunked\r\n\r\n{bad}")
        assert client.answer().status == 400
        assert client.rest() == b""


def test_trailers_do_not_become_headers(served: Served) -> None:
    with served.dial() as client:
        client.send(POST + "Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\nAuthorization: Bearer x\r\n\r\n")
        assert client.answer().body == b'{"path":"/echo","bytes":5}'
        assert [name for name, _ in served.app.scopes[-1]["headers"]] == [b"host", b"transfer-encoding"]
        assert client.ask("/now").status == 200


def test_a_request_for_another_protocol_is_a_request_and_the_last_one(served: Served) -> None:
    with served.dial() as client:
        head = "Connection: Upgrade\r\nUpgrade: h2c\r\n"
        client.send(f"GET /now HTTP/1.1\r\nHost: x\r\n{head}\r\nGET /never HTTP/1.1\r\nHost: x\r\n\r\n")
        assert (client.answer().status, client.rest()) == (200, b"")
    assert "/never" not in [scope["path"] for scope in served.app.scopes]


# sizes


def test_a_path_of_the_largest_size_is_taken_and_a_longer_one_refused(served: Served) -> None:
    with served.dial() as client:
        assert client.ask("/now?" + "a" * (TARGET_LIMIT - 5)).status == 200
        assert client.ask("/now?" + "a" * (TARGET_LIMIT - 4)).status == 414


def test_so_many_headers_are_taken_and_one_more_refused(served: Served) -> None:
    with served.dial() as client:
        assert client.ask("/now", head="a: b\r\n" * (HEADER_COUNT - 1)).status == 200
        assert client.ask("/now", head="a: b\r\n" * HEADER_COUNT).status == 431


def test_headers_of_the_largest_size_are_taken_and_larger_ones_refused(served: Served) -> None:
    room = HEAD_LIMIT - len("Host: x\r\n") - len("a: \r\n")
    with served.dial() as client:
        assert client.ask("/now", head=f"a: {'b' * room}\r\n").status == 200
        assert client.ask("/now", head=f"a: {'b' * (room + 1)}\r\n").status == 431


@pytest.mark.parametrize("endless", [b"GET /now HTTP/1.1\r\na: ", b"GET /now HTTP/1.1\r\n", b"GET /"])
def test_a_head_without_end_is_refused(served: Served, endless: bytes) -> None:
    with served.dial() as client:
        client.send(endless)
        client.send(b"b" * (4 * HEAD_LIMIT))
        assert client.answer().status in (414, 431)
        assert client.rest() == b""


@pytest.mark.parametrize("endless", ["0\r\n" + "a: b\r\n" * 10_000, "0\r\na: " + "b" * 500_000, "1;" + "b" * 500_000])
def test_trailers_and_words_about_a_chunk_without_end_are_refused(served: Served, endless: str) -> None:
    with served.dial() as client:
        client.send(POST + "Transfer-Encoding: chunked\r\n\r\n" + endless)
        assert client.answer().status == 431


def test_a_body_that_nobody_reads_does_not_go_on_for_ever(served: Served) -> None:
    with served.dial() as client:
        client.send(POST.replace("/echo", "/now") + "Transfer-Encoding: chunked\r\n\r\n")
        assert client.answer().status == 200
        chunk = b"100000\r\n" + b"x" * 0x100000 + b"\r\n"
        with pytest.raises(OSError):  # noqa: PT011 (reset or broken pipe, as it comes)
            client.send(chunk * (IGNORED_LIMIT // len(chunk) + 20))


# many requests on one connection


def test_a_few_requests_may_be_sent_ahead_and_are_answered_in_order(served: Served) -> None:
    paths = [f"/ahead/{number}" for number in range(AHEAD_LIMIT)]
    with served.dial() as client:
        client.send("".join(f"GET {path} HTTP/1.1\r\nHost: x\r\n\r\n" for path in paths))
        assert [client.answer().body for _ in paths] == [f'{{"path":"{path}","bytes":0}}'.encode() for path in paths]
        assert client.ask("/now").status == 200


def test_too_many_requests_ahead_end_the_connection_after_the_first(served: Served) -> None:
    with served.dial() as client:
        client.send("GET /now HTTP/1.1\r\nHost: x\r\n\r\n" * (AHEAD_LIMIT + 2))
        assert client.answer().status == 200
        assert client.rest() == b""


def test_an_error_is_never_written_in_front_of_an_earlier_answer(served: Served) -> None:
    with served.dial() as client:
        client.send("GET /hold HTTP/1.1\r\nHost: x\r\n\r\nnonsense\r\n\r\n")
        assert served.app.held.acquire(timeout=PATIENCE)
        served.app.let_go()
        answer = client.answer()
        assert (answer.status, answer.body) == (200, b'{"path":"/hold","bytes":0}')
        assert client.rest() == b""


def test_a_handler_learns_that_its_client_has_gone_though_more_was_sent_ahead(served: Served) -> None:
    served.app.gone.clear()
    with served.dial() as client:
        client.send("GET /stream HTTP/1.1\r\nHost: x\r\n\r\nGET /now HTTP/1.1\r\nHost: x\r\n\r\n")
        assert client.answer().status == 200
    assert served.app.gone.wait(PATIENCE)


def test_a_client_that_asks_before_it_sends_its_body_is_answered_and_let_go(served: Served) -> None:
    """It may, or may not, send a body after an answer that did not wait for it: what follows could be either."""
    with served.dial() as client:
        client.send(POST.replace("/echo", "/now") + "Expect: 100-continue\r\nContent-Length: 5\r\n\r\n")
        answer = client.answer()
        assert (answer.status, answer.headers["connection"]) == (200, "close")
        assert client.rest() == b""
    with served.dial() as client:
        client.send(POST + "Expect: 100-continue\r\nContent-Length: 5\r\n\r\n")
        assert client.answer().status == 100
        client.send("hello")
        assert client.answer().body == b'{"path":"/echo","bytes":5}'


# time


@pytest.mark.parametrize("beginning", ["GET /now HTTP/1.1\r\nHost", "G", POST + "Content-Length: 5\r\n\r\nhell"])
def test_a_request_that_does_not_go_on_is_told_and_dropped(hasty: Served, beginning: str) -> None:
    with hasty.dial() as client:
        client.send(beginning)
        assert client.answer().status == 408
        assert client.rest() == b""


@pytest.mark.parametrize("beginning", ["", "\r\n"])
def test_who_never_asks_anything_is_dropped(hasty: Served, beginning: str) -> None:
    with hasty.dial() as client:
        client.send(beginning)
        assert client.rest() == b""


@pytest.mark.parametrize(
    ("beginning", "drip"),
    [("GET /now HTTP/1.1\r\n", "a: b\r\n"), (POST + "Transfer-Encoding: chunked\r\n\r\n", "1\r\nx\r\n")],
)
def test_who_sends_a_little_at_a_time_is_dropped(hasty: Served, beginning: str, drip: str) -> None:
    """Each drop comes at once after the last one has arrived: only the whole is slow."""
    with hasty.dial() as client:
        client.send(beginning)
        client.socket.settimeout(0.02)
        for _ in range(500):
            try:
                client.send(drip)
                assert b"408" in client.socket.recv(100)
                return
            except TimeoutError:
                continue
            except OSError:  # it was dropped between the two
                return
        pytest.fail("it goes on for ever")


def test_an_answer_does_not_excuse_a_body_that_does_not_come(hasty: Served) -> None:
    with hasty.dial() as client:
        client.send(POST.replace("/echo", "/now") + "Content-Length: 5\r\n\r\nhell")
        assert client.answer().status == 200
        assert client.rest() == b""


def test_a_handler_is_told_that_the_body_will_not_come(hasty: Served) -> None:
    hasty.app.gone.clear()
    with hasty.dial() as client:
        client.send(POST + "Content-Length: 5\r\n\r\nhell")
        assert client.answer().status == 408
        assert hasty.app.gone.wait(PATIENCE)


def test_a_client_that_does_not_read_is_dropped(hasty: Served) -> None:
    """Only the end of the connection lets the handler get to its end."""
    hasty.app.gone.clear()
    with hasty.dial() as client:
        client.send("GET /flood HTTP/1.1\r\nHost: x\r\n\r\n")
        assert hasty.app.gone.wait(PATIENCE)


def test_a_large_body_may_take_longer_than_the_limit_while_it_comes(hasty: Served) -> None:
    """Sixteen times the part that must come within the limit, with the answer held back longer than it."""
    with hasty.dial() as client:
        client.send(POST + f"Content-Length: {1 << 18}\r\n\r\n")
        for _ in range(16):
            client.send("x" * (1 << 14))
        assert client.answer().body == b'{"path":"/echo","bytes":262144}'


def test_the_time_that_a_handler_takes_is_not_the_clients(hasty: Served) -> None:
    with hasty.dial() as waiting, hasty.dial() as other:
        waiting.send("GET /hold HTTP/1.1\r\nHost: x\r\n\r\n")
        assert hasty.app.held.acquire(timeout=PATIENCE)
        assert other.rest() == b""  # it asked nothing: longer than the limit has passed
        hasty.app.let_go()
        assert waiting.answer().status == 200


# how many


def test_above_the_limit_connections_are_told_to_come_again() -> None:
    with Served(connections=2) as served, served.dial() as first, served.dial() as second:
        assert first.ask("/now").status == second.ask("/now").status == 200
        with served.dial() as third:
            answer = third.ask("/now")
            assert (answer.status, answer.headers["retry-after"]) == (503, "1")
            assert third.rest() == b""
        assert first.ask("/now").status == 200
        first.__exit__()
        while True:  # the place is free once the server has seen the end of the first
            with served.dial() as fourth:
                if fourth.ask("/now").status == 200:
                    break


def test_those_who_never_ask_leave_room_again() -> None:
    """As many as are taken at all, told or not; the next one waits until they are dropped."""
    with Served(connections=1, seconds=0.2) as served:
        silent = [served.dial() for _ in range(150)]
        while True:
            with served.dial() as client:
                if client.ask("/now").status == 200:
                    break
        for client in silent:
            client.__exit__()
