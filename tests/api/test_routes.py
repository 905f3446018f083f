"""The table is whole, and everything that is told about it is true."""

import re
from collections import Counter
from html.parser import HTMLParser
from typing import Any, get_args, get_type_hints

import pytest

from foliot.api.call import Call
from foliot.api.headers import etag
from foliot.api.openapi import make_document
from foliot.api.routes import HEADERS, ROUTES, Route
from foliot.domain.access import Permission
from tests.api.client import AsgiClient

DOCUMENT = make_document(ROUTES)


def each_route(test: Any) -> Any:
    return pytest.mark.parametrize("route", ROUTES, ids=lambda route: f"{route.method} {route.path}")(test)


def references(document: Any) -> list[str]:
    match document:
        case dict():
            own = [document["$ref"]] if "$ref" in document else []
            return own + [found for value in document.values() for found in references(value)]
        case list():
            return [found for value in document for found in references(value)]
    return []


@each_route
def test_a_route_tells_what_it_does_and_who_may(route: Route) -> None:
    assert route.summary.endswith(".")
    assert route.permission in get_args(Permission)
    assert set(route.headers) <= set(HEADERS)


@each_route
def test_a_handler_takes_what_its_route_says(route: Route) -> None:
    hints = get_type_hints(route.handler)
    assert hints["call"] == Call[route.body, route.query]  # type: ignore[name-defined]


@each_route
def test_a_route_is_in_the_document(route: Route) -> None:
    operation = DOCUMENT["paths"][route.path][route.method.lower()]
    assert operation["summary"] == route.summary
    assert operation["x-permission"] == route.permission
    assert ("requestBody" in operation) is (route.body is not None)
    assert str(route.status) in operation["responses"]
    assert "default" in operation["responses"]
    named = [each["name"] for each in operation["parameters"] if each["in"] == "path"]
    assert named == re.findall(r"\{(\w+)\}", route.path)
    assert all(each["required"] for each in operation["parameters"] if each["in"] == "path")


def test_no_call_is_there_twice() -> None:
    assert max(Counter((route.method, route.path) for route in ROUTES).values()) == 1
    operations = [each["operationId"] for path in DOCUMENT["paths"].values() for each in path.values()]
    assert len(set(operations)) == len(ROUTES)


async def test_the_document_is_openapi_in_shape(stranger: AsgiClient) -> None:
    answer = await stranger.get("/openapi.json")
    assert answer.headers["content-type"] == "application/json"
    document = answer.json()
    assert document["openapi"].startswith("3.1.")
    assert {"title", "version"} <= set(document["info"])
    assert set(document) == {"openapi", "info", "servers", "tags", "security", "paths", "components"}
    for path, operations in document["paths"].items():
        assert path.startswith("/")
        for operation in operations.values():
            for parameter in operation["parameters"]:
                assert parameter["in"] in {"path", "query", "header"}
                assert "schema" in parameter
            assert all("description" in each or "$ref" in each for each in operation["responses"].values())
    schemes = document["components"]["securitySchemes"]
    assert document["security"] == [{name: []} for name in schemes]


def test_every_reference_of_the_document_leads_somewhere() -> None:
    found = references(DOCUMENT)
    assert found
    for reference in found:
        _, *steps = reference.split("/")
        target = DOCUMENT
        for step in steps:
            target = target[step]


def test_patterns_are_written_for_every_language() -> None:
    assert r"\Z" not in str(DOCUMENT)
    pattern = DOCUMENT["components"]["schemas"]["SubmitBody"]["properties"]["job_type"]["pattern"]
    assert pattern == r"^(?!\.{1,2}$)[A-Za-z0-9._:-]{1,128}$"


class Page(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.ids: set[str] = set()
        self.links: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        for name, value in attrs:
            if name == "id":
                self.ids.add(value or "")
            elif name in {"href", "src"}:
                self.links.add(value or "")


async def test_the_page_tells_every_route_and_needs_nobody_else(stranger: AsgiClient) -> None:
    answer = await stranger.get("/docs")
    assert answer.headers["content-type"] == "text/html; charset=utf-8"
    page = Page()
    page.feed(answer.body.decode())
    assert not page.tags & {"script", "link", "img", "iframe"}
    assert {link for link in page.links if not link.startswith("#")} == {"/openapi.json"}
    assert {link[1:] for link in page.links if link.startswith("#")} <= page.ids
    for path in DOCUMENT["paths"].values():
        assert {each["operationId"] for each in path.values()} <= page.ids


async def test_the_root_leads_to_the_page(stranger: AsgiClient) -> None:
    answer = await stranger.get("/")
    assert (answer.status, answer.headers["location"]) == (302, "/docs")


def test_an_etag_is_the_quoted_version() -> None:
    assert etag(3) == (b"etag", b'"3"')
