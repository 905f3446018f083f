"""What those who watch keep: definitions, posts, incidents, deliveries, lateness."""

import asyncio
import itertools
from collections.abc import AsyncIterator, Callable
from typing import Any

import msgspec
import pytest

from foliot.domain.duration import MINUTE
from foliot.store.base import Definition, Delivery, Incident, LatenessRow, Post, Store
from tests.store.conftest import MakeStore

replace = msgspec.structs.replace
_numbers = itertools.count(1)


def a_definition(name: str = "night", **fields: Any) -> Definition:
    defaults: dict[str, Any] = {"kind": "alert", "namespace": "default", "body": "{}", "created": 5}
    return Definition(**(defaults | {"name": name} | fields))


def an_incident(**fields: Any) -> Incident:
    number = next(_numbers)
    defaults: dict[str, Any] = {
        "id": number,
        "namespace": "default",
        "rule": "late",
        "subject": f"queue {number}",
        "body": '{"n":1}',
        "opened": number,
    }
    return Incident(**(defaults | fields))


def a_delivery(**fields: Any) -> Delivery:
    number = next(_numbers)
    defaults: dict[str, Any] = {
        "id": number,
        "namespace": "default",
        "webhook": "shop",
        "event_id": f"1-{number}",
        "event_type": "foliot.job.failed",
        "body": '{"specversion":"1.0"}',
        "created": number,
        "next_try": 0,
        "changed": number,
    }
    return Delivery(**(defaults | fields))


def a_row(minute: int = 0, **fields: Any) -> LatenessRow:
    defaults: dict[str, Any] = {"node": 1, "namespace": "default", "queue": "mail", "job_type": "send", "counts": "{}"}
    return LatenessRow(**(defaults | {"minute": minute * MINUTE} | fields))


def after(incident: Incident, **changes: Any) -> Incident:
    return replace(incident, version=incident.version + 1, **changes)


async def on_watch(store: Store, node: int = 1) -> Post:
    post = await store.take_post("watch", node, 0, 100)
    assert post is not None
    return post


async def add(store: Store, *deliveries: Delivery) -> None:
    """By whoever is on watch at another post than the tests look at."""
    post = await store.take_post("adding", 1, 0, 100)
    assert post is not None
    assert await store.advance(post, post.position, deliveries=deliveries)


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


async def test_a_definition_comes_back_as_it_was_put(store: Store) -> None:
    definition = a_definition(kind="webhook", namespace="shop", name="ü", body='{"secret":"…"}', created=7)
    assert await store.put_definition(definition, expected=0) == definition
    assert await store.definitions() == [definition]


async def test_each_put_moves_the_version_on_and_keeps_when_it_was_made(store: Store) -> None:
    await store.put_definition(a_definition(), expected=None)
    again = a_definition(body='{"a":1}', created=99, version=40)
    second = a_definition(body='{"a":1}', created=5, version=2)
    assert await store.put_definition(again, expected=None) == second
    assert await store.put_definition(again, expected=2) == replace(second, version=3)
    assert await store.definitions() == [replace(second, version=3)]


@pytest.mark.parametrize("expected", [0, 1, 3])
async def test_a_definition_at_another_version_stays_as_it_is(store: Store, expected: int) -> None:
    await store.put_definition(a_definition(), expected=0)
    known = await store.put_definition(a_definition(body="[]"), expected=1)
    assert await store.put_definition(a_definition(body="0"), expected=expected) is None
    assert await store.definitions() == [known]


async def test_what_is_not_there_has_no_version_to_be_expected(store: Store) -> None:
    assert await store.put_definition(a_definition(), expected=1) is None
    assert await store.definitions() == []


async def test_of_many_who_put_at_once_expecting_the_same_one_succeeds(stores: list[Store]) -> None:
    for expected in (0, 1):
        puts = (stores[n % len(stores)].put_definition(a_definition(body=str(n)), expected=expected) for n in range(10))
        assert (await asyncio.gather(*puts)).count(None) == 9
    assert [definition.version for definition in await stores[0].definitions()] == [2]


