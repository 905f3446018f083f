"""How many jobs of each lane stand under each status: always exactly what is there."""

from collections import Counter

import msgspec

from foliot.domain import events
from foliot.domain.duration import DAY, HOUR
from foliot.domain.job import State
from foliot.domain.status import STATUSES, status_of
from foliot.store.base import Filter, Store
from tests.store.builders import Scene


async def depths(store: Store) -> dict[tuple[int, str], int]:
    found = await store.depths()
    assert len({entry[:2] for entry in found}) == len(found)
    assert all(status in STATUSES and jobs > 0 for _, status, jobs in found)
    return {(lane_id, status): jobs for lane_id, status, jobs in found}


async def standing(store: Store, *namespaces: str) -> dict[tuple[int, str], int]:
    """What a walk over all jobs finds."""
    found: Counter[tuple[int, str]] = Counter()
    for namespace in namespaces or ("default",):
        before = None
        while True:
            page = await store.list_jobs(Filter(namespace=namespace), limit=100, before=before)
            found.update((record.job.lane_id, status_of(record.row)) for record in page.records)
            if (before := page.next) is None:
                break
    return dict(found)


async def test_an_empty_store_has_no_jobs_anywhere(store: Store) -> None:
    assert await depths(store) == {}


async def test_every_move_is_counted(store: Store) -> None:
    scene = Scene(store, await store.now() - HOUR)
    await store.prepare_days(scene.now)
    worker = await scene.worker(until=scene.later(7200))

    async def check() -> None:
        assert await depths(store) == await standing(store, "default", "shop")

    number = await scene.limit("door", 1)
    await scene.submitted(namespace="shop")
    waiting = await scene.submitted(due=scene.later(1), limit_key="door")
    queued = await scene.submitted(queue="mail")
    await scene.submitted(queue="mail", due=scene.later(1))
    await scene.submit(queued)
    await check()
    await store.admit([waiting.id])
    await store.give_tokens([number], scene.now)
    await check()
    parent = await scene.running(worker, job_type="parent")
    child = await scene.child(parent.id, job_type="child")
    grandchild = await scene.child(child.id, job_type="child")
    await check()
    await scene.happen(parent.id, events.FailFatal())
    await scene.release()
    await check()
    other = msgspec.structs.replace(queued, lane=waiting.lane, lane_id=waiting.lane_id)
    await scene.happen(queued.id, events.Reschedule(job=other, due=other.due))
    await check()
    await scene.happen(queued.id, events.Pause())
    await check()
    again = await scene.running(worker, job_type="again")
    await scene.happen(again.id, events.FailRetriable(retry_after=HOUR))
    await check()
    await scene.happen(again.id, events.Cancel())
    job = (await scene.record(parent.id)).job
    await scene.happen(parent.id, events.Redrive(job=job))
    await check()
    await scene.fire(await scene.scheduled(), scene.now, job_type="run")
    await check()
    assert (await depths(store))[grandchild.lane_id, "cancelled"] == 2
    assert sum((await depths(store)).values()) == 9


async def test_those_that_ended_are_counted_also_once_they_are_forgotten(store: Store) -> None:
    scene = Scene(store, await store.now() - 40 * DAY)
    await store.prepare_days(scene.now)
    keys = [(await scene.ended()).job.id for _ in range(3)]
    gone = await scene.ended(State.FAILED)
    before = await depths(store)
    while await store.forget(await store.now() - 30 * DAY, 2):
        pass
    assert await store.load([*keys, gone.job.id]) == {}
    assert await depths(store) == before
    assert sorted(before.values()) == [1, 3]
    await scene.ended()
    assert (await depths(store))[gone.job.lane_id, "completed"] == 4
