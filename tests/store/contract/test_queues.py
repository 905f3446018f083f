"""Queues: their rules and versions, what is held, and limits that hold whoever claims."""

import asyncio
from collections import Counter
from typing import Any

import msgspec
import pytest

from foliot.domain import events
from foliot.domain.duration import HOUR, MINUTE
from foliot.domain.ids import JobKey
from foliot.domain.job import NAMESPACE, Job, Lane, Lease, Ready
from foliot.domain.placement import Order
from foliot.domain.queue import DEFAULT_RULES, Queue, QueueRules, Room
from foliot.domain.rate import RateLimit, carried_over
from foliot.domain.retry import Retry
from foliot.domain.worker import Worker
from foliot.store.base import Claimed, Crowd
from tests.store.builders import Scene

THREE_AT_ONCE = RateLimit(limit=10, per=HOUR, burst=2)  # and the next one in six minutes
ALL_RULES = QueueRules(
    policy="fair",
    aging=MINUTE,
    weight=2.5,
    weights={"ann": 3.0, "bob ü": 0.5},
    max_concurrency=7,
    rate_limit=RateLimit(limit=100, per=HOUR, burst=20),
)


def wanted(name: str = "default", *, namespace: str = NAMESPACE, paused: bool = False, **rules: Any) -> Queue:
    given = msgspec.structs.replace(DEFAULT_RULES, **rules)
    return Queue(queue_id=0, namespace=namespace, name=name, paused=paused, rules=given)


async def put(scene: Scene, name: str = "default", **fields: Any) -> Queue:
    """Let the queue have these rules and the defaults else, whatever version it is at."""
    queue = await scene.store.put_queue(wanted(name, **fields), expected=None, now=scene.now)
    assert queue is not None
    return queue


async def claim(scene: Scene, worker: Worker, job: Job, count: int = 1, *, limited: bool = True) -> list[Claimed]:
    orders = [Order(job.lane_id, worker.id, count, limited)]
    return await scene.store.claim(orders, scene.new_nonce(), scene.now)


async def jobs_in(scene: Scene, count: int, **fields: Any) -> list[Job]:
    jobs = await scene.jobs(count, **fields)
    await scene.submit(*jobs)
    return jobs


async def aged(scene: Scene, age: int, **fields: Any) -> Job:
    """A job that is ready since so many microseconds."""
    now, scene.now = scene.now, scene.now - age
    job = await scene.submitted(**fields)
    scene.now = now
    return job


async def room(scene: Scene, queue: Queue) -> Room:
    return (await scene.store.rooms([queue.queue_id]))[queue.queue_id]


async def test_a_queue_is_there_from_its_first_lane_on_with_the_default_rules(scene: Scene) -> None:
    await scene.job(queue="mail", job_type="a")
    await scene.job(queue="mail", job_type="b", needs='{"amounts":[["gpu",1000]]}')
    (queue,) = await scene.store.queues(NAMESPACE)
    assert queue == Queue(queue_id=queue.queue_id, namespace=NAMESPACE, name="mail")
    assert (queue.version, queue.ordered, queue.paused, queue.rules) == (1, 1, False, QueueRules())


async def test_a_queue_is_there_from_its_first_put_on_at_version_one(scene: Scene) -> None:
    queue = await put(scene, "mail", policy="fair", paused=True)
    assert (queue.name, queue.version, queue.ordered, queue.paused) == ("mail", 1, 1, True)
    assert await scene.store.queues(NAMESPACE) == [queue]
    await scene.job(queue="mail")
    assert await scene.store.queues(NAMESPACE) == [queue]


async def test_queues_are_listed_by_name_within_their_namespace(scene: Scene) -> None:
    for name in ("c", "a", "e", "b"):
        await scene.job(queue=name)
    await put(scene, "d", weight=2.0)
    await put(scene, "a", namespace="other")
    store = scene.store
    assert [queue.name for queue in await store.queues(NAMESPACE)] == ["a", "b", "c", "d", "e"]
    assert [queue.name for queue in await store.queues(NAMESPACE, limit=2)] == ["a", "b"]
    assert [queue.name for queue in await store.queues(NAMESPACE, limit=9, after="b")] == ["c", "d", "e"]
    assert [queue.name for queue in await store.queues("other")] == ["a"]
    assert [queue.name for queue in await store.queues(NAMESPACE, names=["d", "a", "nowhere"])] == ["a", "d"]
    assert await store.queues(NAMESPACE, names=[]) == []