async def test_definitions_are_listed_by_kind_namespace_and_name(store: Store) -> None:
    names = [
        ("webhook", "a", "x"),
        ("alert", "b", "y"),
        ("alert", "a", "z"),
        ("alert", "a", "B"),
        ("channel", "a", "x"),
    ]
    made = [a_definition(name, kind=kind, namespace=space) for kind, space, name in names]
    for definition in made:
        await store.put_definition(definition, expected=0)
    ordered = sorted(made, key=lambda d: (d.kind, d.namespace, d.name))
    assert await store.definitions() == ordered
    assert await store.definitions("alert") == ordered[:3]
    assert await store.definitions("alert", namespace="a") == ordered[:2]
    assert await store.definitions(namespace="b") == [ordered[2]]
    assert await store.definitions("queue") == []


async def test_a_definition_that_was_removed_is_gone_and_may_be_made_again(store: Store) -> None:
    await store.put_definition(a_definition(), expected=0)
    other = await store.put_definition(a_definition(namespace="shop"), expected=0)
    assert await store.remove_definition("alert", "default", "night")
    assert not await store.remove_definition("alert", "default", "night")
    assert not await store.remove_definition("channel", "shop", "night")
    assert await store.definitions() == [other]
    assert await store.put_definition(a_definition(created=8), expected=0) == a_definition(created=8)


async def test_one_node_is_on_watch_until_its_time_is_over(store: Store) -> None:
    mine = Post(name="watch", node=1, until=100, position="")
    assert await store.take_post("watch", 1, 50, 100) == mine
    assert await store.take_post("watch", 2, 99, 200) is None
    assert await store.take_post("watch", 1, 99, 150) == replace(mine, until=150)
    assert await store.take_post("watch", 2, 149, 200) is None
    assert await store.take_post("watch", 2, 150, 200) == replace(mine, node=2, until=200)
    assert await store.take_post("watch", 1, 150, 250) is None
    assert await store.take_post("other", 1, 150, 250) == Post(name="other", node=1, until=250, position="")


async def test_who_leaves_a_post_frees_it_and_nobody_else_can(store: Store) -> None:
    await store.take_post("watch", 1, 0, 100)
    await store.leave_post("watch", 2)
    assert await store.take_post("watch", 2, 1, 100) is None
    await store.leave_post("watch", 1)
    assert await store.take_post("watch", 2, 1, 100) is not None


async def test_of_many_who_want_a_post_at_once_one_gets_it(stores: list[Store]) -> None:
    posts = await asyncio.gather(*(stores[n % len(stores)].take_post("watch", n, 5, 100) for n in range(10)))
    assert posts.count(None) == 9


async def test_how_far_a_post_has_read_stays_when_another_node_takes_it(store: Store) -> None:
    post = await on_watch(store)
    assert await store.advance(post, "1-7")
    await store.leave_post("watch", 1)
    assert await store.take_post("watch", 2, 0, 100) == replace(post, node=2, position="1-7")


async def test_a_step_keeps_position_deliveries_and_incidents_together(store: Store) -> None:
    post, delivery, incident = await on_watch(store), a_delivery(next_try=8), an_incident()
    assert await store.advance(post, "1-7", deliveries=[delivery], incidents=[incident])
    assert (await on_watch(store)).position == "1-7"
    assert await store.delivery("default", "shop", delivery.id) == delivery
    assert await store.open_incidents() == [incident]
    assert await store.advance(replace(post, position="1-7"), "1-8", incidents=[after(incident, resolved=9)])
    assert await store.open_incidents() == []


async def taken_over(store: Store, post: Post) -> Post:
    await store.leave_post("watch", 1)
    await store.take_post("watch", 2, 0, 100)
    return post


