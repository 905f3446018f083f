"""Why a job does not run: what is named is what holds it back, all of it and nothing else."""

import random
from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import timedelta
from itertools import combinations

import pytest

from foliot.domain.access import ADMIN
from foliot.service.explain import PLENTY
from foliot.wire import ErrorInfo, LimitBody, QueueBody, RateLimitBody, WhyInfo
from tests.service.almanac import Almanac, at, open_almanac

OBSTACLES = {
    "hold": "hold",
    "dependency": "dependency",
    "time": "time",
    "key": "limit",
    "queue": "queue_hold",
    "type": "queue_hold",
    "rate": "rate",
    "full": "limit",
    "no_worker": "no_worker",
}
"""What can stand in a job's way, and the word for it."""
SUBSETS = [chosen for size in range(len(OBSTACLES) + 1) for chosen in combinations(OBSTACLES, size)]
SOME_SUBSETS = [each for each in SUBSETS if len(each) <= 2] + random.Random(4).sample(SUBSETS, 60) + [tuple(OBSTACLES)]
Removal = Callable[[], Awaitable[object]]


@pytest.fixture
async def almanac() -> AsyncIterator[Almanac]:
    async with open_almanac() as almanac:
        yield almanac


async def why(almanac: Almanac, job_id: str) -> WhyInfo:
    return await almanac.services.explain.why(job_id, ADMIN)


async def words(almanac: Almanac, job_id: str) -> list[str]:
    return [each.reason for each in (await why(almanac, job_id)).reasons]


async def duties(almanac: Almanac) -> None:
    """What a node does by itself, until nothing is left to do."""
    now = almanac.clock.now()
    while (await almanac.store.release(100, now)).more:
        pass
    await almanac.store.admit([due.id for due in await almanac.store.peek_due(now, 100) if due.time <= now])
    await almanac.services.limits.give_forgotten()
    almanac.services.gate.let_in()
    await almanac.services.dispatch.look()


class Stage:
    """A job with obstacles in its way, and how each of them is taken away."""

    def __init__(self, almanac: Almanac) -> None:
        self.almanac = almanac
        self.job_id = ""
        self.worker = ""
        self.removals: dict[str, Removal] = {}

    async def put(self, obstacles: tuple[str, ...]) -> None:
        almanac, fields = self.almanac, dict[str, object]()
        if "dependency" in obstacles:
            parent = await almanac.submit("parent")
            fields["depends_on"] = [parent]
            self.removals["dependency"] = self._complete_parent
        if "key" in obstacles:
            holder = await almanac.submit("holder", concurrency={"key": "k", "limit": 1})
            await duties(almanac)
            self.removals["key"] = lambda: almanac.cancel(holder)
        fields["concurrency"] = {"key": "k", "limit": 1}
        if "time" in obstacles:
            fields["schedule_time"] = (at(0) + timedelta(hours=1)).isoformat()
            self.removals["time"] = self._wait_an_hour
        fields["queue"] = "line"
        if "rate" in obstacles or "full" in obstacles:
            await self._fill_queue(obstacles)
        if "queue" in obstacles:
            await almanac.services.queues.pause("line", if_match=None, caller=ADMIN)
            self.removals["queue"] = lambda: almanac.services.queues.resume("line", if_match=None, caller=ADMIN)
        if "type" in obstacles:
            await almanac.services.queues.hold_type("job", held=True, caller=ADMIN)
            self.removals["type"] = lambda: almanac.services.queues.hold_type("job", held=False, caller=ADMIN)
        if "no_worker" in obstacles:
            self.removals["no_worker"] = self._start_worker
        else:
            await self._start_worker()
        self.job_id = await almanac.submit("job", **fields)
        if "hold" in obstacles:
            await almanac.services.control.pause(self.job_id, if_match=None, caller=ADMIN)
            self.removals["hold"] = lambda: almanac.services.control.resume(self.job_id, if_match=None, caller=ADMIN)
        await duties(almanac)

    async def remove(self, obstacle: str) -> None:
        await self.removals.pop(obstacle)()
        await duties(self.almanac)

    async def runs(self) -> bool:
        """Whether a worker that asks is given it."""
        worker = self.worker or await self.almanac.worker(job_types=["none"])
        return [job.job_id for job in await self.almanac.take(worker)] == [self.job_id]

    async def _fill_queue(self, obstacles: tuple[str, ...]) -> None:
        """Another job uses up what the queue allows: a start in ten hours, one that runs."""
        rules = {"rate": QueueBody(rate_limit=RateLimitBody(limit=1, per="10h")), "full": QueueBody(max_concurrency=1)}
        for each in obstacles:
            if each in rules:
                await self._set_queue(rules[each])
        worker = await self.almanac.worker(job_types=["filler"])
        await self.almanac.submit("filler", queue="line")
        running = await self.almanac.take_one(worker)
        if "full" in obstacles:
            self.removals["full"] = lambda: self.almanac.report(worker, running, "success")
        else:
            await self.almanac.report(worker, running, "success")
        if "rate" in obstacles:
            self.removals["rate"] = lambda: self._set_queue(QueueBody(rate_limit=None))

    async def _set_queue(self, rules: QueueBody) -> None:
        await self.almanac.services.queues.set("line", rules, if_match=None, caller=ADMIN)

    async def _start_worker(self) -> None:
        self.worker = await self.almanac.worker(job_types=["job"])

    async def _complete_parent(self) -> None:
        worker = await self.almanac.worker(job_types=["parent"])
        await self.almanac.report(worker, await self.almanac.take_one(worker), "success")

    async def _wait_an_hour(self) -> None:
        self.almanac.clock.pass_seconds(3601)


