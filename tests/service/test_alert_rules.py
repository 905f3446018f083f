"""Alert rules and channels, as users define them; what queues and jobs say instead."""

from collections.abc import Iterator
from typing import Any

import msgspec
import pytest

from foliot.domain.access import ADMIN, Caller
from foliot.domain.errors import BadInput, Conflict, Forbidden, NotFound, Stale
from foliot.domain.feed import mask_of
from foliot.domain.job import Lane
from foliot.service import alert_channels, alert_rules
from foliot.service.alert_rules import RuleBook
from foliot.service.sealing import Sealer
from foliot.wire import (
    ChannelBody,
    ChannelUpdateBody,
    MatchBody,
    RuleBody,
    RuleFields,
    ScheduleBody,
    ScheduleUpdateBody,
    UpdateBody,
    encode,
)
from tests.alerts.receiver import Receiver
from tests.service.alarms import Alarms
from tests.service.conftest import World
from tests.service.meddling import Meddling

URL = "json://ann:hunter2secret@example.org/token-abcdef"
NARROW = Caller(name="n", queues=("mail",))
OPS = {"on": ["failed"], "channels": ["ops"]}


@pytest.fixture
def world(store: Meddling) -> Iterator[World]:
    made = World(store)
    yield made
    made.services.channels.close()


async def channel(world: World, name: str = "ops", url: str = URL) -> None:
    await world.services.channels.create(ChannelBody(name=name, url=url), ADMIN)


def body(**fields: Any) -> RuleBody:
    return msgspec.convert({"name": "r", "on": "failed", "channels": ["ops"], **fields}, RuleBody)


async def test_a_rule_reads_as_it_was_made(world: World) -> None:
    await channel(world)
    rules = world.services.alert_rules
    made = await rules.create(body(on=["late", "failed", "late"], after="90s", match={"queue": "mail"}), ADMIN)
    assert (made.on, made.after, made.throttle, made.channels) == (["late", "failed"], 90, 300, ["ops"])
    assert made.match == MatchBody(queue="mail")
    assert await rules.read("r", ADMIN) == made
    assert await rules.list(ADMIN) == [made]
    assert await rules.list(Caller(name="x", namespace="there")) == []


async def test_the_fields_given_are_changed_and_null_is_the_default(world: World) -> None:
    await channel(world)
    await channel(world, "mail")
    rules = world.services.alert_rules
    await rules.create(body(on="late", after=1, match={"tag": "t"}, throttle="1h"), ADMIN)
    changed = await rules.update("r", RuleFields(channels=["mail"]), if_match=1, caller=ADMIN)
    assert (changed.channels, changed.throttle, changed.version) == (["mail"], 3600, 2)
    reset = RuleFields(on="failed", after=None, match=None, throttle=None)
    changed = await rules.update("r", reset, if_match=None, caller=ADMIN)
    assert (changed.on, changed.after, changed.match, changed.throttle) == (["failed"], None, MatchBody(), 300)
    with pytest.raises(Stale):
        await rules.update("r", reset, if_match=1, caller=ADMIN)


@pytest.mark.parametrize(
    ("fields", "field", "message"),
    [
        ({"name": "incidents"}, "name", "is the list of incidents"),
        ({"on": "late"}, "after", "is required for late"),
        ({"on": "failed", "after": "1m"}, "after", "counts only for"),
        ({"on": "late", "after": 0}, "after", "from 1 ms to a year"),
        ({"on": "late", "after": "400d"}, "after", "from 1 ms to a year"),
        ({"on": "late", "after": "soon"}, "after", "is not a duration"),
        ({"throttle": "often"}, "throttle", "is not a duration"),
        ({"on": "worker_lost", "match": {"queue": "q"}}, "match.queue", "worker_lost is matched by nothing"),
        ({"on": ["failed", "missed"], "match": {"tag": "t"}}, "match.tag", "missed is matched by schedule_id"),
        ({"channels": ["ops", "nobody"]}, "channels[1]", "there is no channel 'nobody'"),
    ],
)
async def test_what_is_wrong_with_a_rule_is_named(
    world: World, fields: dict[str, Any], field: str, message: str
) -> None:
    await channel(world)
    with pytest.raises(BadInput) as refused:
        await world.services.alert_rules.create(body(**fields), ADMIN)
    assert refused.value.errors[0].field == field
    assert message in refused.value.errors[0].message