async def gone_on(store: Store, post: Post) -> Post:
    assert await store.advance(post, "1-1")
    return post


async def never_taken(store: Store, post: Post) -> Post:
    return replace(post, name="nowhere")


@pytest.mark.parametrize("change", [taken_over, gone_on, never_taken])
async def test_a_step_from_a_post_that_is_not_as_thought_does_nothing(
    store: Store, change: Callable[[Store, Post], Any]
) -> None:
    post = await change(store, await on_watch(store))
    before = await store.take_post("watch", 2, 100, 200)
    assert not await store.advance(post, "1-9", deliveries=[a_delivery()], incidents=[an_incident()])
    assert await store.take_post("watch", 2, 100, 200) == before
    assert await store.next_delivery() is None
    assert await store.open_incidents() == []


async def test_a_step_with_an_incident_that_was_changed_meanwhile_does_nothing(store: Store) -> None:
    post, known = await on_watch(store), an_incident()
    assert await store.save_incidents([known])
    changed = after(known, body="[]")
    assert await store.save_incidents([changed])
    for stale in (after(known), an_incident(subject=known.subject)):
        assert not await store.advance(post, "1-9", deliveries=[a_delivery()], incidents=[an_incident(), stale])
        assert (await on_watch(store)).position == ""
        assert await store.next_delivery() is None
        assert await store.open_incidents() == [changed]


async def test_of_many_equal_steps_at_once_one_is_taken(stores: list[Store]) -> None:
    post = await on_watch(stores[0])
    steps = (stores[n % len(stores)].advance(post, f"1-{n}", deliveries=[a_delivery(id=1000 + n)]) for n in range(10))
    assert (await asyncio.gather(*steps)).count(True) == 1
    assert len(await stores[0].deliveries("default", "shop", limit=20)) == 1


async def test_a_delivery_that_is_there_already_is_not_added_again(store: Store) -> None:
    delivery = a_delivery()
    await add(store, delivery)
    await store.finish_deliveries([replace(delivery, state="delivered", next_try=None)])
    new = a_delivery()
    await add(store, delivery, new)
    assert [one.state for one in await store.deliveries("default", "shop", limit=9)] == ["pending", "delivered"]


async def test_an_incident_comes_back_as_it_was_saved(store: Store) -> None:
    plain = an_incident()
    full = an_incident(namespace="shop", rule="ü", body='{"a":[1]}', resolved=50, notify_at=60)
    assert await store.save_incidents([plain, full])
    assert await store.incident("default", plain.id) == plain
    assert await store.incident("shop", full.id) == full
    assert await store.incident("default", full.id) is None
    assert await store.incident("default", 1 << 60) is None
    assert await store.save_incidents([])


async def test_at_most_one_incident_of_a_rule_and_a_subject_is_open(store: Store) -> None:
    first = an_incident(subject="mail")
    assert await store.save_incidents([first])
    assert not await store.save_incidents([an_incident(subject="mail")])
    others = [an_incident(subject="mail", rule="failed"), an_incident(subject="mail", namespace="shop")]
    assert await store.save_incidents(others)
    resolved, next_one = after(first, resolved=70), an_incident(subject="mail")
    assert await store.save_incidents([resolved, next_one])
    assert not await store.save_incidents([after(resolved, resolved=None)])
    assert await store.incident("default", first.id) == resolved
    assert await store.open_incidents() == [*others, next_one]


async def test_incidents_are_saved_all_or_none(store: Store) -> None:
    known = an_incident()
    assert await store.save_incidents([known])
    new = [an_incident(), an_incident()]
    for wrong in (
        replace(known, version=5),
        replace(known, body="[]"),
        after(an_incident()),
        replace(new[0], id=known.id),
    ):
        assert not await store.save_incidents([*new, after(known), wrong])
        assert await store.open_incidents() == [known]
    assert await store.save_incidents([*new, after(known)])
    assert await store.open_incidents() == [after(known), *new]