@pytest.mark.parametrize(
    "obstacles",
    SOME_SUBSETS,
    ids="+".join,
)
async def test_it_runs_once_every_reason_that_was_named_is_gone_and_not_before(
    almanac: Almanac, obstacles: tuple[str, ...]
) -> None:
    stage = Stage(almanac)
    await stage.put(obstacles)
    left = list(obstacles)
    random.Random("+".join(obstacles)).shuffle(left)
    while left:
        assert sorted(await words(almanac, stage.job_id)) == sorted(OBSTACLES[each] for each in left)
        assert not await stage.runs()
        await stage.remove(left.pop())
    told = await why(almanac, stage.job_id)
    assert (told.reasons, told.summary) == ([], "it starts as soon as a worker asks")
    assert await stage.runs()
    assert "running since" in (await why(almanac, stage.job_id)).summary


async def test_a_job_for_later_is_told_its_start(almanac: Almanac) -> None:
    await almanac.worker()
    job_id = await almanac.submit(schedule_time=at(60).isoformat())
    told = await why(almanac, job_id)
    assert told.expected_start == at(60)
    assert [(each.reason, each.until) for each in told.reasons] == [("time", at(60))]


async def test_a_job_that_is_to_be_tried_again_is_told_so(almanac: Almanac) -> None:
    worker = await almanac.worker()
    job_id = await almanac.submit(retry={"delays": ["5s"]})
    await almanac.report(worker, await almanac.take_one(worker), "retriable_failure")
    told = await why(almanac, job_id)
    assert (told.summary, told.expected_start) == ("after attempt 1 it waits for the next", at(5))


async def test_parents_that_are_open_are_named_with_what_they_must_do(almanac: Almanac) -> None:
    await almanac.worker()
    parents = [await almanac.submit(job_id=f"p{n}") for n in range(5)]
    edges = [parents[0], {"job_id": parents[1], "on": "failure"}, {"job_id": parents[2], "on": "any"}, *parents[3:]]
    job_id = await almanac.submit(depends_on=edges)
    (reason,) = (await why(almanac, job_id)).reasons
    assert reason.detail == "waits for p0 (queued) to complete, p1 (queued) to fail, p2 (queued) to end, 2 more"
    assert sorted(reason.by) == parents


async def test_holders_of_a_key_are_named_and_how_many_wait_before(almanac: Almanac) -> None:
    await almanac.worker()
    jobs = [await almanac.submit(job_id=f"k{n}", concurrency={"key": "account", "limit": 2}) for n in range(4)]
    await duties(almanac)
    (reason,) = (await why(almanac, jobs[3])).reasons
    assert reason.detail == "2 of 2 with the concurrency key account are under way; 1 before it"
    assert reason.by == ["k0", "k1"]
    await almanac.services.limits.set("account", LimitBody(limit=4), ADMIN)
    assert await words(almanac, jobs[3]) == []