async def test_a_name_is_taken_once_and_a_deleted_rule_is_gone(world: World) -> None:
    await channel(world)
    rules = world.services.alert_rules
    await rules.create(body(), ADMIN)
    with pytest.raises(Conflict, match="PUT"):
        await rules.create(body(), ADMIN)
    await rules.delete("r", ADMIN)
    for call in (rules.delete("r", ADMIN), rules.update("r", RuleFields(), if_match=None, caller=ADMIN)):
        with pytest.raises(NotFound):
            await call
    with pytest.raises(NotFound):
        await rules.read("r", ADMIN)


async def test_a_rule_that_somebody_else_changes_meanwhile_is_changed_from_what_is_there_then(
    world: World, store: Meddling
) -> None:
    await channel(world)
    await world.services.alert_rules.create(body(), ADMIN)
    other = World(store)
    await other.services.definitions.refresh()
    await world.services.alert_rules.update("r", RuleFields(throttle="1h"), if_match=None, caller=ADMIN)
    changed = await other.services.alert_rules.update("r", RuleFields(on="exhausted"), if_match=None, caller=ADMIN)
    assert (changed.on, changed.throttle, changed.version) == (["exhausted"], 3600, 3)


async def test_there_is_an_end_to_rules_to_channels_and_to_patience(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    await channel(world)
    await world.services.alert_rules.create(body(), ADMIN)
    monkeypatch.setattr(alert_rules, "MOST", 1)
    monkeypatch.setattr(alert_channels, "MOST", 1)
    with pytest.raises(Conflict, match="1 rules already"):
        await world.services.alert_rules.create(body(name="s"), ADMIN)
    with pytest.raises(Conflict, match="1 channels already"):
        await channel(world, "mail")

    async def never(*_: object, **__: object) -> None:
        return None

    monkeypatch.setattr(world.store, "put_definition", never)
    with pytest.raises(Conflict, match="faster than"):
        await world.services.alert_rules.update("r", RuleFields(), if_match=None, caller=ADMIN)
    with pytest.raises(Conflict, match="meanwhile"):
        await world.services.channels.update("ops", ChannelUpdateBody(url=URL), if_match=None, caller=ADMIN)
    await world.services.submit._telling.expect(Lane("default", "q", "t"), '{"on":["failed"],"channels":["ops"]}')


async def test_a_narrowed_key_reaches_neither_rules_nor_channels(world: World) -> None:
    await channel(world)
    rules, channels = world.services.alert_rules, world.services.channels
    for later in (
        rules.list(NARROW),
        rules.read("r", NARROW),
        channels.list(NARROW),
        channels.read("ops", NARROW),
        rules.create(body(), NARROW),
        rules.update("r", RuleFields(), if_match=None, caller=NARROW),
        rules.delete("r", NARROW),
        channels.create(ChannelBody(name="x", url=URL), NARROW),
        channels.update("ops", ChannelUpdateBody(url=URL), if_match=None, caller=NARROW),
        channels.delete("ops", NARROW),
        channels.test("ops", NARROW),
    ):
        with pytest.raises(Forbidden):
            await later


async def test_a_rule_on_nodes_and_the_store_is_for_the_nodes_own_admin_key(world: World) -> None:
    await channel(world)
    rules, tenant = world.services.alert_rules, Caller(name="t")
    await rules.create(body(), tenant)
    for kind in ("node_lost", "store"):
        with pytest.raises(Forbidden, match=f"{kind} concerns all namespaces"):
            await rules.create(body(name=kind, on=["failed", kind]), tenant)
        with pytest.raises(Forbidden, match="admin key"):
            await rules.update("r", msgspec.convert({"on": kind}, RuleFields), if_match=None, caller=tenant)
        await rules.create(body(name=kind, on=kind), ADMIN)


# ---- channels


async def test_a_channels_address_is_never_shown(world: World) -> None:
    await channel(world)
    channels = world.services.channels
    shown = encode([await channels.list(ADMIN), await channels.read("ops", ADMIN)]).decode()
    assert "json://***" in shown
    assert "hunter2secret" not in shown
    assert "token-abcdef" not in shown


async def test_where_keys_are_set_a_channels_address_is_kept_sealed(store: Meddling, receiver: Receiver) -> None:
    sealed = Alarms(store, receiver, sealer=Sealer([("a", bytes(32))]))
    await sealed.open()
    (kept,) = await store.definitions("channel")
    assert "notices" not in kept.body
    assert (await sealed.services.channels.test("ops", ADMIN)).sent
    assert receiver.titles == ["A test from Foliot"]
    sealed.services.channels.close()
    keyless = World(store)
    await keyless.services.definitions.refresh()
    tested = await keyless.services.channels.test("ops", ADMIN)
    assert not tested.sent
    assert "sealed with the key 'a'" in str(tested.error)


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    receiver = Receiver()
    yield receiver
    receiver.close()


async def test_the_test_button_tells_what_came_of_it(store: Meddling, receiver: Receiver) -> None:
    alarms = Alarms(store, receiver)
    await alarms.open()
    receiver.statuses = [200, 503]
    assert (await alarms.services.channels.test("ops", ADMIN)).sent
    tested = await alarms.services.channels.test("ops", ADMIN)
    assert not tested.sent
    assert "503" in str(tested.error)
    alarms.services.channels.close()


async def test_a_channel_can_be_given_another_address_and_be_deleted(world: World) -> None:
    await channel(world)
    channels = world.services.channels
    changed = await channels.update("ops", ChannelUpdateBody(url="JSONS://example.org"), if_match=1, caller=ADMIN)
    assert (changed.url, changed.version) == ("jsons://***", 2)
    with pytest.raises(Stale):
        await channels.update("ops", ChannelUpdateBody(url=URL), if_match=1, caller=ADMIN)
    with pytest.raises(Conflict, match="PUT"):
        await channel(world)
    await channels.delete("ops", ADMIN)
    with pytest.raises(NotFound):
        await channels.delete("ops", ADMIN)
    for call in (
        channels.test("ops", ADMIN),
        channels.update("ops", ChannelUpdateBody(url=URL), if_match=None, caller=ADMIN),
    ):
        with pytest.raises(NotFound):
            await call
    with pytest.raises(NotFound):
        await channels.read("ops", ADMIN)


async def test_an_address_that_nothing_can_be_sent_to_is_refused(world: World) -> None:
    with pytest.raises(BadInput, match="url: syslog:// would speak on the node's own machine"):
        await channel(world, url="syslog://")


# ---- what queues and jobs say


@pytest.mark.parametrize(
    ("notify", "field", "message"),
    [
        ({"on": ["failed"]}, "notify.channels", "is required"),
        ({"on": ["late"], "channels": ["ops"]}, "notify.late_after", "goes with late"),
        ({"on": ["failed"], "late_after": "1s", "channels": ["ops"]}, "notify.late_after", "goes with late"),
        ({"on": ["late"], "late_after": "x", "channels": ["ops"]}, "notify.late_after", "is not a duration"),
        ({"on": ["slo"], "channels": ["ops"]}, "notify.on", "told of queues"),
        ({"on": ["failed"], "channels": ["nobody"]}, "notify.channels[0]", "there is no channel 'nobody'"),
    ],
)
async def test_what_is_wrong_with_a_jobs_notify_is_named(
    world: World, notify: dict[str, Any], field: str, message: str
) -> None:
    await channel(world)
    with pytest.raises(BadInput) as refused:
        await world.submit(notify=notify)
    assert refused.value.errors[0].field == field
    assert message in refused.value.errors[0].message
    plan = {"schedule_id": "s", "every": "1h", "job": {"job_type": "x", "notify": notify}}
    with pytest.raises(BadInput) as refused:
        await world.services.schedules.create(msgspec.convert(plan, ScheduleBody), ADMIN)
    assert refused.value.errors[0].field == f"job.{field}"


async def test_what_a_job_says_can_be_changed_and_taken_back(world: World) -> None:
    await channel(world)
    services = world.services

    async def told(job_id: str) -> Any:
        return (await services.query.job(job_id, ADMIN)).notify

    job_id = await world.submit(delay="1h", notify=OPS)
    assert (await told(job_id)).on == ["failed"]
    change = msgspec.convert({"notify": {"on": ["exhausted"], "channels": ["ops"]}}, UpdateBody)
    await services.control.update(job_id, change, if_match=None, caller=ADMIN)
    assert (await told(job_id)).on == ["exhausted"]
    await services.channels.delete("ops", ADMIN)
    await services.control.update(job_id, UpdateBody(priority=9), if_match=None, caller=ADMIN)
    assert (await told(job_id)).channels == ["ops"]
    await services.control.update(job_id, UpdateBody(notify=None), if_match=None, caller=ADMIN)
    assert await told(job_id) is None


async def test_the_runs_of_a_schedule_say_what_its_job_says(world: World) -> None:
    await channel(world)
    schedules = world.services.schedules
    plan = {"schedule_id": "s", "every": "1h", "job": {"job_type": "x", "notify": OPS}}
    await schedules.create(msgspec.convert(plan, ScheduleBody), ADMIN)
    run = await schedules.trigger("s", caller=ADMIN)
    notify = (await world.services.query.job(run.job_id, ADMIN)).notify
    assert notify is not None
    assert notify.channels == ["ops"]
    late = {"job_type": "x", "notify": {"on": ["late"], "late_after": "5s", "channels": ["ops"]}}
    change = msgspec.convert({"job": late}, ScheduleUpdateBody)
    await schedules.update("s", change, if_match=None, caller=ADMIN)
    assert msgspec.json.decode((await schedules.read("s", ADMIN)).job)["notify"]["late_after"] == "5s"
    own = RuleBook(world.services.definitions).own(Lane("default", "default", "x"))
    assert own is not None
    assert (own.on, own.late_after) == (("failed", "late"), 5_000_000)
    wrong = msgspec.convert({"job": {"job_type": "x", "notify": {"on": ["failed"]}}}, ScheduleUpdateBody)
    with pytest.raises(BadInput, match=r"job\.notify\.channels"):
        await schedules.update("s", wrong, if_match=None, caller=ADMIN)


async def test_the_watch_knows_of_all_that_jobs_of_a_kind_say(world: World, store: Meddling) -> None:
    await channel(world)
    other = World(store)
    await other.services.definitions.refresh()
    await world.submit("x", notify=OPS)
    await world.submit("x", notify=OPS)
    await other.submit("x", notify={"on": ["late"], "late_after": 2, "channels": ["ops"]})
    await other.submit("x", notify={"on": ["late"], "late_after": 1, "channels": ["ops"]})
    await world.services.definitions.refresh()
    own = RuleBook(world.services.definitions).own(Lane("default", "default", "x", "gpu"))
    assert own is not None
    assert (own.on, own.late_after) == (("failed", "late"), 1_000_000)
    assert world.services.alerts.wanted() == mask_of(["failed"])


@pytest.mark.parametrize(
    ("objective", "field"),
    [
        ({"target": 0.9, "within": 0}, "objective.within"),
        ({"target": 0.9, "within": "1s", "over": "1m"}, "objective.over"),
        ({"target": 0.9, "within": "1s", "over": "31d"}, "objective.over"),
    ],
)
async def test_what_is_wrong_with_an_objective_is_named(
    store: Meddling, receiver: Receiver, objective: dict[str, Any], field: str
) -> None:
    alarms = Alarms(store, receiver)
    with pytest.raises(BadInput) as refused:
        await alarms.set_queue(objective=objective)
    assert refused.value.errors[0].field == field


async def test_what_a_queue_says_reads_as_it_was_set(store: Meddling, receiver: Receiver) -> None:
    alarms = Alarms(store, receiver)
    await alarms.open()
    queue = await alarms.set_queue("mail", objective={"target": 0.99, "within": "1s"}, notify=OPS)
    assert queue.objective is not None
    assert (queue.objective.target, queue.objective.within, queue.objective.over) == (0.99, 1, 7 * 24 * 3600)
    assert (await alarms.set_queue("mail", objective=None)).objective is None
    with pytest.raises(BadInput, match="no channel 'nobody'"):
        await alarms.set_queue("mail", notify={"on": ["failed"], "channels": ["nobody"]})
    assert (await alarms.set_queue("mail", notify=None)).notify is None
    assert await store.definitions("queue") == []
    alarms.services.channels.close()


async def test_what_was_just_made_on_another_node_is_there(store: Meddling, receiver: Receiver) -> None:
    first, second = Alarms(store, receiver), Alarms(store, receiver)
    await first.open()
    job_id = await second.submit(notify=OPS)
    assert (await first.services.query.job(job_id, ADMIN)).notify is not None
    await second.rule("failed")
    assert (await first.services.alert_rules.read("r", ADMIN)).name == "r"
    await first.set_queue("mail", notify=OPS)
    assert (await second.services.queues.read("mail", ADMIN)).notify is not None
    for each in (first, second):
        each.services.channels.close()