async def test_one_incident_may_be_made_changed_and_resolved_in_one_call(store: Store) -> None:
    first = an_incident(subject="mail")
    changed = after(first, body="[1]")
    resolved = after(changed, resolved=9)
    second = an_incident(subject="mail")
    assert await store.save_incidents([first, changed, resolved, second])
    assert await store.incidents("default", limit=9) == [second, resolved]


async def test_of_many_equal_incidents_opened_at_once_one_is_kept(stores: list[Store]) -> None:
    saves = (
        stores[n % len(stores)].save_incidents([an_incident(subject="a"), an_incident(subject=f"{n}")])
        for n in range(10)
    )
    assert (await asyncio.gather(*saves)).count(True) == 1
    assert len(await stores[0].open_incidents()) == 2


async def test_incidents_are_listed_newest_first_and_page_by_page(store: Store) -> None:
    made = [an_incident(namespace=("default", "shop")[n % 3 == 2], resolved=n % 2 or None) for n in range(9)]
    assert await store.save_incidents(made)
    own = [incident for incident in reversed(made) if incident.namespace == "default"]
    assert await store.incidents("default", limit=4) == own[:4]
    assert await store.incidents("default", limit=4, before=own[3].id) == own[4:]
    assert await store.incidents("nowhere", limit=4) == []


async def test_open_incidents_are_listed_oldest_first(store: Store) -> None:
    made = [
        an_incident(namespace=("default", "shop")[n % 2], opened=-n, resolved=None if n < 4 else 3) for n in range(6)
    ]
    assert await store.save_incidents(made)
    assert await store.open_incidents() == [made[3], made[2], made[1], made[0]]
    assert await store.open_incidents("shop") == [made[3], made[1]]


async def test_notices_are_taken_when_their_time_has_come_earliest_first(store: Store) -> None:
    late, early, resolved = an_incident(notify_at=9), an_incident(notify_at=3), an_incident(notify_at=6, resolved=5)
    later, none = an_incident(notify_at=11), an_incident()
    assert await store.save_incidents([late, early, resolved, later, none])
    held = [after(each, notify_at=50) for each in (early, resolved, late)]
    assert await store.take_notices(10, 50, 2) == held[:2]
    assert await store.take_notices(10, 50, 2) == held[2:]
    assert await store.take_notices(10, 50, 2) == []
    assert [await store.incident("default", each.id) for each in (early, resolved, late)] == held
    assert await store.take_notices(50, 90, 9) == [
        after(later, notify_at=90),
        *(after(each, notify_at=90) for each in sorted(held, key=lambda each: each.id)),
    ]


async def test_who_changes_an_incident_whose_notice_was_taken_meanwhile_is_refused(store: Store) -> None:
    incident = an_incident(notify_at=3)
    assert await store.save_incidents([incident])
    (taken,) = await store.take_notices(10, 50, 9)
    assert not await store.save_incidents([after(incident, resolved=9)])
    assert await store.save_incidents([after(taken, notify_at=None)])
    assert await store.take_notices(99, 100, 9) == []


async def test_each_notice_is_one_takers_alone(stores: list[Store]) -> None:
    made = [an_incident(notify_at=n) for n in range(30)]
    assert await stores[0].save_incidents(made)
    takes = await asyncio.gather(*(stores[n % len(stores)].take_notices(99, 200, 7) for n in range(10)))
    taken = [incident.id for take in takes for incident in take]
    assert len(taken) == len(set(taken))
    while rest := await stores[0].take_notices(99, 200, 7):
        taken += [incident.id for incident in rest]
    assert sorted(taken) == [incident.id for incident in made]


