"""The order of a queue: ready jobs are put in it by policy, and stay jobs of their own lane."""

import asyncio
import itertools
from collections import Counter
from typing import Any

import msgspec
import pytest

from foliot.domain import events
from foliot.domain.duration import DAY, MINUTE, SECOND
from foliot.domain.ids import JobKey
from foliot.domain.job import NAMESPACE, Job, Lease, Ready, Record
from foliot.domain.placement import Order
from foliot.domain.queue import Queue
from foliot.domain.rank import COST, rank
from foliot.domain.retry import Retry
from foliot.domain.worker import Worker
from foliot.store.base import Claimed, Filter, Ordered
from tests.store.builders import Scene
from tests.store.contract.test_queues import aged, jobs_in, put


async def put_in_order(scene: Scene, limit: int = 1000) -> set[int]:
    """Everything that is ready; the lanes where something came."""
    lanes: set[int] = set()
    for lane_id in await scene.store.occupied_lanes():
        while (ordered := await scene.store.put_in_order(lane_id, limit)).moved:
            assert ordered.moved <= limit
            lanes.update(ordered.lanes)
    return lanes


async def start(scene: Scene, worker: Worker, count: int = 1) -> list[Claimed]:
    """The first of all that is ready, by rank, whatever its lane."""
    heads = await scene.store.heads(await scene.store.occupied_lanes(), count)
    first = sorted((rank, lane_id) for lane_id, ranks in heads.items() for rank in ranks)[:count]
    orders = [Order(lane_id, worker.id, number) for lane_id, number in Counter(lane for _, lane in first).items()]
    return await scene.store.claim(orders, scene.new_nonce(), scene.now)


async def started(scene: Scene, worker: Worker, count: int) -> list[Job]:
    """The next ones in the order in which they start."""
    return [one.job for _ in range(count) for one in await start(scene, worker)]


def names(jobs: list[Job]) -> str:
    return "".join(job.fair_key or job.owner for job in jobs)


async def row_of(scene: Scene, job: Job) -> Ready:
    row = await scene.row(job.id)
    assert isinstance(row, Ready)
    return row


async def test_a_queue_of_the_default_policy_is_in_order_as_it_is(scene: Scene) -> None:
    (job,) = await jobs_in(scene, 1)
    before = await scene.record(job.id)
    assert await scene.store.put_in_order(job.lane_id, 10) == Ordered(0)
    await put(scene, max_concurrency=4)
    assert await scene.store.put_in_order(job.lane_id, 10) == Ordered(0)
    assert await scene.record(job.id) == before
    assert await scene.store.occupied_lanes() == [job.lane_id]


async def test_jobs_are_moved_to_the_lane_of_the_same_kind_with_the_queues_ordering(scene: Scene) -> None:
    (job,) = await jobs_in(scene, 1, needs='{"amounts":[["gpu",1000]]}')
    await put(scene, policy="fifo")
    ordered = await scene.store.put_in_order(job.lane_id, 10)
    (lane_id,) = ordered.lanes
    assert ordered.moved == 1
    assert lane_id != job.lane_id
    assert scene.store.lane(lane_id) == msgspec.structs.replace(job.lane, ordering="fifo")
    assert await scene.store.occupied_lanes() == [lane_id]
    assert await scene.store.heads([lane_id, job.lane_id], 5) == {lane_id: [rank(5, job.due, "fifo")], job.lane_id: []}
    assert await scene.store.put_in_order(lane_id, 10) == Ordered(0)
    assert await scene.store.put_in_order(job.lane_id, 10) == Ordered(0)
    assert [queue.name for queue in await scene.store.queues(NAMESPACE)] == ["default"]


async def test_so_many_are_moved_as_were_asked_for_the_first_ones_first(scene: Scene) -> None:
    jobs = [await scene.submitted(priority=priority) for priority in (1, 9, 5, 7)]
    await put(scene, policy="fifo")
    ordered = await scene.store.put_in_order(jobs[0].lane_id, 2)
    (lane_id,) = ordered.lanes
    assert ordered.moved == 2
    heads = await scene.store.heads([lane_id, jobs[0].lane_id], 9)
    assert heads[lane_id] == sorted(rank(5, jobs[index].due, "fifo") for index in (1, 3))
    assert heads[jobs[0].lane_id] == [rank(jobs[index].priority, jobs[index].due) for index in (2, 0)]
    assert (await scene.store.put_in_order(jobs[0].lane_id, 9)).moved == 2


