"""The record of what happened: what is written of which change, and how it is read."""

import asyncio
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta

import msgspec
import pytest

from foliot.domain import events
from foliot.domain.changes import Refusal
from foliot.domain.duration import DAY, HOUR, MINUTE
from foliot.domain.feed import ALL_STATUSES, Happening, Position, mask_of, read_position
from foliot.domain.graph import On
from foliot.domain.ids import JobKey, show
from foliot.domain.job import State
from foliot.domain.placement import Order
from foliot.domain.queue import Queue, QueueRules
from foliot.domain.retry import Retry
from foliot.domain.states import transition
from foliot.domain.status import STATUSES
from foliot.store.base import Accepted, Clash, Parent, Step, Store
from tests.store.builders import Scene
from tests.store.conftest import MakeStore
from tests.store.feed_reader import FeedReader, entry_of, follow, numbers

EPOCH = datetime.fromtimestamp(0, UTC)

Life = Callable[[Scene], Awaitable[JobKey]]


async def queued(scene: Scene) -> JobKey:
    return (await scene.submitted(deadline=scene.later(5))).id


async def scheduled(scene: Scene) -> JobKey:
    return (await scene.submitted(due=scene.later(60), deadline=scene.later(5))).id


async def blocked(scene: Scene) -> JobKey:
    return (await scene.child((await scene.submitted(job_type="parent")).id)).id


async def waiting_for_a_token(scene: Scene) -> JobKey:
    await scene.limit("door", 1)
    return (await scene.submitted(limit_key="door")).id


async def paused(scene: Scene) -> JobKey:
    job = await scene.submitted()
    await scene.happen(job.id, events.Pause())
    return job.id


async def paused_before_its_time(scene: Scene) -> JobKey:
    job = await scene.submitted(due=scene.later(60))
    await scene.happen(job.id, events.Pause())
    return job.id


async def running(scene: Scene) -> JobKey:
    return (await scene.running(retry=Retry(max_attempts=2))).id


async def running_and_to_be_cancelled(scene: Scene) -> JobKey:
    lease = await scene.running()
    await scene.happen(lease.id, events.Cancel())
    return lease.id


async def running_for_the_last_time(scene: Scene) -> JobKey:
    return (await scene.running(retry=Retry(max_attempts=1))).id


async def retrying(scene: Scene) -> JobKey:
    lease = await scene.running()
    await scene.happen(lease.id, events.FailRetriable(retry_after=HOUR))
    return lease.id


async def failed(scene: Scene) -> JobKey:
    return (await scene.ended(State.FAILED)).job.id


async def cancelled(scene: Scene) -> JobKey:
    job = await scene.submitted()
    await scene.happen(job.id, events.Cancel())
    return job.id


@pytest.mark.parametrize(
    ("life", "event", "status"),
    [
        (queued, events.Cancel(), "cancelled"),
        (queued, events.Pause(), "paused"),
        (scheduled, events.Cancel(), "cancelled"),
        (scheduled, events.Pause(), "paused"),
        (blocked, events.Cancel(), "cancelled"),
        (blocked, events.Pause(), "paused"),
        (waiting_for_a_token, events.Cancel(), "cancelled"),
        (waiting_for_a_token, events.Pause(), "paused"),
        (paused, events.Cancel(), "cancelled"),
        (paused, events.Resume(), "queued"),
        (paused_before_its_time, events.Resume(), "scheduled"),
        (running, events.Succeed(result="1"), "completed"),
        (running, events.Succeed(started=7), "completed"),
        (running, events.FailFatal(code="broken", error='"e"'), "failed"),
        (running, events.FailRetriable(), "retrying"),
        (running, events.FailRetriable(retry_after=0), "queued"),
        (running, events.TimeOut(), "retrying"),
        (running, events.WorkerGone(), "retrying"),
        (running, events.Release(), "queued"),
        (running_and_to_be_cancelled, events.Stopped(), "cancelled"),
        (running_and_to_be_cancelled, events.CancelGraceOver(), "cancelled"),
        (running_for_the_last_time, events.FailRetriable(code="again"), "failed"),
        (running_for_the_last_time, events.Overdue(), "failed"),
        (retrying, events.Cancel(), "cancelled"),
        (retrying, events.Pause(), "paused"),
    ],
)
async def test_a_change_of_status_is_told_once_with_where_the_job_stands(
    scene: Scene, life: Life, event: events.Event, status: str
) -> None:
    key = await life(scene)
    reader = await follow(scene.store)
    scene.now += 1
    record = await scene.happen(key, event)
    (batch,) = await reader.batches()
    assert (list(batch.entries), list(batch.happenings)) == ([entry_of(record)], [])
    assert STATUSES[batch.entries[0].status] == status


