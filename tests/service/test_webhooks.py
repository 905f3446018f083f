"""Webhooks are made, read, changed and switched, and get the events that they asked for and no others."""

import asyncio
from typing import Any

import msgspec
import pytest

from foliot.domain.access import ADMIN, Caller
from foliot.domain.duration import DAY
from foliot.domain.errors import BadInput, Conflict, Forbidden, NotFound, Stale, Unavailable
from foliot.domain.feed import ALL_STATUSES, Happening, Position, mask_of
from foliot.outbound import AllowList
from foliot.service.sealing import MARK, Sealer
from foliot.service.webhooks import MOST, ROUNDS
from foliot.store.base import Definition
from foliot.wire import RotateBody, WebhookChange, WebhookInfo
from tests.service.conftest import World
from tests.service.meddling import Meddling
from tests.service.test_sealing import OLD
from tests.service.told import URL, happened, listed, make, told

THERE = Caller(name="boss", namespace="there")
NARROW = Caller(name="some", queues=("side",))


async def change(world: World, webhook_id: str, if_match: int | None = None, **fields: Any) -> Any:
    body = msgspec.convert(fields, WebhookChange)
    return await world.services.webhooks.update(webhook_id, body, if_match=if_match, caller=ADMIN)


async def switch(world: World, webhook_id: str, on: bool) -> Any:
    return await world.services.webhooks.switch(webhook_id, on=on, if_match=None, caller=ADMIN)


async def kinds(world: World) -> list[tuple[str, str]]:
    """To which webhook what went."""
    return [(each.webhook, each.event_type) for each in await told(world)]


# made, read, changed


async def test_a_webhook_is_read_as_it_was_made_but_for_its_secret(world: World) -> None:
    made = await make(world, events=["foliot.job.failed", "job.failed", "worker.*"], match={"queue": "line"})
    assert made.webhook_id.startswith("wh_")
    assert made.secret.startswith("whsec_")
    read = await world.services.webhooks.read(made.webhook_id, ADMIN)
    assert {**msgspec.structs.asdict(read), "secret": made.secret} == msgspec.structs.asdict(made)
    assert (read.url, read.events, read.match.queue) == (URL, ["job.failed", "worker.*"], "line")
    assert (read.enabled, read.off_reason, read.failing_since) == (True, None, None)
    assert (read.give_up_after, read.created_by, read.version) == (3 * DAY / 1_000_000, "admin", 1)


async def test_webhooks_are_listed_page_by_page(world: World) -> None:
    made = [(await make(world)).webhook_id for _ in range(3)]
    page, cursor = await world.services.webhooks.page(limit=2, cursor=None, caller=ADMIN)
    assert [each.webhook_id for each in page] == made[:2]
    rest, end = await world.services.webhooks.page(limit=2, cursor=cursor, caller=ADMIN)
    assert ([each.webhook_id for each in rest], end) == (made[2:], None)


@pytest.mark.parametrize(
    ("fields", "field", "says"),
    [
        ({"url": "ftp://example.org"}, "url", "http:// or https://"),
        ({"url": "nowhere"}, "url", "is not an address"),
        ({"url": "https://me:word@example.org/"}, "url", "without credentials"),
        ({"url": "http://10.1.2.3/x"}, "url", "a private address"),
        ({"url": "http://127.1:9000/"}, "url", "list 127.1:9000|loopback"),
        ({"url": "http://localhost/"}, "url", "list localhost:80 on the node"),
        ({"url": "http://a.localhost./"}, "url", "loopback"),
        ({"url": "http://[::1]/"}, "url", "a loopback address"),
        ({"url": "http://2130706433/"}, "url", "a loopback address"),
        ({"url": "http://169.254.169.254/latest/meta-data"}, "url", "the metadata of a cloud"),
        ({"events": ["job.failed", "job.fail"]}, r"events\[1\]", "no event; use job.scheduled"),
        ({"give_up_after": "59s"}, "give_up_after", "from 1 minute to 30 days"),
        ({"give_up_after": "31d"}, "give_up_after", "from 1 minute to 30 days"),
        ({"give_up_after": "long"}, "give_up_after", "not a duration"),
    ],
)
async def test_what_can_not_be_is_refused_by_name(world: World, fields: Any, field: str, says: str) -> None:
    with pytest.raises(BadInput, match=f"^{field}: .*({says})"):
        await make(world, **fields)
    made = await make(world)
    with pytest.raises(BadInput, match=f"^{field}: "):
        await change(world, made.webhook_id, **fields)
    assert await world.services.webhooks.read(made.webhook_id, ADMIN) == read_of(made)


