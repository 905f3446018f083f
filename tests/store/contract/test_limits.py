"""Concurrency keys: a token is being ready or leased, and there are never more of them than the limit."""

import asyncio

import msgspec
import pytest

from foliot.domain import events
from foliot.domain.changes import Requeue
from foliot.domain.duration import HOUR
from foliot.domain.ids import JobKey
from foliot.domain.job import Ended, Job, Lease, Ready, Waiting
from foliot.domain.rank import rank
from foliot.domain.retry import Retry
from foliot.domain.states import transition
from foliot.domain.status import status_of
from foliot.store.base import Admitted, Filter, Limit
from tests.store.builders import Scene

AT_ONCE = Retry(delays=(0,))


async def waiters(scene: Scene, count: int, key: str = "door", **fields: object) -> list[Job]:
    """Jobs that wait for a token of a key."""
    jobs = await scene.jobs(count, limit_key=key, **fields)
    await scene.submit(*jobs)
    return jobs


async def give(scene: Scene, *numbers: int) -> list[JobKey]:
    given = await scene.store.give_tokens(numbers, scene.now)
    rows = await scene.store.load([key for key, _ in given])
    assert all(isinstance(record.row, Ready) for record in rows.values())
    assert [rows[key].row.lane_id for key, _ in given] == [lane_id for _, lane_id in given]
    return [key for key, _ in given]


async def held(scene: Scene, key: str = "door") -> int:
    (limit,) = await scene.store.limits("default", keys=[key])
    return limit.held


async def test_a_key_has_one_number_and_the_newest_limit(scene: Scene) -> None:
    store = scene.store
    one, two, other = await store.set_limits([("default", "a", 1), ("default", "b", 2), ("other", "a", 3)])
    assert len({one, two, other}) == 3
    assert await store.set_limits([("default", "b", 5), ("default", "a", 1), ("default", "b", 7)]) == [two, one, two]
    limits = await store.limits("default")
    assert [(limit.limit_id, limit.key, limit.most) for limit in limits] == [(one, "a", 1), (two, "b", 7)]
    assert [limit.most for limit in await store.limits("other")] == [3]
    assert await store.set_limits([]) == []


async def test_many_may_set_the_same_limits_at_once(scene: Scene) -> None:
    names = [f"key {number}" for number in range(20)]
    orders = [names, names[::-1]] * 4
    answers = await asyncio.gather(
        *(scene.store.set_limits([("default", name, 2) for name in order]) for order in orders)
    )
    numbers = [dict(zip(order, answer, strict=True)) for order, answer in zip(orders, answers, strict=True)]
    assert all(numbering == numbers[0] for numbering in numbers)
    assert len(set(numbers[0].values())) == 20


async def test_a_new_job_with_a_key_waits_for_a_token(scene: Scene) -> None:
    number = await scene.limit("door", 2)
    (job,) = await waiters(scene, 1)
    row = await scene.row(job.id)
    assert isinstance(row, Waiting)
    assert (row.for_key, row.limit_id) == (True, number)
    assert (await scene.record(job.id)).job == job
    assert await scene.store.occupied_lanes() == []


async def test_tokens_go_by_rank_as_the_rules_have_it(scene: Scene) -> None:
    number = await scene.limit("door", 1)
    low, first, second, high = [(await waiters(scene, 1, priority=p))[0] for p in (2, 5, 5, 8)]
    order = []
    for job in (high, first, second, low):
        before = await scene.row(job.id)
        order += await give(scene, number)
        row = await scene.row(job.id)
        expected = transition(before, events.TokenFree(), scene.now, retry=job.retry)
        assert isinstance(expected, Requeue)
        assert row == expected.row
        assert isinstance(row, Ready)
        assert (row.rank, row.limit_id) == (rank(job.priority, job.due), number)
        assert await give(scene, number) == []
        await scene.happen(job.id, events.Cancel())
    assert order == [high.id, first.id, second.id, low.id]