async def test_of_named_queues_all_come_however_many(scene: Scene) -> None:
    names = [f"queue-{number}" for number in range(60)]
    await scene.store.lane_ids([Lane(NAMESPACE, name, "echo") for name in names])
    assert {queue.name for queue in await scene.store.queues(NAMESPACE, names=names)} == set(names)


async def test_rules_come_back_as_they_were_given(scene: Scene) -> None:
    await scene.job(queue="mail")
    queue = await scene.store.put_queue(
        Queue(queue_id=0, namespace=NAMESPACE, name="mail", paused=True, rules=ALL_RULES), expected=None, now=scene.now
    )
    assert queue is not None
    assert (queue.rules, queue.paused) == (ALL_RULES, True)
    assert await scene.store.queues(NAMESPACE) == [queue]
    assert (await scene.store.special_queues()).queue(Lane(NAMESPACE, "mail", "any")) == queue


async def test_the_version_grows_where_anything_changes_and_only_there(scene: Scene) -> None:
    first = await put(scene, weight=2.0)
    assert await put(scene, weight=2.0) == first
    second = await put(scene, weight=3.0)
    paused = await put(scene, weight=3.0, paused=True)
    back = await put(scene)
    assert [queue.version for queue in (first, second, paused, back)] == [1, 2, 3, 4]
    assert len({queue.queue_id for queue in (first, second, paused, back)}) == 1
    assert (back.rules, back.paused) == (QueueRules(), False)


async def test_what_changes_the_order_of_jobs_is_noted_with_its_version(scene: Scene) -> None:
    await scene.job()
    steps = [
        (await put(scene, max_concurrency=3)).ordered,
        (await put(scene, policy="fair")).ordered,
        (await put(scene, policy="fair", weight=2.0)).ordered,
        (await put(scene, policy="fair", weights={"a": 2.0})).ordered,
        (await put(scene, policy="fair", weights={"a": 2.0}, paused=True)).ordered,
        (await put(scene, aging=MINUTE)).ordered,
    ]
    assert steps == [1, 3, 3, 5, 5, 7]


async def test_a_put_that_expects_another_version_changes_nothing(scene: Scene) -> None:
    store = scene.store
    assert await store.put_queue(wanted(weight=2.0), expected=1, now=scene.now) is None
    assert await store.queues(NAMESPACE) == []
    made = await store.put_queue(wanted(weight=2.0), expected=0, now=scene.now)
    assert made is not None
    assert await store.put_queue(wanted(weight=3.0), expected=0, now=scene.now) is None
    assert await store.put_queue(wanted(weight=3.0), expected=2, now=scene.now) is None
    assert await store.queues(NAMESPACE) == [made]
    changed = await store.put_queue(wanted(weight=3.0), expected=1, now=scene.now)
    assert changed is not None
    assert changed.version == 2
    assert await store.put_queue(wanted(weight=4.0), expected=1, now=scene.now) is None


async def test_of_many_that_expect_the_same_version_one_takes_effect(scene: Scene) -> None:
    for version in range(10):
        puts = [
            scene.store.put_queue(wanted(weight=10.0 * version + turn + 1), expected=version, now=scene.now)
            for turn in range(4)
        ]
        taken = [queue for queue in await asyncio.gather(*puts) if queue is not None]
        assert [queue.version for queue in taken] == [version + 1]
        assert await scene.store.queues(NAMESPACE) == taken


