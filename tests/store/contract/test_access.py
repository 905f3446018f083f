"""Keys, sessions, namespaces, rates that all nodes share, and the audit log."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import msgspec
import pytest

from foliot.domain import events
from foliot.domain.access import Caller
from foliot.domain.audit import AuditEntry, first_break
from foliot.domain.credential import ApiKey, hash_of, new_key_id
from foliot.domain.duration import DAY, HOUR, SECOND
from foliot.domain.rate import RateLimit
from foliot.domain.tenancy import Namespace, Quotas
from foliot.store.base import Definition, Session, Store
from tests.store.builders import Scene
from tests.store.conftest import MakeStore

SLOW = RateLimit(limit=1, per=DAY, burst=4)  # five at once, then none for a day


def a_key(name: str = "till", **fields: Any) -> ApiKey:
    defaults: dict[str, Any] = {
        "key_id": new_key_id(),
        "namespace": "default",
        "role": "viewer",
        "hash": hash_of(name),
        "created": 5,
    }
    return ApiKey(**(defaults | {"name": name} | fields))


def an_entry(number: int = 0, **fields: Any) -> AuditEntry:
    defaults: dict[str, Any] = {"time": number, "namespace": "default", "actor": "ann", "action": "PUT /queues/{name}"}
    return AuditEntry(**(defaults | fields))


def a_session(shown: bytes = b"shown", **fields: Any) -> Session:
    defaults: dict[str, Any] = {"hash": shown, "caller": Caller(name="ann"), "until": 100}
    return Session(**(defaults | fields))


async def key_of(store: Store, key_id: str) -> ApiKey:
    return (await store.api_keys([key_id]))[key_id]


async def whole_log(store: Store) -> list[AuditEntry]:
    return await store.audit(None, limit=10_000, after=0)


@pytest.fixture
async def stores(store: Store, make_store: MakeStore) -> AsyncIterator[list[Store]]:
    """As many as can be open at once on the same database."""
    if store.kind != "postgres":
        yield [store]
        return
    second = make_store()
    await second.open()
    yield [store, second]
    await second.close()


async def test_a_key_comes_back_as_it_was_kept(store: Store) -> None:
    plain = a_key()
    full = a_key(
        "full",
        namespace="shop",
        role="operator",
        queues=("mail", 'a"b'),
        job_types=("send",),
        old_hash=b"old",
        old_until=7,
        created_by="ann",
        expires=9,
        last_used=8,
        revoked=6,
    )
    assert await store.add_key(plain)
    assert await store.add_key(full)
    found = await store.api_keys([plain.key_id, full.key_id, "unknown"])
    assert found == {plain.key_id: plain, full.key_id: full}
    assert await store.api_keys([]) == {}


async def test_an_id_that_is_taken_is_refused_and_changes_nothing(store: Store) -> None:
    key = a_key()
    assert await store.add_key(key)
    assert not await store.add_key(a_key("other", key_id=key.key_id))
    assert await key_of(store, key.key_id) == key


async def test_a_name_is_free_again_once_its_key_is_revoked(store: Store) -> None:
    first, second = a_key(), a_key()
    assert await store.add_key(first)
    assert not await store.add_key(second)
    assert await store.add_key(a_key(namespace="shop"))
    assert await store.change_key(msgspec.structs.replace(first, revoked=50))
    assert await store.add_key(second)
    assert set(await store.api_keys([first.key_id, second.key_id])) == {first.key_id, second.key_id}


async def test_of_two_keys_of_one_name_made_at_once_one_is_kept(stores: list[Store]) -> None:
    keys = [a_key() for _ in range(10)]
    kept = await asyncio.gather(*(stores[n % len(stores)].add_key(key) for n, key in enumerate(keys)))
    assert kept.count(True) == 1


async def test_keys_are_listed_by_id(store: Store) -> None:
    keys = sorted((a_key(f"key{n}", namespace=("default", "shop")[n % 2]) for n in range(6)), key=lambda k: k.key_id)
    for key in keys:
        await store.add_key(key)
    assert await store.list_keys(None, limit=10) == keys
    assert await store.list_keys(None, limit=2, after=keys[2].key_id) == keys[3:5]
    shop = [key for key in keys if key.namespace == "shop"]
    assert await store.list_keys("shop", limit=10) == shop
    assert await store.list_keys("shop", limit=10, after=shop[0].key_id) == shop[1:]
    assert await store.list_keys("nowhere", limit=10) == []


async def test_a_rotation_changes_the_hashes_and_nothing_else(store: Store) -> None:
    key = a_key()
    await store.add_key(key)
    changes = {"hash": b"new", "old_hash": key.hash, "old_until": 70, "expires": 90}
    wanted = msgspec.structs.replace(key, **changes, role="admin", name="other", namespace="shop")
    assert await store.change_key(wanted)
    assert await key_of(store, key.key_id) == msgspec.structs.replace(key, **changes)
    assert not await store.change_key(a_key())


async def test_what_was_revoked_stays_so(store: Store) -> None:
    key = a_key()
    await store.add_key(key)
    revoked = msgspec.structs.replace(key, revoked=50)
    assert await store.change_key(revoked)
    assert not await store.change_key(key)
    assert not await store.change_key(msgspec.structs.replace(key, revoked=60))
    assert await key_of(store, key.key_id) == revoked


async def test_the_latest_use_of_a_key_is_noted(stores: list[Store]) -> None:
    keys = [a_key(f"key{n}") for n in range(5)]
    for key in keys:
        await stores[0].add_key(key)
    uses = [{key.key_id: time for key in order} for time, order in ((30, keys), (40, keys[::-1]), (20, keys))]
    await asyncio.gather(*(stores[n % len(stores)].touch_keys(used) for n, used in enumerate(uses)))
    await stores[0].touch_keys({"unknown": 99})
    await stores[0].touch_keys({})
    found = await stores[0].api_keys([key.key_id for key in keys])
    assert {key.last_used for key in found.values()} == {40}


async def test_a_session_is_found_until_it_is_over(store: Store) -> None:
    caller = Caller(name="ann", namespace="shop", role="viewer", queues=("mail",), key_id="k1", source="10.0.0.1")
    session = a_session(caller=caller, data='{"next":"/"}')
    await store.add_session(session)
    assert await store.session(b"shown", 99) == session
    assert await store.session(b"shown", 99) == session
    assert await store.session(b"shown", 100) is None
    assert await store.session(b"other", 99) is None


async def test_what_is_good_once_is_his_who_comes_first(stores: list[Store]) -> None:
    await stores[0].add_session(a_session(once=True))
    assert await stores[0].session(b"shown", 100) is None
    answers = await asyncio.gather(*(stores[n % len(stores)].session(b"shown", 99) for n in range(20)))
    assert [answer for answer in answers if answer is not None] == [a_session(once=True)]
    assert await stores[0].session(b"shown", 99) is None


async def test_a_session_that_was_ended_is_over(store: Store) -> None:
    await store.add_session(a_session())
    await store.add_session(a_session(b"other"))
    await store.end_session(b"shown")
    await store.end_session(b"unknown")
    assert await store.session(b"shown", 1) is None
    assert await store.session(b"other", 1) is not None


async def test_all_sessions_of_a_key_end_with_it(store: Store) -> None:
    for shown, key_id in ((b"1", "k1"), (b"2", "k1"), (b"3", "k2"), (b"4", None)):
        await store.add_session(a_session(shown, caller=Caller(name="ann", key_id=key_id)))
    await store.end_sessions_of("k1")
    left = [shown for shown in (b"1", b"2", b"3", b"4") if await store.session(shown, 1) is not None]
    assert left == [b"3", b"4"]


async def test_default_is_there_from_the_beginning(store: Store) -> None:
    (default,) = await store.namespaces()
    assert (default.name, default.quotas, default.version) == ("default", Quotas(), 1)
    assert 0 < default.created <= await store.now()


async def test_a_namespace_is_made_once_and_changed_at_the_version_it_has(store: Store) -> None:
    wanted = Namespace(name="shop", quotas=Quotas(live_jobs=5), created=70)
    assert await store.put_namespace(wanted, expected=3) is None
    assert await store.namespaces(["shop"]) == []
    assert await store.put_namespace(wanted, expected=0) == wanted
    assert await store.put_namespace(wanted, expected=0) is None
    other = msgspec.structs.replace(wanted, quotas=Quotas(submits_per_second=9), created=99)
    assert await store.put_namespace(other, expected=2) is None
    changed = msgspec.structs.replace(wanted, quotas=other.quotas, version=2)
    assert await store.put_namespace(other, expected=1) == changed
    assert await store.put_namespace(other, expected=2) == changed
    assert await store.put_namespace(wanted, expected=None) == msgspec.structs.replace(wanted, version=3)
    assert await store.put_namespace(Namespace(name="new", created=1), expected=None) is not None
    assert [namespace.name for namespace in await store.namespaces()] == ["default", "new", "shop"]
    assert [namespace.name for namespace in await store.namespaces(["shop", "nowhere"])] == ["shop"]
    assert await store.namespaces([]) == []


async def test_a_namespace_made_by_many_at_once_is_new_for_one(stores: list[Store]) -> None:
    wanted = Namespace(name="shop", created=70)
    answers = await asyncio.gather(*(stores[n % len(stores)].put_namespace(wanted, expected=0) for n in range(10)))
    assert [answer for answer in answers if answer is not None] == [wanted]


async def test_only_an_empty_namespace_can_be_taken_away(scene: Scene) -> None:
    store = scene.store
    for name in ("empty", "jobs", "plans", "keys", "hooks"):
        await store.put_namespace(Namespace(name=name, created=1), expected=0)
    await scene.submitted(namespace="jobs")
    await scene.scheduled(namespace="plans")
    key = a_key(namespace="keys")
    await store.add_key(key)
    hook = Definition(kind="webhook", namespace="hooks", name="w", body="{}", created=1)
    await store.put_definition(hook, expected=0)
    names = ("empty", "jobs", "plans", "keys", "hooks", "default", "nowhere")
    gone = [name for name in names if await store.remove_namespace(name)]
    assert gone == ["empty"]
    await store.remove_definition("webhook", "hooks", "w")
    assert await store.remove_namespace("hooks")
    await store.change_key(msgspec.structs.replace(key, revoked=9))
    assert await store.remove_namespace("keys")
    assert not await store.remove_namespace("keys")
    assert [namespace.name for namespace in await store.namespaces()] == ["default", "jobs", "plans"]


async def test_of_a_rate_no_more_is_given_than_it_allows(store: Store) -> None:
    before = await store.now()
    given, when = await store.spend("jobs", SLOW, 3)
    assert given == 3
    assert before <= when <= await store.now()
    given, when = await store.spend("jobs", SLOW, 9)
    assert given == 2
    assert before + DAY - HOUR < when <= await store.now() + DAY + SECOND
    assert await store.spend("jobs", SLOW, 1) == (0, when)
    assert (await store.spend("bytes", SLOW, 1))[0] == 1


async def test_nodes_share_a_rate(stores: list[Store]) -> None:
    answers = await asyncio.gather(*(stores[n % len(stores)].spend("jobs", SLOW, 1) for n in range(20)))
    assert sum(given for given, _ in answers) == 5


async def test_a_rate_that_was_changed_makes_nobody_wait_for_the_old_one(store: Store) -> None:
    await store.spend("jobs", SLOW, 5)
    _, when = await store.spend("jobs", RateLimit(limit=100, per=SECOND), 1)
    assert when <= await store.now() + SECOND


async def test_live_jobs_of_a_namespace_are_counted_up_to_a_bound(scene: Scene) -> None:
    store = scene.store
    assert await store.live_jobs("shop", 10) == 0
    await scene.submit(*await scene.jobs(3, namespace="shop"))
    await scene.submit(*await scene.jobs(3, namespace="shop", due=scene.later(60), queue="later"))
    await scene.submit(await scene.job(namespace="shop", job_type="blocked"), parents=1)
    worker = await scene.worker(namespace="shop")
    lease = await scene.running(worker, namespace="shop", job_type="runs")
    await scene.submit(*await scene.jobs(5))
    assert [await store.live_jobs("shop", most) for most in (1, 5, 8, 9, 1000)] == [1, 5, 8, 8, 8]
    await scene.happen(lease.id, events.Succeed())
    assert await store.live_jobs("shop", 1000) == 7
    assert await store.live_jobs("default", 1000) == 5


async def test_entries_of_the_log_come_back_as_they_were_kept(store: Store) -> None:
    given = [
        an_entry(1),
        an_entry(2, key_id="k1", object="mail", source="10.0.0.1", request_id="r1", outcome="done", namespace="shop"),
        an_entry(3, actor="Änn\n'; drop table audit; --"),
    ]
    kept = await store.append_audit(given)
    assert [entry.seq for entry in kept] == [1, 2, 3]
    assert [msgspec.structs.replace(entry, seq=0, hash=b"") for entry in kept] == given
    assert await whole_log(store) == kept
    assert await store.append_audit([]) == []
    assert first_break(await whole_log(store)) is None


async def test_the_log_is_read_from_either_end_and_by_namespace(store: Store) -> None:
    kept = await store.append_audit([an_entry(n, namespace=("default", "shop")[n % 2]) for n in range(10)])
    assert await store.audit(None, limit=3) == kept[:-4:-1]
    assert await store.audit(None, limit=3, before=8) == kept[6:3:-1]
    assert await store.audit(None, limit=3, after=2) == kept[2:5]
    shop = [entry for entry in kept if entry.namespace == "shop"]
    assert await store.audit("shop", limit=10) == shop[::-1]
    assert await store.audit("shop", limit=2, before=shop[-1].seq) == shop[-2:-4:-1]
    assert await store.audit("shop", limit=2, after=shop[0].seq) == shop[1:3]
    assert await store.audit("nowhere", limit=10) == []


async def test_whoever_appends_at_the_same_time_the_chain_holds(stores: list[Store]) -> None:
    calls = [[an_entry(10 * n + m, actor=f"call{n}") for m in range(1 + n % 3)] for n in range(40)]
    kept = await asyncio.gather(*(stores[n % len(stores)].append_audit(call) for n, call in enumerate(calls)))
    log = await whole_log(stores[0])
    assert len(log) == sum(map(len, calls))
    assert first_break(log) is None
    for call in kept:
        first = call[0].seq
        assert log[first - 1 : first - 1 + len(call)] == call


async def test_the_database_itself_refuses_to_change_an_entry(store: Store) -> None:
    await store.append_audit([an_entry(1), an_entry(2)])
    rest = "truncate audit" if store.kind == "postgres" else "replace into audit select * from audit"
    for statement in ("update audit set actor = 'bob'", "delete from audit where seq = 1", rest):
        with pytest.raises(Exception, match="only added"):
            await by_hand(store, statement)
    log = await whole_log(store)
    assert [entry.actor for entry in log] == ["ann", "ann"]
    assert first_break(log) is None


async def by_hand(store: Any, statement: str) -> None:
    if store.kind == "postgres":
        await store._connections.write(statement)
    else:
        await store._write(lambda connection: connection.execute(statement).close())


async def test_sessions_that_are_over_and_meters_nobody_uses_are_forgotten(store: Store) -> None:
    now = await store.now()
    for shown, until in ((b"over", now), (b"goes on", now + HOUR)):
        await store.add_session(a_session(shown, until=until))
    await store.spend("past", RateLimit(limit=1_000_000, per=SECOND), 1)
    await store.spend("busy", SLOW, 5)
    await store.append_audit([an_entry()])
    now = await store.now() + 2
    assert await store.forget_access(now - DAY, now) == 1
    assert await store.forget_access(now, now) == 1
    assert await store.forget_access(now, now) == 0
    assert await store.session(b"goes on", now) is not None
    assert (await store.spend("busy", SLOW, 1))[0] == 0
    assert len(await whole_log(store)) == 1