async def test_a_row_stays_as_it_was_but_for_its_rank(scene: Scene) -> None:
    (job,) = await jobs_in(scene, 1, priority=2, deadline=scene.later(60))
    before = await scene.record(job.id)
    assert isinstance(before.row, Ready)
    await put(scene, policy="fifo")
    await put_in_order(scene)
    row = msgspec.structs.replace(before.row, rank=rank(2, job.due, "fifo"))
    assert await scene.record(job.id) == Record(job=job, row=row)


async def test_what_was_decided_before_the_move_takes_effect_after_it(scene: Scene) -> None:
    (job,) = await jobs_in(scene, 1)
    cancel = scene.decide(await scene.record(job.id), events.Cancel())
    await put(scene, policy="fair")
    await put_in_order(scene)
    assert await scene.save([cancel]) == {job.id}
    assert await scene.store.occupied_lanes() == []


async def test_rows_are_of_their_jobs_own_lane_wherever_they_stand(scene: Scene) -> None:
    worker = await scene.worker()
    jobs = await jobs_in(scene, 3, deadline=scene.later(10))
    await put(scene, policy="fair")
    await put_in_order(scene)
    page = await scene.store.list_jobs(Filter(namespace=NAMESPACE, statuses=("queued",)), limit=9, before=None)
    listed = [(entry.job.id, entry.job.lane, entry.row.lane_id) for entry in page.records]
    assert listed == [(job.id, job.lane, job.lane_id) for job in jobs[::-1]]
    expired = await scene.store.expired(scene.later(11), 9)
    assert {(record.job.id, record.row.lane_id) for record in expired} == {(job.id, job.lane_id) for job in jobs}
    (claimed,) = await start(scene, worker)
    assert (claimed.job, claimed.lease.lane_id) == (jobs[0], jobs[0].lane_id)
    assert await scene.row(jobs[0].id) == claimed.lease
    ended = await scene.happen(jobs[0].id, events.Succeed())
    assert ended.row.lane_id == jobs[0].lane_id
    assert (await scene.happen(jobs[1].id, events.Cancel())).row.lane_id == jobs[1].lane_id


@pytest.mark.parametrize(
    "event",
    [events.FailRetriable(), events.Release(), events.WorkerGone()],
    ids=["retried", "released", "lost"],
)
async def test_a_job_that_is_to_run_again_enters_its_own_lane_with_the_plain_rank(
    scene: Scene, event: events.Event
) -> None:
    worker = await scene.worker()
    (job,) = await jobs_in(scene, 1, retry=Retry(delays=(0,)))
    await put(scene, policy="fair")
    await put_in_order(scene)
    await start(scene, worker)
    await scene.happen(job.id, event)
    await scene.store.admit([job.id])
    row = await row_of(scene, job)
    assert (row.lane_id, row.rank) == (job.lane_id, rank(row.priority, row.due))
    assert await scene.store.occupied_lanes() == [job.lane_id]
    assert len(await put_in_order(scene)) == 1
    assert [one.job.id for one in await start(scene, worker)] == [job.id]


async def test_a_job_that_was_paused_in_order_enters_its_own_lane_again(scene: Scene) -> None:
    (job,) = await jobs_in(scene, 1)
    await put(scene, policy="fifo")
    await put_in_order(scene)
    await scene.happen(job.id, events.Pause())
    assert await scene.store.occupied_lanes() == []
    await scene.happen(job.id, events.Resume())
    assert await scene.store.occupied_lanes() == [job.lane_id]
    assert (await row_of(scene, job)).rank == rank(5, job.due)


async def test_counts_are_right_after_lives_in_an_ordered_lane(scene: Scene) -> None:
    worker = await scene.worker()
    jobs = await jobs_in(scene, 4)
    await put(scene, policy="fair")
    await put_in_order(scene)
    await start(scene, worker, 2)
    await scene.happen(jobs[0].id, events.Succeed())
    await scene.happen(jobs[3].id, events.Cancel())
    counts = await scene.store.counts(NAMESPACE)
    assert [counts[status] for status in ("queued", "running", "completed", "cancelled")] == [1, 1, 1, 1]