async def test_of_equal_priority_the_earlier_due_goes_first(scene: Scene) -> None:
    number = await scene.limit("door", 1)
    (late,) = await waiters(scene, 1)
    now, scene.now = scene.now, scene.now - HOUR
    (early,) = await waiters(scene, 1, id=JobKey(scene.new_id()))
    scene.now = now
    assert early.due < late.due
    assert await give(scene, number) == [early.id]


async def test_a_clock_a_little_behind_gives_the_token_all_the_same(scene: Scene) -> None:
    number = await scene.limit("door", 1)
    (job,) = await waiters(scene, 1)
    scene.now -= 1000
    before = await scene.row(job.id)
    assert await give(scene, number) == [job.id]
    expected = transition(before, events.TokenFree(), scene.now, retry=job.retry)
    assert isinstance(expected, Requeue)
    assert await scene.row(job.id) == expected.row


async def test_no_more_than_the_limit_are_ready_or_leased(scene: Scene) -> None:
    number = await scene.limit("door", 3)
    jobs = await waiters(scene, 10)
    worker = await scene.worker()
    assert len(await give(scene, number, number)) == 3
    await scene.claim(worker, jobs[0], 2)
    assert await give(scene, number) == []
    assert await held(scene) == 3


async def test_whoever_gives_tokens_at_the_same_time_the_limit_holds(scene: Scene) -> None:
    number, other = await scene.limit("door", 4), await scene.limit("gate", 2)
    await waiters(scene, 30)
    await waiters(scene, 30, "gate")
    turns = [[number, other], [other, number], [other], [number]] * 4
    answers = await asyncio.gather(*(scene.store.give_tokens(turn, scene.now) for turn in turns))
    given = [key for answer in answers for key, _ in answer]
    assert len(given) == len(set(given)) == 6
    assert (await held(scene), await held(scene, "gate")) == (4, 2)


async def test_tokens_that_come_back_while_others_give_them_are_never_too_many(scene: Scene) -> None:
    number = await scene.limit("door", 3)
    jobs = await waiters(scene, 30)
    worker = await scene.worker()
    await give(scene, number)
    for _ in range(10):
        claimed = await scene.claim(worker, jobs[0], 2)
        ends = [scene.decide(await scene.record(one.lease.id), events.Succeed()) for one in claimed]
        await asyncio.gather(
            scene.store.give_tokens([number], scene.now),
            scene.store.save(ends[:1], scene.now),
            scene.store.give_tokens([number], scene.now),
            scene.store.save(ends[1:], scene.now),
        )
        assert await held(scene) <= 3
        await give(scene, number)
        assert await held(scene) == 3


async def test_a_job_without_a_key_needs_no_token(scene: Scene) -> None:
    number = await scene.limit("door", 1)
    job = await scene.submitted()
    assert isinstance(await scene.row(job.id), Ready)
    assert await give(scene, number) == []
    assert await scene.store.crowded_limits(10) == []


@pytest.mark.parametrize(
    "event",
    [events.Succeed(), events.FailFatal(), events.FailRetriable(retry_after=HOUR), events.WorkerGone()],
    ids=["success", "failure", "retry", "lost"],
)
async def test_the_end_of_an_attempt_gives_the_token_up(scene: Scene, event: events.Event) -> None:
    number = await scene.limit("door", 1)
    first, second = await waiters(scene, 2)
    await give(scene, number)
    (claimed,) = await scene.claim(await scene.worker(), first)
    change = scene.decide(await scene.record(claimed.lease.id), event)
    saved = await scene.store.save([change], scene.now)
    assert (saved.done, saved.limits) == ({first.id}, {number})
    assert await give(scene, number) == [second.id]


async def test_a_retry_that_is_due_at_once_stands_in_line_again(scene: Scene) -> None:
    number = await scene.limit("door", 1)
    first, _ = await waiters(scene, 2, retry=AT_ONCE)
    await give(scene, number)
    await scene.claim(await scene.worker(), first)
    change = scene.decide(await scene.record(first.id), events.FailRetriable())
    assert (await scene.store.save([change], scene.now)).limits == {number}
    row = await scene.row(first.id)
    assert isinstance(row, Waiting)
    assert row.for_key
    assert status_of(row) == "queued"
    assert len(await give(scene, number)) == 1
    assert await held(scene) == 1


