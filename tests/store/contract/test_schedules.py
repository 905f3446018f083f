"""Schedules: made, changed and taken away by compare-and-set; what is due next; which of them stand how."""

import asyncio
from datetime import date

import msgspec
import pytest

from foliot.domain import events
from foliot.domain.duration import DAY, HOUR, MINUTE, SECOND
from foliot.domain.ids import ScheduleKey
from foliot.domain.job import Waiting
from foliot.domain.schedule import STANDING_LIMIT, Plan, Schedule, Standing, Verdict
from foliot.domain.timetable.calendar import Calendar
from foliot.domain.timetable.cron import Cron
from foliot.domain.timetable.interval import Every
from foliot.domain.timetable.recurrence import Recurrence
from foliot.domain.timetable.timetable import Timetable
from foliot.store.base import Step
from tests.store.builders import Scene

UNKNOWN = ScheduleKey(12345)
FIRST = 1_770_000_000 * SECOND

PLANS = [
    Plan(timetable=Timetable(trigger=Every(interval=100_000, anchor=FIRST, runs_at_anchor=True))),
    Plan(
        timetable=Timetable(
            trigger=Cron(expression="0 9 LW * *"),
            timezone="Europe/Madrid",
            start=FIRST,
            end=FIRST + DAY,
            max_runs=7,
            jitter=30 * SECOND,
            calendar=Calendar(country="ES", subdivision="MD", weekend=(5, 6), closed=(date(2026, 12, 24),)),
            on_holiday="previous",
        ),
        overlap="replace",
        max_concurrency=3,
        catch_up="all",
        catch_up_window=DAY,
    ),
    Plan(timetable=Timetable(trigger=Recurrence(rule="FREQ=DAILY;BYHOUR=9", anchor=1_770_000_000, until=FIRST))),
]


def after(schedule: Schedule, **changes: object) -> Schedule:
    return msgspec.structs.replace(schedule, version=schedule.version + 1, **changes)


async def due_order(scene: Scene, until: int, limit: int = 100) -> list[str]:
    return [standing.schedule.name for standing in await scene.store.peek_schedules(until, limit)]


@pytest.mark.parametrize("plan", PLANS, ids=["every", "cron", "rrule"])
async def test_a_schedule_is_read_as_it_was_made(scene: Scene, plan: Plan) -> None:
    made = await scene.scheduled(
        plan=plan, paused=True, next_due=None, runs=5, backfill_limit=2, edition=3, owner="zoë"
    )
    assert await scene.store.schedule("default", "nightly") == made
    assert await scene.store.standings([made.id]) == {made.id: Standing(schedule=made)}


async def test_a_long_definition_is_read_whole_beside_short_ones(scene: Scene) -> None:
    made = [await scene.scheduled(f"s{n}", definition='"' + "ü" * size + '"') for n, size in enumerate([1, 10_000, 5])]
    assert list(await scene.store.list_schedules("default", limit=10, before=None)) == made[::-1]


async def test_what_is_not_there_is_not_found(scene: Scene) -> None:
    assert await scene.store.schedule("default", "nightly") is None
    assert await scene.store.standings([UNKNOWN]) == {}
    assert await scene.store.standings([]) == {}
    assert await scene.store.peek_schedules(scene.now, 10) == []
    assert await scene.store.waiting_schedules(10) == []
    assert await scene.store.runs(UNKNOWN, limit=10, before=None) == []
    assert not await scene.store.remove_schedule(UNKNOWN, 1)
    assert await scene.store.save_schedules([]) == set()


async def test_a_name_that_is_taken_makes_no_second_schedule(scene: Scene) -> None:
    first = await scene.scheduled()
    job = await scene.run_job(first, scene.now)
    again = Step(schedule=scene.schedule(definition="{}"), runs=[scene.run(scene.now)], jobs=[job])
    assert await scene.store.save_schedules([again]) == set()
    assert await scene.store.schedule("default", "nightly") == first
    assert await scene.store.load([job.job.id]) == {}
    assert await scene.store.runs(again.schedule.id, limit=10, before=None) == []


async def test_a_schedule_made_twice_is_made_once(scene: Scene) -> None:
    made = await scene.scheduled()
    renamed = msgspec.structs.replace(made, name="other")
    assert await scene.store.save_schedules([Step(schedule=made)]) == set()
    assert await scene.store.save_schedules([Step(schedule=renamed)]) == set()
    assert list(await scene.store.list_schedules("default", limit=10, before=None)) == [made]