async def test_a_change_of_status_has_the_time_of_its_call(scene: Scene) -> None:
    reader = await follow(scene.store)
    job = await scene.submitted()
    scene.now += 1000
    await scene.happen(job.id, events.Cancel())
    assert [batch.time for batch in await reader.batches()] == [scene.now - 1000, scene.now]


@pytest.mark.parametrize("life", [queued, scheduled])
async def test_what_expires_is_told_as_failed(scene: Scene, life: Life) -> None:
    key = await life(scene)
    reader = await follow(scene.store)
    scene.now = scene.later(6)
    assert [record.job.id for record in await scene.store.expired(scene.now, 10)] == [key]
    record = await scene.happen(key, events.Expire())
    assert await reader.entries() == [entry_of(record)]
    assert entry_of(record).reason == "expired"


@pytest.mark.parametrize(
    ("life", "event"),
    [
        (running, events.Progress(started=5, progress="{}")),
        (running, events.Cancel()),
        (paused, events.Pause()),
        (blocked, events.Resume()),
    ],
)
async def test_a_change_that_leaves_the_status_is_not_told(scene: Scene, life: Life, event: events.Event) -> None:
    key = await life(scene)
    reader = await follow(scene.store)
    await scene.happen(key, event)
    assert await reader.batches() == []


async def test_a_change_of_the_job_alone_is_not_told_and_one_of_its_time_is(scene: Scene) -> None:
    job = await scene.submitted()
    reader = await follow(scene.store)
    await scene.happen(job.id, events.Reschedule(job=msgspec.structs.replace(job, priority=9), due=job.due))
    assert await reader.batches() == []
    later = msgspec.structs.replace(job, due=scene.later(60))
    record = await scene.happen(job.id, events.Reschedule(job=later, due=later.due))
    assert await reader.entries() == [entry_of(record)]


async def test_a_job_that_goes_to_another_lane_is_told_with_that(scene: Scene) -> None:
    job = await scene.submitted()
    reader = await follow(scene.store)
    other = await scene.job(queue="other", id=job.id, due=scene.later(60))
    await scene.happen(job.id, events.Reschedule(job=other, due=other.due))
    assert [(entry.lane_id, STATUSES[entry.status]) for entry in await reader.entries()] == [
        (other.lane_id, "scheduled")
    ]


async def test_a_change_that_lost_is_not_told(scene: Scene) -> None:
    job = await scene.submitted()
    record = await scene.record(job.id)
    lease = (await scene.claim(await scene.worker(), job))[0].lease
    reader = await follow(scene.store)
    late = scene.decide(record, events.Cancel())
    stale = transition(lease, events.Succeed(), scene.now, retry=job.retry)
    assert not isinstance(stale, Refusal)
    assert await scene.save([late]) == set()
    assert await scene.save([msgspec.structs.replace(stale, nonce=lease.nonce + 1)]) == set()
    assert await reader.batches() == []


async def test_new_jobs_are_told_in_one_batch(scene: Scene) -> None:
    await scene.limit("door", 1)
    reader = await follow(scene.store)
    now, later, for_key = await scene.job(), await scene.job(due=scene.later(60)), await scene.job(limit_key="door")
    child = await scene.job()
    held = scene.new(await scene.job(due=scene.later(60)))
    held = msgspec.structs.replace(held, row=msgspec.structs.replace(held.row, hold=True))
    new = [scene.new(job) for job in (now, later, for_key)]
    (answer,) = await scene.insert(scene.request(*new, scene.new(child, Parent(now.id, On.SUCCESS)), held))
    assert isinstance(answer, Accepted)
    (batch,) = await reader.batches()
    records = await scene.store.load(list(answer.new))
    assert len(records) == 5
    assert sorted(batch.entries, key=lambda entry: entry.id) == [entry_of(records[key]) for key in sorted(records)]
    assert {entry.id: STATUSES[entry.status] for entry in batch.entries} == {
        now.id: "queued",
        later.id: "scheduled",
        for_key.id: "queued",
        child.id: "blocked",
        held.job.id: "paused",
    }


