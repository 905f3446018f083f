"""The ledger of due times, the jobs they become, and which runs are under way."""

import asyncio
import itertools

import msgspec
import pytest

from foliot.domain import events
from foliot.domain.changes import Change
from foliot.domain.duration import DAY, MINUTE
from foliot.domain.ids import JobKey
from foliot.domain.job import Job, Lease, Ready, State, Waiting
from foliot.domain.schedule import WITH_JOB, Run, Schedule, Standing, Verdict
from foliot.store.base import Saved, Step, Store
from tests.store.builders import Scene


async def ledger(scene: Scene, schedule: Schedule) -> list[Run]:
    return await scene.store.runs(schedule.id, limit=100, before=None)


async def change_of(scene: Scene, key: JobKey, event: events.Event) -> Change:
    return scene.decide(await scene.record(key), event)


async def save(scene: Scene, *changes: Change) -> Saved:
    """What a save did, but for the times of the attempts that it ended."""
    return msgspec.structs.replace(await scene.store.save(changes, scene.now), timings=())


async def running(scene: Scene, job: Job) -> Lease:
    (claimed,) = await scene.claim(await scene.worker(namespace=job.lane.namespace), job)
    assert claimed.lease.id == job.id
    return claimed.lease


async def test_firing_writes_the_ledger_the_job_and_the_run_under_way(scene: Scene) -> None:
    schedule = await scene.scheduled()
    now, later = await scene.run_job(schedule, scene.now), await scene.run_job(schedule, scene.later(60))
    rows = [scene.run(scene.later(60)), scene.run(scene.now)]
    schedule = await scene.step(schedule, *rows, jobs=[now, later], next_due=scene.later(120), runs=2)
    assert await ledger(scene, schedule) == rows
    records = await scene.store.load([now.job.id, later.job.id])
    assert [(record.job, record.row) for record in records.values()] == [(now.job, now.row), (later.job, later.row)]
    assert isinstance(now.row, Ready)
    assert isinstance(later.row, Waiting)
    assert await scene.store.find("default", [str(now.job.name)]) == {now.job.name: now.job.id}
    assert await scene.standing(schedule) == Standing(schedule=schedule, under_way=(now.job.id, later.job.id))
    assert (await scene.store.counts("default"))["queued"] == 1


async def test_a_job_whose_name_is_taken_is_not_written_again(scene: Scene) -> None:
    schedule, (first,) = await scene.fire(await scene.scheduled(), scene.now)
    again, new = (
        await scene.run_job(schedule, scene.now, payload='"again"'),
        await scene.run_job(schedule, scene.later(1)),
    )
    schedule = await scene.step(schedule, scene.run(scene.later(1)), jobs=[again, new])
    assert [r.job for r in (await scene.store.load([first.id, again.job.id, new.job.id])).values()] == [first, new.job]
    assert (await scene.standing(schedule)).under_way == (first.id, new.job.id)


async def test_a_schedules_first_step_may_bring_runs(scene: Scene) -> None:
    schedule = scene.schedule(version=0)
    schedule, (job,) = await scene.fire(schedule, scene.now)
    assert await scene.standing(schedule) == Standing(schedule=schedule, under_way=(job.id,))
    assert await ledger(scene, schedule) == [scene.run(scene.now)]


async def test_a_row_is_read_as_it_was_written(scene: Scene) -> None:
    fields = {"until": scene.later(60), "count": 10**12, "exact": False, "promised": Verdict.CAUGHT_UP, "reason": "why"}
    rows = [scene.run(scene.later(n), verdict, **fields) for n, verdict in enumerate([None, *Verdict])]
    schedule = await scene.step(await scene.scheduled(), *rows)
    assert await ledger(scene, schedule) == rows[::-1]