async def test_of_two_new_schedules_with_one_name_in_one_call_one_is_made(scene: Scene) -> None:
    steps = [Step(schedule=scene.schedule()), Step(schedule=scene.schedule()), Step(schedule=scene.schedule("other"))]
    assert len(await scene.store.save_schedules(steps)) == 2
    assert len(await scene.store.list_schedules("default", limit=10, before=None)) == 2


async def test_namespaces_have_names_of_their_own(scene: Scene) -> None:
    ours = await scene.scheduled()
    theirs = await scene.scheduled(namespace="other")
    assert await scene.store.schedule("default", "nightly") == ours
    assert await scene.store.schedule("other", "nightly") == theirs
    assert list(await scene.store.list_schedules("other", limit=10, before=None)) == [theirs]
    _, (our_job,) = await scene.fire(ours, scene.now)
    _, (their_job,) = await scene.fire(theirs, scene.now)
    assert our_job.name == their_job.name
    assert (await scene.standing(ours)).under_way == (our_job.id,)
    assert (await scene.standing(theirs)).under_way == (their_job.id,)


async def test_schedules_are_listed_newest_first_by_pages(scene: Scene) -> None:
    made = [await scene.scheduled(f"s{n}") for n in range(5)]
    first = await scene.store.list_schedules("default", limit=2, before=None)
    second = await scene.store.list_schedules("default", limit=2, before=first[-1].id)
    last = await scene.store.list_schedules("default", limit=2, before=second[-1].id)
    assert [*first, *second, *last] == made[::-1]


async def test_a_change_takes_effect_at_the_version_it_was_made_from(scene: Scene) -> None:
    made = await scene.scheduled()
    changed = await scene.step(
        made, definition="{}", plan=PLANS[1], owner="bob", changed=scene.later(1), paused=True, next_due=None, runs=3
    )
    assert await scene.store.schedule("default", "nightly") == changed
    resumed = await scene.step(changed, paused=False, next_due=scene.later(5), backfill_limit=9)
    assert await scene.store.schedule("default", "nightly") == resumed


@pytest.mark.parametrize("ahead", [-1, 1])
async def test_a_step_from_another_version_does_nothing(scene: Scene, ahead: int) -> None:
    schedule = await scene.step(await scene.scheduled(), runs=1)
    job = await scene.run_job(schedule, scene.now)
    other = msgspec.structs.replace(schedule, version=schedule.version + 1 + ahead, runs=2)
    step = Step(schedule=other, runs=[scene.run(scene.now)], jobs=[job])
    assert await scene.store.save_schedules([step]) == set()
    assert await scene.standing(schedule) == Standing(schedule=schedule)
    assert await scene.store.load([job.job.id]) == {}
    assert await scene.store.find("default", [str(job.job.name)]) == {}
    assert await scene.store.runs(schedule.id, limit=10, before=None) == []


async def test_a_step_of_a_schedule_that_is_gone_does_nothing(scene: Scene) -> None:
    schedule = await scene.scheduled()
    assert await scene.store.remove_schedule(schedule.id, 1)
    assert await scene.store.save_schedules([Step(schedule=after(schedule))]) == set()
    assert await scene.store.schedule("default", "nightly") is None


async def test_nothing_happens_before_its_time_by_the_stores_clock(scene: Scene) -> None:
    schedule, other = await scene.scheduled(), await scene.scheduled("other")
    job = await scene.run_job(schedule, scene.now)
    early = Step(
        schedule=after(schedule), runs=[scene.run(scene.now)], jobs=[job], not_before=await scene.store.now() + HOUR
    )
    on_time = Step(schedule=after(other), not_before=await scene.store.now())
    assert await scene.store.save_schedules([early, on_time]) == {other.id}
    assert await scene.standing(schedule) == Standing(schedule=schedule)
    assert await scene.store.load([job.job.id]) == {}
    assert await scene.store.runs(schedule.id, limit=10, before=None) == []


