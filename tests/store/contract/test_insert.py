"""Jobs are kept once, all of a request or none, whatever comes twice."""

import asyncio

import msgspec
import pytest

from foliot.domain.duration import HOUR
from foliot.domain.errors import Unstorable
from foliot.domain.ids import JobKey
from foliot.domain.job import Lane, Ready, Waiting
from foliot.domain.retry import Retry
from foliot.store.base import Accepted, Clash
from tests.store.builders import Scene, shown


async def test_a_kept_job_is_loaded_as_it_was_given(scene: Scene) -> None:
    job = await scene.job(
        name="mine",
        priority=8,
        payload='{"text":"żółw 🐢","n":1e400}',
        retry=Retry(max_attempts=7, delays=(1, 2), on_lost="fail"),
        timeout=5_000_000,
        deadline=scene.later(60),
        tags=("a", "b c", "ż"),
        owner="ann",
        schedule_id="nightly",
    )
    await scene.submit(job)
    record = await scene.record(job.id)
    assert record.job == job
    assert isinstance(record.row, Ready)
    assert record.last is None


async def test_a_future_job_waits_and_a_due_one_is_ready(scene: Scene) -> None:
    due, future = await scene.job(), await scene.job(due=scene.later(60))
    submission = scene.submission(due, future)
    await scene.insert(submission)
    assert await scene.row(due.id) == submission.jobs[0].row
    assert await scene.row(future.id) == submission.jobs[1].row
    assert isinstance(await scene.row(future.id), Waiting)


async def test_a_job_with_parents_waits_with_their_number(scene: Scene) -> None:
    job = await scene.job()
    await scene.submit(job, parents=2)
    row = await scene.row(job.id)
    assert isinstance(row, Waiting)
    assert row.parents == 2


async def test_ids_come_back_in_the_order_given(scene: Scene) -> None:
    jobs = [await scene.job(name=name) for name in ("c", None, "a", None)]
    (answer,) = await scene.insert(scene.submission(*jobs))
    assert isinstance(answer, Accepted)
    assert list(answer.ids) == [shown(job) for job in jobs]
    assert set(answer.new) == {job.id for job in jobs}


async def test_a_call_without_submissions_answers_nothing(scene: Scene) -> None:
    assert await scene.insert() == []


async def test_a_submission_without_jobs_is_accepted(scene: Scene) -> None:
    (answer,) = await scene.insert(scene.submission())
    assert isinstance(answer, Accepted)
    assert (list(answer.ids), list(answer.new)) == ([], [])


async def test_a_known_name_with_the_same_body_is_accepted_and_not_written_again(scene: Scene) -> None:
    first = await scene.submitted(name="mine")
    again = await scene.job(name="mine", payload="[]")
    (answer,) = await scene.insert(scene.submission(again))
    assert isinstance(answer, Accepted)
    assert (list(answer.ids), list(answer.new)) == (["mine"], [])
    assert await scene.store.find("default", ["mine"]) == {"mine": first.id}
    assert again.id not in await scene.store.load([again.id])


async def test_a_known_name_with_another_body_clashes(scene: Scene) -> None:
    await scene.submitted(name="mine")
    assert await scene.insert(scene.submission(await scene.job(name="mine"), body=b"other")) == [Clash("mine")]


async def test_a_name_stays_taken_after_its_job_has_ended(scene: Scene) -> None:
    await scene.ended(name="mine")
    assert await scene.insert(scene.submission(await scene.job(name="mine"), body=b"other")) == [Clash("mine")]


async def test_names_are_apart_by_namespace(scene: Scene) -> None:
    one = await scene.submitted(name="mine")
    other = await scene.submitted(name="mine", namespace="other")
    assert await scene.store.find("default", ["mine", "nobody"]) == {"mine": one.id}
    assert await scene.store.find("other", ["mine"]) == {"mine": other.id}


async def test_a_clash_keeps_nothing_of_its_submission_and_leaves_the_others_untouched(scene: Scene) -> None:
    await scene.submitted(name="taken")
    before, lost, clashing, after = [await scene.job(name=name) for name in ("x", "y", "taken", "z")]
    answers = await scene.insert(
        scene.submission(before),
        scene.submission(lost, clashing, body=b"other", request_key="k", request_hash=b"h"),
        scene.submission(after),
    )
    assert [type(answer) for answer in answers] == [Accepted, Clash, Accepted]
    assert await scene.store.find("default", ["x", "y", "z"]) == {"x": before.id, "z": after.id}
    assert set(await scene.store.load([before.id, lost.id, clashing.id, after.id])) == {before.id, after.id}


