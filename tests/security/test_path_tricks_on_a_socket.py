"""The tricks as bytes on a real connection: what the server makes of them before the application sees them."""

import pytest

from foliot.api.routes import ROUTES, Route
from foliot.service.access import MOST_FAILURES
from tests.processes import KEY
from tests.security.requests import PROTECTED, address, title
from tests.security.served import ServedNode, served
from tests.security.tricks import tricks

__all__ = ["served"]

OPEN = {route.path for route in ROUTES if route.permission == "none"}
REFUSED = (400, 401, 405, 429, 431, 501, 505)
ONE_OF_EACH = list({(route.method, route.permission): route for route in PROTECTED}.values())


@pytest.mark.parametrize("route", ONE_OF_EACH, ids=title)
def test_no_trick_on_the_wire_gets_a_stranger_through(served: ServedNode, route: Route) -> None:
    path = address(route, {}).partition("?")[0]
    for trick in tricks(route.method, path):
        if trick.target in OPEN:
            continue
        status, text = served.raw(f"{trick.method} {trick.target} HTTP/1.1".encode(), trick.headers)
        assert status in REFUSED, (trick, text)


LINES = [
    b"GET http://node/api/v1/jobs HTTP/1.1",
    b"GET http://node/docs/../api/v1/jobs HTTP/1.1",
    b"GET http://127.0.0.1/api/v1/jobs HTTP/1.0",
    b"GET https://node/api/v1/jobs HTTP/1.1",
    b"GET http://docs@node/api/v1/jobs HTTP/1.1",
    b"GET //docs/api/v1/jobs HTTP/1.1",
    b"GET ///api/v1/jobs HTTP/1.1",
    b"GET /docs\x00/api/v1/jobs HTTP/1.1",
    b"GET /api/v1/jobs\x00 HTTP/1.1",
    b"GET /api/v1/jobs\xff HTTP/1.1",
    b"GET /api/v1/jobs\xc0\xaf HTTP/1.1",
    b"GET /api/v1/jobs\xe2\x80\xae HTTP/1.1",
    b"GET \\api\\v1\\jobs HTTP/1.1",
    b"GET /api/v1/jobs#/docs HTTP/1.1",
    b"GET /docs#/../api/v1/nothing/x HTTP/2.0",
    b"GET /api/v1/jobs HTTP/1.1 HTTP/1.1",
    b"GET  /api/v1/jobs HTTP/1.1",
    b"GET\t/api/v1/jobs\tHTTP/1.1",
    b"GET /api/v1/jobs HTTP/0.9",
    b"GET /api/v1/jobs",
    b"get /api/v1/jobs HTTP/1.1",
    b"GET * HTTP/1.1",
    b"OPTIONS * HTTP/1.1",
    b"OPTIONS /api/v1/jobs HTTP/1.1",
    b"TRACE /api/v1/jobs HTTP/1.1",
    b"TRACK /api/v1/jobs HTTP/1.1",
    b"CONNECT node:80 HTTP/1.1",
    b"HEAD /api/v1/jobs HTTP/1.1",
    b"PRI * HTTP/2.0",
    b"GET /api/v1/jobs?/docs HTTP/1.1",
    b"GET /%61pi/v1/jobs HTTP/1.1",
    b"GET /api%2fv1%2fjobs HTTP/1.1",
    b"POST /api/v1/jobs HTTP/1.1\r\nTransfer-Encoding: chunked",
    b"GET /docs HTTP/1.1\r\nX: y\r\n\r\nGET /api/v1/jobs HTTP/1.1",
]


@pytest.mark.parametrize("line", LINES, ids=ascii)
def test_no_request_line_gets_a_stranger_through(served: ServedNode, line: bytes) -> None:
    status, text = served.raw(line)
    *_, last = text.split(b"HTTP/1.1 ")
    assert status in (0, *REFUSED) or (line.startswith(b"GET /docs HTTP") and last[:3] in (b"401", b"400")), text
    assert b"[]" not in text


@pytest.mark.parametrize(
    "headers",
    [
        {"Authorization ": f"Bearer {KEY}"},
        {" Authorization": f"Bearer {KEY}"},
        {"X": f"y\nAuthorization: Bearer {KEY}"},
        {"Authorization": f"Bearer\x00{KEY}"},
        {"Authorization": f"Bearer x\r\nAuthorization: Bearer {KEY}"},
        {"Authorization": f"Bearer {KEY}\r\nAuthorization: Bearer x"},
        {"Authorization": f"Bearer x\r\n {KEY}"},
        {"Authori\u00feation": f"Bearer {KEY}"},
        {"Cookie": "foliot_session=a\r\nCookie: foliot_session=b"},
    ],
    ids=ascii,
)
def test_no_bent_header_is_taken_for_a_credential(served: ServedNode, headers: dict[str, str]) -> None:
    status, text = served.raw(b"GET /api/v1/jobs HTTP/1.1", headers)
    assert status in (400, 401, 429) or (status == 200 and "\nAuthorization" in headers.get("X", "")), text


def test_where_wrong_keys_come_from_is_the_connections_own_address(served: ServedNode) -> None:
    statuses = [
        served.raw(b"GET /api/v1/jobs HTTP/1.1", {"Authorization": "Bearer x", "X-Forwarded-For": f"203.0.113.{n}"})[0]
        for n in range(MOST_FAILURES + 1)
    ]
    assert statuses[-1] == 429
    assert served.call("GET", "/api/v1/jobs") == []
