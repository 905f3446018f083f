"""Who is let in, and for how long."""

from collections.abc import AsyncIterator, Mapping

import pytest

from foliot.domain.access import ADMIN, Caller
from foliot.domain.duration import HOUR, SECOND
from foliot.domain.errors import BadInput, Conflict, Forbidden, NotAuthenticated, NotFound, Stale, TooMany
from foliot.service import access as access_module
from foliot.service.access import FRESH, LINK_LIFE, MOST_FAILURES, SESSION_LIFE, Access, csrf_token
from foliot.wire import KeyBody, NamespaceBody, NewKey, QuotasBody, RotateBody, to_time
from tests.service.almanac import Almanac, open_almanac

HERE = "192.0.2.1"


@pytest.fixture
async def almanac() -> AsyncIterator[Almanac]:
    async with open_almanac() as almanac:
        yield almanac


async def make(almanac: Almanac, caller: Caller = ADMIN, **fields: object) -> NewKey:
    body = KeyBody(**{"name": "ci", "role": "submitter", **fields})  # type: ignore[arg-type]
    return await almanac.services.keys.create(body, caller)


async def enter(almanac: Almanac, key: str) -> Caller:
    return await almanac.services.access.by_key(key, HERE)


async def test_a_key_lets_its_caller_in_as_it_was_made(almanac: Almanac) -> None:
    made = await make(almanac, role="worker", queues=["mail"], job_types=["send"])
    caller = await enter(almanac, made.key)
    assert caller == Caller(
        name="ci", role="worker", queues=("mail",), job_types=("send",), key_id=made.key_id, source=HERE
    )
    await almanac.services.access.note_uses()
    read = await almanac.services.keys.read(made.key_id, ADMIN)
    assert read.last_used == to_time(almanac.clock.now())
    await almanac.services.access.note_uses()  # nothing new


@pytest.mark.parametrize("key", ["", "fk_x", "x" * 100, "fk_aaaaaaaaaaaaaaaa_" + "a" * 43, "a.b.c"])
async def test_what_is_no_key_lets_nobody_in(almanac: Almanac, key: str) -> None:
    with pytest.raises(NotAuthenticated, match="not known"):
        await enter(almanac, key)


async def test_a_key_is_good_until_it_expires(almanac: Almanac) -> None:
    made = await make(almanac, expires=to_time(almanac.clock.now() + HOUR))
    await enter(almanac, made.key)
    almanac.clock.pass_seconds(3600)
    with pytest.raises(NotAuthenticated, match="expired"):
        await enter(almanac, made.key)


async def test_a_revoked_key_is_refused_at_once_and_elsewhere_when_it_is_looked_up_again(almanac: Almanac) -> None:
    made = await make(almanac)
    elsewhere = Access(almanac.store, almanac.clock)
    await elsewhere.by_key(made.key, HERE)
    await enter(almanac, made.key)
    revoked = await almanac.services.keys.revoke(made.key_id, ADMIN)
    assert revoked.revoked is not None
    assert await almanac.services.keys.revoke(made.key_id, ADMIN) == revoked
    with pytest.raises(NotAuthenticated, match="revoked"):
        await enter(almanac, made.key)
    await elsewhere.by_key(made.key, HERE)
    almanac.clock.pass_seconds(FRESH / SECOND)
    with pytest.raises(NotAuthenticated, match="revoked"):
        await elsewhere.by_key(made.key, HERE)
    with pytest.raises(Conflict, match="was revoked"):
        await almanac.services.keys.rotate(made.key_id, RotateBody(), ADMIN)
    assert (await make(almanac)).name == made.name, "its name is free again"


async def test_after_a_rotation_both_secrets_are_good_for_the_overlap(almanac: Almanac) -> None:
    made = await make(almanac)
    rotated = await almanac.services.keys.rotate(made.key_id, RotateBody(overlap="1h"), ADMIN)
    assert rotated.key_id == made.key_id
    assert await enter(almanac, made.key) == await enter(almanac, rotated.key)
    almanac.clock.pass_seconds(3600)
    await enter(almanac, rotated.key)
    with pytest.raises(NotAuthenticated):
        await enter(almanac, made.key)
    with pytest.raises(BadInput, match="overlap"):
        await almanac.services.keys.rotate(made.key_id, RotateBody(overlap="40d"), ADMIN)


async def test_who_shows_many_wrong_keys_must_wait_while_a_known_key_goes_on(almanac: Almanac) -> None:
    made = await make(almanac)
    await enter(almanac, made.key)
    unknown = "fk_bbbbbbbbbbbbbbbb_" + "a" * 43
    for _ in range(MOST_FAILURES):
        with pytest.raises(NotAuthenticated):
            await enter(almanac, "wrong")
    with pytest.raises(TooMany) as caught:
        await enter(almanac, unknown)
    assert 0 < caught.value.retry_after <= 61
    assert (await enter(almanac, made.key)).name == "ci"
    with pytest.raises(NotAuthenticated):
        await almanac.services.access.by_key(unknown, "198.51.100.7")
    almanac.clock.pass_seconds(61)
    with pytest.raises(NotAuthenticated):
        await enter(almanac, unknown)


