"""The life of a schedule: made, read, changed, paused, triggered, backfilled, deleted."""

from collections.abc import AsyncIterator
from typing import Any

import msgspec
import pytest

from foliot.domain.access import ADMIN, Caller
from foliot.domain.errors import BadInput, Conflict, NotFound, Stale, TooLarge, Unavailable
from foliot.domain.ids import SCHEDULE, parse
from foliot.service import schedules as schedules_module
from foliot.wire import BackfillBody, ScheduleInfo, ScheduleUpdateBody, to_micros
from tests.service.almanac import BEGIN, Almanac, at, open_almanac, run_id, schedule_body
from tests.service.meddling import failing

LOST = Unavailable("the answer was lost", fate_unknown=True)


@pytest.fixture
async def almanac() -> AsyncIterator[Almanac]:
    async with open_almanac() as almanac:
        yield almanac


async def names(almanac: Almanac) -> list[str]:
    page, _ = await almanac.schedules.page(limit=1000, cursor=None, caller=ADMIN)
    return [each.schedule_id for each in page]


async def test_a_schedule_gets_an_id_or_has_its_own(almanac: Almanac) -> None:
    named, unnamed = await almanac.create(every="10s"), await almanac.create(None, cron="0 9 * * *")
    assert (named.status, named.schedule_id, named.next_run) == ("created", "beat", at(10))
    assert parse(SCHEDULE, unnamed.schedule_id) is not None
    assert unnamed.next_run == at(9 * 3600)
    assert await names(almanac) == [unnamed.schedule_id, "beat"]


async def test_it_is_read_as_it_was_given_with_its_defaults(almanac: Almanac) -> None:
    await almanac.create(
        every="90s",
        job={"job_type": "echo", "payload": {"n": 1}, "priority": "high"},
        calendar={"country": "ES", "except": ["2027-05-03"]},
        end_time=at(30 * 86_400),
        max_runs=5,
        jitter=2.5,
        overlap="queue",
        max_concurrency=3,
        catch_up="all",
        catch_up_window="2h",
    )
    info = await almanac.info()
    told = msgspec.json.decode(msgspec.json.encode(info))
    assert told["job"] == {"job_type": "echo", "payload": {"n": 1}, "priority": "high"}
    assert told["calendar"] == {"country": "ES", "except": ["2027-05-03"]}
    assert (info.status, info.every, info.cron, info.rrule, info.timezone) == ("active", 90, None, None, "UTC")
    assert (info.end_time, info.start_time, info.max_runs, info.jitter) == (at(30 * 86_400), None, 5, 2.5)
    assert (info.overlap, info.max_concurrency, info.catch_up, info.catch_up_window) == ("queue", 3, "all", 7200)
    assert (info.on_holiday, info.paused, info.runs, info.version) == ("skip", False, 0, 1)
    assert (info.owner, info.created_time, info.last_updated) == ("admin", BEGIN, BEGIN)
    await almanac.create("plain", cron="@daily")
    plain = await almanac.info("plain")
    assert plain == ScheduleInfo(
        schedule_id="plain",
        status="active",
        description=plain.description,
        next_run=at(86_400),
        runs=0,
        job=plain.job,
        cron="@daily",
        owner="admin",
        created_time=BEGIN,
        last_updated=BEGIN,
    )
    assert "00:00" in plain.description


async def test_one_that_has_nothing_due_any_more_has_ended(almanac: Almanac) -> None:
    await almanac.create(every="10s", max_runs=1)
    await almanac.move_to(60)
    info = await almanac.info()
    assert (info.status, info.next_run, info.runs) == ("ended", None, 1)
    assert await almanac.ledger() == [(10, "ran", None)]


async def test_the_same_body_again_is_the_same_schedule_and_another_is_refused(almanac: Almanac) -> None:
    first = await almanac.create(every="10s")
    assert await almanac.create(every="10s") == first
    with pytest.raises(Conflict, match="taken"):
        await almanac.create(every="11s")
    assert await names(almanac) == ["beat"]
    assert (await almanac.info()).every == 10