async def test_the_book_has_what_is_not_left_to_the_defaults_and_nothing_else(scene: Scene) -> None:
    await scene.job(queue="plain")
    fair = await put(scene, "fair", policy="fair")
    heavy = await put(scene, "heavy", weight=4.0, namespace="other")
    held = await put(scene, "held", paused=True)
    await put(scene, "was", policy="fifo")
    await put(scene, "was")
    await scene.store.hold_type("other", "echo", held=True)
    book = await scene.store.special_queues()
    assert book.queue(Lane(NAMESPACE, "plain", "echo")) is None
    assert book.queue(Lane(NAMESPACE, "was", "echo")) is None
    assert book.queue(Lane(NAMESPACE, "fair", "echo")) == fair
    assert book.queue(Lane("other", "heavy", "echo")) == heavy
    assert book.queue(Lane(NAMESPACE, "held", "echo")) == held
    assert [book.held(Lane(*names)) for names in ((NAMESPACE, "held", "x"), (NAMESPACE, "fair", "echo"))] == [
        True,
        False,
    ]
    assert [book.held(Lane("other", "heavy", job_type)) for job_type in ("echo", "x")] == [True, False]


async def test_held_types_are_listed_by_name_and_holding_twice_is_holding_once(scene: Scene) -> None:
    store = scene.store
    for job_type in ("b", "a", "a", "c"):
        await store.hold_type(NAMESPACE, job_type, held=True)
    await store.hold_type("other", "z", held=True)
    assert await store.held_types(NAMESPACE) == ["a", "b", "c"]
    for job_type in ("b", "b", "never"):
        await store.hold_type(NAMESPACE, job_type, held=False)
    assert await store.held_types(NAMESPACE) == ["a", "c"]
    assert await store.held_types("other") == ["z"]


@pytest.mark.parametrize("limited", [False, True])
async def test_nothing_of_a_paused_queue_is_claimed_until_it_is_resumed(scene: Scene, limited: bool) -> None:
    worker = await scene.worker()
    (job,) = await jobs_in(scene, 1, queue="mail")
    (other,) = await jobs_in(scene, 1, queue="web")
    rules: dict[str, Any] = {"max_concurrency": 5} if limited else {}
    await put(scene, "mail", paused=True, **rules)
    assert await claim(scene, worker, job, limited=limited) == []
    assert await claim(scene, worker, job, limited=not limited) == []
    assert len(await claim(scene, worker, other, limited=False)) == 1
    assert await scene.store.occupied_lanes() == [job.lane_id]
    await put(scene, "mail", **rules)
    assert [one.job for one in await claim(scene, worker, job, limited=limited)] == [job]


async def test_nothing_of_a_paused_job_type_is_claimed_until_it_is_resumed(scene: Scene) -> None:
    worker = await scene.worker()
    held = [(await jobs_in(scene, 1, queue=queue, job_type="held"))[0] for queue in ("mail", "web")]
    (free,) = await jobs_in(scene, 1, queue="mail", job_type="free")
    (elsewhere,) = await jobs_in(scene, 1, namespace="other", job_type="held")
    await scene.store.hold_type(NAMESPACE, "held", held=True)
    assert [await claim(scene, worker, job, limited=False) for job in held] == [[], []]
    assert [len(await claim(scene, worker, job, limited=False)) for job in (free, elsewhere)] == [1, 1]
    await scene.store.hold_type(NAMESPACE, "held", held=False)
    assert [len(await claim(scene, worker, job, limited=False)) for job in held] == [1, 1]


@pytest.mark.parametrize("rules", [{"max_concurrency": 5}, {"rate_limit": THREE_AT_ONCE}], ids=["most", "rate"])
async def test_an_order_that_is_not_limited_gets_nothing_of_a_limited_queue(
    scene: Scene, rules: dict[str, Any]
) -> None:
    worker = await scene.worker()
    (job,) = await jobs_in(scene, 1)
    await put(scene, **rules)
    assert await claim(scene, worker, job, limited=False) == []
    assert len(await claim(scene, worker, job, limited=True)) == 1


async def test_a_limited_order_of_a_queue_without_limits_gets_all_it_asks_for(scene: Scene) -> None:
    worker = await scene.worker()
    jobs = await jobs_in(scene, 5)
    assert len(await claim(scene, worker, jobs[0], 3, limited=True)) == 3
    await put(scene, weight=2.0)
    assert len(await claim(scene, worker, jobs[0], 3, limited=True)) == 2