async def test_of_many_steps_those_that_lost_harm_none_of_the_others(scene: Scene) -> None:
    schedules = [await scene.scheduled(f"s{n}") for n in range(20)]
    for schedule in schedules[::2]:
        await scene.step(schedule)
    jobs = [await scene.run_job(schedule, scene.now) for schedule in schedules]
    steps = [
        Step(schedule=after(schedule), runs=[scene.run(scene.now)], jobs=[job])
        for schedule, job in zip(schedules, jobs, strict=True)
    ]
    assert await scene.store.save_schedules(steps) == {schedule.id for schedule in schedules[1::2]}
    assert set(await scene.store.load([job.job.id for job in jobs])) == {job.job.id for job in jobs[1::2]}


async def test_of_many_steps_at_one_version_one_takes_effect(scene: Scene) -> None:
    schedule = await scene.scheduled()
    for turn in range(10):
        due = scene.later(turn)
        jobs = [await scene.run_job(schedule, due, payload=str(number)) for number in range(8)]
        steps = [Step(schedule=after(schedule), runs=[scene.run(due)], jobs=[job]) for job in jobs]
        answers = await asyncio.gather(*(scene.store.save_schedules([step]) for step in steps))
        winners = [job.job for job, answer in zip(jobs, answers, strict=True) if answer]
        assert len(winners) == 1
        assert [r.job for r in (await scene.store.load([job.job.id for job in jobs])).values()] == winners
        standing = await scene.standing(schedule)
        assert standing.under_way[-1] == winners[0].id
        assert len(standing.under_way) == turn + 1
        schedule = standing.schedule
    assert schedule.version == 11


async def test_of_many_that_make_one_name_one_does(scene: Scene) -> None:
    for turn in range(10):
        new = [scene.schedule(f"s{turn}") for _ in range(8)]
        answers = await asyncio.gather(*(scene.store.save_schedules([Step(schedule=one)]) for one in new))
        (winner,) = [one for one, answer in zip(new, answers, strict=True) if answer]
        assert await scene.store.schedule("default", f"s{turn}") == winner


async def test_calls_with_the_same_schedules_in_any_order_do_not_block_each_other(scene: Scene) -> None:
    schedules = [await scene.scheduled(f"s{n}") for n in range(10)]
    for _ in range(10):
        steps = [Step(schedule=after(schedule)) for schedule in schedules]
        orders = [steps, steps[::-1], steps[5:] + steps[:5]]
        answers = await asyncio.gather(*(scene.store.save_schedules(order) for order in orders))
        assert sorted(key for answer in answers for key in answer) == [schedule.id for schedule in schedules]
        schedules = [step.schedule for step in steps]


async def test_a_schedule_is_removed_at_its_version_with_what_waits(scene: Scene) -> None:
    schedule, (job,) = await scene.fire(await scene.scheduled(), scene.now)
    schedule = await scene.step(schedule, scene.run(scene.later(1), None))
    other = await scene.step(await scene.scheduled("other"), scene.run(scene.now, None))
    assert not await scene.store.remove_schedule(schedule.id, schedule.version - 1)
    assert await scene.store.waiting_schedules(10) == [schedule.id, other.id]
    assert await scene.store.remove_schedule(schedule.id, schedule.version)
    assert not await scene.store.remove_schedule(schedule.id, schedule.version)
    assert await scene.store.schedule("default", "nightly") is None
    assert await scene.store.standings([schedule.id]) == {}
    assert await scene.store.waiting_schedules(10) == [other.id]
    assert (await scene.record(job.id)).job == job


async def test_a_name_is_free_again_and_the_new_schedule_stands_alone(scene: Scene) -> None:
    schedule, _ = await scene.fire(await scene.scheduled(), scene.now)
    schedule = await scene.step(schedule, scene.run(scene.later(1), None))
    assert await scene.store.remove_schedule(schedule.id, schedule.version)
    new = await scene.scheduled()
    assert await scene.standing(new) == Standing(schedule=new)
    assert await scene.store.runs(new.id, limit=10, before=None) == []


async def test_what_is_due_comes_earliest_first_up_to_the_limit(scene: Scene) -> None:
    for name, due in (("c", 30), ("a", 10), ("b", 20), ("late", 100)):
        await scene.scheduled(name, next_due=scene.later(due))
    await scene.scheduled("paused", next_due=scene.now, paused=True)
    await scene.scheduled("over", next_due=None)
    assert await due_order(scene, scene.later(30)) == ["a", "b", "c"]
    assert await due_order(scene, scene.later(30), limit=2) == ["a", "b"]
    assert await due_order(scene, scene.later(1000)) == ["a", "b", "c", "late"]