@pytest.mark.parametrize("event", [events.Cancel(), events.Pause()], ids=["cancel", "pause"])
async def test_a_ready_holder_that_is_stopped_gives_the_token_up(scene: Scene, event: events.Event) -> None:
    number = await scene.limit("door", 1)
    first, second = await waiters(scene, 2)
    await give(scene, number)
    change = scene.decide(await scene.record(first.id), event)
    saved = await scene.store.save([change], scene.now)
    assert (saved.done, saved.limits) == ({first.id}, {number})
    assert await give(scene, number) == [second.id]


async def test_a_paused_waiter_gets_no_token_until_it_is_resumed(scene: Scene) -> None:
    number = await scene.limit("door", 1)
    (job,) = await waiters(scene, 1)
    change = scene.decide(await scene.record(job.id), events.Pause())
    assert (await scene.store.save([change], scene.now)).limits == frozenset()
    assert await give(scene, number) == []
    change = scene.decide(await scene.record(job.id), events.Resume())
    assert (await scene.store.save([change], scene.now)).limits == {number}
    assert await give(scene, number) == [job.id]


async def test_a_holder_that_is_given_another_key_leaves_the_old_one_and_waits_for_the_new(scene: Scene) -> None:
    door, gate = await scene.limit("door", 1), await scene.limit("gate", 1)
    (job,) = await waiters(scene, 1)
    await give(scene, door)
    changed = msgspec.structs.replace(job, limit_key="gate")
    record = await scene.record(job.id)
    change = scene.decide(record, events.Reschedule(job=changed, due=job.due, limit_id=gate))
    assert (await scene.store.save([change], scene.now)).limits == {door, gate}
    assert (await scene.record(job.id)).job == changed
    assert (await held(scene), await held(scene, "gate")) == (0, 0)
    assert await give(scene, door, gate) == [job.id]
    record = await scene.record(job.id)
    plain = msgspec.structs.replace(job, limit_key=None)
    change = scene.decide(record, events.Reschedule(job=plain, due=job.due))
    assert (await scene.store.save([change], scene.now)).limits == {gate}
    assert isinstance(await scene.row(job.id), Ready)
    assert await held(scene, "gate") == 0


async def test_ends_of_several_keys_in_one_batch_tell_them_all(scene: Scene) -> None:
    numbers = [await scene.limit(f"key {number}", 1) for number in range(4)]
    jobs = [(await waiters(scene, 1, f"key {number}"))[0] for number in range(4)]
    plain = await scene.submitted(job_type="plain")
    await give(scene, *numbers)
    worker = await scene.worker()
    await scene.claim(worker, jobs[0], 3)
    await scene.claim(worker, plain)
    changes = [scene.decide(await scene.record(job.id), events.Cancel()) for job in jobs[3:]]
    changes += [scene.decide(await scene.record(job.id), events.Succeed()) for job in (*jobs[:3], plain)]
    saved = await scene.store.save(changes, scene.now)
    assert saved.limits == set(numbers)
    assert len(saved.done) == 5


async def test_a_change_that_loses_frees_nothing(scene: Scene) -> None:
    number = await scene.limit("door", 1)
    (job,) = await waiters(scene, 1)
    await give(scene, number)
    pause = scene.decide(await scene.record(job.id), events.Pause())
    (claimed,) = await scene.claim(await scene.worker(), job)
    saved = await scene.store.save([pause], scene.now)
    assert (saved.done, saved.limits) == (set(), frozenset())
    end = scene.decide(await scene.record(claimed.lease.id), events.Succeed())
    await scene.save([end])
    assert (await scene.store.save([end], scene.now)).limits == frozenset()