async def test_the_same_request_key_again_is_the_same_schedule(almanac: Almanac) -> None:
    body, schedules = schedule_body(every="10s"), almanac.schedules
    first = await schedules.create(body, ADMIN, "once")
    assert await schedules.create(body, ADMIN, "once") == first
    assert (await schedules.create(body, ADMIN, "twice")).schedule_id != first.schedule_id
    with pytest.raises(Conflict):
        await schedules.create(schedule_body(every="11s"), ADMIN, "once")
    own = await schedules.create(schedule_body(every="10s", schedule_id="own"), ADMIN, "once")
    assert own.schedule_id == "own"
    assert len(await names(almanac)) == 3


@pytest.mark.parametrize("schedule_id", ["beat", None])
async def test_a_schedule_whose_answer_was_lost_is_there_once(almanac: Almanac, schedule_id: str | None) -> None:
    almanac.store.after("save_schedules", failing(LOST))
    made = await almanac.create(schedule_id, every="10s")
    assert made.status == "created"
    assert await names(almanac) == [made.schedule_id]
    assert almanac.store.calls["save_schedules"] == 2


async def test_a_name_that_is_free_again_once_it_was_found_taken_is_a_conflict(almanac: Almanac) -> None:
    await almanac.create(every="10s")
    almanac.store.after("save_schedules", almanac.delete)
    with pytest.raises(Conflict):
        await almanac.create(every="10s")


@pytest.mark.parametrize(
    ("field", "fields"),
    [
        ("cron", {"cron": "0 0 31 2 *"}),
        ("cron", {"cron": "every day"}),
        ("cron", {}),
        ("rrule", {"rrule": "FREQ=SOMETIMES"}),
        ("timezone", {"cron": "@daily", "timezone": "Mars/Olympus"}),
        ("every", {"every": 0}),
        ("every", {"every": "99ms"}),
        ("every", {"every": "soon"}),
        ("end_time", {"every": "10s", "start_time": at(60), "end_time": at(59)}),
        ("end_time", {"every": "10s", "end_time": at(5)}),
        ("every", {"cron": "@daily", "every": "5m"}),
        ("rrule", {"rrule": "FREQ=DAILY", "every": "5m"}),
        ("jitter", {"every": "10s", "jitter": "some"}),
        ("catch_up_window", {"every": "10s", "catch_up_window": "a while"}),
        ("on_holiday", {"cron": "@daily", "on_holiday": "next"}),
        ("calendar.country", {"cron": "@daily", "calendar": {"country": "XX"}}),
        ("job.priority", {"every": "10s", "job": {"job_type": "echo", "priority": "urgent"}}),
        ("job.timeout", {"every": "10s", "job": {"job_type": "echo", "timeout": 0}}),
        ("job.retry.initial", {"every": "10s", "job": {"job_type": "echo", "retry": {"initial": "x"}}}),
        ("schedule_id", {"every": "10s", "schedule_id": "j_mine"}),
        ("schedule_id", {"every": "10s", "schedule_id": "preview"}),
    ],
)
async def test_what_can_not_be_a_schedule_is_refused_by_its_field(
    almanac: Almanac, field: str, fields: dict[str, Any]
) -> None:
    with pytest.raises(BadInput) as refused:
        await almanac.create(**fields)
    assert [error.field for error in refused.value.errors] == [field]
    assert await names(almanac) == []


async def test_a_payload_that_no_run_could_have_is_refused_at_once(almanac: Almanac) -> None:
    with pytest.raises(TooLarge) as refused:
        await almanac.create(every="10s", job={"job_type": "echo", "payload": "x" * 300_000})
    assert refused.value.errors[0].field == "job.payload"
    await almanac.create(every="10s")
    with pytest.raises(TooLarge) as refused:
        await almanac.change(job={"job_type": "echo", "payload": "x" * 300_000})
    assert refused.value.errors[0].field == "job.payload"
    assert (await almanac.info()).version == 1


