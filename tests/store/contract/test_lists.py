"""Lists: newest first, every filter, and every job exactly once however the jobs move meanwhile."""

import asyncio
from typing import Any

import pytest

from foliot.domain import events
from foliot.domain.duration import HOUR
from foliot.domain.ids import JobKey
from foliot.domain.job import Job, Record, State
from foliot.domain.status import STATUSES, status_of
from foliot.store.base import Filter, Page
from tests.store.builders import Scene


async def all_of(scene: Scene, *, limit: int = 100, **fields: Any) -> list[Record]:
    """Every page, to the end."""
    found: list[Record] = []
    before: JobKey | None = None
    while True:
        page = await scene.store.list_jobs(Filter(**({"namespace": "default"} | fields)), limit=limit, before=before)
        assert len(page.records) <= limit
        found.extend(page.records)
        if page.next is None:
            return found
        assert before is None or page.next < before, "a page must get on"
        before = page.next


async def keys_of(scene: Scene, **fields: Any) -> list[JobKey]:
    return [record.job.id for record in await all_of(scene, **fields)]


async def one_of_each(scene: Scene) -> dict[str, JobKey]:
    """A job of every status."""
    retrying = await scene.running(job_type="retrying")
    await scene.happen(retrying.id, events.FailRetriable(retry_after=HOUR))
    blocked = await scene.job()
    await scene.submit(blocked, parents=1)
    paused = await scene.submitted(job_type="paused")
    await scene.happen(paused.id, events.Pause())
    return {
        "scheduled": (await scene.submitted(due=scene.later(60))).id,
        "blocked": blocked.id,
        "queued": (await scene.submitted(job_type="queued")).id,
        "running": (await scene.running(job_type="running")).id,
        "retrying": retrying.id,
        "paused": paused.id,
        "completed": (await scene.ended(State.COMPLETED)).job.id,
        "failed": (await scene.ended(State.FAILED)).job.id,
        "cancelled": (await scene.ended(State.CANCELLED)).job.id,
    }


async def test_jobs_come_newest_first_without_their_payloads(scene: Scene) -> None:
    jobs = [await scene.submitted(payload='{"n":1}', tags=("t",)) for _ in range(5)]
    records = await all_of(scene)
    assert [record.job.id for record in records] == [job.id for job in reversed(jobs)]
    assert {record.job.payload for record in records} == {""}
    assert {record.job.tags for record in records} == {("t",)}


@pytest.mark.parametrize("limit", [1, 2, 3, 100])
async def test_pages_hold_every_job_once(scene: Scene, limit: int) -> None:
    made = await one_of_each(scene)
    assert await keys_of(scene, limit=limit) == sorted(made.values(), reverse=True)


@pytest.mark.parametrize("status", STATUSES)
async def test_each_status_is_found_by_its_word(scene: Scene, status: str) -> None:
    made = await one_of_each(scene)
    (record,) = await all_of(scene, statuses=(status,))
    assert record.job.id == made[status]
    assert status_of(record.row) == status