async def test_a_raised_limit_lets_more_in(scene: Scene) -> None:
    number = await scene.limit("door", 1)
    await waiters(scene, 5)
    await give(scene, number)
    assert await scene.limit("door", 4) == number
    assert len(await give(scene, number)) == 3


async def test_a_lowered_limit_throws_nobody_out(scene: Scene) -> None:
    number = await scene.limit("door", 3)
    jobs = await waiters(scene, 5)
    given = await give(scene, number)
    await scene.limit("door", 1)
    assert await give(scene, number) == []
    assert await held(scene) == 3
    for key in given[:2]:
        await scene.happen(key, events.Cancel())
        assert await give(scene, number) == []
    await scene.happen(given[2], events.Cancel())
    assert await give(scene, number) == [jobs[3].id]


async def test_an_admitted_job_with_a_key_stands_in_line(scene: Scene) -> None:
    number = await scene.limit("door", 1)
    now, scene.now = scene.now, scene.now - HOUR
    (keyed,) = await waiters(scene, 1, due=now)
    plain = await scene.submitted(due=now, job_type="plain")
    scene.now = now
    before = await scene.row(keyed.id)
    assert isinstance(before, Waiting)
    assert not before.for_key
    admitted = await scene.store.admit([keyed.id, plain.id])
    assert admitted == Admitted([(plain.id, plain.lane_id)], [(keyed.id, number)])
    row = await scene.row(keyed.id)
    expected = transition(before, events.Due(), row.since, retry=keyed.retry)
    assert isinstance(expected, Requeue)
    assert row == expected.row
    assert isinstance(row, Waiting)
    assert row.for_key
    assert await scene.store.admit([keyed.id]) == Admitted([], [])


async def test_what_waits_for_a_token_is_not_peeked(scene: Scene) -> None:
    await scene.limit("door", 1)
    await waiters(scene, 3)
    assert await scene.store.peek_due(scene.later(60), 10) == []
    (later,) = await waiters(scene, 1, due=scene.later(30))
    assert [due.id for due in await scene.store.peek_due(scene.later(60), 10)] == [later.id]
    assert await scene.store.due_by_minute("default", scene.now - HOUR, scene.now + 1) == {}


async def test_waiters_are_listed_as_queued(scene: Scene) -> None:
    number = await scene.limit("door", 1)
    jobs = await waiters(scene, 3)
    ready = await scene.submitted(job_type="ready")
    await scene.submitted(due=scene.later(60), job_type="later")
    await give(scene, number)

    async def listed(*statuses: str) -> list[JobKey]:
        page = await scene.store.list_jobs(Filter(namespace="default", statuses=statuses), limit=10, before=None)
        return [record.job.id for record in page.records]

    queued = [ready.id, *(job.id for job in reversed(jobs))]
    assert await listed("queued") == queued
    assert len(await listed("queued", "scheduled")) == 5
    assert len(await listed("scheduled")) == 1
    page = await scene.store.list_jobs(Filter(namespace="default", statuses=("queued",)), limit=2, before=None)
    assert [record.job.id for record in page.records] == queued[:2]
    page = await scene.store.list_jobs(Filter(namespace="default", statuses=("queued",)), limit=9, before=page.next)
    assert [record.job.id for record in page.records] == queued[2:]


async def test_a_waiter_past_its_deadline_expires(scene: Scene) -> None:
    number = await scene.limit("door", 1)
    (job,) = await waiters(scene, 1, deadline=scene.later(10))
    scene.now = scene.later(10)
    assert [record.job.id for record in await scene.store.expired(scene.now, 5)] == [job.id]
    assert isinstance((await scene.happen(job.id, events.Expire())).row, Ended)
    assert await give(scene, number) == []