async def test_a_call_may_mix_orders_of_limited_queues_and_of_others(scene: Scene) -> None:
    worker = await scene.worker()
    lanes = {name: (await jobs_in(scene, 4, queue=name))[0].lane_id for name in ("most", "rate", "plain", "held")}
    await put(scene, "most", max_concurrency=2)
    await put(scene, "rate", rate_limit=THREE_AT_ONCE)
    await put(scene, "held", paused=True)
    orders = [Order(lanes[name], worker.id, 4, name in ("most", "rate")) for name in ("plain", "most", "held", "rate")]
    claimed = await scene.store.claim(orders, scene.new_nonce(), scene.now)
    assert Counter(one.job.lane.queue for one in claimed) == {"plain": 4, "most": 2, "rate": 3}


async def test_never_more_of_a_queue_run_than_it_allows_whatever_their_lanes(scene: Scene) -> None:
    worker = await scene.worker()
    one = (await jobs_in(scene, 5, job_type="one"))[0]
    two = (await jobs_in(scene, 5, job_type="two"))[0]
    queue = await put(scene, max_concurrency=3)
    first = await claim(scene, worker, one, 2)
    second = await claim(scene, worker, two, 2)
    assert (len(first), len(second)) == (2, 1)
    assert await claim(scene, worker, one, 2) == []
    assert (await room(scene, queue)).full()
    await scene.happen(first[0].lease.id, events.Succeed())
    assert (await room(scene, queue)).starts(scene.now) == 1
    assert len(await claim(scene, worker, one, 2)) == 1


async def test_where_orders_ask_for_more_than_there_is_room_the_first_ones_get_it(scene: Scene) -> None:
    ann, bob = await scene.worker(), await scene.worker()
    lanes = [(await jobs_in(scene, 5, job_type=job_type))[0].lane_id for job_type in ("one", "two", "three")]
    await put(scene, max_concurrency=5)
    orders = [
        Order(lanes[1], ann.id, 2, True),
        Order(lanes[0], bob.id, 2, True),
        Order(lanes[1], bob.id, 2, True),
        Order(lanes[2], ann.id, 2, True),
    ]
    claimed = await scene.store.claim(orders, scene.new_nonce(), scene.now)
    assert Counter((one.lease.lane_id, one.lease.worker) for one in claimed) == {
        (lanes[1], ann.id): 2,
        (lanes[0], bob.id): 2,
        (lanes[1], bob.id): 1,
    }


async def test_leases_from_before_the_limit_count(scene: Scene) -> None:
    worker = await scene.worker()
    one = await jobs_in(scene, 3, job_type="one")
    two = await jobs_in(scene, 3, job_type="two")
    await jobs_in(scene, 1, queue="other")
    before = await claim(scene, worker, one[0], 2, limited=False)
    queue = await put(scene, max_concurrency=3)
    assert (await room(scene, queue)).running == 2
    assert len(await claim(scene, worker, two[0], 3)) == 1
    ends = [scene.decide(await scene.record(entry.lease.id), events.Succeed()) for entry in before]
    assert (await scene.store.save(ends, scene.now)).queues == {queue.queue_id}
    assert len(await claim(scene, worker, two[0], 3)) == 2


async def test_a_limit_that_was_taken_away_and_comes_back_counts_all_that_runs(scene: Scene) -> None:
    worker = await scene.worker()
    jobs = await jobs_in(scene, 6)
    queue = await put(scene, max_concurrency=2)
    assert len(await claim(scene, worker, jobs[0], 6)) == 2
    await put(scene)
    assert len(await claim(scene, worker, jobs[0], 2, limited=False)) == 2
    await put(scene, max_concurrency=5)
    assert (await room(scene, queue)).running == 4
    assert len(await claim(scene, worker, jobs[0], 6)) == 1


async def test_a_lowered_limit_throws_nobody_out_and_lets_nobody_in_until_there_is_room(scene: Scene) -> None:
    worker = await scene.worker()
    jobs = await jobs_in(scene, 6)
    await put(scene, max_concurrency=4)
    claimed = await claim(scene, worker, jobs[0], 4)
    queue = await put(scene, max_concurrency=2)
    for entry in claimed[:2]:
        assert await claim(scene, worker, jobs[0]) == []
        await scene.happen(entry.lease.id, events.Succeed())
    assert (await room(scene, queue)).full()
    await scene.happen(claimed[2].lease.id, events.Succeed())
    assert len(await claim(scene, worker, jobs[0], 6)) == 1