async def test_of_what_was_there_nothing_is_told(scene: Scene) -> None:
    named, unique = await scene.submitted(name="mine"), await scene.submitted(unique_key="u")
    request = scene.submission(await scene.job(), request_key="k", request_hash=b"h")
    await scene.insert(request)
    reader = await follow(scene.store)
    await scene.submit(await scene.job(name="mine"))
    await scene.submit(named)
    (duplicate,) = await scene.insert(scene.submission(await scene.job(unique_key="u")))
    assert isinstance(duplicate, Accepted)
    assert list(duplicate.ids) == [show("j_", unique.id)]
    (clash,) = await scene.insert(scene.submission(await scene.job(name="mine"), body=b"other"))
    assert isinstance(clash, Clash)
    await scene.insert(request)
    assert await reader.batches() == []
    new = await scene.job()
    await scene.insert(scene.submission(await scene.job(name="mine"), new))
    assert await reader.statuses() == [(new.id, "queued")]


async def test_admitted_jobs_are_told_as_queued(store: Store) -> None:
    scene = Scene(store, await store.now() - HOUR)
    await store.prepare_days(scene.now)
    await scene.limit("door", 1)
    plain = await scene.submitted(due=scene.later(1))
    for_key = await scene.submitted(due=scene.later(1), limit_key="door")
    lease = await scene.running(job_type="again")
    await scene.happen(lease.id, events.FailRetriable(retry_after=1))
    future = await scene.submitted(due=scene.later(3 * 3600))
    reader = await follow(store)
    keys = [plain.id, for_key.id, lease.id, future.id]
    await store.admit(keys)
    records = await store.load(keys[:3])
    entries = await reader.entries()
    assert sorted(entries, key=lambda entry: entry.id) == [entry_of(records[key]) for key in sorted(records)]
    assert {STATUSES[entry.status] for entry in entries} == {"queued"}
    await store.admit(keys)
    assert await reader.batches() == []


async def test_claims_are_told_with_the_worker(scene: Scene) -> None:
    worker, jobs = await scene.worker(), [await scene.submitted() for _ in range(3)]
    reader = await follow(scene.store)
    scene.now += 5
    await scene.claim(worker, jobs[0], 2)
    (batch,) = await reader.batches()
    records = await scene.store.load([entry.id for entry in batch.entries])
    assert list(batch.entries) == [entry_of(record) for record in records.values()]
    assert {(entry.worker, entry.started) for entry in batch.entries} == {(worker.id, scene.now)}
    assert len(batch.entries) == 2
    await scene.claim(worker, jobs[0], 2)
    assert len(await reader.entries()) == 1
    await scene.claim(worker, jobs[0], 2)
    assert await reader.batches() == []


async def test_a_call_that_is_made_again_tells_nothing(scene: Scene) -> None:
    worker, job = await scene.worker(), await scene.submitted()
    orders = [Order(job.lane_id, worker.id, 1)]
    await scene.store.claim(orders, 77, scene.now)
    reader = await follow(scene.store)
    assert len(await scene.store.claim(orders, 77, scene.now, again=True)) == 1
    assert await reader.batches() == []


async def test_a_job_that_stands_in_order_is_told_with_its_own_lane(scene: Scene) -> None:
    job, worker = await scene.submitted(), await scene.worker()
    await scene.store.put_queue(
        Queue(queue_id=0, namespace="default", name="default", version=0, ordered=0, rules=QueueRules(policy="fifo")),
        expected=None,
        now=scene.now,
    )
    reader = await follow(scene.store)
    ordered = await scene.store.put_in_order(job.lane_id, 10)
    (lane_id,) = ordered.lanes
    assert lane_id != job.lane_id
    assert await reader.batches() == []
    await scene.store.claim([Order(lane_id, worker.id, 1)], scene.new_nonce(), scene.now)
    assert await reader.entries() == [entry_of(await scene.record(job.id))]
    await scene.happen(job.id, events.Release())
    await scene.store.put_in_order(job.lane_id, 10)
    await scene.happen(job.id, events.Cancel())
    assert {entry.lane_id for entry in await reader.entries()} == {job.lane_id}
    assert {lane for lane, *_ in await scene.store.depths()} == {job.lane_id}