async def test_queued_jobs_are_found_without_going_through_those_that_wait_for_their_time(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("foliot.store.postgres.lists.SCANNED", 3)
    monkeypatch.setattr("foliot.store.sqlite.listing.SCAN", 3)
    for _ in range(10):
        await scene.submitted(due=scene.later(60))
    queued = Filter(namespace="default", statuses=("queued", "running"))
    assert await scene.store.list_jobs(queued, limit=1, before=None) == Page([], None)


async def test_several_statuses_are_one_list(scene: Scene) -> None:
    made = await one_of_each(scene)
    for wanted in (("queued", "failed"), ("failed", "cancelled"), ("paused", "running", "completed"), STATUSES):
        expected = sorted((made[status] for status in wanted), reverse=True)
        assert await keys_of(scene, statuses=wanted, limit=2) == expected


async def test_a_list_shows_rows_and_last_attempts_as_a_load_does(scene: Scene) -> None:
    made = await one_of_each(scene)
    loaded = await scene.store.load(list(made.values()))
    for record in await all_of(scene):
        assert status_of(record.row) == status_of(loaded[record.job.id].row)
        assert record.row.version == loaded[record.job.id].row.version
        assert record.last == loaded[record.job.id].last


async def test_namespaces_are_apart(scene: Scene) -> None:
    ours, theirs = await scene.submitted(), await scene.submitted(namespace="other")
    assert await keys_of(scene) == [ours.id]
    assert await keys_of(scene, namespace="other") == [theirs.id]
    assert await keys_of(scene, namespace="nobody") == []


FILTERS: list[tuple[dict[str, Any], dict[str, Any], dict[str, Any]]] = [
    ({"job_type": "a"}, {"job_type": "a"}, {"job_type": "b"}),
    ({"queue": "a"}, {"queue": "a"}, {"queue": "b"}),
    ({"owner": "ann"}, {"owner": "ann"}, {"owner": "bob"}),
    ({"schedule_id": "s"}, {"schedule_id": "s"}, {"schedule_id": "t"}),
    ({"tags": ("x",)}, {"tags": ("x", "y")}, {"tags": ("y",)}),
    ({"tags": ("x", "y")}, {"tags": ("y", "z", "x")}, {"tags": ("x",)}),
    ({"tags": ("x",)}, {"tags": ("x",)}, {}),
    ({"tags": ("a%",)}, {"tags": ("a%",)}, {"tags": ("ab",)}),
]


@pytest.mark.parametrize(("asked", "match", "other"), FILTERS)
@pytest.mark.parametrize("statuses", [(), ("queued",)])
async def test_a_filter_leaves_out_the_others(
    scene: Scene, asked: dict[str, Any], match: dict[str, Any], other: dict[str, Any], statuses: tuple[str, ...]
) -> None:
    wanted: list[Job] = []
    for _ in range(3):
        wanted.append(await scene.submitted(**match))
        await scene.submitted(**other)
    assert await keys_of(scene, **asked, statuses=statuses, limit=2) == [job.id for job in reversed(wanted)]


async def test_filters_are_all_applied(scene: Scene) -> None:
    wanted = await scene.submitted(job_type="a", owner="ann", tags=("x",))
    await scene.submitted(job_type="a", owner="bob", tags=("x",))
    await scene.submitted(job_type="b", owner="ann", tags=("x",))
    await scene.submitted(job_type="a", owner="ann")
    assert await keys_of(scene, job_type="a", owner="ann", tags=("x",)) == [wanted.id]


async def test_due_times_are_bounded_from_the_start_up_to_before_the_end(scene: Scene) -> None:
    jobs = [await scene.submitted(due=scene.later(seconds)) for seconds in (10, 20, 30, 40)]
    bounds = {"due_after": scene.later(20), "due_before": scene.later(40)}
    assert await keys_of(scene, **bounds) == [jobs[2].id, jobs[1].id]
    assert await keys_of(scene, due_after=scene.later(40)) == [jobs[3].id]
    assert await keys_of(scene, due_before=scene.later(20)) == [jobs[0].id]


async def test_due_times_are_those_asked_for_and_not_the_next_try(scene: Scene) -> None:
    lease = await scene.running()
    await scene.happen(lease.id, events.FailRetriable(retry_after=HOUR))
    assert await keys_of(scene, due_before=scene.now + 1) == [lease.id]
    assert await keys_of(scene, due_after=scene.now + 1) == []


async def test_a_rare_match_is_found_among_many(scene: Scene) -> None:
    rare = await scene.submitted(owner="ann")
    for _ in range(3):
        await scene.submit(*await scene.jobs(1000))
    assert await keys_of(scene, owner="ann", limit=10) == [rare.id]


async def test_pages_under_churn_show_every_job_that_stays_exactly_once(scene: Scene) -> None:
    """Jobs move from place to place and new ones come while the pages are read."""
    worker = await scene.worker(until=scene.later(3600))
    jobs = await scene.jobs(120)
    await scene.submit(*jobs)
    done = asyncio.Event()

    async def churn() -> None:
        while not done.is_set():
            await scene.submit(*await scene.jobs(3))
            for claimed in await scene.claim(worker, jobs[0], 3):
                await scene.happen(claimed.lease.id, events.Succeed())

    churning = asyncio.create_task(churn())
    try:
        seen = await keys_of(scene, limit=7)
    finally:
        done.set()
        await churning
    assert seen == sorted(set(seen), reverse=True)
    assert {job.id for job in jobs} <= set(seen)