async def test_whoever_claims_at_the_same_time_the_limits_hold(scene: Scene) -> None:
    worker = await scene.worker()
    lanes = [
        (await jobs_in(scene, 30, queue=queue, job_type=job_type))[0]
        for queue in ("most", "rate")
        for job_type in ("one", "two")
    ]
    most = await put(scene, "most", max_concurrency=5)
    await put(scene, "rate", rate_limit=THREE_AT_ONCE)
    orders = [Order(job.lane_id, worker.id, 2, True) for job in lanes]
    turns = [orders, orders[::-1], orders[2:] + orders[:2]] * 4
    answers = await asyncio.gather(*(scene.store.claim(turn, scene.new_nonce(), scene.now) for turn in turns))
    claimed = [one.job for answer in answers for one in answer]
    assert len({job.id for job in claimed}) == len(claimed)
    assert Counter(job.lane.queue for job in claimed) == {"most": 5, "rate": 3}
    assert (await room(scene, most)).running == 5


async def test_no_lease_slips_through_while_a_limit_is_set(scene: Scene) -> None:
    worker = await scene.worker()
    jobs = await jobs_in(scene, 40)
    for turn in range(8):
        claims = [claim(scene, worker, jobs[0], 1, limited=limited) for limited in (False, True, False, True)]
        queue, answers = await asyncio.gather(put(scene, max_concurrency=40 + turn), asyncio.gather(*claims))
        held = len(await scene.store.leases_of(worker.id))
        assert (await room(scene, queue)).running == held
        assert any(answers)
        await put(scene)


async def test_an_attempt_that_ends_tells_of_the_room_it_leaves(scene: Scene) -> None:
    worker = await scene.worker()
    at_once = Retry(delays=(0,))
    jobs = await jobs_in(scene, 5, retry=at_once)
    (plain,) = await jobs_in(scene, 1, queue="plain")
    (timed,) = await jobs_in(scene, 1, queue="timed")
    queue = await put(scene, max_concurrency=5)
    await put(scene, "timed", rate_limit=THREE_AT_ONCE)
    leases = [one.lease.id for one in await claim(scene, worker, jobs[0], 5)]
    await claim(scene, worker, plain, limited=False)
    await claim(scene, worker, timed)
    ends: tuple[events.Event, ...] = (
        events.Succeed(),
        events.FailFatal(),
        events.FailRetriable(),
        events.Release(),
        events.WorkerGone(),
    )
    for running, (key, event) in zip(range(4, -1, -1), zip(leases, ends, strict=True), strict=True):
        change = scene.decide(await scene.record(key), event)
        saved = await scene.store.save([change], scene.now)
        assert (saved.done, saved.queues) == ({key}, {queue.queue_id}), event
        assert (await scene.store.save([change], scene.now)).queues == frozenset()
        assert (await room(scene, queue)).running == running
    for job in (plain, timed):
        change = scene.decide(await scene.record(job.id), events.Succeed())
        assert (await scene.store.save([change], scene.now)).queues == frozenset()


async def test_a_cancel_that_is_only_asked_for_leaves_no_room(scene: Scene) -> None:
    worker = await scene.worker()
    jobs = await jobs_in(scene, 2)
    queue = await put(scene, max_concurrency=1)
    await claim(scene, worker, jobs[0])
    change = scene.decide(await scene.record(jobs[0].id), events.Cancel())
    assert (await scene.store.save([change], scene.now)).queues == frozenset()
    assert await claim(scene, worker, jobs[0]) == []
    assert (await room(scene, queue)).running == 1


async def test_once_the_limit_is_taken_away_ends_tell_nothing(scene: Scene) -> None:
    worker = await scene.worker()
    (job,) = await jobs_in(scene, 1)
    await put(scene, max_concurrency=1)
    await claim(scene, worker, job)
    await put(scene)
    change = scene.decide(await scene.record(job.id), events.Succeed())
    assert (await scene.store.save([change], scene.now)).queues == frozenset()