async def test_many_ends_in_one_call_are_one_batch(scene: Scene) -> None:
    worker = await scene.worker()
    jobs = [await scene.submitted() for _ in range(4)]
    leases = [claimed.lease for claimed in await scene.claim(worker, jobs[0], 4)]
    reader = await follow(scene.store)
    ends = [scene.decide(await scene.record(lease.id), events.Succeed()) for lease in leases]
    assert len(await scene.save(ends)) == 4
    (batch,) = await reader.batches()
    records = await scene.store.load([job.id for job in jobs])
    assert sorted(batch.entries, key=lambda entry: entry.id) == [entry_of(records[job.id]) for job in jobs]


async def test_changes_of_all_kinds_in_one_call_are_all_told(scene: Scene) -> None:
    keys = [await life(scene) for life in (running, failed, queued, scheduled, paused)]
    records = [await scene.record(key) for key in keys]
    again = events.Redrive(job=records[1].job)
    happened = (events.FailFatal(), again, events.Cancel(), events.Pause(), events.Resume())
    changes = [scene.decide(record, event) for record, event in zip(records, happened, strict=True)]
    reader = await follow(scene.store)
    assert await scene.save(changes) == set(keys)
    after = await scene.store.load(keys)
    entries = await reader.entries()
    assert sorted(entries, key=lambda entry: entry.id) == [entry_of(after[key]) for key in sorted(keys)]


async def test_a_token_changes_no_status(scene: Scene) -> None:
    number = await scene.limit("door", 1)
    await scene.submitted(limit_key="door")
    reader = await follow(scene.store)
    assert len(await scene.store.give_tokens([number], scene.now)) == 1
    assert await reader.batches() == []


@pytest.mark.parametrize("life", [failed, cancelled])
async def test_a_redriven_job_is_told_as_queued(scene: Scene, life: Life) -> None:
    key = await life(scene)
    job = (await scene.record(key)).job
    reader = await follow(scene.store)
    record = await scene.happen(key, events.Redrive(job=job))
    assert await reader.entries() == [entry_of(record)]


async def test_children_that_go_on_are_told(scene: Scene) -> None:
    lease, other = await scene.running(job_type="parent"), await scene.running(job_type="other")
    await scene.limit("door", 1)
    now = await scene.child(lease.id)
    later = await scene.child(lease.id, due=scene.later(60))
    for_key = await scene.child(lease.id, limit_key="door")
    both = await scene.child(lease.id, other.id)
    held = await scene.child(lease.id)
    await scene.happen(held.id, events.Pause())
    await scene.happen(lease.id, events.Succeed())
    reader = await follow(scene.store)
    await scene.release()
    children = await scene.store.load([now.id, later.id, for_key.id])
    entries = await reader.entries()
    assert sorted(entries, key=lambda entry: entry.id) == [entry_of(children[key]) for key in sorted(children)]
    assert [STATUSES[entry.status] for entry in sorted(entries, key=lambda entry: entry.id)] == [
        "queued",
        "scheduled",
        "queued",
    ]
    await scene.happen(other.id, events.Succeed())
    await scene.release()
    assert await reader.statuses() == [(other.id, "completed"), (both.id, "queued")]


async def test_children_that_are_cancelled_are_told_with_theirs(scene: Scene) -> None:
    lease = await scene.running(job_type="parent")
    child = await scene.child(lease.id)
    grandchild = await scene.child(child.id)
    rescue = await scene.child(child.id, on=On.FAILURE)
    after_all = await scene.child(child.id, on=On.ANY)
    await scene.happen(lease.id, events.FailFatal())
    reader = await follow(scene.store)
    await scene.release()
    entries = {entry.id: entry for entry in await reader.entries()}
    assert len(entries) == 4
    assert entries == {
        key: entry_of(await scene.record(key)) for key in (child.id, grandchild.id, rescue.id, after_all.id)
    }
    assert entries[child.id].reason == "parent_failed"