async def test_schedules_are_paged_newest_first(almanac: Almanac) -> None:
    for number in range(5):
        await almanac.create(f"beat-{number}", every="10s")
    found: list[str] = []
    cursor: str | None = None
    for expected in (2, 2, 1):
        page, cursor = await almanac.schedules.page(limit=2, cursor=cursor, caller=ADMIN)
        assert len(page) == expected
        found += [each.schedule_id for each in page]
    assert cursor is None
    assert found == [f"beat-{number}" for number in (4, 3, 2, 1, 0)]
    with pytest.raises(BadInput) as refused:
        await almanac.schedules.page(limit=2, cursor="elsewhere", caller=ADMIN)
    assert refused.value.errors[0].field == "cursor"


async def test_a_schedule_of_another_namespace_is_not_there(almanac: Almanac) -> None:
    stranger = Caller(name="eve", namespace="other")
    await almanac.create(every="10s")
    with pytest.raises(NotFound, match="beat"):
        await almanac.schedules.read("beat", stranger)
    assert await almanac.schedules.page(limit=10, cursor=None, caller=stranger) == ([], None)
    await almanac.schedules.create(schedule_body(schedule_id="beat", every="11s"), stranger)
    assert (await almanac.info()).every == 10


# Changes


async def test_only_what_is_given_changes_and_null_is_the_default(almanac: Almanac) -> None:
    await almanac.create(cron="0 9 * * *", timezone="Europe/Madrid", overlap="queue", jitter="5s", max_runs=3)
    changed = await almanac.change(overlap=None, jitter="7s", timezone=None)
    assert (changed.status, changed.next_run) == ("updated", at(9 * 3600))
    info = await almanac.info()
    assert (info.cron, info.timezone, info.overlap, info.jitter, info.max_runs) == ("0 9 * * *", "UTC", "skip", 7, 3)
    assert info.version == 2


async def test_a_trigger_takes_the_place_of_another_kind(almanac: Almanac) -> None:
    await almanac.create(cron="0 9 * * *", job={"job_type": "echo", "payload": [1]})
    assert (await almanac.change(every="10s")).next_run == at(10)
    info = await almanac.info()
    assert (info.cron, info.every, bytes(info.job)) == (None, 10, b'{"job_type":"echo","payload":[1]}')
    assert (await almanac.change(rrule="FREQ=HOURLY", every=None)).next_run is not None
    info = await almanac.info()
    assert (info.cron, info.every, info.rrule) == (None, None, "FREQ=HOURLY")


@pytest.mark.parametrize(
    ("field", "fields"),
    [
        ("cron", {"cron": "0 0 31 2 *"}),
        ("cron", {"every": None}),
        ("every", {"cron": "@daily", "every": "5m"}),
        ("timezone", {"timezone": "Mars/Olympus"}),
        ("end_time", {"start_time": at(60), "end_time": at(59)}),
        ("catch_up_window", {"catch_up_window": "a while"}),
        ("job.priority", {"job": {"job_type": "echo", "priority": 11}}),
    ],
)
async def test_a_bad_change_is_refused_by_its_field_and_changes_nothing(
    almanac: Almanac, field: str, fields: dict[str, Any]
) -> None:
    await almanac.create(every="10s")
    before = await almanac.kept()
    with pytest.raises(BadInput) as refused:
        await almanac.change(**fields)
    assert [error.field for error in refused.value.errors] == [field]
    assert await almanac.kept() == before


async def test_a_change_that_says_the_same_leaves_the_next_run_where_it_is(almanac: Almanac) -> None:
    await almanac.create(every="10s")
    almanac.sleep_to(5)
    assert (await almanac.change(every="10s")).next_run == at(10)
    assert (await almanac.change(every="4s")).next_run == at(8)