async def test_what_is_remembered_is_bounded(almanac: Almanac, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(access_module, "MOST_REMEMBERED", 2)
    failures = almanac.services.access.failures
    for source in ("a", "b", "c"):
        for _ in range(MOST_FAILURES):
            failures.add(source)
    failures.check("a")
    with pytest.raises(TooMany):
        failures.check("c")


async def test_a_link_lets_one_browser_in_once(almanac: Almanac) -> None:
    access = almanac.services.access
    code, _ = await access.login_link(ADMIN)
    shown = await access.use_link(code, HERE)
    caller, token = await access.by_session(shown, HERE)
    assert (caller.name, caller.root, token) == ("admin", True, csrf_token(shown))
    assert await access.by_session(shown, HERE) == (caller, token)
    with pytest.raises(NotAuthenticated, match="used before"):
        await access.use_link(code, HERE)
    with pytest.raises(NotAuthenticated, match="used before"):
        await access.use_link(shown, HERE)  # a session is no link
    await access.end_session(shown)
    with pytest.raises(NotAuthenticated, match="over"):
        await access.by_session(shown, HERE)


async def test_only_keys_make_links(almanac: Almanac) -> None:
    with pytest.raises(Forbidden, match="/auth/login"):
        await almanac.services.access.login_link(Caller(name="ann", subject="1234"))


async def test_a_session_that_was_let_in_goes_on_beside_wrong_keys_from_the_same_address(almanac: Almanac) -> None:
    access = almanac.services.access
    shown = await access.begin_session(ADMIN)
    await access.by_session(shown, HERE)
    almanac.clock.pass_seconds(FRESH / SECOND)
    for _ in range(MOST_FAILURES):
        access.failures.add(HERE)
    await access.by_session(shown, HERE)
    with pytest.raises(TooMany):
        await access.by_session("a" * 43, HERE)


async def test_links_and_sessions_end_by_themselves(almanac: Almanac) -> None:
    access = almanac.services.access
    code, _ = await access.login_link(ADMIN)
    shown = await access.begin_session(ADMIN)
    await access.by_session(shown, HERE)
    almanac.clock.pass_seconds(LINK_LIFE / SECOND)
    with pytest.raises(NotAuthenticated):
        await access.use_link(code, HERE)
    almanac.clock.pass_seconds(SESSION_LIFE / SECOND)
    with pytest.raises(NotAuthenticated):
        await access.by_session(shown, HERE)


async def test_a_session_ends_with_the_key_that_it_came_from(almanac: Almanac) -> None:
    access = almanac.services.access
    made = await make(almanac)
    caller = await enter(almanac, made.key)
    shown = await access.begin_session(caller)
    code, _ = await access.login_link(caller)
    elsewhere = Access(almanac.store, almanac.clock)
    assert (await elsewhere.by_session(shown, HERE))[0].name == "ci"
    await almanac.services.keys.revoke(made.key_id, ADMIN)
    with pytest.raises(NotAuthenticated):
        await access.by_session(shown, HERE)
    with pytest.raises(NotAuthenticated):
        await access.use_link(code, HERE)
    almanac.clock.pass_seconds(FRESH / SECOND)
    with pytest.raises(NotAuthenticated):
        await elsewhere.by_session(shown, HERE)


class Provider:
    """An identity provider that knows one token and one way back; the real one is in tests/oidc."""

    @property
    def verifier(self) -> "Provider":
        return self

    @property
    def login(self) -> "Provider":
        return self

    async def caller(self, token: str) -> Caller:
        if token != "a.good.token":
            raise NotAuthenticated("no")
        return Caller(name="ann", role="viewer")

    async def close(self) -> None:
        self.closed = True

    async def begin(self) -> tuple[str, str]:
        return "https://provider.example/authorize", "kept"

    async def finish(self, query: Mapping[str, str], kept: str) -> Caller:
        if query != {"code": "right"}:
            raise NotAuthenticated("no")
        assert kept == "kept"
        return Caller(name="ann", role="viewer")


async def test_a_token_of_the_identity_provider_lets_in(almanac: Almanac) -> None:
    access = Access(almanac.store, almanac.clock, Provider())
    assert (await access.by_key("a.good.token", HERE)).source == HERE
    with pytest.raises(NotAuthenticated):
        await access.by_key("a.bad.token", HERE)


async def test_a_browser_logs_in_at_the_identity_provider(almanac: Almanac) -> None:
    access = Access(almanac.store, almanac.clock, Provider())
    address, begun = await access.begin_login(HERE)
    assert address.startswith("https://provider.example/")
    with pytest.raises(NotAuthenticated, match="used before"):
        await access.use_link(begun, HERE)  # a login that was begun is no link; it is gone now
    _, begun = await access.begin_login(HERE)
    shown = await access.finish_login(begun, {"code": "right"}, HERE)
    assert (await access.by_session(shown, HERE))[0].name == "ann"
    for wrong, query in (
        (begun, {"code": "right"}),
        (None, {"code": "right"}),
        ((await access.begin_login(HERE))[1], {}),
    ):
        with pytest.raises(NotAuthenticated):
            await access.finish_login(wrong, query, HERE)
    link, _ = await access.login_link(ADMIN)
    with pytest.raises(NotAuthenticated, match="not begun"):
        await access.finish_login(link, {"code": "right"}, HERE)


async def test_logins_that_are_begun_and_never_ended_are_bounded(almanac: Almanac) -> None:
    provider = Provider()
    access = Access(almanac.store, almanac.clock, provider)
    for _ in range(MOST_FAILURES):
        await access.begin_login(HERE)
    with pytest.raises(TooMany):
        await access.begin_login(HERE)
    await access.begin_login("198.51.100.7")
    await access.close()
    assert provider.closed


async def test_without_an_identity_provider_a_browser_is_told_the_other_way(almanac: Almanac) -> None:
    with pytest.raises(NotFound, match="foliot login"):
        await almanac.services.access.begin_login(HERE)


async def test_keys_are_listed_by_id_and_none_of_another_namespace(almanac: Almanac) -> None:
    keys = almanac.services.keys
    await keys.create_namespace(NamespaceBody(name="team-a"), ADMIN)
    made = [await make(almanac, name=f"k{n}") for n in range(3)]
    other = await make(almanac, namespace="team-a", role="admin")
    first, cursor = await keys.page(limit=2, cursor=None, caller=ADMIN)
    second, end = await keys.page(limit=2, cursor=cursor, caller=ADMIN)
    assert sorted(key.key_id for key in (*first, *second)) == sorted(key.key_id for key in (*made, other))
    assert end is None
    theirs = await enter(almanac, other.key)
    assert [key.key_id for key in (await keys.page(limit=9, cursor=None, caller=theirs))[0]] == [other.key_id]
    with pytest.raises(NotFound):
        await keys.read(made[0].key_id, theirs)
    assert (await make(almanac, theirs, name="mine")).namespace == "team-a"
    with pytest.raises(Forbidden, match="beyond its namespace"):
        await make(almanac, theirs, namespace="default")


async def test_keys_that_can_not_be_are_refused(almanac: Almanac) -> None:
    await make(almanac)
    with pytest.raises(Conflict, match="there is a key 'ci'"):
        await make(almanac)
    with pytest.raises(BadInput, match="expires"):
        await make(almanac, name="b", expires=to_time(almanac.clock.now()))
    with pytest.raises(BadInput, match="namespace"):
        await make(almanac, name="b", namespace="nowhere")
    narrowed = Caller(name="n", queues=("mail",))
    with pytest.raises(Forbidden, match="whole namespace"):
        await make(almanac, narrowed, name="b")


async def test_namespaces_are_made_changed_and_deleted_by_the_nodes_own_key(almanac: Almanac) -> None:
    keys = almanac.services.keys
    made = await keys.create_namespace(NamespaceBody(name="team-a", live_jobs=5), ADMIN)
    assert (made.live_jobs, made.submits_per_second, made.version) == (5, None, 1)
    with pytest.raises(Conflict, match="already"):
        await keys.create_namespace(NamespaceBody(name="team-a"), ADMIN)
    changed = await keys.set_quotas("team-a", QuotasBody(submits_per_second=7), if_match=1, caller=ADMIN)
    assert (changed.live_jobs, changed.submits_per_second, changed.version) == (5, 7, 2)
    with pytest.raises(Stale, match="version 2, not 1"):
        await keys.set_quotas("team-a", QuotasBody(), if_match=1, caller=ADMIN)
    assert (await keys.set_quotas("team-a", QuotasBody(live_jobs=None), if_match=None, caller=ADMIN)).live_jobs is None
    assert [each.name for each in await keys.namespaces(ADMIN)] == ["default", "team-a"]
    theirs = Caller(name="a", namespace="team-a")
    assert [each.name for each in await keys.namespaces(theirs)] == ["team-a"]
    assert (await keys.namespace("team-a", theirs)).name == "team-a"
    with pytest.raises(NotFound):
        await keys.namespace("default", theirs)
    with pytest.raises(Forbidden):
        await keys.set_quotas("team-a", QuotasBody(), if_match=None, caller=theirs)
    with pytest.raises(Conflict, match="in use"):
        await keys.delete_namespace("default", ADMIN)
    await keys.delete_namespace("team-a", ADMIN)
    with pytest.raises(NotFound):
        await keys.delete_namespace("team-a", ADMIN)


async def test_a_namespace_that_changes_without_end_is_told(almanac: Almanac, monkeypatch: pytest.MonkeyPatch) -> None:
    async def never(*_: object, **__: object) -> None:
        return None

    monkeypatch.setattr(almanac.store, "put_namespace", never)
    with pytest.raises(Conflict, match="faster"):
        await almanac.services.keys.set_quotas("default", QuotasBody(live_jobs=1), if_match=None, caller=ADMIN)