async def test_a_clash_uses_up_neither_its_names_nor_its_request_key(scene: Scene) -> None:
    await scene.submitted(name="taken")
    names = await scene.job(name="y"), await scene.job(name="taken")
    free = await scene.job(name="y")
    answers = await scene.insert(
        scene.submission(*names, body=b"other", request_key="k", request_hash=b"h"),
        scene.submission(free, body=b"third", request_key="k", request_hash=b"i"),
    )
    assert answers[0] == Clash("taken")
    assert isinstance(answers[1], Accepted)
    assert list(answers[1].new) == [free.id]


async def test_the_same_name_twice_in_a_call_counts_as_two_calls(scene: Scene) -> None:
    first, same, other = [await scene.job(name="mine") for _ in range(3)]
    answers = await scene.insert(
        scene.submission(first), scene.submission(same), scene.submission(other, body=b"other")
    )
    assert isinstance(answers[0], Accepted)
    assert list(answers[0].new) == [first.id]
    assert isinstance(answers[1], Accepted)
    assert (list(answers[1].ids), list(answers[1].new)) == (["mine"], [])
    assert answers[2] == Clash("mine")
    assert set(await scene.store.load([first.id, same.id, other.id])) == {first.id}


async def test_the_same_name_twice_in_a_submission_is_one_job(scene: Scene) -> None:
    first, same = [await scene.job(name="mine") for _ in range(2)]
    (answer,) = await scene.insert(scene.submission(first, same))
    assert isinstance(answer, Accepted)
    assert (list(answer.ids), list(answer.new)) == (["mine", "mine"], [first.id])


async def test_the_same_name_with_two_bodies_in_a_submission_clashes(scene: Scene) -> None:
    first, other = [await scene.job(name="mine") for _ in range(2)]
    one, two = scene.submission(first), scene.submission(other, body=b"other")
    both = msgspec.structs.replace(one, jobs=[*one.jobs, *two.jobs])
    assert await scene.insert(both) == [Clash("mine")]
    assert await scene.store.load([first.id, other.id]) == {}


async def test_a_repeated_call_with_the_same_ids_keeps_nothing_twice(scene: Scene) -> None:
    jobs = [*await scene.jobs(3), await scene.job(name="mine")]
    submission = scene.submission(*jobs, request_key="k", request_hash=b"h")
    plain = scene.submission(await scene.job())
    first = await scene.insert(submission, plain)
    before = await scene.store.load([job.id for job in jobs])
    again = await scene.insert(submission, plain)
    for one, two in zip(first, again, strict=True):
        assert isinstance(one, Accepted)
        assert isinstance(two, Accepted)
        assert list(two.ids) == list(one.ids)
        assert list(two.new) == []
    assert await scene.store.load([job.id for job in jobs]) == before


async def test_a_repeated_call_leaves_jobs_that_have_moved_on_where_they_are(scene: Scene) -> None:
    record = await scene.ended()
    await scene.insert(scene.submission(record.job))
    assert await scene.record(record.job.id) == record


async def test_a_half_known_submission_keeps_the_rest(scene: Scene) -> None:
    known, fresh = await scene.submitted(name="known"), await scene.job(name="fresh")
    (answer,) = await scene.insert(scene.submission(known, fresh))
    assert isinstance(answer, Accepted)
    assert (list(answer.ids), list(answer.new)) == (["known", "fresh"], [fresh.id])


async def test_a_request_key_seen_answers_with_the_ids_of_then(scene: Scene) -> None:
    first = await scene.job()
    await scene.insert(scene.submission(first, request_key="k", request_hash=b"h"))
    again = await scene.job()
    (answer,) = await scene.insert(scene.submission(again, request_key="k", request_hash=b"h"))
    assert isinstance(answer, Accepted)
    assert (list(answer.ids), list(answer.new)) == ([shown(first)], [])
    assert await scene.store.load([again.id]) == {}


async def test_a_request_key_with_another_body_clashes_without_a_name(scene: Scene) -> None:
    await scene.insert(scene.submission(await scene.job(), request_key="k", request_hash=b"h"))
    other = scene.submission(await scene.job(), request_key="k", request_hash=b"other")
    assert await scene.insert(other) == [Clash(None)]