async def test_the_limits_of_a_queue_are_told_with_their_numbers(almanac: Almanac) -> None:
    worker = await almanac.worker()
    rules = QueueBody(max_concurrency=1, rate_limit=RateLimitBody(limit=1, per="1m"))
    await almanac.services.queues.set("line", rules, if_match=None, caller=ADMIN)
    _, second = [await almanac.submit(queue="line") for _ in range(2)]
    assert len(await almanac.take(worker)) == 1
    told = await why(almanac, second)
    assert [each.detail for each in told.reasons] == [
        "the queue line lets 1 start in 1m; the next can start when its time comes",
        "1 of 1 jobs of the queue line run",
    ]
    assert told.reasons[0].until is not None
    assert told.reasons[0].until - at(60) < timedelta(milliseconds=1)
    assert told.expected_start is None
    await almanac.services.queues.set(
        "line", QueueBody(rate_limit=RateLimitBody(limit=1, per="1m", burst=5)), if_match=None, caller=ADMIN
    )
    assert [each.reason for each in (await why(almanac, second)).reasons] == ["limit"]


async def test_the_nearest_worker_tells_what_is_missing(almanac: Almanac) -> None:
    job_id = await almanac.submit(requires={"zone": "eu"}, resources={"cpu": 8})
    assert (await why(almanac, job_id)).summary == "no worker is there; start one"
    await almanac.worker(name="far", queues=["other"], job_types=["other"])
    await almanac.worker(name="near", resources={"slot": 4, "cpu": 4}, labels={"zone": "us"})
    told = await why(almanac, job_id)
    expected = "no worker can run it; the nearest, near, has the label zone=us, not eu and has 4 cpu, 8 is asked for"
    assert told.summary == expected
    assert told.expected_start is None
    await almanac.worker(name="right", resources={"slot": 1, "cpu": 8}, labels={"zone": "eu"})
    assert await words(almanac, job_id) == []


async def test_workers_without_room_are_named(almanac: Almanac) -> None:
    worker = await almanac.worker(name="small", resources={"slot": 1})
    first, second = await almanac.submit(), await almanac.submit()
    running = await almanac.take_one(worker)
    assert running.job_id == first
    (reason,) = (await why(almanac, second)).reasons
    assert (reason.reason, reason.by) == ("no_worker", ["small"])
    assert reason.detail == "no worker has room for it; it is served by small"
    await almanac.report(worker, running, "success")
    assert await words(almanac, second) == []


async def test_a_worker_that_tells_no_slots_and_one_that_drains_or_is_gone(almanac: Almanac) -> None:
    job_id = await almanac.submit()
    plenty = await almanac.worker(name="plenty", resources={})
    assert await words(almanac, job_id) == []
    assert PLENTY > 10**6
    await almanac.services.workers.drain(plenty, ADMIN)
    assert await words(almanac, job_id) == ["no_worker"]


async def test_how_jobs_ended_is_told(almanac: Almanac) -> None:
    worker = await almanac.worker(job_types=["echo"])
    done, failed = await almanac.submit(), await almanac.submit(retry={"max_attempts": 1})
    odd = await almanac.submit(retry={"max_attempts": 1})
    cancelled = await almanac.submit(delay="1h")
    late = await almanac.submit("nobody", deadline=at(1).isoformat())
    jobs = {job.job_id: job for job in await almanac.take(worker)}
    await almanac.report(worker, jobs[done], "success")
    await almanac.report(worker, jobs[failed], "fatal_failure", error=ErrorInfo(message="no such file", code="gone"))
    await almanac.report(worker, jobs[odd], "fatal_failure")
    await almanac.cancel(cancelled)
    almanac.clock.pass_seconds(2)
    await almanac.services.recover.expired()
    stories = {job_id: (await why(almanac, job_id)).summary for job_id in (done, failed, odd, cancelled, late)}
    assert stories == {
        done: "completed after 1 attempt",
        failed: "failed (gone) after 1 attempt: no such file",
        odd: "failed after 1 attempt",
        cancelled: "cancelled (cancelled_by) before it started",
        late: "failed (expired): it had not started by its deadline",
    }


async def test_a_running_job_that_is_to_stop_and_one_that_was_stopped(almanac: Almanac) -> None:
    worker = await almanac.worker()
    job_id = await almanac.submit()
    job = await almanac.take_one(worker)
    await almanac.cancel(job_id)
    assert (await why(almanac, job_id)).summary.endswith("and was asked to stop")
    await almanac.report(worker, job, "cancelled")
    assert (await why(almanac, job_id)).summary == "cancelled (cancelled_by) after 1 attempt"