async def test_runs_of_schedules_are_told_with_what_happened(scene: Scene) -> None:
    schedule = await scene.scheduled()
    reader = await follow(scene.store)
    first, later = await scene.run_job(schedule, scene.now), await scene.run_job(schedule, scene.later(60))
    missed = Happening(kind="schedule.missed", subject="nightly", namespace="default", data='{"count":3}')
    changed = msgspec.structs.replace(schedule, version=2)
    step = Step(schedule=changed, runs=[scene.run(scene.now)], jobs=[first, later], happenings=[missed])
    assert await scene.store.save_schedules([step]) == {schedule.id}
    batches = await reader.batches()
    told = [entry for batch in batches for entry in batch.entries]
    assert sorted(told, key=lambda entry: entry.id) == [
        entry_of(await scene.record(new.job.id)) for new in (first, later)
    ]
    assert [happening for batch in batches for happening in batch.happenings] == [missed]
    assert await scene.store.save_schedules([step]) == set()
    assert await reader.batches() == []
    again = Step(schedule=msgspec.structs.replace(schedule, version=3), jobs=[await scene.run_job(schedule, scene.now)])
    assert await scene.store.save_schedules([again]) == {schedule.id}
    assert await reader.batches() == []


async def test_what_is_noted_is_a_batch_of_its_own(scene: Scene) -> None:
    reader = await follow(scene.store)
    happenings = [
        Happening(kind="node.lost", subject="n_1"),
        Happening(kind="schedule.missed", subject="nightly", namespace="shop", data='{"due":"ä\\u0000"}'),
    ]
    await scene.store.note(happenings, scene.now)
    await scene.store.note([], scene.now)
    (batch,) = await reader.batches()
    assert (list(batch.happenings), list(batch.entries), batch.time) == (happenings, [], scene.now)


async def lively(scene: Scene, count: int) -> None:
    """Many batches, written by several at once."""

    async def life(number: int) -> None:
        lease = await scene.running(job_type=f"kind{number}")
        await scene.happen(lease.id, events.Succeed() if number % 2 else events.FailFatal())

    await asyncio.gather(*(life(number) for number in range(count)))


@pytest.mark.parametrize("limit", [1, 2, 7, 1000])
async def test_all_is_read_once_in_pieces_of_any_size(scene: Scene, limit: int) -> None:
    start = await scene.store.feed_end()
    await lively(scene, 8)
    whole = await FeedReader(scene.store, start).batches()
    pieces = await FeedReader(scene.store, start).batches(limit=limit)
    assert numbers(pieces) == numbers(whole)
    assert sum(len(batch.entries) for batch in whole) == 24
    last: dict[int, int] = {}
    for batch in pieces:
        assert last.get(batch.writer, -1) < batch.number
        last[batch.writer] = batch.number


async def test_from_every_saved_position_the_rest_is_read(scene: Scene) -> None:
    position: Position | None = await scene.store.feed_end()
    await lively(scene, 5)
    assert position is not None
    whole = numbers(await FeedReader(scene.store, position).batches())
    read: set[tuple[int, int]] = set()
    while True:
        rest = numbers(await FeedReader(scene.store, position).batches(limit=3))
        assert rest == whole - read
        reading = await scene.store.read_feed(position, 1, mask=ALL_STATUSES)
        if not reading.batches:
            break
        read |= numbers(reading.batches)
        position = read_position(reading.position.text())
        assert position == reading.position
    assert read == whole


async def test_the_end_of_the_record_is_after_all_of_it(scene: Scene) -> None:
    await lively(scene, 3)
    reader = await follow(scene.store)
    assert await reader.batches() == []
    job = await scene.submitted()
    assert await reader.statuses() == [(job.id, "queued")]
    assert await reader.statuses() == []


async def test_the_whole_record_is_read_from_the_first_position_on(scene: Scene) -> None:
    await lively(scene, 2)
    reader = FeedReader(scene.store, Position())
    assert len(await reader.entries()) == 6
    assert reader.position == (await scene.store.feed_end())


