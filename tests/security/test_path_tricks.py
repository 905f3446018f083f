"""However a path is written, nobody gets through who would not with the path as it is."""

import pytest

from foliot.api.routes import ROUTES, Route
from foliot.domain.access import MATRIX
from foliot.wire import BASE_PATH
from tests.security.requests import PROTECTED, WRITES, address, body, title
from tests.security.site import Site
from tests.security.test_other_namespaces import picture
from tests.security.tricks import Trick, tricks

OPEN = {route.path for route in ROUTES if route.permission == "none"}


def all_tricks(route: Route, site: Site) -> list[Trick]:
    found = list(tricks(route.method, address(route, site.names).partition("?")[0]))
    assert len(found) >= 100
    return found


@pytest.mark.parametrize("route", PROTECTED, ids=title)
async def test_no_trick_gets_a_stranger_through(furnished: Site, route: Route) -> None:
    stranger = furnished.client(None)
    example = body(route)
    sent = () if example is None else (example,)
    admin = await furnished.caller("admin")
    before = await picture(admin, furnished)
    for trick in all_tricks(route, furnished):
        answer = await stranger.request(trick.method, trick.target, *sent, headers=trick.headers)
        if trick.target in OPEN:
            plain = await stranger.request(trick.method, trick.target)
            assert (answer.status, len(answer.body)) == (plain.status, len(plain.body)), trick
        else:
            assert answer.status == 401, (trick, answer.status, answer.body)
    assert await picture(admin, furnished) == before


@pytest.mark.parametrize("route", WRITES, ids=title)
async def test_no_trick_makes_a_role_do_what_it_may_not(furnished: Site, route: Route) -> None:
    example = body(route)
    sent = () if example is None else (example,)
    admin = await furnished.caller("admin")
    callers = [await furnished.caller(role) for role in MATRIX if route.permission not in MATRIX[role]]
    before = await picture(admin, furnished)
    for trick in all_tricks(route, furnished):
        for caller in callers:
            answer = await caller.request(trick.method, trick.target, *sent, headers=trick.headers)
            reads = trick.method in ("GET", "HEAD", "OPTIONS")
            assert answer.status >= 400 or reads, (trick, answer.status, answer.body)
            assert answer.status < 500, (trick, answer.body)
    after = await picture(admin, furnished)
    del before[f"{BASE_PATH}/audit"], after[f"{BASE_PATH}/audit"]
    assert after == before