async def test_a_row_is_replaced_unless_it_has_its_job_or_both_wait(scene: Scene) -> None:
    pairs = list(itertools.product([None, *Verdict], repeat=2))
    before = [
        scene.run(scene.later(n), old, promised=Verdict.CAUGHT_UP, reason="before", decided=1)
        for n, (old, _) in enumerate(pairs)
    ]
    after = [
        scene.run(scene.later(n), new, promised=Verdict.BACKFILLED, exact=False, decided=2)
        for n, (_, new) in enumerate(pairs)
    ]
    schedule = await scene.step(await scene.scheduled(), *before)
    schedule = await scene.step(schedule, *after)
    expected = [
        one if old in WITH_JOB or (old is None and new is None) else other
        for (old, new), one, other in zip(pairs, before, after, strict=True)
    ]
    assert await ledger(scene, schedule) == expected[::-1]
    waiting = [row for row in expected if row.verdict is None]
    assert sorted((await scene.standing(schedule)).waiting, key=lambda row: row.due) == waiting


async def test_rows_of_the_same_start_but_another_end_stand_beside_each_other(scene: Scene) -> None:
    one = scene.run(scene.now, Verdict.MISSED)
    range_ = scene.run(scene.now, Verdict.MISSED, until=scene.later(60), count=2)
    schedule = await scene.step(await scene.scheduled(), one, range_)
    assert await ledger(scene, schedule) == [range_, one]


async def test_the_ledger_comes_newest_first_by_pages(scene: Scene) -> None:
    rows = [scene.run(scene.later(n), Verdict.SKIPPED, reason="overlap") for n in range(5)]
    schedule = await scene.step(await scene.scheduled(), *rows)
    other = await scene.step(await scene.scheduled("other"), scene.run(scene.now))
    first = await scene.store.runs(schedule.id, limit=2, before=None)
    second = await scene.store.runs(schedule.id, limit=2, before=first[-1].due)
    last = await scene.store.runs(schedule.id, limit=2, before=second[-1].due)
    assert first + second + last == rows[::-1]
    assert await ledger(scene, other) == [scene.run(scene.now)]


async def test_due_times_that_have_their_job_or_wait_for_it_are_settled(scene: Scene) -> None:
    verdicts = [None, *Verdict]
    rows = [scene.run(scene.later(n), verdict) for n, verdict in enumerate(verdicts)]
    schedule = await scene.step(await scene.scheduled(), *rows)
    await scene.step(await scene.scheduled("other"), *(scene.run(row.due) for row in rows))
    settled = {row.due for row in rows if row.verdict is None or row.verdict in WITH_JOB}
    assert await scene.store.settled_dues(schedule.id, rows[0].due, rows[-1].due) == settled
    assert await scene.store.settled_dues(schedule.id, rows[0].due, rows[0].due) == {rows[0].due}
    assert await scene.store.settled_dues(schedule.id, rows[-1].due + 1, rows[-1].due + DAY) == set()


async def test_a_backfill_of_many_due_times_waits_and_is_settled(scene: Scene) -> None:
    dues = [scene.now - n * MINUTE for n in range(20_000)]
    rows = [scene.run(due, None, promised=Verdict.BACKFILLED) for due in dues]
    schedule = await scene.step(await scene.scheduled(), *rows, backfill_limit=5)
    assert await scene.store.settled_dues(schedule.id, dues[-1], dues[0]) == set(dues)
    assert (await scene.standing(schedule)).waiting[0].due == dues[-1]


@pytest.mark.parametrize("event", [events.Succeed(), events.FailFatal(), events.Stopped()])
async def test_a_run_that_ends_out_of_its_lease_frees_its_schedule(scene: Scene, event: events.Event) -> None:
    schedule, (job,) = await scene.fire(await scene.scheduled(), scene.now)
    await running(scene, job)
    if isinstance(event, events.Stopped):
        assert await save(scene, await change_of(scene, job.id, events.Cancel())) == Saved({job.id}, set())
    end = await change_of(scene, job.id, event)
    assert await save(scene, end) == Saved({job.id}, {schedule.id})
    assert await scene.standing(schedule) == Standing(schedule=schedule)
    assert await save(scene, end) == Saved(set(), set())