async def test_a_position_within_a_batch_is_kept_until_there_is_one(scene: Scene) -> None:
    start = await scene.store.feed_end()
    jobs = await scene.jobs(3)
    await scene.submit(*jobs)
    (batch,) = await FeedReader(scene.store, start).batches()
    inside = start.inside(batch, 2)
    reading = await scene.store.read_feed(inside, 10, mask=ALL_STATUSES)
    assert [one.number for one in reading.batches] == [batch.number]
    assert reading.position.skip == 0
    end = await scene.store.feed_end()
    waiting = msgspec.structs.replace(end, within=batch.writer, skip=2)
    reading = await scene.store.read_feed(waiting, 10, mask=ALL_STATUSES)
    assert (reading.position.within, reading.position.skip) == (batch.writer, 2)


async def test_a_batch_without_a_status_that_is_asked_for_only_moves_the_position(scene: Scene) -> None:
    start = await scene.store.feed_end()
    lease = await scene.running()
    await scene.happen(lease.id, events.Succeed())
    await scene.store.note([Happening(kind="node.lost", subject="n_1")], scene.now)
    whole = await FeedReader(scene.store, start).batches()
    reader = FeedReader(scene.store, start)
    batches = await reader.batches(mask=mask_of(["completed", "failed"]))
    assert numbers(batches) == numbers(whole)
    assert [STATUSES[entry.status] for batch in batches for entry in batch.entries] == ["completed"]
    assert [happening.kind for batch in batches for happening in batch.happenings] == ["node.lost"]
    assert reader.position == (await scene.store.feed_end())
    assert not any(batch.entries for batch in await FeedReader(scene.store, start).batches(mask=0))


async def test_a_batch_with_one_such_status_comes_whole(scene: Scene) -> None:
    reader = await follow(scene.store)
    await scene.submit(await scene.job(), await scene.job(due=scene.later(60)))
    (batch,) = await reader.batches(mask=mask_of(["scheduled"]))
    assert len(batch.entries) == 2


async def test_a_store_that_does_not_record_writes_and_reads_nothing(make_store: MakeStore) -> None:
    store = make_store()
    await store.open()
    assert store.recording
    scene = Scene(store, await store.now())
    await store.prepare_days(scene.now)
    end = await store.feed_end()
    await store.close()
    store = make_store(recording=False)
    await store.open()
    assert not store.recording
    scene = Scene(store, await store.now(), scene._ids)
    await lively(scene, 2)
    job = await scene.submitted(due=scene.later(60))
    await scene.happen(job.id, events.Pause())
    await scene.fire(await scene.scheduled(), scene.now, job_type="run")
    await store.note([Happening(kind="node.lost", subject="n_1")], scene.now)
    worker = await scene.worker(until=scene.now - 1)
    assert await store.lose_workers(scene.now) == 1
    assert await store.remove_worker(worker.id)
    await store.acquire_node("gone", "1", scene.now - HOUR, scene.now - MINUTE)
    assert await store.lose_nodes(scene.now) == 1
    for position in (Position(), end, await store.feed_end()):
        reading = await store.read_feed(position, 100, mask=ALL_STATUSES)
        assert (list(reading.batches), reading.more) == ([], False)
    await store.close()
    store = make_store()
    await store.open()
    assert await FeedReader(store, end).batches() == []
    assert await FeedReader(store, Position()).batches() == []
    await store.close()


async def test_the_record_goes_on_after_a_close_and_an_open(make_store: MakeStore) -> None:
    store = make_store()
    await store.open()
    scene = Scene(store, await store.now())
    await store.prepare_days(scene.now)
    position = await store.feed_end()
    first = await scene.submitted()
    await store.close()
    store = make_store()
    await store.open()
    reader = FeedReader(store, position)
    assert await reader.statuses() == [(first.id, "queued")]
    scene = Scene(store, scene.now, scene._ids)
    second = await scene.submitted()
    assert await reader.statuses() == [(second.id, "queued")]
    assert await reader.statuses() == []
    await store.close()


async def test_what_is_not_old_is_not_forgotten(scene: Scene) -> None:
    start = await scene.store.feed_end()
    job = await scene.submitted()
    assert await scene.store.forget_feed(scene.now - DAY) == 0
    assert await FeedReader(scene.store, start).statuses() == [(job.id, "queued")]


