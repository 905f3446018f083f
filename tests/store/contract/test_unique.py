"""Unique keys: while a job with one waits, a further submit with it is answered by that job."""

import asyncio

import msgspec
import pytest

from foliot.domain import events
from foliot.domain.duration import DAY
from foliot.domain.job import Job, Ready, State
from foliot.store.base import Accepted, Clash
from tests.store.builders import Scene, shown


async def accepted(scene: Scene, *jobs: Job) -> Accepted:
    (answer,) = await scene.insert(scene.submission(*jobs))
    assert isinstance(answer, Accepted)
    return answer


@pytest.mark.parametrize("place", ["waiting", "ready", "held", "retrying", "blocked"])
async def test_a_duplicate_of_a_job_that_waits_is_answered_by_it_and_not_kept(scene: Scene, place: str) -> None:
    if place == "retrying":
        first = (await scene.record((await scene.running(unique_key="one")).id)).job
        await scene.happen(first.id, events.FailRetriable())
    else:
        first = await scene.job(unique_key="one", due=scene.now if place == "ready" else scene.later(60))
        await scene.submit(first, parents=int(place == "blocked"))
    if place == "held":
        await scene.happen(first.id, events.Pause())
    before = await scene.record(first.id)
    plain, again = await scene.job(), await scene.job(unique_key="one", payload='"other"')
    answer = await accepted(scene, plain, again)
    assert list(answer.ids) == [shown(plain), shown(first)]
    assert (list(answer.new), list(answer.duplicates)) == ([plain.id], [1])
    assert again.id not in await scene.store.load([again.id])
    assert await scene.record(first.id) == before
    assert before.job.unique_key == "one"


async def test_a_duplicate_is_answered_with_the_clients_own_name(scene: Scene) -> None:
    await scene.submitted(unique_key="one", name="mine", due=scene.later(60))
    other = await scene.job(unique_key="one", name="other")
    answer = await accepted(scene, other)
    assert (list(answer.ids), list(answer.new), list(answer.duplicates)) == (["mine"], [], [0])
    assert await scene.store.find("default", ["other"]) == {}


async def test_a_job_that_runs_leaves_its_key_to_the_next(scene: Scene) -> None:
    running = await scene.running(unique_key="one", job_type="first")
    second = await scene.job(unique_key="one")
    answer = await accepted(scene, second)
    assert (list(answer.new), list(answer.duplicates)) == ([second.id], [])
    await scene.happen(running.id, events.Succeed())
    third = await scene.job(unique_key="one")
    assert list((await accepted(scene, third)).ids) == [shown(second)]


@pytest.mark.parametrize("state", [State.COMPLETED, State.FAILED, State.CANCELLED], ids=lambda state: state.name)
async def test_a_job_that_has_ended_leaves_its_key_to_the_next(scene: Scene, state: State) -> None:
    await scene.ended(state, unique_key="one", job_type="first")
    second = await scene.job(unique_key="one")
    assert list((await accepted(scene, second)).new) == [second.id]
    assert isinstance(await scene.row(second.id), Ready)


async def test_of_the_same_key_twice_in_one_request_the_first_is_kept(scene: Scene) -> None:
    one, two, other = [await scene.job(unique_key=key) for key in ("one", "one", "two")]
    answer = await accepted(scene, one, two, other)
    assert list(answer.ids) == [shown(one), shown(one), shown(other)]
    assert (list(answer.new), list(answer.duplicates)) == ([one.id, other.id], [1])
    assert set(await scene.store.load([one.id, two.id, other.id])) == {one.id, other.id}


async def test_of_the_same_key_in_two_requests_of_one_call_the_first_is_kept(scene: Scene) -> None:
    one, two = [await scene.job(unique_key="one") for _ in range(2)]
    first, second = await scene.insert(scene.submission(one), scene.submission(two))
    assert isinstance(first, Accepted)
    assert isinstance(second, Accepted)
    assert (list(first.new), list(second.new)) == ([one.id], [])
    assert (list(second.ids), list(second.duplicates)) == ([shown(one)], [0])


async def test_a_refused_request_takes_no_key(scene: Scene) -> None:
    await scene.submitted(name="taken")
    one, clashing, two = (
        await scene.job(unique_key="one"),
        await scene.job(name="taken"),
        await scene.job(unique_key="one"),
    )
    refused, kept = await scene.insert(scene.submission(one, clashing, body=b"another"), scene.submission(two))
    assert refused == Clash("taken")
    assert isinstance(kept, Accepted)
    assert list(kept.new) == [two.id]


async def test_namespaces_have_their_own_keys(scene: Scene) -> None:
    await scene.submitted(unique_key="one")
    other = await scene.job(unique_key="one", namespace="other")
    assert list((await accepted(scene, other)).new) == [other.id]


async def test_a_call_that_is_repeated_is_no_duplicate_of_itself(scene: Scene) -> None:
    named, plain = await scene.job(unique_key="one", name="mine"), await scene.job(unique_key="two")
    await accepted(scene, named, plain)
    answer = await accepted(scene, named, plain)
    assert list(answer.ids) == ["mine", shown(plain)]
    assert (list(answer.new), list(answer.duplicates)) == ([], [])


async def test_many_submits_at_once_keep_one(scene: Scene) -> None:
    jobs = await scene.jobs(20, unique_key="one")
    answers = await asyncio.gather(*(accepted(scene, job) for job in jobs))
    kept = [key for answer in answers for key in answer.new]
    assert len(kept) == 1
    assert set(await scene.store.load([job.id for job in jobs])) == set(kept)
    assert sum(len(answer.duplicates) for answer in answers) == 19
    (job,) = [job for job in jobs if job.id in kept]
    assert {shown_id for answer in answers for shown_id in answer.ids} == {shown(job)}


async def test_a_job_that_is_given_another_key_leaves_the_old_one_free_and_has_the_new(scene: Scene) -> None:
    first = await scene.submitted(unique_key="old")
    changed = msgspec.structs.replace(first, unique_key="new")
    await scene.happen(first.id, events.Reschedule(job=changed, due=first.due))
    old, new = await scene.job(unique_key="old"), await scene.job(unique_key="new")
    answer = await accepted(scene, old, new)
    assert (list(answer.new), list(answer.duplicates)) == ([old.id], [1])
    assert list(answer.ids) == [shown(old), shown(first)]
    assert list((await accepted(scene, await scene.job(unique_key="old"))).ids) == [shown(old)]


async def test_keys_of_forgotten_jobs_are_free(scene: Scene) -> None:
    now = scene.now
    scene.now -= 40 * DAY
    await scene.store.prepare_days(scene.now)
    gone = await scene.ended(unique_key="gone", job_type="gone")
    await scene.ended(unique_key="taken", job_type="taken")
    scene.now = now
    holder = await scene.submitted(unique_key="taken", job_type="holder")
    while await scene.store.forget(now - 30 * DAY, 100):
        pass
    assert gone.job.id not in await scene.store.load([gone.job.id])
    one, two = await scene.job(unique_key="gone"), await scene.job(unique_key="taken")
    answer = await accepted(scene, one, two)
    assert (list(answer.new), list(answer.duplicates)) == ([one.id], [1])
    assert list(answer.ids) == [shown(one), shown(holder)]
