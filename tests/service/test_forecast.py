"""What is due in the next 24 hours, minute by minute, and what the workers can take."""

from collections.abc import AsyncIterator
from datetime import datetime

import pytest

from foliot.domain.access import ADMIN, Caller
from foliot.service import forecast as forecast_module
from foliot.wire import Forecast
from tests.service.almanac import Almanac, at, open_almanac, schedule_body

DAY_MINUTES = 24 * 60


@pytest.fixture
async def almanac() -> AsyncIterator[Almanac]:
    async with open_almanac() as almanac:
        yield almanac


async def forecast(almanac: Almanac, caller: Caller = ADMIN) -> Forecast:
    return await almanac.services.forecasts.next_day(caller)


async def minutes(almanac: Almanac) -> dict[datetime, tuple[int, int]]:
    return {each.time: (each.jobs, each.runs) for each in (await forecast(almanac)).minutes}


async def test_an_empty_node_expects_nothing(almanac: Almanac) -> None:
    assert await forecast(almanac) == Forecast(minutes=[], jobs=0, runs=0, slots=0, capacity_per_minute=None)


async def test_jobs_and_runs_of_a_minute_are_counted_beside_each_other(almanac: Almanac) -> None:
    await almanac.create("hourly", cron="0 * * * *", end_time=at(7200))
    for seconds in (3600, 3659.5, 3660):
        await almanac.submit(schedule_time=at(seconds))
    await almanac.submit(schedule_time=at(25 * 3600))
    await almanac.submit()
    held = await almanac.submit(schedule_time=at(90))
    await almanac.services.control.pause(held, if_match=None, caller=ADMIN)
    assert await minutes(almanac) == {at(3600): (2, 1), at(3660): (1, 0), at(7200): (0, 1)}
    found = await forecast(almanac)
    assert (found.jobs, found.runs) == (3, 2)


async def test_schedules_of_one_timetable_count_each(almanac: Almanac) -> None:
    for number in range(3):
        await almanac.create(f"daily-{number}", cron="30 9 * * *")
    await almanac.create("other", cron="30 9 * * *", timezone="Europe/Madrid")
    assert await minutes(almanac) == {at(8.5 * 3600): (0, 1), at(9.5 * 3600): (0, 3)}


async def test_a_day_is_counted_to_its_end(almanac: Almanac) -> None:
    await almanac.create(every="1s")
    found = await forecast(almanac)
    assert found.runs == 86_399  # the first is due in a second
    assert len(found.minutes) == DAY_MINUTES
    assert [each.runs for each in found.minutes[:2]] == [59, 60]


async def test_what_is_not_due_within_a_day_or_not_at_all_does_not_count(almanac: Almanac) -> None:
    await almanac.create("paused", every="1m", paused=True)
    await almanac.create("ended", every="1m", max_runs=1)
    await almanac.move_to(60)
    await almanac.create("far", every="1m", start_time=at(120 + 86_400))
    await almanac.create("few", every="1m", max_runs=2)
    await almanac.move_to(120)
    assert await minutes(almanac) == {at(180): (0, 1)}


async def test_a_due_time_that_was_decided_is_not_counted_again(almanac: Almanac) -> None:
    await almanac.create(cron="0 * * * *", jitter="10m", end_time=at(3600))
    almanac.sleep_to(3600)
    assert (await forecast(almanac)).runs == 1
    await almanac.fire()
    found = await forecast(almanac)
    assert (found.jobs, found.runs) == (1, 0)


async def test_schedules_are_read_page_by_page(almanac: Almanac, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(forecast_module, "SCHEDULES_PAGE", 2)
    for number in range(5):
        await almanac.create(f"daily-{number}", cron="0 9 * * *")
    assert (await forecast(almanac)).runs == 5


async def test_another_namespace_is_another_forecast(almanac: Almanac) -> None:
    stranger = Caller(name="eve", namespace="other")
    await almanac.submit(schedule_time=at(60))
    await almanac.worker()
    await almanac.schedules.create(schedule_body(cron="0 9 * * *"), stranger)
    found = await forecast(almanac, stranger)
    assert (found.jobs, found.runs, found.slots) == (0, 1, 0)


async def test_what_the_workers_can_take_goes_by_how_long_jobs_took_of_late(almanac: Almanac) -> None:
    worker = await almanac.worker(resources={"slot": 8})
    leaving = await almanac.worker(resources={"slot": 5})
    await almanac.services.workers.drain(leaving, ADMIN)
    await almanac.worker(resources={})
    assert (await forecast(almanac)).slots == 8
    gone = await almanac.submit()
    await almanac.cancel(gone)
    assert (await forecast(almanac)).capacity_per_minute is None
    for seconds in (1, 3):
        await almanac.submit()
        job = await almanac.take_one(worker)
        almanac.clock.pass_seconds(seconds)
        await almanac.report(worker, job, "success")
    assert (await forecast(almanac)).capacity_per_minute == 8 * 60 / 2
    almanac.clock.pass_seconds(10**9)  # the workers are gone
    found = await forecast(almanac)
    assert (found.slots, found.capacity_per_minute) == (0, 0)


async def test_jobs_that_took_no_time_tell_no_pace(almanac: Almanac) -> None:
    worker = await almanac.worker()
    await almanac.submit()
    await almanac.report(worker, await almanac.take_one(worker), "success")
    assert (await forecast(almanac)).capacity_per_minute is None