def read_of(made: Any) -> Any:
    fields = msgspec.structs.asdict(made)
    del fields["secret"]
    return WebhookInfo(**fields)


async def test_what_the_operator_has_listed_may_be_named(store: Meddling) -> None:
    world = World(store)
    world.services.webhooks._allowed = AllowList.parse("localhost:80,10.0.0.0/8")
    for url in ("http://localhost/", "http://10.9.9.9:99/"):
        assert (await make(world, url=url)).url == url
    with pytest.raises(BadInput):
        await make(world, url="http://localhost:81/")


async def test_what_is_given_is_changed_and_the_rest_stays(world: World) -> None:
    made = await make(world, match={"tag": "a"})
    changed = await change(world, made.webhook_id, url="https://other.example.org/", give_up_after="1h")
    assert (changed.url, changed.give_up_after, changed.match.tag) == ("https://other.example.org/", 3600, "a")
    changed = await change(world, made.webhook_id, events=["job.*"], match={"queue": "q"})
    assert (changed.events, changed.match.queue, changed.match.tag) == (["job.*"], "q", None)
    assert changed.version == 3


async def test_a_change_of_an_older_version_is_refused(world: World) -> None:
    made = await make(world)
    assert (await change(world, made.webhook_id, if_match=1, events=["job.*"])).version == 2
    with pytest.raises(Stale, match="is at version 2, not 1"):
        await change(world, made.webhook_id, if_match=1, events=["*"])