@pytest.mark.parametrize("seconds", [0, 60], ids=["ready", "waiting"])
async def test_a_run_that_ends_before_it_started_frees_its_schedule(scene: Scene, seconds: int) -> None:
    schedule, (job,) = await scene.fire(await scene.scheduled(), scene.later(seconds))
    end = await change_of(scene, job.id, events.Cancel())
    assert await save(scene, end) == Saved({job.id}, {schedule.id})
    assert await scene.standing(schedule) == Standing(schedule=schedule)


async def test_a_run_that_is_tried_again_stays_under_way(scene: Scene) -> None:
    schedule, (tried, ending) = await scene.fire(await scene.scheduled(), scene.now - 1, scene.now)
    await scene.claim(await scene.worker(), tried, 2)
    changes = [
        await change_of(scene, tried.id, events.FailRetriable()),
        await change_of(scene, ending.id, events.Succeed()),
    ]
    assert await save(scene, *changes) == Saved({tried.id, ending.id}, {schedule.id})
    assert (await scene.standing(schedule)).under_way == (tried.id,)


async def test_a_plain_job_frees_nothing_also_beside_a_run(scene: Scene) -> None:
    other = await scene.scheduled("other")
    leases = [await scene.running(job_type="plain") for _ in range(3)]
    ends = [await change_of(scene, lease.id, events.Succeed()) for lease in leases]
    assert await save(scene, *ends[:2]) == Saved({lease.id for lease in leases[:2]}, set())
    schedule, (first, second, waits) = await scene.fire(other, scene.now - 1, scene.now, scene.later(60))
    for job in (first, second):
        await running(scene, job)
        ends.append(await change_of(scene, job.id, events.Succeed()))
    assert await save(scene, *ends) == Saved({leases[2].id, first.id, second.id}, {schedule.id})
    assert (await scene.standing(schedule)).under_way == (waits.id,)


async def test_runs_of_several_schedules_end_in_one_call(scene: Scene) -> None:
    fired = [await scene.fire(await scene.scheduled(f"s{n}"), scene.now) for n in range(3)]
    await scene.claim(await scene.worker(), fired[0][1][0], 3)
    ends = [await change_of(scene, job.id, events.Succeed()) for _, (job,) in fired[:2]]
    assert (await scene.store.save(ends, scene.now)).freed == {schedule.id for schedule, _ in fired[:2]}
    assert (await scene.standing(fired[2][0])).under_way == (fired[2][1][0].id,)


async def test_a_lost_end_frees_nothing(scene: Scene) -> None:
    schedule, (job,) = await scene.fire(await scene.scheduled(), scene.now)
    stale = await change_of(scene, job.id, events.Cancel())
    await scene.happen(job.id, events.Pause())
    assert await save(scene, stale) == Saved(set(), set())
    assert (await scene.standing(schedule)).under_way == (job.id,)


async def test_a_run_of_a_schedule_that_is_gone_frees_nothing(scene: Scene) -> None:
    schedule, (job,) = await scene.fire(await scene.scheduled(), scene.now)
    assert await scene.store.remove_schedule(schedule.id, schedule.version)
    end = await change_of(scene, job.id, events.Cancel())
    assert await save(scene, end) == Saved({job.id}, set())


async def ended(scene: Scene, job: Job) -> Job:
    await running(scene, job)
    record = await scene.happen(job.id, events.FailFatal())
    return record.job


@pytest.mark.parametrize("due", [0, 1, 999_999, 86_400_000_001])
async def test_a_redriven_run_is_under_way_again_as_what_it_was(scene: Scene, due: int) -> None:
    schedule, (job,) = await scene.fire(await scene.scheduled("weird@name Z"), scene.now)
    schedule, (filled,) = await scene.fire(
        schedule, due, verdict=Verdict.BACKFILLED, job_type="filled", created=scene.now
    )
    for one in (job, filled):
        await ended(scene, one)
    assert await scene.standing(schedule) == Standing(schedule=schedule)
    for one in (job, filled):
        await scene.happen(one.id, events.Redrive(job=one))
    assert await scene.standing(schedule) == Standing(schedule=schedule, under_way=(job.id,), backfilling=1)
    end = await change_of(scene, job.id, events.Cancel())
    assert (await scene.store.save([end], scene.now)).freed == {schedule.id}