async def test_a_changed_time_counts_also_when_the_old_one_was_read_ahead(almanac: Almanac) -> None:
    await almanac.create(every="10s")
    ahead = await almanac.store.peek_schedules(to_micros(at(10)), 10)
    await almanac.change(every="30s")
    almanac.sleep_to(10)
    (left,) = await almanac.services.firing.fire(ahead)
    assert left == ahead[0].schedule.id
    assert await almanac.ledger() == []
    await almanac.move_to(30)
    assert await almanac.jobs() == {30: "queued"}


async def test_what_was_due_before_the_change_is_decided_by_the_old_plan(almanac: Almanac) -> None:
    await almanac.create(every="10s", overlap="allow")
    almanac.sleep_to(25)
    changed = await almanac.change(every="60s", overlap="skip")
    assert changed.next_run == at(60)
    assert await almanac.ledger() == [(10, "ran", None), (20, "ran", None)]


async def test_a_changed_job_reaches_the_runs_that_have_not_started(almanac: Almanac) -> None:
    worker = await almanac.worker()
    await almanac.create(every="10s", overlap="allow", jitter="1h", job={"job_type": "echo", "tags": ["old"]})
    await almanac.move_to(30)
    first, second, third = [run_id(seconds) for seconds in (10, 20, 30)]
    due = {name: (await almanac.services.query.find(name, ADMIN)).row.due for name in (first, second, third)}
    for name in (first, second):
        await almanac.services.control.run(name, if_match=None, caller=ADMIN)
    started = (await almanac.take_one(worker)).job_id
    await almanac.change(job={"job_type": "echo", "payload": {"new": True}, "priority": "high", "queue": "fast"})
    for name in (first, second, third):
        info = await almanac.services.query.job(name, ADMIN)
        if name == started:
            assert (info.priority, info.queue, info.tags) == ("medium", "default", ["old"])
        else:
            assert (info.priority, info.queue, info.tags) == ("high", "fast", [])
            assert msgspec.json.encode(info.payload) == b'{"new":true}'
    assert (await almanac.services.query.find(third, ADMIN)).row.due == due[third]
    await almanac.move_to(40)
    assert (await almanac.services.query.job(run_id(40), ADMIN)).queue == "fast"


async def test_a_run_stays_its_schedules_owners_whoever_changes_the_job(almanac: Almanac) -> None:
    await almanac.create(every="10s", jitter="1h")
    await almanac.move_to(10)
    body = msgspec.json.decode(b'{"job":{"job_type":"other"}}', type=ScheduleUpdateBody)
    await almanac.schedules.update("beat", body, if_match=None, caller=Caller(name="bob"))
    info = await almanac.services.query.job(run_id(10), ADMIN)
    assert (info.job_type, info.owner) == ("other", "admin")