async def test_where_nothing_is_due_the_earliest_of_all_is_shown(scene: Scene) -> None:
    await scene.scheduled("late", next_due=scene.later(HOUR))
    await scene.scheduled("next", next_due=scene.later(60))
    await scene.scheduled("paused", next_due=scene.later(30), paused=True)
    assert await due_order(scene, scene.now) == ["next"]


async def test_what_is_due_comes_with_how_it_stands(scene: Scene) -> None:
    schedule, (job,) = await scene.fire(await scene.scheduled(next_due=scene.now), scene.now)
    waiting = scene.run(scene.later(1), None)
    schedule = await scene.step(schedule, waiting)
    expected = Standing(schedule=schedule, under_way=(job.id,), waiting=(waiting,))
    assert await scene.store.peek_schedules(scene.now, 10) == [expected]
    assert await scene.store.standings([UNKNOWN, schedule.id]) == {schedule.id: expected}


async def test_a_standing_has_runs_oldest_first_and_what_waits_by_due_time_backfills_last(scene: Scene) -> None:
    schedule, first = await scene.fire(await scene.scheduled(), scene.later(9), scene.later(3))
    schedule, _ = await scene.fire(schedule, scene.later(-5), scene.later(-6), verdict=Verdict.BACKFILLED)
    schedule, last = await scene.fire(schedule, scene.later(1), verdict=Verdict.CAUGHT_UP)
    backfill = [scene.run(scene.later(s), None, promised=Verdict.BACKFILLED) for s in (-20, -10)]
    others = [scene.run(scene.later(11), None, promised=Verdict.CAUGHT_UP), scene.run(scene.later(12), None)]
    schedule = await scene.step(schedule, *backfill[::-1], *others[::-1])
    assert await scene.standing(schedule) == Standing(
        schedule=schedule,
        under_way=tuple(job.id for job in first + last),
        backfilling=2,
        waiting=tuple(others + backfill),
    )


async def test_a_standings_lists_end_at_their_limit(scene: Scene) -> None:
    dues = [scene.now + n for n in range(STANDING_LIMIT + 1)]
    schedule, jobs = await scene.fire(await scene.scheduled(), *dues)
    waiting = [scene.run(due + MINUTE, None) for due in dues]
    schedule = await scene.step(schedule, *waiting[::-1])
    standing = await scene.standing(schedule)
    assert list(standing.under_way) == [job.id for job in jobs[:STANDING_LIMIT]]
    assert list(standing.waiting) == waiting[:STANDING_LIMIT]


async def test_schedules_with_due_times_that_wait_are_found_unless_paused(scene: Scene) -> None:
    made = [
        await scene.step(await scene.scheduled(f"s{n}"), scene.run(scene.now, None), scene.run(scene.later(1), None))
        for n in range(4)
    ]
    await scene.step(await scene.scheduled("none"), scene.run(scene.now))
    await scene.step(made[1], paused=True)
    found = await scene.store.waiting_schedules(10)
    assert sorted(found) == [made[0].id, made[2].id, made[3].id]
    assert await scene.store.waiting_schedules(2) == found[:2]
    assert await scene.store.waiting_schedules(10, after=found[1]) == found[2:]


async def test_what_is_due_is_counted_by_minute(scene: Scene) -> None:
    start = (scene.now // MINUTE + 2) * MINUTE
    for due in (0, 1, 59 * SECOND, 60 * SECOND, 5 * MINUTE):
        await scene.submitted(due=start + due)
    await scene.submitted(due=start - 1)
    await scene.submitted(due=start + 10 * MINUTE)
    await scene.submitted(due=start, namespace="other")
    await scene.submit(await scene.job(due=start), parents=1)
    held = await scene.submitted(due=start)
    assert isinstance((await scene.happen(held.id, events.Pause())).row, Waiting)
    counted = await scene.store.due_by_minute("default", start, start + 10 * MINUTE)
    assert counted == {start: 3, start + MINUTE: 1, start + 5 * MINUTE: 1}
    assert await scene.store.due_by_minute("nobody", start, start + HOUR) == {}