async def test_fifo_goes_by_due_time_whatever_the_priority(scene: Scene) -> None:
    worker = await scene.worker()
    jobs = [
        await aged(scene, age, priority=priority, job_type=f"type {age % 2}")
        for age, priority in ((1, 9), (5, 0), (3, 5), (4, 9), (2, 0))
    ]
    await put(scene, policy="fifo")
    assert len(await put_in_order(scene)) == 2
    assert await started(scene, worker, 5) == sorted(jobs, key=lambda job: job.due)


async def test_with_aging_a_long_wait_beats_a_higher_priority(scene: Scene) -> None:
    worker = await scene.worker()
    old_low = await aged(scene, 3 * MINUTE + 1, priority=4)
    young_low = await scene.submitted(priority=4)
    high = await scene.submitted(priority=6)
    highest = await scene.submitted(priority=7)
    await put(scene, aging=MINUTE)
    (lane_id,) = await put_in_order(scene)
    assert (await scene.store.heads([lane_id], 1))[lane_id] == [rank(4, old_low.due, f"aging:{MINUTE}")]
    assert await started(scene, worker, 4) == [old_low, highest, high, young_low]


async def test_a_change_of_policy_moves_what_waits_on_and_back(scene: Scene) -> None:
    worker = await scene.worker()
    jobs = [
        await aged(scene, age, priority=priority, fair_key=key)
        for priority, age, key in ((1, 9, "a"), (5, 8, "a"), (9, 7, "a"), (5, 6, "b"))
    ]
    plain = await scene.store.load([job.id for job in jobs])
    await put(scene, policy="fifo")
    await put_in_order(scene)
    fair = await put(scene, policy="fair")
    (lane_id,) = await put_in_order(scene, limit=3)
    lane = scene.store.lane(lane_id)
    assert lane is not None
    assert (lane.ordering, await scene.store.occupied_lanes()) == (fair.ordering, [lane_id])
    await put(scene)
    assert await put_in_order(scene, limit=1) == {jobs[0].lane_id}
    assert await scene.store.load([job.id for job in jobs]) == plain
    assert await started(scene, worker, 4) == [jobs[2], jobs[1], jobs[3], jobs[0]]


