"""Who is let in."""

import re
from types import SimpleNamespace
from typing import cast

import pytest

from foliot.api import create_app
from foliot.api.routes import ROUTES, Route
from foliot.service import Services
from tests.api.client import KEY, AsgiClient

OPEN = {"/", "/docs", "/healthz", "/openapi.json", "/readyz"}
BY_LINK = {"/login", "/auth/login", "/auth/callback"}  # they have their own proof


def address(route: Route) -> str:
    return re.sub(r"\{\w+\}", "a", route.path)


@pytest.mark.parametrize(
    "route", [route for route in ROUTES if route.path not in BY_LINK], ids=lambda route: f"{route.method} {route.path}"
)
async def test_only_the_open_paths_answer_without_a_key(stranger: AsgiClient, route: Route) -> None:
    answer = await stranger.request(route.method, address(route))
    assert (answer.status != 401) is (route.path in OPEN)
    assert (route.permission == "none") is (route.path in OPEN)


@pytest.mark.parametrize(
    "target",
    ["/docs/", "//docs", "/docs/x", "/DOCS", "/healthz/", "/readyz/..", "/api/v1/", "/nothing", "/metrics", ""],
)
async def test_a_path_that_is_nearly_open_is_not_open(stranger: AsgiClient, target: str) -> None:
    answer = await stranger.get(target)
    assert answer.status == 401
    assert answer.headers["www-authenticate"] == "Bearer"
    assert answer.headers["content-type"] == "application/problem+json"
    assert answer.json()["type"] == "urn:foliot:problem:not-authenticated"


@pytest.mark.parametrize(
    "authorization",
    ["", KEY, "Bearer", "Bearer ", f"Bearer {KEY}x", f"Bearer {KEY[:-1]}", f"Basic {KEY}", "Bearer ÿ", f"Bearer{KEY}"],
)
async def test_a_wrong_key_is_refused(stranger: AsgiClient, authorization: str) -> None:
    answer = await stranger.get("/api/v1/jobs", headers={"authorization": authorization})
    assert answer.status == 401


@pytest.mark.parametrize("authorization", [f"Bearer {KEY}", f"bearer {KEY}", f"BEARER  {KEY} "])
async def test_the_admin_key_is_let_in(stranger: AsgiClient, authorization: str) -> None:
    answer = await stranger.get("/nothing", headers={"authorization": authorization})
    assert answer.status == 404


async def test_a_wrong_key_is_refused_before_the_body_is_read(stranger: AsgiClient) -> None:
    answer = await stranger.post("/api/v1/jobs", content=[b"{", b"}"], whole=False)
    assert answer.status == 401


def test_an_empty_admin_key_is_refused_at_the_start() -> None:
    with pytest.raises(ValueError, match="everybody"):
        create_app(cast(Services, SimpleNamespace(access=None)), admin_key="")