async def test_the_room_of_a_lost_worker_comes_back(scene: Scene) -> None:
    worker, other = await scene.worker(), await scene.worker()
    jobs = await jobs_in(scene, 2)
    queue = await put(scene, max_concurrency=1)
    await claim(scene, worker, jobs[0])
    await scene.store.remove_worker(worker.id)
    assert await claim(scene, other, jobs[0]) == []
    (missed,) = await scene.store.missed(scene.now, 5)
    saved = await scene.store.save([scene.decide(missed.record, events.WorkerGone())], scene.now)
    assert saved.queues == {queue.queue_id}
    assert len(await claim(scene, other, jobs[1])) == 1


async def test_what_a_limited_claim_leased_is_given_again(scene: Scene) -> None:
    worker = await scene.worker()
    jobs = await jobs_in(scene, 5)
    queue = await put(scene, max_concurrency=2, rate_limit=THREE_AT_ONCE)
    orders, nonce = [Order(jobs[0].lane_id, worker.id, 5, True)], scene.new_nonce()
    claimed = await scene.store.claim(orders, nonce, scene.now)
    beat = (await room(scene, queue)).next_beat
    again = await scene.store.claim(orders, nonce, scene.now, again=True)
    assert {one.lease.id: one for one in again} == {one.lease.id: one for one in claimed}
    assert len(again) == 2
    assert (await room(scene, queue)).next_beat == beat


async def test_a_rate_lets_its_burst_and_one_more_start_at_once(scene: Scene) -> None:
    worker = await scene.worker()
    jobs = await jobs_in(scene, 9)
    queue = await put(scene, rate_limit=THREE_AT_ONCE)
    assert len(await claim(scene, worker, jobs[0], 2)) == 2
    assert len(await claim(scene, worker, jobs[0], 9)) == 1
    assert await claim(scene, worker, jobs[0], 9) == []
    now = await scene.store.now()
    until = (await room(scene, queue)).wait_until(now)
    assert until is not None
    assert now < until <= now + 6 * MINUTE + 1


async def test_a_rate_goes_by_the_stores_clock_whatever_the_callers_says(scene: Scene) -> None:
    worker = await scene.worker(until=scene.now + 100 * HOUR)
    jobs = await jobs_in(scene, 9)
    await put(scene, rate_limit=THREE_AT_ONCE)
    assert len(await claim(scene, worker, jobs[0], 9)) == 3
    scene.now += 50 * HOUR
    assert await claim(scene, worker, jobs[0], 9) == []


async def test_a_rate_is_charged_only_for_what_was_claimed(scene: Scene) -> None:
    worker = await scene.worker()
    (job,) = await jobs_in(scene, 1)
    queue = await put(scene, rate_limit=THREE_AT_ONCE)
    gone = await scene.worker(until=scene.now - 1)
    assert await claim(scene, gone, job, 9) == []
    assert (await room(scene, queue)).next_beat == 0
    assert len(await claim(scene, worker, job, 9)) == 1
    assert await claim(scene, worker, job, 9) == []
    assert (await room(scene, queue)).starts(await scene.store.now()) == 2


async def test_of_two_limits_the_closer_one_counts(scene: Scene) -> None:
    worker = await scene.worker()
    jobs = await jobs_in(scene, 9)
    await put(scene, max_concurrency=2, rate_limit=THREE_AT_ONCE)
    first = await claim(scene, worker, jobs[0], 9)
    assert len(first) == 2
    for one in first:
        await scene.happen(one.lease.id, events.Succeed())
    assert len(await claim(scene, worker, jobs[0], 9)) == 1


async def test_starts_in_the_past_are_charged_by_a_new_rate_as_far_as_it_would_itself(scene: Scene) -> None:
    worker = await scene.worker()
    jobs = await jobs_in(scene, 9)
    queue = await put(scene, rate_limit=THREE_AT_ONCE)
    await claim(scene, worker, jobs[0], 3)
    before = (await room(scene, queue)).next_beat
    await put(scene, rate_limit=THREE_AT_ONCE, weight=2.0)
    assert (await room(scene, queue)).next_beat == before
    faster = RateLimit(limit=100, per=HOUR, burst=1)
    await put(scene, rate_limit=faster)
    assert (await room(scene, queue)).next_beat == carried_over(faster, before, scene.now) != before
    await put(scene)
    await put(scene, rate_limit=THREE_AT_ONCE)
    assert (await room(scene, queue)).next_beat == 0