async def test_a_change_waits_for_one_that_came_first(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    made = await make(world)
    put = world.store.put_definition
    hindered = 0

    async def hinder(definition: Definition, *, expected: int | None) -> Definition | None:
        nonlocal hindered
        hindered += 1
        return None if hindered < most else await put(definition, expected=expected)

    monkeypatch.setattr(world.store, "put_definition", hinder)
    most = 3
    assert (await change(world, made.webhook_id, events=["job.*"])).events == ["job.*"]
    most = 1000
    with pytest.raises(Conflict, match="changes faster"):
        await change(world, made.webhook_id, events=["*"])
    before, hindered = hindered, 0
    await world.services.webhooks.amend(
        "default", made.webhook_id, lambda known: msgspec.structs.replace(known, url="")
    )
    assert (before, hindered) == (3 + ROUNDS, ROUNDS)


async def test_there_are_only_so_many_in_a_namespace(world: World) -> None:
    for _ in range(MOST):
        await make(world)
    with pytest.raises(Conflict, match="delete one"):
        await make(world)
    await make(world, THERE)


async def test_a_webhook_that_is_deleted_is_gone(world: World) -> None:
    made = await make(world)
    await world.services.webhooks.delete(made.webhook_id, ADMIN)
    for call in (world.services.webhooks.read, world.services.webhooks.delete, world.services.webhooks.test):
        with pytest.raises(NotFound, match=made.webhook_id):
            await call(made.webhook_id, ADMIN)
    await world.services.webhooks.amend("default", made.webhook_id, lambda known: known)
    assert world.services.webhooks.wanted() == 0


async def test_nobody_of_another_namespace_or_with_a_narrowed_key_sees_one(world: World) -> None:
    webhooks, made = world.services.webhooks, await make(world)
    for caller, error in ((THERE, NotFound), (NARROW, Forbidden)):
        for call in (
            webhooks.read(made.webhook_id, caller),
            webhooks.update(made.webhook_id, WebhookChange(url=URL), if_match=None, caller=caller),
            webhooks.switch(made.webhook_id, on=False, if_match=None, caller=caller),
            webhooks.rotate(made.webhook_id, RotateBody(), caller),
            webhooks.test(made.webhook_id, caller),
            webhooks.delete(made.webhook_id, caller),
        ):
            with pytest.raises(error):
                await call
    assert await webhooks.page(limit=9, cursor=None, caller=THERE) == ([], None)
    with pytest.raises(Forbidden):
        await webhooks.page(limit=9, cursor=None, caller=NARROW)
    with pytest.raises(Forbidden):
        await make(world, NARROW)


# secrets


async def test_a_secret_is_kept_sealed(store: Meddling) -> None:
    world = World(store, sealer=Sealer([OLD]))
    made = await make(world)
    (kept,) = await store.definitions("webhook")
    assert MARK in kept.body
    assert made.secret not in kept.body
    known = world.services.webhooks.known("default", made.webhook_id)
    assert known is not None
    assert world.services.webhooks.secrets_of(made.webhook_id, known) == [made.secret]


async def test_after_a_rotation_both_secrets_sign_for_the_overlap(world: World) -> None:
    webhooks, made = world.services.webhooks, await make(world)

    def secrets() -> list[str]:
        known = webhooks.known("default", made.webhook_id)
        assert known is not None
        return webhooks.secrets_of(made.webhook_id, known)

    new = await webhooks.rotate(made.webhook_id, RotateBody(), ADMIN)
    assert secrets() == [new.secret, made.secret]
    world.clock.pass_seconds(24 * 3600 - 1)
    assert secrets() == [new.secret, made.secret]
    world.clock.pass_seconds(1)
    assert secrets() == [new.secret]
    newest = await webhooks.rotate(made.webhook_id, RotateBody(overlap=0), ADMIN)
    assert secrets() == [newest.secret]
    with pytest.raises(BadInput, match=r"^overlap: "):
        await webhooks.rotate(made.webhook_id, RotateBody(overlap="31d"), ADMIN)


async def test_a_rotation_whose_answer_was_lost_keeps_the_old_secret(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    webhooks, made = world.services.webhooks, await make(world)
    put = world.store.put_definition
    lost = 0

    async def lose(definition: Definition, *, expected: int | None) -> Definition | None:
        nonlocal lost
        saved = await put(definition, expected=expected)
        if not lost:
            lost += 1
            raise Unavailable("no answer", fate_unknown=True)
        return saved

    monkeypatch.setattr(world.store, "put_definition", lose)
    new = await webhooks.rotate(made.webhook_id, RotateBody(), ADMIN)
    await world.services.definitions.refresh()
    known = webhooks.known("default", made.webhook_id)
    assert known is not None
    assert webhooks.secrets_of(made.webhook_id, known) == [new.secret, made.secret]


# events


async def test_a_webhook_gets_what_it_asked_for(world: World) -> None:
    failed, every = await make(world, events=["job.failed"]), await make(world, events=["job.*"])
    other = await make(world, events=["worker.lost"])
    assert world.services.webhooks.wanted() == ALL_STATUSES
    worker = await world.worker()
    job_id = await world.submit(retry={"max_attempts": 1})
    await world.report(worker, await world.take_one(worker), "fatal_failure")
    sent = await told(world)
    assert [each.event_type for each in sent if each.webhook == every.webhook_id] == [
        "foliot.job.queued",
        "foliot.job.running",
        "foliot.job.failed",
    ]
    (one,) = [each for each in sent if each.webhook == failed.webhook_id]
    event = msgspec.json.decode(one.body)
    assert (event["specversion"], event["type"], event["subject"]) == ("1.0", "foliot.job.failed", job_id)
    assert (event["id"], event["data"]["status"]) == (one.event_id, "failed")
    assert [each for each in sent if each.webhook == other.webhook_id] == []
    assert len({each.id for each in sent}) == len(sent)


async def test_only_the_statuses_that_somebody_asked_for_are_read(world: World) -> None:
    assert world.services.webhooks.wanted() == 0
    await make(world, events=["job.failed"])
    made = await make(world, THERE, events=["job.cancelled", "worker.lost"])
    assert world.services.webhooks.wanted() == mask_of(["failed", "cancelled"])
    await world.services.webhooks.switch(made.webhook_id, on=False, if_match=None, caller=THERE)
    assert world.services.webhooks.wanted() == mask_of(["failed"])


@pytest.mark.parametrize(
    ("match", "takes"),
    [
        ({"queue": "line"}, True),
        ({"queue": "side"}, False),
        ({"job_type": "echo", "tag": "red"}, True),
        ({"job_type": "other"}, False),
        ({"tag": "blue"}, False),
        ({"schedule_id": "plan"}, False),
    ],
)
async def test_a_webhook_gets_only_what_matches(world: World, match: dict[str, str], takes: bool) -> None:
    made = await make(world, match=match)
    await world.submit(queue="line", tags=["red"])
    assert await kinds(world) == [(made.webhook_id, "foliot.job.queued")] * takes


async def test_events_that_are_not_about_jobs_match_by_their_schedule_alone(world: World) -> None:
    plan, every = await make(world, match={"schedule_id": "plan"}), await make(world)
    await make(world, match={"queue": "line"})
    await make(world, match={"schedule_id": "other"})
    missed = Happening(kind="schedule.missed", subject="plan", namespace="default")
    lost = Happening(kind="worker.lost", subject="plan", namespace="default")
    await world.store.note([missed, lost], world.clock.now())
    assert await kinds(world) == [
        (plan.webhook_id, "foliot.schedule.missed"),
        (every.webhook_id, "foliot.schedule.missed"),
        (every.webhook_id, "foliot.worker.lost"),
    ]


async def test_a_webhook_gets_events_of_its_own_namespace_and_those_of_nodes_only_the_admin_keys(world: World) -> None:
    home, there = await make(world), await make(world, THERE)
    await make(world, Caller(name="other", namespace="default"), events=["node.lost"])
    happenings = [
        Happening(kind="worker.lost", subject="w_1", namespace="there"),
        Happening(kind="worker.lost", subject="w_2", namespace="default"),
        Happening(kind="node.lost", subject="n_1"),
    ]
    await world.store.note(happenings, world.clock.now())
    assert await kinds(world) == [
        (there.webhook_id, "foliot.worker.lost"),
        (home.webhook_id, "foliot.worker.lost"),
        (home.webhook_id, "foliot.node.lost"),
    ]


async def test_a_job_that_is_not_there_any_more_matches_by_its_lane(world: World) -> None:
    """Whoever reads without the jobs themselves."""
    await make(world, match={"tag": "red"})
    by_lane = await make(world, match={"queue": "line"})
    await world.submit(queue="line", tags=["red"])
    (event,), _ = await happened(world.store, Position())
    bare = msgspec.structs.replace(event, record=None)
    assert [each.webhook for each in world.services.webhooks.deliveries_for([bare])] == [by_lane.webhook_id]


async def test_bodies_are_kept_sealed(store: Meddling) -> None:
    world = World(store, sealer=Sealer([OLD]))
    made = await make(world)
    await world.submit(tags=["very-private"])
    await told(world)
    (kept,) = await store.deliveries("default", made.webhook_id, limit=9)
    assert kept.body.startswith(MARK)
    assert "very-private" not in kept.body


async def test_one_that_is_switched_off_gets_nothing_until_it_is_on_again(world: World) -> None:
    made = await make(world)
    off = await switch(world, made.webhook_id, False)
    assert (off.enabled, off.off_reason) == (False, "switched_off")
    assert (await switch(world, made.webhook_id, False)).version == off.version
    await world.submit()
    assert await told(world) == []
    assert (await switch(world, made.webhook_id, True)).enabled
    await world.submit()
    assert len(await told(world)) == 1


async def test_who_sends_is_told_that_there_is_something(world: World) -> None:
    rung = asyncio.Event()
    world.services.webhooks.on_added.append(rung.set)
    await make(world)
    await world.submit()
    await told(world)
    assert rung.is_set()


# the test button


async def test_a_test_goes_to_its_webhook_alone_whatever_that_asks_for(world: World) -> None:
    made = await make(world, events=["job.failed"], match={"queue": "nowhere"})
    await make(world, events=["*"])
    rung = asyncio.Event()
    world.wake.on_change.append(lambda _tell: rung.set())
    await world.services.webhooks.test(made.webhook_id, ADMIN)
    assert rung.is_set()
    assert await kinds(world) == [(made.webhook_id, "foliot.webhook.test")]
    (delivery,) = await listed(world, made.webhook_id)
    assert (delivery.event_type, delivery.state) == ("foliot.webhook.test", "pending")


async def test_one_that_is_off_is_not_tested(world: World) -> None:
    made = await make(world)
    await switch(world, made.webhook_id, False)
    with pytest.raises(Conflict, match="enable it first"):
        await world.services.webhooks.test(made.webhook_id, ADMIN)


async def test_without_a_record_of_events_there_is_no_test(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    made = await make(world)
    monkeypatch.setattr(world.store, "recording", False)
    with pytest.raises(Conflict, match="FOLIOT_EVENTS"):
        await world.services.webhooks.test(made.webhook_id, ADMIN)