async def test_deliveries_are_taken_when_their_time_has_come_earliest_first(store: Store) -> None:
    late, early = a_delivery(next_try=9), a_delivery(next_try=3)
    later, done = a_delivery(next_try=11), a_delivery(next_try=None, state="delivered")
    await add(store, late, early, later, done)
    assert await store.next_delivery() == 3
    held = [replace(each, next_try=50) for each in (early, late)]
    assert await store.take_deliveries(10, 50, 1) == held[:1]
    assert await store.next_delivery() == 9
    assert await store.take_deliveries(10, 50, 9) == held[1:]
    assert await store.take_deliveries(10, 50, 9) == []
    assert await store.next_delivery() == 11
    assert await store.take_deliveries(50, 90, 9) == [
        replace(each, next_try=90) for each in (later, *sorted(held, key=lambda each: each.id))
    ]


async def test_each_delivery_is_one_takers_alone(stores: list[Store]) -> None:
    made = [a_delivery(next_try=n) for n in range(30)]
    await add(stores[0], *made)
    takes = await asyncio.gather(*(stores[n % len(stores)].take_deliveries(99, 200, 7) for n in range(10)))
    taken = [delivery.id for take in takes for delivery in take]
    assert len(taken) == len(set(taken))
    while rest := await stores[0].take_deliveries(99, 200, 7):
        taken += [delivery.id for delivery in rest]
    assert sorted(taken) == [delivery.id for delivery in made]


async def test_how_a_try_went_is_kept_and_what_is_gone_is_left_out(store: Store) -> None:
    good, bad, over = a_delivery(), a_delivery(), a_delivery()
    await add(store, good, bad, over)
    ends = [
        replace(good, state="delivered", attempts=1, next_try=None, last_status=204, changed=70),
        replace(bad, attempts=2, next_try=90, last_status=500, last_error="no ü", changed=71),
        replace(over, state="failed", attempts=9, next_try=None, last_error="gone", changed=72),
    ]
    await store.finish_deliveries([*ends, a_delivery(state="delivered")])
    await store.finish_deliveries([])
    assert await store.deliveries("default", "shop", limit=9) == ends[::-1]
    assert await store.next_delivery() == 90


async def test_what_a_delivery_is_about_does_not_change_with_its_tries(store: Store) -> None:
    delivery = a_delivery()
    await add(store, delivery)
    other = replace(delivery, webhook="x", event_id="x", body="x", created=0, namespace="x", attempts=3)
    await store.finish_deliveries([other])
    assert await store.delivery("default", "shop", delivery.id) == replace(delivery, attempts=3)


async def test_deliveries_of_a_webhook_are_listed_newest_first_and_page_by_page(store: Store) -> None:
    states = ("pending", "delivered", "failed")
    made = [a_delivery(state=states[n % 3], next_try=None if n % 3 else 1) for n in range(12)]
    strangers = [a_delivery(webhook="other"), a_delivery(namespace="shop")]
    await add(store, *made, *strangers)
    newest = made[::-1]
    assert await store.deliveries("default", "shop", limit=5) == newest[:5]
    assert await store.deliveries("default", "shop", limit=50, before=newest[4].id) == newest[5:]
    for state in states:
        some = [delivery for delivery in newest if delivery.state == state]
        assert await store.deliveries("default", "shop", limit=3, state=state) == some[:3]
        assert await store.deliveries("default", "shop", limit=3, state=state, before=some[2].id) == some[3:]
    assert await store.delivery("default", "other", strangers[0].id) == strangers[0]
    for namespace, webhook in (("default", "shop"), ("shop", "other")):
        assert await store.delivery(namespace, webhook, strangers[0].id) is None


async def test_lateness_is_kept_by_minute_and_the_newest_of_a_node_counts(store: Store) -> None:
    first, newer = a_row(counts="[1]"), a_row(counts="[2]")
    others = [a_row(node=2), a_row(queue="ü"), a_row(job_type="x"), a_row(namespace="shop"), a_row(1)]
    await store.add_lateness([first, *others])
    await store.add_lateness([a_row(counts="[0]"), newer])
    await store.add_lateness([])
    rows = sorted([newer, *others], key=lambda row: (row.minute, row.namespace, row.queue, row.job_type, row.node))
    assert await store.lateness(None, 0, 2 * MINUTE) == rows
    assert await store.lateness("shop", 0, 2 * MINUTE) == [others[3]]