async def test_a_redrive_touches_no_schedule_where_there_is_none(scene: Scene) -> None:
    schedule, (gone,) = await scene.fire(await scene.scheduled("gone"), scene.now)
    other = await scene.scheduled("gone", namespace="other")
    await ended(scene, gone)
    assert await scene.store.remove_schedule(schedule.id, schedule.version)
    plain = await scene.ended(State.FAILED, job_type="plain")
    for job in (gone, plain.job):
        record = await scene.happen(job.id, events.Redrive(job=job))
        assert isinstance(record.row, Ready)
    assert await scene.standing(other) == Standing(schedule=other)


async def test_runs_end_while_their_schedule_fires(scene: Scene) -> None:
    schedule, (last,) = await scene.fire(await scene.scheduled(), scene.now)
    for turn in range(1, 20):
        end = await change_of(scene, last.id, events.Cancel())
        (schedule, (new,)), saved = await asyncio.gather(
            scene.fire(schedule, scene.now - turn), scene.store.save([end], scene.now)
        )
        assert saved == Saved({last.id}, {schedule.id})
        assert (await scene.standing(schedule)).under_way == (new.id,)
        last = new


async def test_a_schedule_that_is_removed_while_it_fires_leaves_nothing_waiting(scene: Scene) -> None:
    for turn in range(20):
        schedule = await scene.scheduled(f"s{turn}")
        job = await scene.run_job(schedule, scene.now)
        changed = msgspec.structs.replace(schedule, version=2)
        step = Step(schedule=changed, runs=[scene.run(scene.now), scene.run(scene.later(1), None)], jobs=[job])
        fired, removed = await asyncio.gather(
            scene.store.save_schedules([step]), scene.store.remove_schedule(schedule.id, 1)
        )
        assert (fired == {schedule.id}) != removed
        assert set(await scene.store.load([job.job.id])) == ({job.job.id} if fired else set())
        if fired:
            assert await scene.store.remove_schedule(schedule.id, 2)
        assert await scene.store.waiting_schedules(10) == []


async def drain(store: Store, before: int, limit: int) -> list[int]:
    taken = []
    while count := await store.forget(before, limit):
        taken.append(count)
    return taken


async def test_old_rows_are_forgotten_in_chunks_but_not_those_that_wait(scene: Scene) -> None:
    rows = [scene.run(scene.later(n), Verdict.SKIPPED, decided=scene.now - 40 * DAY) for n in range(12)]
    waits = scene.run(scene.later(100), None, decided=scene.now - 40 * DAY)
    young = scene.run(scene.later(101), Verdict.SKIPPED, decided=scene.now - 20 * DAY)
    schedule = await scene.step(await scene.scheduled(), *rows, waits, young)
    taken = await drain(scene.store, scene.now - 30 * DAY, 5)
    assert sum(taken) == 12
    assert len(taken) >= 2
    assert await ledger(scene, schedule) == [young, waits]


async def test_the_ledger_of_a_removed_schedule_goes_with_its_time(scene: Scene) -> None:
    rows = [scene.run(scene.later(n), decided=scene.now - (40 - n * 20) * DAY) for n in range(2)]
    schedule = await scene.step(await scene.scheduled(), *rows)
    assert await scene.store.remove_schedule(schedule.id, schedule.version)
    assert sum(await drain(scene.store, scene.now - 30 * DAY, 100)) == 1
    assert sum(await drain(scene.store, scene.now, 100)) == 1


async def test_a_run_whose_due_time_is_long_past_is_kept_and_named(scene: Scene) -> None:
    """A backfill may reach further back than the store keeps jobs."""
    due = scene.now - 3 * 365 * DAY
    schedule, (job,) = await scene.fire(await scene.scheduled(), due, verdict=Verdict.BACKFILLED)
    assert (await scene.record(job.id)).job == job
    assert await scene.standing(schedule) == Standing(schedule=schedule, backfilling=1)
