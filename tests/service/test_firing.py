"""Due times become runs: at their instant, one job each, by the schedule's rules for overlaps and what was missed."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from foliot.domain import firing as rules
from foliot.domain.access import ADMIN
from foliot.domain.errors import Unavailable
from foliot.service import Services
from foliot.service import firing as firing_module
from foliot.service.wake import Wake
from foliot.wire import RetryJobBody, to_micros
from tests.service.almanac import Almanac, at, open_almanac, run_id
from tests.service.conftest import ManualClock
from tests.service.meddling import Gate, failing

LOST = Unavailable("the answer was lost", fate_unknown=True)


@pytest.fixture
async def almanac() -> AsyncIterator[Almanac]:
    async with open_almanac() as almanac:
        yield almanac


async def stops(almanac: Almanac, worker: str) -> list[str]:
    return [stop.job_id for stop in (await almanac.exchange(worker)).stop]


async def test_a_due_time_becomes_a_job_named_after_it(almanac: Almanac) -> None:
    job = {"job_type": "pay", "payload": {"n": 1}, "queue": "money", "priority": "high", "tags": ["a"]}
    await almanac.create(every="10s", job=job)
    ready: list[int] = []
    almanac.wake.on_ready.append(lambda lanes, _tell: ready.extend(lanes))
    await almanac.move_to(10)
    info = await almanac.services.query.job(run_id(10), ADMIN)
    assert (info.job_type, info.queue, info.priority, info.tags) == ("pay", "money", "high", ["a"])
    assert (info.schedule_id, info.schedule_time, info.owner) == ("beat", at(10), "admin")
    assert len(ready) == 1
    assert (await almanac.info()).runs == 1


async def test_jitter_moves_the_start_of_a_run_and_not_its_name(almanac: Almanac) -> None:
    heard: list[int] = []
    almanac.wake.on_due.append(lambda time, _key, _tell: heard.append(time))
    await almanac.create(every="10s", jitter="1h")
    await almanac.move_to(10)
    row = (await almanac.services.query.find(run_id(10), ADMIN)).row
    assert to_micros(at(10)) < row.due < to_micros(at(3610))
    assert heard == [row.due]


async def test_nothing_is_fired_before_its_time(almanac: Almanac) -> None:
    await almanac.create(every="10s")
    ahead = await almanac.store.peek_schedules(to_micros(at(60)), 10)
    almanac.sleep_to(9)
    assert await almanac.services.firing.fire(ahead) == set()
    assert await almanac.ledger() == []


async def test_one_of_many_that_is_early_by_the_stores_clock_does_not_hold_up_the_others(almanac: Almanac) -> None:
    await almanac.create("now", cron="5 0 1 1 *")
    await almanac.create("early", cron="9 0 1 1 *")
    almanac.sleep_to(300)
    standings = await almanac.store.peek_schedules(to_micros(at(600)), 10)
    node = Services(almanac.store, ManualClock(to_micros(at(600))), almanac.ids, Wake(), lease=1, heartbeat=1)
    assert await node.firing.fire(standings) == {(await almanac.kept("early")).id}
    assert await almanac.jobs("now") == {300: "queued"}
    assert await almanac.ledger("early") == []


async def test_due_times_that_are_still_to_come_are_not_missed_by_a_clock_that_is_ahead(almanac: Almanac) -> None:
    await almanac.create(cron="1-4 0 1 1 *", catch_up="none")
    almanac.sleep_to(60)
    standings = await almanac.store.peek_schedules(almanac.clock.now(), 10)
    node = Services(almanac.store, ManualClock(to_micros(at(370))), almanac.ids, Wake(), lease=1, heartbeat=1)
    assert await node.firing.fire(standings) == {standings[0].schedule.id}
    assert await almanac.ledger() == []
    await almanac.fire()
    assert await almanac.ledger() == [(60, "ran", None)]


async def test_two_nodes_that_fire_at_once_make_one_job(almanac: Almanac) -> None:
    await almanac.create(every="10s")
    almanac.sleep_to(10)
    standings = await almanac.store.peek_schedules(almanac.clock.now(), 10)
    fire = almanac.services.firing.fire
    lefts = await asyncio.gather(fire(standings), fire(standings), fire(standings))
    assert sorted(map(len, lefts)) == [0, 1, 1]
    assert await almanac.jobs() == {10: "queued"}
    assert await almanac.ledger() == [(10, "ran", None)]


async def test_two_nodes_that_fire_neighbouring_due_times_can_not_both_believe_that_nothing_runs(
    almanac: Almanac,
) -> None:
    await almanac.create(every="10s")
    almanac.sleep_to(10)
    early = await almanac.store.peek_schedules(almanac.clock.now(), 10)
    gate = Gate()
    almanac.store.before("save_schedules", gate)
    slow = asyncio.create_task(almanac.services.firing.fire(early))
    await gate.reached.wait()
    await almanac.move_to(20)
    gate.opened.set()
    assert await slow == {early[0].schedule.id}
    assert await almanac.ledger() == [(10, "ran", None), (20, "skipped", "overlap")]


async def test_a_firing_whose_answer_was_lost_makes_one_job(almanac: Almanac) -> None:
    await almanac.create(every="10s")
    almanac.sleep_to(10)
    almanac.store.after("save_schedules", failing(LOST))
    assert len(await almanac.fire()) == 1
    assert await almanac.fire() == set()
    assert await almanac.jobs() == {10: "queued"}
    assert await almanac.ledger() == [(10, "ran", None)]


async def test_a_due_time_whose_name_a_client_has_used_makes_no_second_job(almanac: Almanac) -> None:
    await almanac.submit(job_id=run_id(10))
    await almanac.create(every="10s")
    await almanac.move_to(10)
    assert await almanac.ledger() == [(10, "ran", None)]
    assert await almanac.jobs() == {}


async def test_many_schedules_fire_together(almanac: Almanac) -> None:
    for number in range(20):
        await almanac.create(f"beat-{number}", every="10s")
    almanac.sleep_to(10)
    before = almanac.store.calls["save_schedules"]
    await almanac.fire()
    assert almanac.store.calls["save_schedules"] == before + 1
    assert [await almanac.jobs(f"beat-{number}") for number in range(20)] == [{10: "queued"}] * 20


async def test_more_due_times_than_fit_in_one_step_are_all_run(
    almanac: Almanac, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rules, "STEP", 3)
    await almanac.create(every="10s", overlap="allow")
    almanac.sleep_to(59)
    assert await almanac.fire() == set()
    assert list(await almanac.jobs()) == [10, 20, 30, 40, 50]


async def test_one_that_ends_while_more_of_it_is_due_is_given_up(
    almanac: Almanac, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rules, "STEP", 2)
    await almanac.create(every="10s", overlap="allow")
    almanac.sleep_to(59)
    almanac.store.before("standings", almanac.delete)
    assert await almanac.fire() == set()
    assert list(await almanac.jobs()) == [10, 20]


async def test_one_that_is_changed_while_more_of_it_is_due_comes_back(
    almanac: Almanac, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rules, "STEP", 2)
    await almanac.create(every="10s", overlap="allow")
    almanac.sleep_to(59)
    key = (await almanac.kept()).id
    almanac.store.after("standings", almanac.trigger)
    assert await almanac.fire() == {key}
    assert await almanac.fire() == set()
    assert list(await almanac.jobs()) == [10, 20, 59, 30, 40, 50]


async def test_a_year_away_is_one_row_and_one_run(almanac: Almanac) -> None:
    await almanac.create(every="1h")
    almanac.sleep_to(365 * 86_400 + 600)
    await almanac.fire()
    page, _ = await almanac.schedules.runs("beat", limit=10, cursor=None, caller=ADMIN)
    assert [(run.verdict, run.count, run.reason) for run in page] == [
        ("caught_up", 1, None),
        ("expired", 365 * 24 - 1, "catch_up_window"),
    ]
    assert await almanac.jobs() == {365 * 86_400: "queued"}


# Overlaps


async def test_a_due_time_that_finds_no_room_is_skipped(almanac: Almanac) -> None:
    worker = await almanac.worker()
    await almanac.create(every="10s")
    await almanac.move_to(20)
    await almanac.end(worker, 10)
    await almanac.move_to(30)
    assert await almanac.ledger() == [(10, "ran", None), (20, "skipped", "overlap"), (30, "ran", None)]


async def test_a_run_that_ended_since_the_schedule_was_read_ahead_leaves_room(almanac: Almanac) -> None:
    worker = await almanac.worker()
    await almanac.create(every="10s")
    await almanac.move_to(10)
    ahead = await almanac.store.peek_schedules(to_micros(at(20)), 10)
    await almanac.end(worker, 10)
    almanac.sleep_to(20)
    assert await almanac.services.firing.fire(ahead) == set()
    assert await almanac.ledger() == [(10, "ran", None), (20, "ran", None)]


async def test_a_queued_due_time_starts_when_the_run_before_it_ends(almanac: Almanac) -> None:
    worker = await almanac.worker()
    await almanac.create(every="10s", overlap="queue")
    await almanac.move_to(30)
    waiting = [(10, "ran", None), (20, "-", "waiting"), (30, "skipped", "overlap")]
    assert await almanac.ledger() == waiting
    assert await almanac.jobs() == {10: "queued"}
    await almanac.end(worker, 10, status="fatal_failure")
    assert await almanac.jobs() == {10: "failed", 20: "queued"}
    assert await almanac.ledger() == [(10, "ran", None), (20, "ran", None), (30, "skipped", "overlap")]


async def test_a_due_time_that_waits_starts_however_the_run_before_it_ended(almanac: Almanac) -> None:
    await almanac.create(every="10s", overlap="queue")
    await almanac.move_to(20)
    await almanac.cancel(run_id(10))
    await almanac.settle()
    assert await almanac.jobs() == {10: "cancelled", 20: "queued"}


async def test_a_run_that_is_tried_again_is_under_way_again(almanac: Almanac) -> None:
    worker = await almanac.worker()
    await almanac.create(every="10s")
    await almanac.move_to(10)
    await almanac.end(worker, 10, status="fatal_failure")
    await almanac.services.control.retry(run_id(10), RetryJobBody(), if_match=None, caller=ADMIN)
    await almanac.move_to(20)
    assert await almanac.ledger() == [(10, "ran", None), (20, "skipped", "overlap")]


async def test_a_run_that_fails_and_will_be_tried_again_holds_its_place(almanac: Almanac) -> None:
    worker = await almanac.worker()
    await almanac.create(every="10s")
    await almanac.move_to(10)
    await almanac.end(worker, 10, status="retriable_failure")
    assert await almanac.status(run_id(10)) == "retrying"
    await almanac.move_to(20)
    assert await almanac.ledger() == [(10, "ran", None), (20, "skipped", "overlap")]


async def test_a_replacing_due_time_asks_the_running_one_to_stop_and_starts_after_it(almanac: Almanac) -> None:
    worker = await almanac.worker()
    await almanac.create(every="10s", overlap="replace")
    await almanac.move_to(10)
    job = await almanac.take_one(worker)
    assert await stops(almanac, worker) == []
    await almanac.move_to(20)
    assert await stops(almanac, worker) == [run_id(10)]
    await almanac.move_to(30)
    assert await almanac.ledger() == [(10, "ran", None), (20, "skipped", "replaced"), (30, "-", "waiting")]
    await almanac.report(worker, job, "cancelled")
    await almanac.settle()
    assert await almanac.jobs() == {10: "cancelled", 30: "queued"}
    assert await almanac.ledger() == [(10, "ran", None), (20, "skipped", "replaced"), (30, "ran", None)]


async def test_a_replacing_due_time_takes_the_place_of_a_run_that_has_not_started(almanac: Almanac) -> None:
    await almanac.create(every="10s", overlap="replace")
    await almanac.move_to(20)
    assert await almanac.jobs() == {10: "cancelled", 20: "queued"}


async def test_a_replacing_due_time_does_not_wait_for_a_backfill(almanac: Almanac) -> None:
    worker = await almanac.worker()
    await almanac.create(every="10s", start_time=at(-20), overlap="replace")
    await almanac.move_to(10)
    await almanac.take_one(worker)
    almanac.sleep_to(20)
    await almanac.services.firing.fire(await almanac.store.peek_schedules(almanac.clock.now(), 1))
    await almanac.backfill(-20, -1, 1)
    await almanac.settle()
    assert await almanac.jobs() == {10: "running", -20: "queued"}
    assert await stops(almanac, worker) == [run_id(10)]


async def test_a_triggered_run_of_a_paused_schedule_makes_no_room_for_what_waits(almanac: Almanac) -> None:
    worker = await almanac.worker()
    await almanac.create(every="10s", overlap="replace")
    await almanac.move_to(10)
    first = await almanac.take_one(worker)
    await almanac.move_to(20)
    await almanac.pause()
    almanac.sleep_to(22)
    triggered = await almanac.trigger()
    assert (await almanac.take_one(worker)).job_id == triggered
    await almanac.report(worker, first, "cancelled")
    await almanac.settle()
    assert await stops(almanac, worker) == []
    assert await almanac.status(triggered) == "running"


async def test_as_many_run_at_once_as_are_allowed(almanac: Almanac) -> None:
    worker = await almanac.worker()
    await almanac.create(every="10s", overlap="queue", max_concurrency=2)
    await almanac.move_to(30)
    assert await almanac.jobs() == {10: "queued", 20: "queued"}
    await almanac.report(worker, await almanac.take_one(worker), "success")
    await almanac.settle()
    assert await almanac.jobs() == {10: "completed", 20: "queued", 30: "queued"}


async def test_what_was_missed_runs_one_after_the_other_where_all_of_it_is_caught_up(almanac: Almanac) -> None:
    worker = await almanac.worker()
    await almanac.create(every="60s", catch_up="all")
    almanac.sleep_to(190)
    await almanac.fire()
    assert await almanac.ledger() == [(60, "caught_up", None), (120, "-", "waiting"), (180, "skipped", "overlap")]
    await almanac.end(worker, 60)
    await almanac.end(worker, 120)
    assert await almanac.ledger() == [(60, "caught_up", None), (120, "caught_up", None), (180, "skipped", "overlap")]


# Settling


async def test_a_due_time_that_was_forgotten_is_found(almanac: Almanac) -> None:
    worker = await almanac.worker()
    await almanac.create(every="10s", overlap="queue")
    await almanac.move_to(20)
    await almanac.report(worker, await almanac.take_one(worker), "success")
    almanac.freed.clear()
    await almanac.services.firing.settle_forgotten()
    assert await almanac.jobs() == {10: "completed", 20: "queued"}


async def test_two_that_settle_at_once_start_one_run(almanac: Almanac) -> None:
    worker = await almanac.worker()
    await almanac.create(every="10s", overlap="queue")
    await almanac.move_to(20)
    await almanac.report(worker, await almanac.take_one(worker), "success")
    key = (await almanac.kept()).id
    almanac.store.before("save_schedules", lambda: almanac.services.firing.settle([key]))
    await almanac.services.firing.settle([key])
    assert await almanac.jobs() == {10: "completed", 20: "queued"}
    assert await almanac.ledger() == [(10, "ran", None), (20, "ran", None)]


async def test_what_waits_is_settled_though_its_schedule_changes_meanwhile(almanac: Almanac) -> None:
    worker = await almanac.worker()
    await almanac.create(every="10s", overlap="queue")
    await almanac.move_to(20)
    await almanac.report(worker, await almanac.take_one(worker), "success")
    almanac.store.before("save_schedules", lambda: almanac.change(jitter="1s"))
    await almanac.settle()
    assert await almanac.ledger() == [(10, "ran", None), (20, "ran", None)]


async def test_what_never_stands_still_is_left_for_the_next_time(
    almanac: Almanac, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(firing_module, "ROUNDS", 2)
    worker = await almanac.worker()
    await almanac.create(every="10s", overlap="queue")
    await almanac.move_to(20)
    await almanac.report(worker, await almanac.take_one(worker), "success")
    almanac.store.before("save_schedules", *[lambda: almanac.change(jitter="1s")] * 2)
    await almanac.settle()
    assert await almanac.ledger() == [(10, "ran", None), (20, "-", "waiting")]
    await almanac.services.firing.settle_forgotten()
    assert await almanac.ledger() == [(10, "ran", None), (20, "ran", None)]


async def test_a_settling_whose_answer_was_lost_starts_one_run(almanac: Almanac) -> None:
    worker = await almanac.worker()
    await almanac.create(every="10s", overlap="queue")
    await almanac.move_to(20)
    await almanac.report(worker, await almanac.take_one(worker), "success")
    almanac.store.after("save_schedules", failing(LOST))
    await almanac.settle()
    assert await almanac.jobs() == {10: "completed", 20: "queued"}