async def test_lateness_is_asked_from_a_minute_on_up_to_before_another(store: Store) -> None:
    rows = [a_row(minute) for minute in range(5)]
    await store.add_lateness(rows)
    for namespace in (None, "default"):
        assert await store.lateness(namespace, MINUTE, 3 * MINUTE) == rows[1:3]
        assert await store.lateness(namespace, MINUTE + 1, 3 * MINUTE + 1) == rows[2:4]
    assert await store.lateness("nowhere", 0, 9 * MINUTE) == []


async def test_two_nodes_that_note_lateness_at_once_both_do(stores: list[Store]) -> None:
    rows = [[a_row(minute, node=node) for minute in range(50)] for node in range(6)]
    await asyncio.gather(*(stores[n % len(stores)].add_lateness(part[:: (-1) ** n]) for n, part in enumerate(rows)))
    assert len(await stores[0].lateness(None, 0, 50 * MINUTE)) == 300


async def test_what_is_past_is_forgotten_and_what_is_open_stays(store: Store) -> None:
    old, fresh, still = an_incident(resolved=9), an_incident(resolved=10), an_incident(opened=1)
    assert await store.save_incidents([old, fresh, still])
    ended = {"state": "delivered", "next_try": None}
    gone, kept, pending = a_delivery(changed=9, **ended), a_delivery(changed=10, **ended), a_delivery(changed=1)
    failed = a_delivery(changed=8, state="failed", next_try=None)
    await add(store, gone, kept, pending, failed)
    await store.add_lateness([a_row(0), a_row(1)])
    assert await store.forget_watch(10, 100) == 4
    assert await store.forget_watch(10, 100) == 0
    assert await store.incidents("default", limit=9) == [still, fresh]
    assert await store.deliveries("default", "shop", limit=9) == [pending, kept]
    assert await store.lateness(None, 0, 9 * MINUTE) == [a_row(1)]


async def test_what_is_past_is_forgotten_in_pieces(store: Store) -> None:
    assert await store.save_incidents([an_incident(resolved=n) for n in range(5)])
    await add(store, *(a_delivery(changed=n, state="failed", next_try=None) for n in range(5)))
    await store.add_lateness([a_row(minute) for minute in range(5)])
    taken = []
    while count := await store.forget_watch(9 * MINUTE, 4):
        taken.append(count)
    assert taken == [4, 4, 4, 3]


async def test_what_was_kept_is_there_after_a_new_start(store: Store, make_store: MakeStore) -> None:
    post, delivery, incident = await on_watch(store), a_delivery(), an_incident()
    await store.advance(post, "1-7", deliveries=[delivery], incidents=[incident])
    definition = await store.put_definition(a_definition(), expected=0)
    await store.add_lateness([a_row()])
    await store.close()
    again = make_store()
    await again.open()
    assert await again.take_post("watch", 1, 0, 100) == replace(post, position="1-7")
    assert await again.definitions() == [definition]
    assert await again.open_incidents() == [incident]
    assert await again.deliveries("default", "shop", limit=9) == [delivery]
    assert await again.lateness(None, 0, MINUTE) == [a_row()]
    await again.close()


async def test_facts_have_names_and_figures(store: Store) -> None:
    facts = await store.facts()
    names = [fact.name for fact in facts]
    assert len(names) == len(set(names))
    assert (
        set(names)
        >= {
            "sqlite": {"disk_free_bytes", "wal_bytes", "free_pages_share"},
            "postgres": {"dead_rows", "dead_rows_share", "oldest_snapshot_seconds", "connections_share"},
        }[store.kind]
    )
    assert all(fact.value >= 0 for fact in facts)
    assert all(fact.value <= 1 for fact in facts if fact.name.endswith("_share"))