async def test_keys_with_waiters_are_told_page_by_page(scene: Scene) -> None:
    numbers = [await scene.limit(f"key {number}", 1) for number in range(5)]
    for number in range(5):
        await waiters(scene, 3, f"key {number}")
    await waiters(scene, 1, "key 4", due=scene.later(60))
    numbers.sort()
    assert await scene.store.crowded_limits(2) == numbers[:2]
    assert await scene.store.crowded_limits(2, after=numbers[1]) == numbers[2:4]
    assert await scene.store.crowded_limits(10, after=numbers[3]) == numbers[4:]
    assert await scene.store.crowded_limits(10, after=numbers[4]) == []
    await scene.limit("key 0", 3)
    await give(scene, *numbers)
    assert len(await scene.store.crowded_limits(10)) == 4


async def test_a_key_shows_who_holds_and_who_waits(scene: Scene) -> None:
    door, gate = await scene.limit("door", 2), await scene.limit("gate", 9)
    await scene.limit("elsewhere", 1, namespace="other")
    jobs = [(await waiters(scene, 1, priority=priority))[0] for priority in (9, 8, 3, 7)]
    await give(scene, door)
    await scene.claim(await scene.worker(), jobs[0])
    expected = Limit(limit_id=door, key="door", most=2, held=2, waiting=2)
    assert await scene.store.limits("default", keys=["door", "nowhere"]) == [
        msgspec.structs.replace(expected, holders=[], waiters=[])
    ]
    (limit,) = await scene.store.limits("default", keys=["door"], names=5)
    assert set(limit.holders) == {jobs[0].id, jobs[1].id}
    assert list(limit.waiters) == [jobs[3].id, jobs[2].id]
    (limit,) = await scene.store.limits("default", keys=["door"], names=1)
    assert (len(limit.holders), list(limit.waiters)) == (1, [jobs[3].id])
    limits = await scene.store.limits("default")
    assert [(limit.limit_id, limit.held, limit.waiting) for limit in limits] == [(door, 2, 2), (gate, 0, 0)]


async def test_keys_are_listed_by_name(scene: Scene) -> None:
    for key in ("c", "a", "e", "b", "d"):
        await scene.limit(key, 1)
    assert [limit.key for limit in await scene.store.limits("default", limit=2)] == ["a", "b"]
    assert [limit.key for limit in await scene.store.limits("default", limit=9, after="b")] == ["c", "d", "e"]
    assert [limit.key for limit in await scene.store.limits("default", keys=["d", "a"])] == ["a", "d"]
    assert await scene.store.limits("default", keys=[]) == []


async def test_the_token_of_a_lost_worker_comes_back(scene: Scene) -> None:
    number = await scene.limit("door", 1)
    first, second = await waiters(scene, 2)
    await give(scene, number)
    worker = await scene.worker()
    await scene.claim(worker, first)
    await scene.store.remove_worker(worker.id)
    assert await give(scene, number) == []
    (missed,) = await scene.store.missed(scene.now, 5)
    assert isinstance(missed.record.row, Lease)
    assert missed.record.row.limit_id == number
    saved = await scene.store.save([scene.decide(missed.record, events.WorkerGone())], scene.now)
    assert saved.limits == {number}
    assert await give(scene, number) == [second.id]


async def test_a_redriven_job_stands_in_line(scene: Scene) -> None:
    number = await scene.limit("door", 1)
    (job,) = await waiters(scene, 1)
    await scene.happen(job.id, events.Cancel())
    change = scene.decide(await scene.record(job.id), events.Redrive(job=job, limit_id=number))
    assert (await scene.store.save([change], scene.now)).limits == {number}
    assert await give(scene, number) == [job.id]


async def test_lanes_that_need_different_things_are_different(scene: Scene) -> None:
    plain = await scene.submitted()
    needy = await scene.submitted(needs='{"amounts":[["gpu",1000],["slot",1000]]}')
    assert plain.lane_id != needy.lane_id
    assert await scene.store.lane_ids([plain.lane, needy.lane]) == [plain.lane_id, needy.lane_id]
    assert scene.store.lane(needy.lane_id) == needy.lane
    assert (await scene.record(needy.id)).job.lane.needs == needy.lane.needs
    (claimed,) = await scene.claim(await scene.worker(), needy, 5)
    assert claimed.job == needy
    assert isinstance(await scene.row(plain.id), Ready)
