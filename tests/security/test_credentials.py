"""Every route of the table with every credential that should not do, and with every role."""

import itertools
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import pytest

from foliot.api import create_app
from foliot.api.routes import ROUTES, Route
from foliot.domain.access import MATRIX, ROLES, Caller
from foliot.domain.errors import NotAuthenticated
from foliot.service.access import Access
from foliot.wire import BASE_PATH
from tests.api.client import KEY, AsgiClient
from tests.security.requests import NAMED, PROTECTED, READS, WRITES, ask, title
from tests.security.site import Site, expect

OPEN = {"/", "/docs", "/healthz", "/openapi.json", "/readyz", "/login", "/auth/login", "/auth/callback"}
FOR_ROOT = {  # beyond any one namespace: the node's own admin key only, whatever the role
    f"POST {BASE_PATH}/namespaces",
    f"PUT {BASE_PATH}/namespaces/{{namespace}}",
    f"DELETE {BASE_PATH}/namespaces/{{namespace}}",
    f"GET {BASE_PATH}/audit/check",
}
SECRET = "A" * 43
ADDRESSES = itertools.count()

MALFORMED = [
    "",
    "Bearer",
    "Bearer ",
    "Bearer null",
    "Bearer undefined",
    "Bearer fk_",
    f"Bearer fk_{'a' * 16}",
    f"Bearer fk_{'a' * 16}_",
    f"Bearer fk_{'a' * 16}_{SECRET}",
    f"Bearer fk_{'a' * 16}_{SECRET}\u00ff",
    f"Bearer {KEY}x",
    f"Bearer {KEY[:-1]}",
    f"Bearer {KEY.upper()}",
    f"Bearer  x {KEY}",
    f"Bearer {KEY}, Bearer {KEY}",
    f'Bearer "{KEY}"',
    f"Basic {KEY}",
    f"Basic YWRtaW46{KEY}",
    f"Token {KEY}",
    f"Bearer:{KEY}",
    f"Bearer{KEY}",
    KEY,
    "Bearer eyJhbGciOiJub25lIn0.eyJzdWIiOiJhZG1pbiJ9.",
    "Bearer ../../admin.key",
    "Bearer ' OR 1=1 --",
    "Negotiate AAAA",
]


each_route: Any = pytest.mark.parametrize("route", PROTECTED, ids=title)


async def refused(site: Site, key: str | None, routes: tuple[Route, ...] = PROTECTED, **options: object) -> None:
    """All of them answer 401, each from another address, so that nobody is made to wait; and nothing else is told."""
    for route in routes:
        caller = site.client(key, source=f"address {next(ADDRESSES)}")
        answer = await ask(caller, route, site.names, **options)
        assert answer.status == 401, (title(route), answer.body)
        assert answer.headers["www-authenticate"] == "Bearer"
        assert answer.headers["content-type"] == "application/problem+json"
        assert set(answer.json()) <= {"type", "title", "status", "detail", "request_id", "errors"}


def test_only_these_paths_are_open_to_everybody() -> None:
    assert {route.path for route in ROUTES if route.permission == "none"} == OPEN
    assert all(route.method == "GET" for route in ROUTES if route.permission == "none")


async def test_nothing_answers_without_a_credential(furnished: Site) -> None:
    await refused(furnished, None)


@pytest.mark.parametrize("authorization", MALFORMED)
async def test_nothing_answers_a_credential_that_is_none(furnished: Site, authorization: str) -> None:
    await refused(furnished, None, headers={"authorization": authorization})


async def test_nothing_answers_a_key_with_a_wrong_secret(furnished: Site) -> None:
    key = (await furnished.make_key("admin"))["key"]
    await refused(furnished, f"{key[:-1]}{'A' if key[-1] != 'A' else 'B'}")
    await refused(furnished, f"{key[:20]}{SECRET}")
    other = (await furnished.make_key("admin"))["key"]
    await refused(furnished, key[:20] + other[20:])