async def test_a_request_key_is_known_within_its_call_and_apart_by_namespace(scene: Scene) -> None:
    first, again, elsewhere = await scene.job(), await scene.job(), await scene.job(namespace="other")
    answers = await scene.insert(
        *(scene.submission(job, request_key="k", request_hash=b"h") for job in (first, again, elsewhere))
    )
    assert [list(answer.new) for answer in answers if isinstance(answer, Accepted)] == [[first.id], [], [elsewhere.id]]
    assert isinstance(answers[1], Accepted)
    assert list(answers[1].ids) == [shown(first)]


async def test_a_request_key_is_free_again_after_a_day(scene: Scene) -> None:
    await scene.insert(scene.submission(await scene.job(), request_key="k", request_hash=b"h"))
    scene.now += 23 * HOUR
    assert await scene.insert(scene.submission(await scene.job(), request_key="k", request_hash=b"i")) == [Clash(None)]
    scene.now += 2 * HOUR
    job = await scene.job()
    (answer,) = await scene.insert(scene.submission(job, request_key="k", request_hash=b"i"))
    assert isinstance(answer, Accepted)
    assert list(answer.new) == [job.id]


@pytest.mark.parametrize("bad", [{"priority": 1 << 70}, {"owner": "\ud800"}])
async def test_what_can_not_be_stored_takes_its_call_with_it_and_nothing_else(
    scene: Scene, bad: dict[str, object]
) -> None:
    good = await scene.jobs(3)
    wrong = msgspec.structs.replace(await scene.job(), **bad)
    rows = scene.submission(wrong)
    rows = msgspec.structs.replace(
        rows, jobs=[msgspec.structs.replace(new, row=msgspec.structs.replace(new.row, priority=5)) for new in rows.jobs]
    )
    beside = await scene.job()
    spoilt, kept = await asyncio.gather(
        scene.insert(scene.submission(*good), rows), scene.insert(scene.submission(beside)), return_exceptions=True
    )
    assert isinstance(spoilt, Unstorable)
    assert isinstance(kept, list)
    assert set(await scene.store.load([job.id for job in (*good, wrong, beside)])) == {beside.id}
    await scene.submit(*good)
    assert len(await scene.store.load([job.id for job in good])) == 3


async def test_a_nul_in_a_tag_is_kept_or_refused_and_never_harms_the_others(scene: Scene) -> None:
    good, odd = await scene.job(), await scene.job(tags=("a\0b",))
    try:
        await scene.submit(good, odd)
    except Unstorable:
        assert await scene.store.load([good.id, odd.id]) == {}
        await scene.submit(good)
        assert set(await scene.store.load([good.id, odd.id])) == {good.id}
    else:
        assert (await scene.record(odd.id)).job == odd


async def test_lanes_keep_their_numbers_and_are_known_by_them(scene: Scene) -> None:
    lanes = [Lane("n", "q", "t"), Lane("n", "q", "u"), Lane("n", "q", "t")]
    numbers = await scene.store.lane_ids(lanes)
    assert numbers[0] == numbers[2] != numbers[1]
    assert await scene.store.lane_ids(lanes) == numbers
    assert scene.store.lane(numbers[1]) == lanes[1]
    assert scene.store.lane(999_999) is None


async def test_lanes_made_at_the_same_time_get_one_number(scene: Scene) -> None:
    lanes = [Lane("n", "q", f"t{number}") for number in range(20)]
    answers = await asyncio.gather(*(scene.store.lane_ids(lanes[start:] + lanes[:start]) for start in range(20)))
    for start, numbers in enumerate(answers):
        assert numbers == answers[0][start:] + answers[0][:start]


async def test_unknown_jobs_are_left_out_of_a_load(scene: Scene) -> None:
    job = await scene.submitted()
    assert set(await scene.store.load([JobKey(12345), job.id])) == {job.id}
    assert await scene.store.load([]) == {}


async def test_many_calls_at_once_each_get_their_own_answer(scene: Scene) -> None:
    jobs = await scene.jobs(60)
    answers = await asyncio.gather(*(scene.insert(scene.submission(job)) for job in jobs))
    for (answer,), job in zip(answers, jobs, strict=True):
        assert isinstance(answer, Accepted)
        assert (list(answer.ids), list(answer.new)) == ([shown(job)], [job.id])
    assert len(await scene.store.load([job.id for job in jobs])) == 60