async def test_of_a_fair_queue_ten_of_b_are_through_after_about_twenty_starts_though_a_has_a_thousand(
    scene: Scene,
) -> None:
    worker = await scene.worker()
    await put(scene, policy="fair")
    await jobs_in(scene, 1000, fair_key="a")
    await put_in_order(scene)
    assert names(await started(scene, worker, 5)) == "aaaaa"
    await jobs_in(scene, 10, fair_key="b")
    await put_in_order(scene)
    line = names(await started(scene, worker, 22))
    assert line.count("b") == 10
    assert all(line[:count].count("b") >= (count - 1) // 2 for count in range(1, 20))


async def test_keys_share_by_weight(scene: Scene) -> None:
    worker = await scene.worker()
    await put(scene, policy="fair", weights={"a": 3.0, "b": 0.5})
    for key in "abc":
        await jobs_in(scene, 40, fair_key=key)
    await put_in_order(scene)
    assert Counter(names(await started(scene, worker, 45))) == {"a": 30, "b": 5, "c": 10}


async def test_the_owner_is_the_key_of_a_job_that_names_none(scene: Scene) -> None:
    worker = await scene.worker()
    await put(scene, policy="fair")
    await jobs_in(scene, 6, owner="a")
    await jobs_in(scene, 2, owner="a", fair_key="b")
    await jobs_in(scene, 2, owner="b")
    await put_in_order(scene)
    assert Counter(names(await started(scene, worker, 8))) == {"a": 4, "b": 4}


async def test_who_was_away_gets_its_share_and_no_more(scene: Scene) -> None:
    worker = await scene.worker()
    await put(scene, policy="fair")
    await jobs_in(scene, 2, fair_key="b")
    await jobs_in(scene, 40, fair_key="a")
    await put_in_order(scene)
    await started(scene, worker, 22)
    await jobs_in(scene, 10, fair_key="b")
    await put_in_order(scene)
    line = names(await started(scene, worker, 10))
    assert 4 <= line.count("b") <= 6


async def test_the_times_of_keys_are_the_queues_whatever_the_lane(scene: Scene) -> None:
    worker = await scene.worker()
    await put(scene, policy="fair")
    await put(scene, "other", policy="fair")
    await jobs_in(scene, 8, fair_key="a", job_type="one")
    await jobs_in(scene, 4, fair_key="a", job_type="two")
    await jobs_in(scene, 4, fair_key="b", job_type="two")
    (elsewhere,) = await jobs_in(scene, 1, fair_key="a", queue="other")
    await put_in_order(scene)
    assert (await row_of(scene, elsewhere)).rank == 0
    await start(scene, worker)
    line = names(await started(scene, worker, 8))
    assert line.count("b") == 4


async def test_many_keys_are_ranked_however_they_are_split(scene: Scene) -> None:
    await put(scene, policy="fair", weights={"k1": 2.0})
    jobs = [await scene.job(fair_key=f"k{number % 7}") for number in range(60)]
    await scene.submit(*jobs)
    await put_in_order(scene, limit=9)
    ranks: dict[str, list[int]] = {}
    for record in (await scene.store.load([job.id for job in jobs])).values():
        assert isinstance(record.row, Ready)
        ranks.setdefault(record.job.fair_key or "", []).append(record.row.rank)
    for key, found in ranks.items():
        step = COST // 2 if key == "k1" else COST
        assert found == [step * place for place in range(len(found))]


async def test_a_refund_lets_a_key_go_on_where_its_cancelled_jobs_stood(scene: Scene) -> None:
    worker = await scene.worker()
    await put(scene, policy="fair", weights={"a": 2.0})
    jobs = await jobs_in(scene, 10, fair_key="a")
    await jobs_in(scene, 10, fair_key="b")
    await put_in_order(scene)
    for job in jobs[2:]:
        await scene.happen(job.id, events.Cancel())
    await scene.store.refund(NAMESPACE, "default", "a", 8)
    (more,) = await jobs_in(scene, 1, fair_key="a")
    await put_in_order(scene)
    assert (await row_of(scene, more)).rank == COST
    assert names(await started(scene, worker, 6)) == "ababab"


async def test_a_refund_never_buys_more_than_a_share(scene: Scene) -> None:
    worker = await scene.worker()
    await put(scene, policy="fair")
    await jobs_in(scene, 20, fair_key="b")
    await put_in_order(scene)
    await started(scene, worker, 5)
    await scene.store.refund(NAMESPACE, "default", "a", 100)
    await scene.store.refund(NAMESPACE, "default", "b", 0)
    await jobs_in(scene, 10, fair_key="a")
    await put_in_order(scene)
    line = names(await started(scene, worker, 10))
    assert 4 <= line.count("a") <= 6


@pytest.mark.parametrize("rules", [{}, {"policy": "fifo"}], ids=["priority", "fifo"])
async def test_there_is_nothing_to_refund_where_the_queue_is_not_fair(scene: Scene, rules: dict[str, Any]) -> None:
    await put(scene, policy="fair")
    (job,) = await jobs_in(scene, 1, fair_key="a")
    await put_in_order(scene)
    await put(scene, **rules)
    await scene.store.refund(NAMESPACE, "default", "a", 1)
    await scene.store.refund(NAMESPACE, "nowhere", "a", 1)
    await put(scene, policy="fair")
    await put_in_order(scene)
    assert (await row_of(scene, job)).rank == 0


async def test_with_new_weights_the_times_of_keys_are_forgotten_and_the_line_is_made_anew(scene: Scene) -> None:
    worker = await scene.worker()
    await put(scene, policy="fair")
    for key in "ab":
        await jobs_in(scene, 30, fair_key=key)
    await put_in_order(scene)
    await started(scene, worker, 10)
    await put(scene, policy="fair", weights={"b": 4.0})
    await put_in_order(scene)
    line = names(await started(scene, worker, 20))
    assert 15 <= line.count("b") <= 17


async def test_a_change_of_anything_else_leaves_the_line_as_it_is(scene: Scene) -> None:
    queue = await put(scene, policy="fair")
    await jobs_in(scene, 3, fair_key="a")
    (lane_id,) = await put_in_order(scene)
    changed = await put(scene, policy="fair", weight=2.0, max_concurrency=3)
    assert (changed.ordering, changed.version) == (queue.ordering, queue.version + 1)
    assert await scene.store.put_in_order(lane_id, 9) == Ordered(0)
    (late,) = await jobs_in(scene, 1, fair_key="a")
    assert await put_in_order(scene) == {lane_id}
    assert (await row_of(scene, late)).rank == 3 * COST


async def test_what_is_forgotten_of_a_fair_queue_changes_nothing(scene: Scene) -> None:
    worker = await scene.worker()
    await put(scene, policy="fair")
    for key in "ab":
        await jobs_in(scene, 4, fair_key=key)
    await put_in_order(scene)
    await started(scene, worker, 7)
    while await scene.store.forget(scene.now - 30 * DAY, 100):
        pass
    (slow,) = await jobs_in(scene, 1, fair_key="b")
    (new,) = await jobs_in(scene, 1, fair_key="c")
    await put_in_order(scene)
    assert [(await row_of(scene, job)).rank for job in (slow, new)] == [4 * COST, 3 * COST]


async def test_limits_hold_for_ordered_lanes(scene: Scene) -> None:
    worker = await scene.worker()
    for key in "ab":
        await jobs_in(scene, 5, fair_key=key, job_type=key)
    queue = await put(scene, policy="fair", max_concurrency=3)
    lanes = sorted(await put_in_order(scene))
    assert await start(scene, worker, 4) == []
    orders = [Order(lane_id, worker.id, 2, True) for lane_id in lanes]
    claimed = await scene.store.claim(orders, scene.new_nonce(), scene.now)
    assert len(claimed) == 3
    change = scene.decide(await scene.record(claimed[0].lease.id), events.Succeed())
    assert (await scene.store.save([change], scene.now)).queues == {queue.queue_id}


async def test_a_paused_queue_or_type_gives_nothing_of_its_ordered_lanes(scene: Scene) -> None:
    worker = await scene.worker()
    (job,) = await jobs_in(scene, 1)
    await put(scene, policy="fifo", paused=True)
    lanes = await put_in_order(scene)
    assert await start(scene, worker) == []
    assert set(await scene.store.occupied_lanes()) == lanes
    await put(scene, policy="fifo")
    await scene.store.hold_type(NAMESPACE, "echo", held=True)
    assert await start(scene, worker) == []
    await scene.store.hold_type(NAMESPACE, "echo", held=False)
    assert [one.job for one in await start(scene, worker)] == [job]


async def test_many_that_put_in_order_and_claim_at_once_lose_and_double_nothing(scene: Scene) -> None:
    worker = await scene.worker()
    queues: list[Queue] = []
    keys: list[JobKey] = []
    for turn in range(10):
        queues.append(await put(scene, policy="fair", weights={"a": 1.0 + turn}))
        jobs = [await scene.job(fair_key=key) for key in "abc" * 4]
        keys += await scene.submit(*jobs)
        lanes = await scene.store.occupied_lanes()
        moves = [scene.store.put_in_order(lane_id, limit) for lane_id in lanes for limit in (5, 9, 3)]
        claims = [scene.store.claim([Order(lane_id, worker.id, 2)], scene.new_nonce(), scene.now) for lane_id in lanes]
        await asyncio.gather(*itertools.chain(moves, claims))
    await put_in_order(scene)
    while await start(scene, worker, 50):
        pass
    records = await scene.store.load(keys)
    assert len(records) == len(keys)
    assert {(type(record.row), record.row.attempt) for record in records.values()} == {(Lease, 1)}
    assert len(await scene.store.leases_of(worker.id)) == len(keys)


async def test_whoever_puts_in_order_at_once_each_key_goes_on_where_it_stands(scene: Scene) -> None:
    await put(scene, policy="fair")
    lanes = [(await jobs_in(scene, 10, fair_key="a", job_type=f"type {n}"))[0].lane_id for n in range(3)]
    await asyncio.gather(*(scene.store.put_in_order(lane_id, 4) for lane_id in lanes for _ in range(4)))
    heads = await scene.store.heads(await scene.store.occupied_lanes(), 99)
    ranks = [rank for lane_id, found in heads.items() for rank in found if lane_id not in lanes]
    assert sorted(ranks) == [COST * place for place in range(len(ranks))]
    assert len(ranks) >= 12
    scene.now += SECOND
    await put_in_order(scene)
    assert len(await scene.store.occupied_lanes()) == 3