async def test_nothing_answers_a_key_that_has_expired(furnished: Site) -> None:
    expires = datetime.fromtimestamp(furnished.clock.now() / 1e6 + 60, UTC).isoformat()
    key = (await furnished.make_key("admin", expires=expires))["key"]
    expect(await furnished.client(key).get(f"{BASE_PATH}/session"), 200)
    furnished.clock.pass_seconds(61)
    await refused(furnished, key)


async def test_nothing_answers_a_key_that_was_revoked(furnished: Site) -> None:
    made = await furnished.make_key("admin")
    expect(await furnished.client(made["key"]).get(f"{BASE_PATH}/session"), 200)
    expect(await furnished.root.request("DELETE", f"{BASE_PATH}/api-keys/{made['key_id']}"), 200)
    await refused(furnished, made["key"])


async def test_nothing_answers_a_secret_that_was_rotated_out_once_its_overlap_is_over(furnished: Site) -> None:
    made = await furnished.make_key("admin")
    path = f"{BASE_PATH}/api-keys/{made['key_id']}/rotate"
    renewed = expect(await furnished.root.post(path, {"overlap": "10m"}), 200)
    furnished.clock.pass_seconds(599)
    for key in (made["key"], renewed["key"]):
        expect(await furnished.client(key).get(f"{BASE_PATH}/session"), 200)
    furnished.clock.pass_seconds(2)
    expect(await furnished.client(renewed["key"]).get(f"{BASE_PATH}/session"), 200)
    await refused(furnished, made["key"])


async def test_a_rotation_without_overlap_ends_the_old_secret_at_once(furnished: Site) -> None:
    made = await furnished.make_key("admin")
    expect(await furnished.root.post(f"{BASE_PATH}/api-keys/{made['key_id']}/rotate", {"overlap": 0}), 200)
    await refused(furnished, made["key"])


async def test_two_rotations_in_a_row_leave_only_the_last_two_secrets(furnished: Site) -> None:
    made = await furnished.make_key("admin")
    for _ in range(2):
        expect(await furnished.root.post(f"{BASE_PATH}/api-keys/{made['key_id']}/rotate"), 200)
    await refused(furnished, made["key"])


async def test_a_browsers_reads_are_answered_and_its_changes_need_their_token(furnished: Site) -> None:
    headers, token = await furnished.browser("admin")
    browser = furnished.client(None)
    for route in READS:
        if title(route) not in FOR_ROOT:
            assert (await ask(browser, route, furnished.names, headers=headers)).status not in (401, 403), title(route)
    wrong = [{}, {"x-csrf-token": ""}, {"x-csrf-token": "x"}, {"x-csrf-token": token[:-1]}, {"x-csrf-token": token * 2}]
    for route, more in itertools.product(WRITES, wrong):
        answer = await ask(browser, route, furnished.names, headers=headers | more)
        assert answer.status == 403, (title(route), more, answer.body)
        assert "X-CSRF-Token" in answer.json()["detail"]
    expect(await browser.post(f"{BASE_PATH}/jobs/the-later/pause", headers=headers | {"x-csrf-token": token}), 200)


async def test_the_token_of_one_session_is_not_good_for_another(furnished: Site) -> None:
    headers, _ = await furnished.browser("admin")
    _, foreign = await furnished.browser("admin")
    answer = await furnished.client(None).post(
        f"{BASE_PATH}/jobs/the-later/pause", headers=headers | {"x-csrf-token": foreign}
    )
    assert answer.status == 403


async def test_nothing_answers_a_session_that_is_over_or_never_was(furnished: Site) -> None:
    headers, token = await furnished.browser("admin")
    browser = furnished.client(None)
    expect(await browser.post("/logout", headers=headers | {"x-csrf-token": token}), 204)
    await refused(furnished, None, headers=headers | {"x-csrf-token": token})
    await refused(furnished, None, headers={"cookie": f"foliot_session={SECRET}"})
    stale, token = await furnished.browser("admin")
    furnished.clock.pass_seconds(12 * 3600 + 1)
    await refused(furnished, None, headers=stale | {"x-csrf-token": token})