async def test_whoever_read_up_to_what_was_forgotten_reads_on_and_nothing_twice(scene: Scene) -> None:
    start = await scene.store.feed_end()
    await lively(scene, 3)
    reader, slow = await follow(scene.store), FeedReader(scene.store, start)
    told = numbers(await FeedReader(scene.store, start).batches())
    while await scene.store.forget_feed(await scene.store.now() + 3 * DAY):
        pass
    assert await FeedReader(scene.store, Position()).batches() == await slow.batches() == await reader.batches() == []
    first = await scene.submitted()
    await scene.store.prepare_days(scene.now)
    second = await scene.submitted()
    for position in (start, slow.position, reader.position, Position()):
        batches = await FeedReader(scene.store, position).batches(limit=1)
        assert [entry.id for batch in batches for entry in batch.entries] == [first.id, second.id]
        assert not numbers(batches) & told


def rfc3339(time: int) -> str:
    text: str = msgspec.json.decode(msgspec.json.encode(EPOCH + timedelta(microseconds=time)))
    return text


async def test_workers_that_went_without_a_word_are_told_once(scene: Scene) -> None:
    lost = await scene.worker(name="gone", namespace="shop", until=scene.later(1))
    job = await scene.submitted(namespace="shop")
    await scene.claim(lost, job)
    await scene.worker(name="alive", until=scene.later(60))
    left = await scene.worker(name="left", until=scene.later(1))
    await scene.store.remove_worker(left.id)
    reader = await follow(scene.store)
    assert await scene.store.lose_workers(scene.now) == 0
    scene.now = scene.later(2)
    assert await scene.store.lose_workers(scene.now) == 1
    (batch,) = await reader.batches()
    (happening,) = batch.happenings
    shown = show("w_", lost.id)
    assert (happening.kind, happening.subject, happening.namespace) == ("worker.lost", shown, "shop")
    assert msgspec.json.decode(happening.data) == {
        "worker_id": shown,
        "name": "gone",
        "last_seen": rfc3339(lost.seen),
        "holds": 1,
    }
    assert await scene.store.lose_workers(scene.now) == 0
    assert await reader.batches() == []
    assert await scene.store.beat(lost.id, scene.now, scene.later(60)) is None


@pytest.mark.parametrize("way", ["late", "given on"])
async def test_a_node_that_is_there_again_can_be_lost_again(scene: Scene, way: str) -> None:
    now = scene.now
    lease = await scene.store.acquire_node("ann", "1", now, now + MINUTE)
    assert await scene.store.lose_nodes(now + 2 * MINUTE) == 1
    if way == "late":
        assert await scene.store.beat_node(lease.number, now + 3 * MINUTE, now + 4 * MINUTE, 1)
    else:
        while (await scene.store.acquire_node("bob", "1", now + 3 * MINUTE, now + 4 * MINUTE)).number != lease.number:
            pass  # which free number is given first is the store's to choose
    assert await scene.store.lose_nodes(now + 3 * MINUTE) == 0
    reader = await follow(scene.store)
    await scene.store.lose_nodes(now + 5 * MINUTE)
    lost = [happening.subject for batch in await reader.batches() for happening in batch.happenings]
    assert lost.count(show("n_", lease.number)) == 1


async def test_nodes_that_went_without_a_word_are_told_once(scene: Scene) -> None:
    now = scene.now
    lost = await scene.store.acquire_node("gone", "1", now, now + MINUTE)
    left = await scene.store.acquire_node("left", "1", now, now + MINUTE)
    await scene.store.acquire_node("alive", "1", now, now + HOUR)
    await scene.store.release_node(left.number, 1)
    await scene.store.beat_node(lost.number, now + 5, now + MINUTE, 1)
    reader = await follow(scene.store)
    assert await scene.store.lose_nodes(now) == 0
    assert await scene.store.lose_nodes(now + 2 * MINUTE) == 1
    assert await scene.store.lose_nodes(now + 2 * MINUTE) == 0
    (batch,) = await reader.batches()
    (happening,) = batch.happenings
    shown = show("n_", lost.number)
    assert (happening.kind, happening.subject, happening.namespace) == ("node.lost", shown, None)
    assert msgspec.json.decode(happening.data) == {"node_id": shown, "name": "gone", "last_seen": rfc3339(now + 5)}