async def test_a_changed_job_reaches_the_runs_of_a_backfill(almanac: Almanac, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("foliot.service.schedules.LIST_LIMIT", 2)
    await almanac.create(every="10s", start_time=at(-50))
    assert await almanac.backfill(-50, -1, 5) == 5
    await almanac.settle()
    await almanac.change(job={"job_type": "echo", "priority": "high"})
    assert {(await almanac.services.query.job(run_id(due), ADMIN)).priority for due in range(-50, 0, 10)} == {"high"}


async def test_a_changed_job_of_a_schedule_that_is_gone_since_changes_no_run(almanac: Almanac) -> None:
    await almanac.create(every="10s", jitter="1h")
    await almanac.move_to(10)
    almanac.store.after("save_schedules", almanac.delete)
    await almanac.change(job={"job_type": "other"})
    assert (await almanac.services.query.job(run_id(10), ADMIN)).job_type == "echo"


async def test_a_change_of_a_version_that_has_passed_is_refused(almanac: Almanac) -> None:
    await almanac.create(every="10s")
    await almanac.change(if_match=1, jitter="1s")
    await almanac.move_to(30)  # what fires is no change
    for call in (
        almanac.change(if_match=1, jitter="2s"),
        almanac.schedules.pause("beat", if_match=1, caller=ADMIN),
        almanac.schedules.resume("beat", if_match=1, caller=ADMIN),
        almanac.schedules.delete("beat", if_match=1, caller=ADMIN),
    ):
        with pytest.raises(Stale, match="version 2, not 1"):
            await call
    await almanac.schedules.pause("beat", if_match=2, caller=ADMIN)
    await almanac.schedules.delete("beat", if_match=3, caller=ADMIN)


async def test_two_changes_at_once_both_count(almanac: Almanac) -> None:
    await almanac.create(every="10s")
    almanac.store.before("save_schedules", lambda: almanac.change(jitter="3s"))
    await almanac.change(overlap="queue")
    info = await almanac.info()
    assert (info.jitter, info.overlap, info.version) == (3, "queue", 3)


async def test_a_change_that_meets_a_firing_is_made_after_it(almanac: Almanac) -> None:
    await almanac.create(every="10s")
    almanac.sleep_to(9)

    async def fires() -> None:
        almanac.sleep_to(10)
        await almanac.fire()

    almanac.store.before("save_schedules", fires)
    assert (await almanac.change(every="20s")).next_run == at(20)
    assert await almanac.ledger() == [(10, "ran", None)]


async def test_a_schedule_that_never_stands_still_is_given_up(
    almanac: Almanac, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(schedules_module, "ROUNDS", 3)
    await almanac.create(every="10s", start_time=at(-30))

    async def touch() -> None:
        await almanac.change(jitter="1s")

    for method, call in (
        ("save_schedules", almanac.pause),
        ("save_schedules", almanac.trigger),
        ("save_schedules", lambda: almanac.backfill(-30, -1)),
        ("remove_schedule", almanac.delete),
    ):
        almanac.store.before(method, *[touch] * 3)
        with pytest.raises(Conflict, match="try again"):
            await call()
    assert await almanac.ledger() == []


async def test_a_change_tells_the_other_nodes_and_a_firing_does_not(almanac: Almanac) -> None:
    heard: list[tuple[int, bool]] = []
    almanac.wake.on_fire.append(lambda time, _key, tell: heard.append((time - to_micros(BEGIN), tell)))
    await almanac.create(every="10s")
    await almanac.move_to(10)
    await almanac.change(every="15s")
    await almanac.pause()
    await almanac.resume()
    assert heard == [(10_000_000, True), (20_000_000, False), (15_000_000, True), (15_000_000, True)]


# Pause and resume


async def test_what_was_due_during_a_pause_was_skipped(almanac: Almanac) -> None:
    await almanac.create(every="10s", overlap="allow")
    await almanac.move_to(10)
    paused = await almanac.pause()
    assert (paused.status, paused.next_run) == ("paused", None)
    await almanac.move_to(55)
    info = await almanac.info()
    assert (info.status, info.paused, info.next_run) == ("paused", True, None)
    assert await almanac.ledger() == [(10, "ran", None)]
    resumed = await almanac.resume()
    assert (resumed.status, resumed.next_run) == ("active", at(60))
    (range_, _), _ = await almanac.schedules.runs("beat", limit=10, cursor=None, caller=ADMIN)
    assert (range_.due_time, range_.until, range_.count, range_.verdict) == (at(20), at(50), 4, "skipped")
    assert (range_.reason, range_.job_id, range_.exact) == ("paused", None, True)
    await almanac.move_to(60)
    assert (await almanac.ledger())[-1] == (60, "ran", None)


async def test_a_schedule_made_paused_does_not_run_until_it_is_resumed(almanac: Almanac) -> None:
    assert (await almanac.create(every="10s", paused=True)).next_run is None
    await almanac.move_to(15)
    await almanac.resume()
    await almanac.move_to(20)
    assert await almanac.ledger() == [(10, "skipped", "paused"), (20, "ran", None)]


async def test_what_was_due_before_a_pause_is_decided_first(almanac: Almanac) -> None:
    await almanac.create(every="10s")
    almanac.sleep_to(12)
    await almanac.pause()
    assert await almanac.ledger() == [(10, "ran", None)]


async def test_a_change_leaves_a_pause_as_it_is_unless_it_speaks_of_it(almanac: Almanac) -> None:
    await almanac.create(every="10s")
    await almanac.pause()
    await almanac.change(jitter="1s")
    assert (await almanac.info()).paused
    await almanac.move_to(15)
    assert (await almanac.change(paused=False)).next_run == at(20)
    assert await almanac.ledger() == [(10, "skipped", "paused")]
    assert (await almanac.change(paused=True)).next_run is None
    await almanac.change(paused=None)
    assert not (await almanac.info()).paused
    await almanac.create("held", every="10s", paused=True)
    await almanac.resume("held")
    await almanac.change("held", jitter="1s")
    assert not (await almanac.info("held")).paused


async def test_a_due_time_that_waited_before_a_pause_starts_after_it(almanac: Almanac) -> None:
    worker = await almanac.worker()
    await almanac.create(every="10s", overlap="queue")
    await almanac.move_to(20)
    await almanac.pause()
    await almanac.end(worker, 10)
    assert await almanac.ledger() == [(10, "ran", None), (20, "-", "waiting")]
    await almanac.resume()
    await almanac.end(worker, 20)
    assert await almanac.ledger() == [(10, "ran", None), (20, "ran", None)]


# Trigger


async def test_a_triggered_run_is_made_whatever_is_under_way(almanac: Almanac) -> None:
    await almanac.create(every="10s", max_runs=1)
    await almanac.move_to(10)
    await almanac.pause()
    almanac.sleep_to(13)
    assert await almanac.trigger() == run_id(13)
    assert await almanac.jobs() == {10: "queued", 13: "queued"}
    assert await almanac.ledger() == [(10, "ran", None), (13, "ran", "triggered")]
    info = await almanac.services.query.job(run_id(13), ADMIN)
    assert (info.schedule_id, info.schedule_time) == ("beat", at(13))
    assert (await almanac.info()).runs == 1


async def test_two_triggers_at_one_instant_are_two_runs(almanac: Almanac) -> None:
    await almanac.create(every="10s")
    first, second = await almanac.schedules.trigger("beat", ADMIN), await almanac.schedules.trigger("beat", ADMIN)
    assert first.job_id != second.job_id
    assert (await almanac.services.query.job(second.job_id, ADMIN)).schedule_id == "beat"


async def test_a_trigger_at_a_due_time_does_not_take_its_run(almanac: Almanac) -> None:
    await almanac.create(every="10s", overlap="allow")
    almanac.sleep_to(10)
    assert await almanac.trigger() == run_id(10).replace("Z", ".000001Z")
    await almanac.fire()
    assert len(await almanac.ledger()) == 2
    assert await almanac.status(run_id(10)) == "queued"


async def test_a_trigger_whose_answer_was_lost_makes_one_run(almanac: Almanac) -> None:
    await almanac.create(every="10s")
    almanac.sleep_to(3)
    almanac.store.after("save_schedules", failing(LOST))
    assert await almanac.trigger() == run_id(3)
    assert await almanac.jobs() == {3: "queued"}


async def test_a_trigger_that_meets_a_change_is_made_after_it(almanac: Almanac) -> None:
    await almanac.create(every="10s")
    almanac.store.before("save_schedules", lambda: almanac.change(job={"job_type": "other"}))
    name = await almanac.trigger()
    assert (await almanac.services.query.job(name, ADMIN)).job_type == "other"


# Backfill


async def test_past_due_times_are_run_at_most_so_many_at_once(almanac: Almanac) -> None:
    worker = await almanac.worker()
    await almanac.create(every="10s", start_time=at(-50))
    assert await almanac.backfill(-50, -1, 2) == 5
    assert {line[1:] for line in await almanac.ledger()} == {("-", "waiting")}
    await almanac.settle()
    done: list[str] = []
    running = {job.job_id: job for job in await almanac.take(worker)}
    while running:
        assert len(running) <= 2
        name = min(running)
        await almanac.report(worker, running.pop(name), "success")
        done.append(name)
        await almanac.settle()
        running |= {job.job_id: job for job in await almanac.take(worker)}
    assert sorted(done) == [run_id(seconds) for seconds in (-50, -40, -30, -20, -10)]
    assert {line[1:] for line in await almanac.ledger()} == {("backfilled", None)}
    info = await almanac.info()
    assert (info.runs, info.next_run) == (0, at(10))


async def test_the_schedules_own_limit_holds_unless_one_is_given(almanac: Almanac) -> None:
    await almanac.create(every="10s", start_time=at(-50), max_concurrency=3)
    await almanac.backfill(-50, 0)
    await almanac.settle()
    assert list(await almanac.jobs()) == [-50, -40, -30]


async def test_a_backfill_leaves_alone_what_has_its_job_or_waits_for_it(almanac: Almanac) -> None:
    await almanac.create(every="10s", overlap="queue")
    await almanac.move_to(20)
    await almanac.pause()
    await almanac.move_to(45)
    await almanac.resume()
    assert await almanac.ledger() == [(10, "ran", None), (20, "-", "waiting"), (30, "skipped", "paused")]
    assert await almanac.backfill(0, 45, 5) == 2
    await almanac.settle()
    assert await almanac.jobs() == {10: "queued", 30: "queued", 40: "queued"}
    assert await almanac.backfill(0, 45) == 0
    assert await almanac.ledger() == [
        (10, "ran", None),
        (20, "-", "waiting"),
        (30, "backfilled", None),
        (30, "skipped", "paused"),
        (40, "backfilled", None),
    ]


async def test_a_second_backfill_waits_for_the_first(almanac: Almanac) -> None:
    worker = await almanac.worker()
    await almanac.create(every="10s", start_time=at(-30))
    assert await almanac.backfill(-30, -20) == 2
    with pytest.raises(Conflict, match="under way"):
        await almanac.backfill(-10, 0)
    await almanac.settle()
    with pytest.raises(Conflict, match="under way"):
        await almanac.backfill(-10, 0)
    await almanac.end(worker, -30)
    assert await almanac.backfill(-10, -1) == 1


async def test_a_backfill_does_not_end_with_max_runs(almanac: Almanac) -> None:
    await almanac.create(every="10s", start_time=at(-30), max_runs=1)
    assert await almanac.backfill(-30, -1) == 3


@pytest.mark.parametrize(
    ("field", "since", "until"), [("to", -10, -11), ("to", -10, 1), ("from", -100_000 * 10 - 10, -10)]
)
async def test_a_backfill_of_a_wrong_range_is_refused_by_its_field(
    almanac: Almanac, field: str, since: int, until: int
) -> None:
    await almanac.create(every="10s", start_time=at(-2_000_000))
    with pytest.raises(BadInput) as refused:
        await almanac.backfill(since, until)
    assert refused.value.errors[0].field == field
    assert await almanac.ledger() == []


@pytest.mark.parametrize(("count", "said"), [("100,001", {"every": "10s"}), ("more than", {"rrule": "FREQ=SECONDLY"})])
async def test_a_backfill_of_too_many_says_how_many_that_is(almanac: Almanac, count: str, said: dict[str, Any]) -> None:
    await almanac.create(start_time=at(-2_000_000), **said)
    with pytest.raises(BadInput, match=f"{count}.*at most 100,000"):
        await almanac.backfill(-100_000 * 10 - 10, -10)


async def test_a_backfill_that_meets_a_change_is_made_after_it(almanac: Almanac) -> None:
    await almanac.create(every="10s", start_time=at(-30))
    almanac.store.before("save_schedules", lambda: almanac.change(every="15s"))
    assert await almanac.backfill(-30, -1) == 2


# The ledger in pages, and the end


async def test_the_ledger_is_paged_newest_first_and_a_due_time_is_not_torn(almanac: Almanac) -> None:
    await almanac.create(every="10s", overlap="allow", paused=True)
    almanac.sleep_to(25)
    await almanac.resume()  # 10 to 20 are one row
    await almanac.backfill(10, 20, 5)
    await almanac.settle()
    await almanac.move_to(40)
    for limit, sizes in ((1, [1, 1, 1, 2]), (2, [2, 1, 2]), (3, [3, 2]), (4, [3, 2]), (5, [5])):
        found: list[tuple[object, object]] = []
        cursor: str | None = None
        for size in sizes:
            page, cursor = await almanac.schedules.runs("beat", limit=limit, cursor=cursor, caller=ADMIN)
            assert len(page) == size, (limit, sizes)
            found += [(run.due_time, run.verdict) for run in page]
        assert cursor is None
        assert found == [
            (at(40), "ran"),
            (at(30), "ran"),
            (at(20), "backfilled"),
            (at(10), "skipped"),
            (at(10), "backfilled"),
        ]
    with pytest.raises(BadInput) as refused:
        await almanac.schedules.runs("beat", limit=1, cursor="elsewhere", caller=ADMIN)
    assert refused.value.errors[0].field == "cursor"


async def test_a_deleted_schedule_fires_no_more_and_its_jobs_stay(almanac: Almanac) -> None:
    worker = await almanac.worker()
    await almanac.create(every="10s", overlap="queue")
    await almanac.move_to(20)
    deleted = await almanac.delete()
    assert (deleted.status, deleted.schedule_id, deleted.next_run) == ("deleted", "beat", None)
    await almanac.move_to(60)
    assert await almanac.jobs() == {10: "queued"}
    await almanac.end(worker, 10)
    assert await almanac.jobs() == {10: "completed"}
    body = BackfillBody(since=at(0), until=at(1))
    for call in (
        almanac.info(),
        almanac.change(jitter="1s"),
        almanac.pause(),
        almanac.resume(),
        almanac.trigger(),
        almanac.schedules.backfill("beat", body, ADMIN),
        almanac.ledger(),
        almanac.delete(),
    ):
        with pytest.raises(NotFound):
            await call


async def test_a_schedule_under_a_name_that_was_used_before_starts_anew_but_no_due_time_twice(almanac: Almanac) -> None:
    await almanac.create(every="10s", start_time=at(10))
    await almanac.move_to(10)
    await almanac.delete()
    await almanac.create(every="10s", start_time=at(10))
    assert await almanac.ledger() == []
    await almanac.backfill(10, 10)
    await almanac.settle()
    await almanac.move_to(20)
    assert await almanac.jobs() == {10: "queued", 20: "queued"}


async def test_a_delete_that_meets_a_firing_is_made_after_it(almanac: Almanac) -> None:
    await almanac.create(every="10s")
    almanac.sleep_to(10)
    almanac.store.before("remove_schedule", almanac.fire)
    await almanac.delete()
    assert await almanac.jobs() == {10: "queued"}


async def test_the_ledger_is_forgotten_with_its_time_but_not_what_waits(almanac: Almanac) -> None:
    await almanac.create(every="10s", overlap="queue")
    await almanac.move_to(30)
    assert len(await almanac.ledger()) == 3
    almanac.sleep_to(60)
    while await almanac.store.forget(almanac.clock.now(), 100):
        pass
    assert await almanac.ledger() == [(20, "-", "waiting")]
    assert (await almanac.info()).status == "active"