async def test_a_room_tells_the_rules_and_how_many_run(scene: Scene) -> None:
    worker = await scene.worker()
    (one,) = await jobs_in(scene, 1, queue="one")
    await jobs_in(scene, 1, queue="two")
    first = await put(scene, "one", max_concurrency=2)
    second = await put(scene, "two", rate_limit=THREE_AT_ONCE)
    await claim(scene, worker, one)
    rooms = await scene.store.rooms([first.queue_id, second.queue_id])
    assert rooms[first.queue_id] == Room(rules=first.rules, running=1, next_beat=0)
    assert rooms[second.queue_id].starts(scene.now) == 3
    assert await scene.store.rooms([]) == {}


async def test_a_crowd_is_what_is_ready_and_what_runs(scene: Scene) -> None:
    worker = await scene.worker()
    await scene.limit("door", 1)
    queue, empty = await put(scene), await put(scene, "empty")
    jobs = [await aged(scene, age, job_type=f"type {age % 2}") for age in (1, 4, 3)]
    await scene.submitted(due=scene.later(60))
    await scene.submitted(limit_key="door")
    held = await scene.submitted()
    await scene.happen(held.id, events.Pause())
    await jobs_in(scene, 2, queue="elsewhere")
    crowds = await scene.store.crowds([queue.queue_id, empty.queue_id])
    assert crowds == {
        queue.queue_id: Crowd(waiting=3, running=0, oldest=scene.now - 4),
        empty.queue_id: Crowd(),
    }
    await claim(scene, worker, jobs[1], limited=False)
    crowds = await scene.store.crowds([queue.queue_id])
    assert crowds == {queue.queue_id: Crowd(waiting=2, running=1, oldest=scene.now - 3)}


async def test_a_crowd_counts_what_was_put_in_order_too(scene: Scene) -> None:
    worker = await scene.worker()
    jobs = [await aged(scene, age) for age in (1, 4, 3)]
    queue = await put(scene, policy="fifo")
    (lane_id,) = (await scene.store.put_in_order(jobs[0].lane_id, 2)).lanes
    crowds = await scene.store.crowds([queue.queue_id])
    assert crowds == {queue.queue_id: Crowd(waiting=3, running=0, oldest=scene.now - 4)}
    await scene.store.claim([Order(lane_id, worker.id, 2)], scene.new_nonce(), scene.now)
    crowds = await scene.store.crowds([queue.queue_id])
    assert crowds == {queue.queue_id: Crowd(waiting=1, running=2, oldest=scene.now - 1)}


async def test_a_job_that_tries_again_is_charged_again(scene: Scene) -> None:
    worker = await scene.worker()
    (job,) = await jobs_in(scene, 1, retry=Retry(delays=(0,), max_attempts=9))
    queue = await put(scene, max_concurrency=1, rate_limit=THREE_AT_ONCE)
    for left in (2, 1, 0):
        (claimed,) = await claim(scene, worker, job)
        assert (await room(scene, queue)).running == 1
        assert isinstance((await scene.happen(claimed.lease.id, events.FailRetriable())).row, Ready)
        assert (await room(scene, queue)).starts(await scene.store.now()) == min(left, 1)
    assert await claim(scene, worker, job) == []


async def test_a_limited_lease_is_as_any_other(scene: Scene) -> None:
    worker = await scene.worker()
    (job,) = await jobs_in(scene, 1)
    await put(scene, max_concurrency=1)
    (claimed,) = await claim(scene, worker, job)
    row = await scene.row(job.id)
    assert isinstance(row, Lease)
    assert row == claimed.lease
    keys: list[JobKey] = [one.lease.id for one in await scene.store.leases_of(worker.id)]
    assert keys == [job.id]