async def test_a_session_ends_with_the_key_it_came_from(furnished: Site) -> None:
    made = await furnished.make_key("admin")
    link = expect(await furnished.client(made["key"]).post(f"{BASE_PATH}/login-links"), 201)["url"]
    waiting = expect(await furnished.client(made["key"]).post(f"{BASE_PATH}/login-links"), 201)["url"]
    headers, token = await furnished.let_in(link)
    expect(await furnished.root.request("DELETE", f"{BASE_PATH}/api-keys/{made['key_id']}"), 200)
    await refused(furnished, None, headers=headers | {"x-csrf-token": token})
    assert (await furnished.client(None).get("/login?" + waiting.split("?")[1])).status == 401


async def test_a_login_link_is_good_once_and_only_for_a_while(furnished: Site) -> None:
    caller = await furnished.caller("viewer")
    used = expect(await caller.post(f"{BASE_PATH}/login-links"), 201)["url"].split("?")[1]
    late = expect(await caller.post(f"{BASE_PATH}/login-links"), 201)["url"].split("?")[1]
    stranger = furnished.client(None)
    assert (await stranger.get(f"/login?{used}")).status == 200
    furnished.clock.pass_seconds(121)
    for query in (used, late, "", "code=", "code=%00", f"code={SECRET}", used.replace("code", "Code")):
        answer = await stranger.get(f"/login?{query}")
        assert answer.status == 401, query
        assert "set-cookie" not in answer.headers


async def test_a_link_is_no_session_and_a_session_no_link(furnished: Site) -> None:
    code = expect(await furnished.root.post(f"{BASE_PATH}/login-links"), 201)["url"].split("code=")[1]
    await refused(furnished, None, READS[:1], headers={"cookie": f"foliot_session={code}"})
    headers, _ = await furnished.browser("viewer")
    assert (await furnished.client(None).get(f"/login?code={headers['cookie'].split('=')[1]}")).status == 401


class Provider:
    """An identity provider that nobody has come back from."""

    verifier: Any = None

    @property
    def login(self) -> "Provider":
        return self

    async def begin(self) -> tuple[str, str]:
        return "https://id.example/authorize", "state"

    async def finish(self, query: Mapping[str, str], kept: str) -> Caller:
        raise NotAuthenticated("not the state that was given out")

    async def close(self) -> None: ...


async def test_a_login_that_was_only_begun_is_no_session(furnished: Site) -> None:
    furnished.world.services.access = Access(furnished.world.store, furnished.clock, Provider())
    app = create_app(furnished.world.services, admin_key=KEY)
    begun = await AsgiClient(app, None).get("/auth/login")
    assert begun.status == 303
    shown = begun.headers["set-cookie"].split(";")[0].split("=")[1]
    for cookie in (f"foliot_session={shown}", f"foliot_login={shown}", f"__Host-foliot_session={shown}"):
        answer = await AsgiClient(app, None).get(f"{BASE_PATH}/session", headers={"cookie": cookie})
        assert answer.status == 401, answer.body
    again = await AsgiClient(app, None).get("/auth/login")
    shown = again.headers["set-cookie"].split(";")[0].split("=")[1]
    assert (await AsgiClient(app, None).get(f"/login?code={shown}")).status == 401


@each_route
async def test_a_role_may_do_what_the_matrix_says_and_nothing_else(furnished: Site, route: Route) -> None:
    callers = [(role, await furnished.caller(role)) for role in ROLES]
    for role, caller in sorted(callers, key=lambda each: route.permission in MATRIX[each[0]]):
        answer = await ask(caller, route, furnished.names)
        allowed = route.permission in MATRIX[role]
        denied = answer.status == 403 and f"the role {role} may not" in answer.json()["detail"]
        assert denied is not allowed, (role, answer.status, answer.body)
        if allowed and title(route) in FOR_ROOT:
            assert answer.status == 403
            assert "admin key" in answer.json()["detail"]
        elif allowed:
            assert answer.status < 400 or answer.status in (404, 409, 410), (role, answer.body)


@each_route
async def test_the_nodes_own_key_may_do_everything(furnished: Site, route: Route) -> None:
    answer = await ask(furnished.root, route, furnished.names)
    assert answer.status not in (401, 403), answer.body


def test_the_walk_is_over_something() -> None:
    assert len(PROTECTED) > 50
    assert len(NAMED) > 25
